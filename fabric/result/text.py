"""Quantities as a person reads them: a few digits and the unit that fits.

Results hold integers (picoseconds, bytes, bits per second); tables, summaries and progress lines show
them with these functions. Four significant digits, plain ASCII ("us"), so that any terminal can print
them. What did not happen (a negative time, a number that is not one) is "-".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from fabric.units import format_duration, format_rate, format_size

__all__ = ["align", "by_unit", "count_text", "counted", "percent_text", "rate_text", "size_text", "time_text"]

DIGITS = 4
"""Significant digits of a quantity that is shown."""


_LARGE_COUNTS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


def time_text(time_ps: float) -> str:
    """Return a time in picoseconds as text: ``time_text(83_120_000)`` is "83.12us"."""
    return format_duration(time_ps, digits=DIGITS) if time_ps >= 0 else "-"


def size_text(size_bytes: float) -> str:
    """Return a number of bytes as text: ``size_text(4096)`` is "4.096KB"."""
    return format_size(size_bytes, digits=DIGITS) if size_bytes >= 0 else "-"


def rate_text(rate_bps: float) -> str:
    """Return a rate in bit/s as text: ``rate_text(400e9)`` is "400Gbps"."""
    return format_rate(rate_bps, digits=DIGITS) if rate_bps >= 0 else "-"


def count_text(count: float) -> str:
    """Return a count as text, exact below a million: ``count_text(12_300_000)`` is "12.3 million"."""
    if abs(count) < 10**6:
        return f"{round(count):,}"
    scale, name = next((s, n) for s, n in _LARGE_COUNTS if abs(count) >= s)
    return f"{_digits(count / scale)} {name}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: ``counted(1, "switch", "switches")`` is "1 switch"."""
    return f"{count_text(count)} {noun if count == 1 else plural or noun + 's'}"


def _digits(value: float) -> str:
    before = len(str(int(abs(value))))
    text = f"{value:.{max(0, DIGITS - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent_text(share: float) -> str:
    """Return a share of one as text: ``percent_text(0.314)`` is "31.4 %"."""
    return f"{100 * share:.3g} %" if math.isfinite(share) else "-"


TIME_DIGITS = 7
"""Significant digits of a time in a table, where neighbouring rows differ by little."""


def _row_time_text(time_ps: float) -> str:
    return format_duration(time_ps, digits=TIME_DIGITS) if time_ps >= 0 else "-"


_SUFFIXES: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_ps", _row_time_text),
    ("_bytes", size_text),
    ("_bps", rate_text),
    ("utilisation", percent_text),
)


def by_unit(column: str, value: object) -> str:
    """Return `value` as text in the unit that its column's name ends in.

    Examples
    --------
    >>> by_unit("fct_ps", 1_500_000), by_unit("slowdown", 1.25), by_unit("source", "host3")
    ('1.5us', '1.25', 'host3')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    for suffix, text in _SUFFIXES:
        if column.endswith(suffix):
            return text(value)
    if isinstance(value, int):
        return str(value)
    return "-" if math.isnan(value) else _digits(value)


def align(rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """Return rows of cells as lines with aligned columns, those in `right` flush right."""
    cells = [list(row) for row in rows]
    if not cells:
        return []
    flush = set(right)
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    return [
        "  ".join(
            cell.rjust(width) if k in flush else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
