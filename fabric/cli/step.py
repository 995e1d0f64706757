"""`fabric step`: run training steps, print where their time goes, save the result, draw the timeline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.cli.common import DONE, INTERRUPTED, add_overrides, file_name, load, out_path
from fabric.cli.run import run_combinations, swept
from fabric.errors import SpecError

if TYPE_CHECKING:
    from fabric.spec import Scenario
    from fabric.step import StepReport

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "step", help="run training steps, print where their time goes, draw who does what"
    )
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML) with a training job")
    add_overrides(parser)
    parser.add_argument(
        "--sweep",
        metavar="PATH=VALUE,VALUE",
        action="append",
        default=[],
        help="run once for each value and compare; repeated: every combination",
    )
    parser.add_argument(
        "--scale",
        metavar="N,N",
        help="run with so many data ranks, each with as much to do, and compare (weak scaling)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the run, instead of run.seed")
    parser.add_argument("--out", metavar="DIR", help="directory of the result (default: results/NAME)")
    parser.add_argument("--engine", choices=("native", "reference"), default="native", help="default: native")
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_step)


def _step(options: argparse.Namespace) -> int:
    from fabric.interrupt import InterruptRequest
    from fabric.io.directory import check_target
    from fabric.step import run_step, run_step_sweep

    overrides = [*options.set, *([] if options.seed is None else [f"run.seed={options.seed}"])]
    scenario = swept(load(options.scenario, overrides), options.sweep)
    target = out_path(options) or Path("results", file_name(scenario.name, options.scenario))
    if options.scale is not None:
        return _scale(scenario, target, options)
    if scenario.sweep:
        return run_combinations(scenario, target, options, run_sweep=run_step_sweep)
    check_target(target)
    with InterruptRequest(patient=True) as interrupt:
        report = run_step(scenario, engine=options.engine, progress=False if options.quiet else None)
        pictures = {} if options.no_plot or interrupt.requested else _timeline(report)
        report.result.save(target, pictures=pictures)
    if not options.quiet:
        print(report, "", f"  result    {target}", sep="\n")
        print(*(f"  timeline  {target / name}\n" for name in pictures), sep="", end="")
    return INTERRUPTED if report.result.status == "INTERRUPTED" or interrupt.requested else DONE


def _timeline(report: StepReport) -> dict[str, bytes]:
    from fabric.plot import timeline, to_image

    if not len(report.steps):
        return {}
    return {"timeline.png": to_image(timeline(report.result))}


def _scale(scenario: Scenario, target: Path, options: argparse.Namespace) -> int:
    from fabric.io.files import write_together
    from fabric.plot import scale_curve, to_image
    from fabric.step import scale_loss

    try:
        sizes = [int(each) for each in options.scale.split(",")]
    except ValueError:
        raise SpecError("--scale", options.scale, "whole numbers, such as 1,2,4,8") from None
    try:
        table = scale_loss(scenario, sizes, engine=options.engine, progress=False if options.quiet else None)
    except SpecError as error:
        path = "--scale" if error.path == "data_ranks" else error.path
        raise SpecError(path, error.value, error.allowed) from None
    if not options.no_plot:
        target.mkdir(parents=True, exist_ok=True)
        write_together({target / "scale.png": to_image(scale_curve(table, title_text=scenario.name))})
    if not options.quiet:
        print(scenario.name, table.text(), sep="\n")
        if not options.no_plot:
            print(f"\n  picture   {target / 'scale.png'}")
    return DONE
