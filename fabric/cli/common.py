"""What commands share: exit codes, options that several have, how files are named and read."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.errors import SpecError
from fabric.interrupt import INTERRUPTED
from fabric.units import Quantity, QuantityError

if TYPE_CHECKING:
    from fabric.spec import Scenario

__all__ = [
    "DONE",
    "IMAGE_FORMATS",
    "INTERRUPTED",
    "MISSED",
    "REFUSED",
    "add_foreign_options",
    "add_overrides",
    "file_name",
    "image_format_of",
    "load",
    "load_any",
    "out_path",
    "quantity",
    "watch",
]

DONE, MISSED, REFUSED = 0, 1, 2

IMAGE_FORMATS = ("png", "pdf", "svg")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help='change a value of the scenario, such as switch.ecn.kmin="200KB"; may be repeated',
    )


def add_foreign_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--start-unit",
        choices=("ps", "ns", "us"),
        default="ps",
        help="what start counts in a connection matrix (default: ps)",
    )
    parser.add_argument(
        "--first-start",
        metavar="TIME",
        help='move the flows of other simulators so that the first starts then, such as "0s"',
    )


def out_path(options: argparse.Namespace, option: str = "out") -> Path | None:
    """Return what `--out`, or another option that names what is written, names; None if it is not given."""
    name = getattr(options, option)
    if name == "":
        raise SpecError(f"--{option}", "", "the name of a file or directory")
    return None if name is None else Path(name)


def quantity(kind: type[Quantity], option: str, text: str) -> int:
    """Return the size or time that an option gives, with its unit."""
    try:
        return int(kind(text))
    except QuantityError as error:
        raise SpecError(option, error.value, error.allowed) from None


def image_format_of(target: Path) -> str:
    image_format = target.suffix.lower().removeprefix(".")
    if image_format not in IMAGE_FORMATS:
        raise SpecError("--out", str(target), "a file name ending in .png, .pdf or .svg")
    return image_format


def watch(text: str) -> None:
    """Show what is at work, on a terminal, in place of what was shown before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def load(path: str, overrides: Sequence[str]) -> Scenario:
    """Read a scenario; what it expects holds for itself, not for what options make of it."""
    from fabric.scenario import load_scenario

    scenario = load_scenario(path, overrides=overrides)
    return scenario.replace(expect="") if overrides else scenario


def load_any(
    sources: Sequence[str], overrides: Sequence[str], *, start_unit: Any, first_start: str | None
) -> tuple[Scenario, Sequence[object]]:
    """Return a scenario, and what was left out of the files of another simulator."""
    from fabric.convert import import_files, is_scenario
    from fabric.scenario import dump_scenario, load_scenario

    if is_scenario(sources, start_unit=start_unit, first_start=first_start):
        return load(sources[0], overrides), ()
    imported = import_files(*sources, start_unit=start_unit, first_start=first_start)
    return load_scenario(dump_scenario(imported.scenario), overrides=overrides), imported.ignored


def file_name(name: str, path: str) -> str:
    """Return the name of what was described, or of the file that did, as the name of a file."""
    return re.sub(r"[^\w.+-]+", "-", name or Path(path).stem).strip("-.") or "scenario"
