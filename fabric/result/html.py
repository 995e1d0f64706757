"""Tables and results as HTML, for notebooks.

Self-contained fragments without scripts or style sheets; they take the notebook's own colours, so
they read in a light and in a dark theme. Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import Result
    from .table import Table

__all__ = ["result_html", "table_html"]


def table_html(table: Table) -> str:
    """Return the first and last rows of a table as an HTML table with its size as caption."""
    if not table.columns:
        return f"<p>{escape(table.name)}: no rows</p>"
    header, *body = table._cells()
    caption = f"{escape(table.name)}: {len(table):,} row{'' if len(table) == 1 else 's'}"
    numbers = [table._is_number(name) for name in header]
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    rows = "".join(f"<tr>{_cells(row, numbers)}</tr>" for row in body)
    return (
        f'<table><caption style="text-align:left">{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cells(row: Sequence[str], numbers: Sequence[bool]) -> str:
    return "".join(
        f'<td style="text-align:{"right" if number else "left"};white-space:nowrap">{escape(cell)}</td>'
        for cell, number in zip(row, numbers, strict=True)
    )


def result_html(result: Result) -> str:
    """Return a result's summary as an HTML table of two columns, with its question as caption."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(label)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{escape(text)}</td></tr>'
        for label, text in result.summary.lines()
    )
    title = escape(result.summary.title())
    return f'<table><caption style="text-align:left"><b>{title}</b></caption><tbody>{rows}</tbody></table>'
