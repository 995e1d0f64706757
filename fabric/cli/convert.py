"""`fabric convert`: files of other simulators, in and out."""

from __future__ import annotations

import argparse
from typing import Any

from fabric.cli.common import DONE, add_foreign_options, out_path

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("convert", help="turn files of other simulators into a scenario, and back")
    parser.add_argument(
        "sources", metavar="SOURCE", nargs="+", help="files as for run, or the directory of a result"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        help="a scenario (*.toml), network, flows or program (topology*.txt, flow*.txt, *.cm, *.goal, *.et), "
        "or of a result completion times or pauses (fct*.txt, pfc*.txt)",
    )
    add_foreign_options(parser)
    parser.set_defaults(command=_convert)


def _convert(options: argparse.Namespace) -> int:
    from fabric.convert.outputs import convert

    out_path(options)
    written, left_out = convert(
        options.sources, options.out, start_unit=options.start_unit, first_start=options.first_start
    )
    for path in written:
        print(path)
    for remark in left_out:
        print(f"  left out  {remark}")
    return DONE
