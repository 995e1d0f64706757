"""`fabric run`: run a scenario or a sweep, print what happened, save the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.cli.common import (
    DONE,
    INTERRUPTED,
    add_foreign_options,
    add_overrides,
    file_name,
    load_any,
    out_path,
    quantity,
)
from fabric.cli.plot import draw
from fabric.errors import FabricError, SpecError
from fabric.units import Duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.result import Result
    from fabric.spec import Scenario
    from fabric.sweep import SweepResult

__all__ = ["add", "run_combinations", "swept"]

MOST_JOBS = 3
"""Panels of jobs beside each other in the picture of a sweep."""
FEW_SIZES = 6
"""Different sizes of flows up to which completion times say more than slowdown by size."""


def add(commands: Any) -> None:
    parser = commands.add_parser("run", help="run a scenario, print what happened, save the result")
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="scenario file (TOML), or topology, flows (or program) and configuration of another simulator",
    )
    add_overrides(parser)
    parser.add_argument(
        "--sweep",
        metavar="PATH=VALUE,VALUE",
        action="append",
        default=[],
        help="run once for each value (or element of a TOML list) and compare; repeated: every combination",
    )
    add_foreign_options(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the run, instead of run.seed")
    parser.add_argument("--out", metavar="DIR", help="directory of the result (default: results/NAME)")
    parser.add_argument("--until", metavar="TIME", help='end of the run in simulated time, such as "5ms"')
    parser.add_argument("--engine", choices=("native", "reference"), default="native", help="default: native")
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from fabric.interrupt import InterruptRequest
    from fabric.io.directory import check_target
    from fabric.result.text import time_text
    from fabric.simulate import Simulation

    overrides = list(options.set)
    if options.seed is not None:
        overrides.append(f"run.seed={options.seed}")
    if options.until is not None:
        if options.until.strip().isdigit():
            raise SpecError("--until", options.until, 'a time with its unit, such as "5ms"')
        overrides.append(f"run.until={quantity(Duration, '--until', options.until)}")
    scenario, left_out = load_any(
        options.sources, overrides, start_unit=options.start_unit, first_start=options.first_start
    )
    target = out_path(options) or Path("results", file_name(scenario.name, options.sources[0]))
    scenario = swept(scenario, options.sweep)
    if scenario.sweep:
        from fabric.sweep import run_sweep

        return run_combinations(scenario, target, options, run_sweep=run_sweep)
    check_target(target)
    simulation = Simulation(scenario, engine=options.engine)
    with InterruptRequest(patient=True) as interrupt:
        status = simulation.run(progress=False if options.quiet else None)
        if status == "INTERRUPTED":
            when = time_text(simulation.now)
            print(f"fabric: interrupted at {when}, saving what was recorded", file=sys.stderr)
        result = simulation.result()
        result.save(target)
    notes = [f"result      {target}"]
    if not options.quiet:
        print(result.summary, flush=True)
    wants_picture = not options.no_plot and not interrupt.requested
    interrupted = status == "INTERRUPTED" or interrupt.requested
    try:
        notes += _add_picture(result, target) if wants_picture else []
    except KeyboardInterrupt:
        interrupted = True
        notes.append("no picture: interrupted")
    notes += [f"left out    {remark}" for remark in left_out]
    if not options.quiet:
        print("", *(f"  {line}" for line in notes), sep="\n")
    return INTERRUPTED if interrupted else DONE


def swept(scenario: Scenario, axes: Sequence[str]) -> Scenario:
    """Return the scenario with the axes of `--sweep` added to those that it has."""
    from fabric.scenario import override_value

    sweep = dict(scenario.sweep)
    for axis in axes:
        path, equals, text = axis.partition("=")
        if not equals or not text.strip():
            raise SpecError("--sweep", axis, 'a path and values, such as "switch.ecn.kmin=200KB,400KB"')
        values = override_value(text.strip())
        listed = isinstance(values, list | dict)
        sweep[path.strip()] = values if listed else [override_value(each.strip()) for each in text.split(",")]
    return scenario.replace(sweep=sweep) if axes else scenario


def _compared(sweep: SweepResult) -> Axes:
    """Return the picture of a sweep: steps of training jobs, else what jobs or flows took, and queues."""
    from fabric.plot import comparison, step_shares
    from fabric.sweep import job_column

    table = sweep.table
    if "step_ps" in table:
        return step_shares(table, axes=sweep.axes, title_text=sweep.name, note=sweep.question)
    shown = ["fct_max_ps" if (table["fct_max_ps"] >= 0).any() else "done_ps"]
    shown = [job_column(job) for job in sweep.jobs[:MOST_JOBS]] or shown
    return comparison(table, axes=sweep.axes, columns=(*shown, "queue_peak_bytes"), note=sweep.question)[0]


def run_combinations(
    scenario: Scenario, target: Path, options: argparse.Namespace, *, run_sweep: Callable[..., SweepResult]
) -> int:
    """Run a sweep in a way of the command's, print its table, save its results and picture."""
    from fabric.interrupt import InterruptRequest
    from fabric.io.files import write_whole
    from fabric.plot import to_image
    from fabric.sweep import check_sweep_target, save_sweep, sweep_runs

    runs = sweep_runs(scenario)
    check_sweep_target(target, runs)
    sweep = run_sweep(scenario, engine=options.engine, progress=False if options.quiet else None)
    if sweep.interrupted:
        done = f"after {len(sweep.runs)} of {len(runs)} runs"
        print(f"fabric: interrupted {done}, saving what was recorded", file=sys.stderr)
    with InterruptRequest(patient=True) as interrupt:
        save_sweep(sweep, target)
    if not options.quiet:
        head = ": ".join(part for part in (scenario.name, scenario.question) if part)
        print(*([head] if head else []), sweep, "", sep="\n")
        print(f"  results     {target}")
    if sweep.interrupted or interrupt.requested:
        return INTERRUPTED
    if not options.no_plot:
        write_whole(target / "sweep.png", to_image(_compared(sweep)))
        if not options.quiet:
            print(f"  picture     {target / 'sweep.png'}")
    return DONE


def _add_picture(result: Result, target: Path) -> list[str]:
    """Draw the picture of a run into its saved result; return what to say of it."""
    from fabric.io.files import write_whole

    pictures, notes = _pictures(result)
    for name, content in pictures.items():
        write_whole(target / name, content)
    return [*(f"picture     {target / name}" for name in pictures), *notes]


def _pictures(result: Result) -> tuple[dict[str, bytes], list[str]]:
    """Return pictures by name: a deadlock, if there is one; queues if recorded, else what flows took."""
    from fabric.plot import to_image

    notes = []
    kind = "queues"
    if "queue" not in result.recorded and not len(result.flows):
        kind = "utilisation"
        notes.append("no queue depths were recorded (record.queues): the picture shows how busy links were")
    elif "queue" not in result.recorded:
        many_sizes = len(set(result.flows["size_bytes"].tolist())) > FEW_SIZES
        kind, shown = ("slowdown", "slowdown by size") if many_sizes else ("fct", "completion times")
        notes.append(f"no queue depths were recorded (record.queues): the picture shows {shown}")
    kinds = ["deadlock", kind] if result.deadlocks else [kind]
    try:
        return {f"{kind}.png": to_image(draw(result, kind)) for kind in kinds}, notes
    except FabricError as error:
        return {}, [f"no picture: {error}"]
