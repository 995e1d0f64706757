"""`fabric failures`: what fails and when that is noticed, what it costs, what redundancy is worth."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.cli.common import DONE, MISSED, add_overrides, file_name, image_format_of, load, out_path
from fabric.errors import FabricError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.resilience import LinkRates
    from fabric.spec import Scenario

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("failures", help="what fails, when it is noticed, and what it costs")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML)")
    add_overrides(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--cost", action="store_true", help="run with and without, and take the lost time apart"
    )
    what.add_argument(
        "--recover", action="store_true", help="run, with what recovery.on_timeout says of the job"
    )
    what.add_argument(
        "--redundancy",
        action="store_true",
        help="run the job on fabrics with different reserves, and compare",
    )
    what.add_argument(
        "--draw",
        action="store_true",
        help="run, draw the throughput through the failures, and print its means",
    )
    parser.add_argument(
        "--links",
        metavar="PATTERN",
        action="append",
        help='links that a curve of --draw is the sum of, such as "leaf0->spine*"; may be repeated',
    )
    parser.add_argument("--out", metavar="FILE", help="picture of --draw or --redundancy, .png, .pdf or .svg")
    parser.set_defaults(command=_failures)


def _failures(options: argparse.Namespace) -> int:
    scenario = load(options.scenario, options.set)
    target = out_path(options)
    if target is not None and not (options.draw or options.redundancy):
        raise FabricError("--out goes with --draw or --redundancy, which draw something")
    if target is not None:
        image_format_of(target)  # what cannot be written is said before anything runs
    if options.draw and target is None:
        target = Path(f"{file_name(scenario.name, options.scenario)}-throughput.png")
    name = file_name(scenario.name, options.scenario)
    code = DONE
    if options.cost:
        _show(_cost(scenario), name)
    elif options.recover:
        lines, code = _recover(scenario)
        _show(lines, name)
    elif options.redundancy:
        _redundancy(scenario, name, target)
    else:
        _show(_list(scenario), name)
    if options.draw and target is not None:
        _write(_drawn(scenario, options.links), target)
    return code


def _show(lines: Sequence[str], name: str) -> None:
    """Print a table below the name of its scenario, now that it is known that there is one."""
    print(name)
    for line in lines:
        print(f"  {line}")


def _list(scenario: Scenario) -> list[str]:
    from fabric.failures import find_occurrences
    from fabric.failures.timeline import milestones
    from fabric.result.text import align, time_text
    from fabric.topology import build_network

    found = milestones(find_occurrences(scenario, build_network(scenario.topology)), scenario.recovery)
    names = ("began", "suspected", "isolated", "converged", "dead", "ended", "restored")
    rows = [["failure", "of", *names]]
    rows += [
        [each.kind, each.target, *(time_text(getattr(each, f"{name}_ps")) for name in names)]
        for each in found
    ]
    return align(rows, right=range(2, 9)) if found else ["nothing fails"]


def _cost(scenario: Scenario) -> list[str]:
    from fabric.resilience import lost_time
    from fabric.result.text import align, percent_text, time_text

    cost = lost_time(scenario)
    rows = []
    for name, time_ps in cost.rows():
        is_part = not name.startswith("with")
        sign = "" if not is_part else "-" if time_ps < 0 else "+"
        share = percent_text(time_ps / cost.lost_ps) if is_part and cost.lost_ps else ""
        rows.append([name, sign + time_text(abs(time_ps)), share])
    return align(rows, right=(1, 2))


def _recover(scenario: Scenario) -> tuple[list[str], int]:
    from fabric.resilience import run_recovering
    from fabric.result.text import align, time_text

    recovered = run_recovering(scenario)
    rows = [["job", "from", "to", "ranks", "operations done", "given up"]]
    for each in recovered.phases:
        times = (time_text(each.began_ps), time_text(each.ended_ps))
        rows.append(
            [each.outcome, *times, str(each.ranks), str(each.operations), ", ".join(each.without) or "-"]
        )
    return align(rows, right=(1, 2, 3, 4)), DONE if recovered.is_finished else MISSED


def _redundancy(scenario: Scenario, name: str, target: Path | None) -> None:
    from fabric.plot import redundancy
    from fabric.resilience import compare_redundancy
    from fabric.resilience.redundancy import FAILED_PARTS
    from fabric.result.text import align, time_text

    options = compare_redundancy(scenario)
    rows = [["option", "switches", "cables", "healthy", *(f"{part} fails" for part in FAILED_PARTS)]]
    for each in options:
        failed = [
            f"{time_text(each.failed_ps[part])} ({100 * each.throughput_left(part):.0f} %)"
            if each.failed_ps[part] >= 0
            else "stops"
            for part in FAILED_PARTS
        ]
        rows.append([each.option, str(each.switches), str(each.cables), time_text(each.healthy_ps), *failed])
    _show(align(rows, right=range(1, 7)), name)
    if target is not None:
        _write(redundancy(options), target)


def _drawn(scenario: Scenario, links: list[str] | None) -> Axes:
    from fabric.failures import find_occurrences
    from fabric.failures.timeline import milestones
    from fabric.plot import through_failure
    from fabric.resilience import link_rates
    from fabric.simulate import run
    from fabric.spec import ThroughputRecord
    from fabric.topology import build_network
    from fabric.units import Duration

    patterns = tuple(links or ("*->host*",))
    found = milestones(find_occurrences(scenario, build_network(scenario.topology)), scenario.recovery)
    stated = scenario.record.throughput
    watched = ThroughputRecord(ports=patterns, interval=stated.interval if stated else Duration("10us"))
    result = run(scenario.replace(record=scenario.record.replace(throughput=watched)))
    if found:
        _print_rates(link_rates(result, found, links=patterns))
    return through_failure(result, found, links=patterns)


def _print_rates(rates: Sequence[LinkRates]) -> None:
    from fabric.result.text import align, percent_text, rate_text

    rows = [["links", "before", "after", "left"]]
    rows += [
        [each.links, rate_text(each.before_bps), rate_text(each.after_bps), percent_text(each.left)]
        for each in rates
    ]
    for line in align(rows, right=(1, 2, 3)):
        print(f"  {line}")


def _write(axes: Axes, target: Path) -> None:
    from fabric.io.files import write_whole
    from fabric.plot import to_image

    write_whole(target, to_image(axes, format=image_format_of(target)))
    print(f"\n  picture  {target}")
