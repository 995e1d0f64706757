"""`fabric check`: deadlocks, doubtful settings and failure domains, without a run."""

from __future__ import annotations

import argparse
from typing import Any

from fabric.cli.common import DONE, MISSED, add_overrides, file_name, image_format_of, load, out_path

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("check", help="look for deadlocks, doubtful settings and failure domains")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML)")
    add_overrides(parser)
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

    scenario = load(options.scenario, options.set)
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
    print(file_name(scenario.name, options.scenario))
    for line in report.lines():
        print(f"  {line}".rstrip())
    if target is not None:
        print(f"\n  picture  {target}")
    return MISSED if report.can_deadlock else DONE
