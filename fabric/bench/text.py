"""A benchmark as text: the table of nccl-tests, and CSV.

Columns and units are those of nccl-tests (`src/common.cu`): size in bytes, count in elements, time in
microseconds, bandwidths in GB/s of 10^9 bytes, and the average of busbw at the end. Beside them stand how
much the last rank was behind the first, and the slowest link with its cause.
"""

from __future__ import annotations

import csv
import io
import math

from fabric.result import Table
from fabric.result.text import align, counted, rate_text

__all__ = ["bench_csv", "bench_text"]

PS_PER_US, BITS_PER_GB = 10**6, 8 * 10**9
HEAD = ("size", "count", "type", "redop", "time", "algbw", "busbw", "skew", "slowest link", "because of")
UNITS = ("(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "", "")
NUMBERS = (0, 1, 4, 5, 6, 7)


def bench_text(table: Table) -> str:
    """Return a benchmark as nccl-tests prints it, a table for each algorithm.

    Parameters
    ----------
    table : Table
        Of `run_bench`.
    """
    parts = []
    for name in dict.fromkeys(table["algorithm"].tolist()):
        part = table[table["algorithm"] == name]
        rows = [
            [
                str(row["size_bytes"]),
                str(row["count"]),
                row["type"],
                row["redop"],
                f"{row['time_ps'] / PS_PER_US:.2f}",
                _bandwidth_text(row["algbw_bps"], 2),
                _bandwidth_text(row["busbw_bps"], 2),
                f"{row['skew_ps'] / PS_PER_US:.2f}",
                row["slowest_link"] or "none",
                row["cause"] if row["chosen"] == name else f"{row['cause']} ({row['chosen']})",
            ]
            for row in part
        ]
        lines = align([HEAD, UNITS, *rows], right=NUMBERS)
        first = part[0]
        rate = rate_text(first["line_rate_bps"])
        mean = _bandwidth_text(float(part["busbw_bps"].mean()), 4)
        parts.append(
            "\n".join(
                [
                    f"# {first['collective']}, {name}: {counted(first['ranks'], 'rank')} at {rate}",
                    *(f"# {line}" for line in lines[:2]),
                    *(f"  {line}" for line in lines[2:]),
                    f"# Avg bus bandwidth    : {mean}",
                ]
            )
        )
    return "\n\n".join(parts)


def _bandwidth_text(bandwidth_bps: float, digits: int) -> str:
    """A bandwidth in GB/s; "-" where nothing had to be moved (a single rank)."""
    return f"{bandwidth_bps / BITS_PER_GB:.{digits}f}" if math.isfinite(bandwidth_bps) else "-"


def bench_csv(table: Table) -> str:
    """Return every column of a benchmark as CSV, in base units."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(row.values() for row in table)
    return text.getvalue()
