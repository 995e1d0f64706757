"""What came of a validation: one table, as text and as Markdown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabric.errors import FabricError
from fabric.result.text import align
from fabric.validation.folder import Case
from fabric.validation.grades import Row

__all__ = ["Report", "check_page"]

HEADER = ("scenario", "way", "quantity", "ours", "theirs", "difference", "tolerance", "grade", "met")
BEGIN, END = "<!-- fabric validate: begin -->", "<!-- fabric validate: end -->"
PLACE = re.compile(f"^{BEGIN}$.*?^{END}$", re.DOTALL | re.MULTILINE)
"""Where tables go: between two lines of their own."""
TIMES = ("mean", "max", "makespan", "victim")
SIZES = ("queue", "largest use of a pool")
NUMBERS = (3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The rows of a validation.

    Attributes
    ----------
    folder : Path
    cases : tuple of Case
    rows : tuple of Row
    """

    folder: Path
    cases: tuple[Case, ...]
    rows: tuple[Row, ...]

    @property
    def missed(self) -> tuple[Row, ...]:
        """Rows outside their grade."""
        return tuple(row for row in self.rows if not row.is_met)

    @property
    def verdict(self) -> str:
        """How many rows there are of each grade, and how many are met, in one line."""
        parts = []
        for grade in ("exact", "own order", "stat"):
            of = [row for row in self.rows if row.grade == grade]
            if of:
                parts.append(f"{grade}: {sum(row.is_met for row in of)} of {len(of)} met")
        return f"{len(self.cases)} runs; {'; '.join(parts)}"

    def text(self, *, missed_only: bool = False) -> str:
        """Return the table, or its rows outside their grade, and the verdict."""
        rows = self.missed if missed_only else _collapsed(self.rows)
        cells = [_cells(row) for row in rows]
        return "\n".join([*align([HEADER, *cells], right=NUMBERS), "", self.verdict])

    def markdown(self) -> str:
        """Return the verdict, and a table a group of runs: those whose names agree before their first "_"."""
        lines = [f"{self.verdict}.", ""]
        for group, cases in itertools.groupby(self.cases, key=lambda case: case.name.partition("_")[0]):
            held = list(cases)
            purposes = ", ".join(dict.fromkeys(case.purpose for case in held if case.purpose))
            lines += [f"### {group}: {purposes}" if purposes else f"### {group}", ""]
            lines += ["| scenario | quantity | theirs | way | ours | difference | tolerance | met |"]
            lines += ["| --- | --- | ---: | --- | ---: | ---: | --- | --- |"]
            for case in held:
                lines += _markdown_rows([row for row in self.rows if row.scenario == case.name])
            lines.append("")
        return "\n".join(lines)

    def markdown_in(self, text: str) -> str:
        """Return a page with the tables between its two marks; of an empty one, marks and tables alone.

        Raises
        ------
        FabricError
            If the page is not empty and does not have the marks (`check_page`).
        """
        check_page(text, name="page")
        found = PLACE.search(text)
        before, after = (text[: found.start()], text[found.end() :]) if found else ("", "\n")
        return f"{before}{BEGIN}\n\n{self.markdown()}\n{END}{after}"

    def __str__(self) -> str:
        return self.text()


def check_page(text: str, *, name: str) -> None:
    """Refuse a page whose text would be lost, because it does not say where the tables belong.

    Parameters
    ----------
    text : str
        Empty, or with the lines `<!-- fabric validate: begin -->` and `<!-- fabric validate: end -->`.
    name : str
        Of its file, for errors.

    Raises
    ------
    FabricError
        If it has text, and not both marks in this order.
    """
    if text and PLACE.search(text) is None:
        raise FabricError(f"{name}: has text and not the lines {BEGIN} and {END}, between which tables go")


def _cells(row: Row) -> list[str]:
    met = "" if row.grade == "-" else "yes" if row.is_met else "NO"
    values = (_number(row.quantity, value) for value in (row.ours, row.theirs))
    return [row.scenario, row.way, row.quantity, *values, _difference(row), _tolerance(row), row.grade, met]


def _collapsed(rows: Sequence[Row]) -> list[Row]:
    """The rows, with the exact ones of a run that are all met as one, which counts them."""
    collapsed: list[Row] = []
    for (_, grade, _), group in itertools.groupby(rows, key=lambda row: (row.scenario, row.grade, row.way)):
        held = list(group)
        if grade == "exact" and all(row.is_met for row in held):
            count = f"all quantities, {int(held[0].theirs)} flows one by one"
            held = [replace(held[0], quantity=count, ours=len(held), theirs=len(held))]
        collapsed += held
    return collapsed


def _markdown_rows(rows: Sequence[Row]) -> Iterator[str]:
    """The rows of a run, ordered by quantity."""
    shown = _collapsed(rows)
    quantities = list(dict.fromkeys(row.quantity for row in shown))
    for row in sorted(shown, key=lambda one: quantities.index(one.quantity)):
        scenario, way, quantity, ours, theirs, difference, tolerance, _, met = _cells(row)
        yield f"| {scenario} | {quantity} | {theirs} | {way} | {ours} | {difference} | {tolerance} | {met} |"


def _number(quantity: str, value: float) -> str:
    """A value in the unit of its quantity: microseconds, bytes, Gbit/s, a count."""
    if quantity in TIMES:
        return f"{value / 1000:.3f} us"
    if quantity in SIZES:
        return f"{value:.0f} B"
    if quantity.startswith("goodput"):
        return f"{value:.3f} Gbit/s"
    return f"{value:g}"


def _difference(row: Row) -> str:
    if not row.difference:
        return "0"
    share = f" ({100 * row.difference / row.theirs:+.2f} %)" if row.theirs else ""
    if row.quantity in TIMES:
        return f"{row.difference / 1000:+.3f}{share}"
    digits = ".3f" if row.quantity.startswith("goodput") else ".10g"
    return f"{row.difference:+{digits}}{share}"


def _tolerance(row: Row) -> str:
    """An amount of a time is shown in microseconds."""
    if row.quantity in TIMES and row.tolerance.startswith("±"):
        return f"±{float(row.tolerance[1:]) / 1000:.4g} us"
    return row.tolerance
