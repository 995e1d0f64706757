"""`fabric bench`: a collective over sizes, as nccl-tests measures it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from fabric.cli.common import (
    DONE,
    INTERRUPTED,
    add_overrides,
    file_name,
    image_format_of,
    load,
    out_path,
    quantity,
    watch,
)
from fabric.errors import FabricError, SpecError
from fabric.units import Size

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("bench", help="measure a collective over sizes, as nccl-tests does")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML) whose fabric is used")
    add_overrides(parser)
    parser.add_argument("--collective", metavar="NAME", help="default: the scenario's, or all_reduce")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--algorithm", metavar="NAME", help="default: the scenario's")
    which.add_argument(
        "--compare", metavar="NAME,NAME", help="algorithms, such as ring,tree,halving_doubling"
    )
    parser.add_argument("--ranks", type=int, metavar="N", help="on the first hosts (default: all hosts)")
    parser.add_argument("--ranks-per-host", type=int, metavar="N", help="default: the scenario's, or 1")
    parser.add_argument(
        "--placement", choices=("as_named", "shuffled"), help="of ranks on hosts: by number, or drawn"
    )
    parser.add_argument("--channels", type=int, metavar="N", help="default: the scenario's, or 1")
    parser.add_argument(
        "--chunk", metavar="SIZE", help="largest part of a piece (default: the scenario's, or whole)"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the algorithms that take it, such as window=8, root=3, shape=[8,8], slices=2",
    )
    parser.add_argument("-b", "--begin", metavar="SIZE", default="1KiB", help="first size (default: 1KiB)")
    parser.add_argument("-e", "--end", metavar="SIZE", default="64MiB", help="largest (default: 64MiB)")
    parser.add_argument("-f", "--factor", type=float, metavar="N", help="between sizes (default: 2)")
    parser.add_argument("-i", "--step", metavar="SIZE", help="between sizes, instead of a factor")
    parser.add_argument("-n", "--iterations", type=int, metavar="N", default=1, help="default: 1")
    parser.add_argument("--type", metavar="NAME", default="float", help="of elements (default: float)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the runs, instead of run.seed")
    parser.add_argument("--engine", choices=("native", "reference"), default="native", help="default: native")
    parser.add_argument("--csv", metavar="FILE", help="write every column there")
    parser.add_argument(
        "--out", metavar="FILE", help="image, .png, .pdf or .svg (default: results/NAME-bench.png)"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")
    parser.set_defaults(command=_bench)


def _bench(options: argparse.Namespace) -> int:
    from fabric.bench import bench_csv, bench_text, run_bench
    from fabric.interrupt import InterruptRequest
    from fabric.io.files import write_whole

    bench = _bench_of(options)
    csv = out_path(options, "csv")
    target = out_path(options) or Path(
        "results", f"{file_name(bench.scenario.name, options.scenario)}-bench.png"
    )
    image_format = image_format_of(target)

    planned = len(bench.runs())
    try:
        table = run_bench(bench, engine=options.engine, watch=watch)
    finally:
        watch("")
    interrupted = len(table) < planned
    if interrupted:
        done = f"after {len(table)} of {planned} sizes"
        print(f"fabric: interrupted {done}, saving what was measured", file=sys.stderr)
    with InterruptRequest(patient=True) as again:
        print(bench_text(table), flush=True)
        if csv is not None:
            write_whole(csv, bench_csv(table).encode())
            print(f"\n  table    {csv}")
    if interrupted or again.requested:
        return INTERRUPTED
    if not options.no_plot:
        print(f"\n  {_add_picture(table, target, image_format)}")
    return DONE


def _add_picture(table: Any, target: Path, image_format: str) -> str:
    """Draw the bandwidth; return what to say of it."""
    from fabric.io.files import write_whole
    from fabric.plot import bandwidth, to_image

    try:
        drawn = bandwidth(table)
    except FabricError as error:
        return f"no picture: {error}"
    write_whole(target, to_image(drawn, format=image_format))
    return f"picture  {target}"


def _bench_of(options: argparse.Namespace) -> Any:
    """Return the benchmark that the options describe."""
    from fabric.bench import Bench, sizes_between

    overrides = [*options.set, *([] if options.seed is None else [f"run.seed={options.seed}"])]
    sizes = sizes_between(
        quantity(Size, "--begin", options.begin),
        quantity(Size, "--end", options.end),
        factor=options.factor,
        step=None if options.step is None else quantity(Size, "--step", options.step),
    )
    compared = options.compare if options.compare is not None else options.algorithm
    return Bench(
        scenario=load(options.scenario, overrides),
        sizes=sizes,
        collective=options.collective,
        algorithms=() if compared is None else tuple(name.strip() for name in compared.split(",")),
        ranks=options.ranks,
        placement=options.placement,
        ranks_per_host=options.ranks_per_host,
        channels=options.channels,
        chunk=None if options.chunk is None else quantity(Size, "--chunk", options.chunk),
        options=dict(_option(text) for text in options.option),
        iterations=options.iterations,
        element=options.type,
    )


def _option(text: str) -> tuple[str, Any]:
    """An option of an algorithm, its value read as TOML."""
    from fabric.scenario import override_value

    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise SpecError("--option", text, "NAME=VALUE, such as window=8")
    return name.strip(), override_value(value.strip())
