"""`fabric check`: deadlocks, doubtful settings and failure domains, without a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.cli.common import (
    DONE,
    MISSED,
    add_foreign_options,
    add_overrides,
    file_name,
    image_format_of,
    load_any,
    out_path,
)
from fabric.errors import SpecError

if TYPE_CHECKING:
    from fabric.spec import Scenario

__all__ = ["add"]

OF_A_FOLDER = (("config.txt",), ("topology.txt", "flow.txt"), ("topology.txt",))
"""Names of the files of a run in a folder: the first set that is whole is taken."""


def add(commands: Any) -> None:
    parser = commands.add_parser("check", help="look for deadlocks, doubtful settings and failure domains")
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="scenario file (TOML), or files of another simulator: as for run, a topology alone, or a folder "
        "with those of HPCC",
    )
    add_overrides(parser)
    add_foreign_options(parser)
    parser.add_argument(
        "--routes",
        choices=("all", "traffic"),
        default="all",
        help="routes between all hosts (default), or those of the scenario's flows",
    )
    parser.add_argument(
        "--fail",
        metavar="NAME,...",
        action="append",
        default=[],
        help="what is down at once, such as leaf0-spine1,spine3; repeated: several such cases, one after the "
        "other (default: nothing, then each cable and switch by itself)",
    )
    parser.add_argument("--no-single", action="store_true", help="do not try each failure by itself")
    parser.add_argument("--remedy", choices=("up-down", "classes", "lossy"), help="check with this applied")
    parser.add_argument("--out", metavar="FILE", help="draw failure domains, .png, .pdf or .svg")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from fabric.checks import check_scenario

    scenario, notes = _checked(options)
    target = out_path(options)
    image_format = None if target is None else image_format_of(target)
    report = check_scenario(
        scenario,
        routes=options.routes,
        fail=options.fail,
        single=not options.no_single,
        apply=options.remedy,
    )
    if target is not None and image_format is not None:
        from fabric.io.files import write_whole
        from fabric.plot import failure_domains, to_image

        write_whole(target, to_image(failure_domains(report.domains), format=image_format))
    print(file_name(scenario.name, options.sources[0]))
    for line in report.lines():
        print(f"  {line}".rstrip())
    if notes:
        print("", *(f"  {note}" for note in notes), sep="\n")
    if target is not None:
        print(f"\n  picture  {target}")
    return MISSED if report.can_deadlock else DONE


def _checked(options: argparse.Namespace) -> tuple[Scenario, Sequence[str]]:
    """Return what is checked, and notes about the files of another simulator."""
    sources = [file for source in options.sources for file in _files(source)]
    if len(sources) == 1 and _is_topology(sources[0]):
        return _alone(sources[0], options.set)
    scenario, left_out = load_any(
        sources, options.set, start_unit=options.start_unit, first_start=options.first_start
    )
    return scenario, [f"left out  {remark}" for remark in left_out]


def _files(source: str) -> list[str]:
    """Return the files of a run if a folder is named."""
    if not Path(source).is_dir():
        return [source]
    for names in OF_A_FOLDER:
        if all(Path(source, name).is_file() for name in names):
            return [str(Path(source, name)) for name in names]
    raise SpecError("FILE", source, "a file, or a folder with config.txt or topology.txt")


def _is_topology(source: str) -> bool:
    from fabric.convert.imported import ROLES
    from fabric.formats import recognise

    return ROLES.get(recognise(source) or "") == "topology"


def _alone(source: str, overrides: Sequence[str]) -> tuple[Scenario, Sequence[str]]:
    """Return a topology as a scenario, in which every host sends one message to another."""
    from fabric.convert import network_spec
    from fabric.scenario import dump_scenario, load_scenario
    from fabric.spec import Permutation, Scenario, Switch
    from fabric.units import Duration, Size

    scenario = Scenario(
        name=Path(source).stem,
        topology=network_spec(source),
        traffic=(Permutation(size=Size("1KB")),),
        switch=Switch(latency=Duration(0)),
    )
    note = "no flows    one message of every host to another stands in for them"
    return load_scenario(dump_scenario(scenario), overrides=overrides), (note,)
