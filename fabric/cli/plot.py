"""`fabric plot`: draw a saved result."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.cli.common import DONE, image_format_of, out_path
from fabric.errors import FabricError
from fabric.io.names import DRAWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.result import Result

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("plot", help="draw a saved result")
    parser.add_argument("directory", metavar="DIR", help="directory of a result")
    parser.add_argument("--kind", choices=DRAWN, default="queues", help="default: queues")
    parser.add_argument("--ports", metavar="PATTERN", help='ports whose queues are drawn, such as "leaf0->*"')
    parser.add_argument("--out", metavar="FILE", help="image, .png, .pdf or .svg (default: DIR/KIND.png)")
    parser.set_defaults(command=_plot)


def _plot(options: argparse.Namespace) -> int:
    from fabric.io.files import write_whole
    from fabric.plot import to_image
    from fabric.result import Result

    if options.ports is not None and options.kind != "queues":
        raise FabricError(f"--ports chooses queues and does not go with --kind {options.kind}")
    target = out_path(options) or Path(options.directory, f"{options.kind}.png")
    image_format = image_format_of(target)
    axes = draw(Result.load(options.directory), options.kind, options.ports)
    write_whole(target, to_image(axes, format=image_format))
    print(target)
    return DONE


def draw(result: Result, kind: str, ports: str | None = None) -> Axes:
    from fabric import plot

    if kind == "queues":
        return plot.queues(result, ports=ports)
    drawings = {
        "fct": plot.fct_cdf,
        "slowdown": plot.slowdown_by_size,
        "utilisation": plot.utilisation,
        "rates": plot.rates,
        "deadlock": plot.deadlock,
        "pauses": plot.pause_tree,
        "timeline": plot.timeline,
    }
    return drawings[kind](result)
