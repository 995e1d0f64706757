"""Tables of text: aligned for a terminal, or as Markdown.

The first column is aligned left, all others, which hold figures, right.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["table_text"]


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool = False) -> str:
    """Return a table as lines of text.

    Examples
    --------
    >>> print(table_text(["case", "hops"], [["ring", "10"]]))
    case  hops
    ring    10
    >>> print(table_text(["case", "hops"], [["ring", "10"]], markdown=True))
    | case | hops |
    | :--- | ---: |
    | ring |   10 |
    """
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    if not markdown:
        return "\n".join("  ".join(_cells(row, widths)).rstrip() for row in (header, *rows))
    widths = [max(width, 4) for width in widths]
    rule = [("-" * (width - 1) + ":") for width in widths]
    rule[0] = ":" + "-" * (widths[0] - 1)
    return "\n".join("| " + " | ".join(_cells(row, widths)) + " |" for row in (header, rule, *rows))


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(row, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
