"""A log of failures as CSV, read whole or not at all.

Columns: `at`, `lasts`, `kind`, `target`, `value`, in any order; `lasts` and `value` may be left out or empty.
Times are durations ("1.5ms"; a bare number is picoseconds) from the beginning of the run. What a line says is
checked like an entry of a scenario; an error names the file and the line.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from fabric.errors import MISSING, SpecError
from fabric.spec.decode import convert, did_you_mean
from fabric.spec.failures import (
    Corruption,
    DegradedLink,
    Failure,
    HostHang,
    LinkDown,
    LinkDrain,
    PfcStorm,
    SlowNic,
    SwitchDown,
)

__all__ = ["COLUMNS", "read_log"]

COLUMNS = ("at", "lasts", "kind", "target", "value")
TARGETS: dict[str, tuple[Any, str, str | None]] = {
    "link_down": (LinkDown, "link", None),
    "link_drain": (LinkDrain, "link", None),
    "degraded_link": (DegradedLink, "link", "rate"),
    "corruption": (Corruption, "link", "bit_error_rate"),
    "switch_down": (SwitchDown, "switch", None),
    "host_hang": (HostHang, "host", None),
    "slow_nic": (SlowNic, "host", "rate"),
    "pfc_storm": (PfcStorm, "host", None),
}
"""By kind: its spec, the field that `target` is, and the one that `value` is."""


def read_log(file: str | Path, *, path: str = "file") -> list[tuple[str, Failure]]:
    """Read a log of failures.

    Parameters
    ----------
    file : path
    path : str
        Where the file stands in a scenario, for the error if it cannot be read.

    Returns
    -------
    list of (str, Failure)
        Of each line where it stands ("faults.csv:3"), and what it says.

    Raises
    ------
    fabric.errors.SpecError
        A file that cannot be read, or a line that says nothing that can be run.
    """
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream)
            header = next(rows, [])
            _check_header(header, f"{file}:1")
            return [
                (
                    f"{file}:{rows.line_num}",
                    _failure(dict(zip(header, row, strict=False)), f"{file}:{rows.line_num}", row, header),
                )
                for row in rows
                if any(cell.strip() for cell in row)
            ]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SpecError(path, str(file), f"a CSV file that can be read ({reason})") from None
    except csv.Error as error:
        raise SpecError(path, str(file), f"a CSV file ({error})") from None


def _check_header(header: list[str], where: str) -> None:
    for name in header:
        if name not in COLUMNS:
            raise SpecError(where, name, f"the columns {', '.join(COLUMNS)}{did_you_mean(name, COLUMNS)}")
    for name in ("at", "kind", "target"):
        if name not in header:
            raise SpecError(where, ",".join(header), f"a column {name}")


def _failure(cells: dict[str, str], where: str, row: list[str], header: list[str]) -> Failure:
    if len(row) != len(header):
        raise SpecError(where, ",".join(row), f"{len(header)} cells, as many as columns")
    cells = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    kind = cells.get("kind", MISSING)
    if kind not in TARGETS:
        allowed = "one of " + ", ".join(TARGETS)
        raise SpecError(f"{where}: kind", kind, allowed + did_you_mean(kind, TARGETS))
    cls, target, value = TARGETS[kind]
    fields: dict[str, Any] = {"kind": kind}
    for name in ("at", "lasts"):
        if name in cells:
            fields[name] = int(cells[name]) if cells[name].isdigit() else cells[name]
    if "target" in cells:
        fields[target] = cells["target"]
    if "value" in cells:
        if value is None:
            raise SpecError(f"{where}: value", cells["value"], f"nothing: {kind} has no value")
        fields[value] = _number(cells["value"]) if value == "bit_error_rate" else cells["value"]
    try:
        return convert(fields, cls)  # type: ignore[no-any-return]
    except SpecError as error:
        named = {target: "target", value: "value"}.get(
            error.path.rpartition(".")[2], error.path.rpartition(".")[2]
        )
        raise SpecError(f"{where}: {named}", error.value, error.allowed) from None


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
