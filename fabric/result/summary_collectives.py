"""What a summary says of collectives: how fast each was, the skew of its ranks, the slowest link and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.analysis.stats import percentiles

from .slowest import CAUSES, slowest_link
from .table import Table
from .text import align, count_text, rate_text, size_text, time_text

if TYPE_CHECKING:
    from .result import Result

__all__ = ["collective_rows", "collectives_text", "slowest_link_row", "slowest_link_text"]

KEYS = ("job", "collective", "algorithm", "ranks", "size_bytes")
HEADER = ("", "", "ranks", "size", "done", "time: median", "longest", "skew", "algbw", "busbw")


def collective_rows(operations: Table) -> list[dict[str, Any]]:
    """Return for each kind and size of a job's operations how many were done, and how fast in the median."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for number, key in enumerate(zip(*(operations[name].tolist() for name in KEYS), strict=True)):
        kinds.setdefault(key, []).append(number)
    rows = []
    for key, numbers in kinds.items():
        part = operations[np.array(numbers)]
        done = part[part["duration_ps"] >= 0]
        row = dict(zip(KEYS, key, strict=True)) | {"operations": len(part), "done": len(done)}
        row |= dict.fromkeys(("p50_ps", "max_ps", "skew_ps", "algbw_bps", "busbw_bps"))
        if len(done):
            row["p50_ps"], row["max_ps"] = percentiles(done["duration_ps"], q=(50, 100)).tolist()
            row["skew_ps"] = int(percentiles(done["skew_ps"], q=(50,))[0])
            for name in ("algbw_bps", "busbw_bps"):
                value = float(np.median(done[name]))
                row[name] = None if np.isnan(value) else value
        rows.append(row)
    return rows


def collectives_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return these rows as a table for people."""
    if not rows:
        return ""
    lines = [
        [
            row["job"],
            f"{row['collective']} {row['algorithm']}",
            count_text(row["ranks"]),
            size_text(row["size_bytes"]),
            f"{count_text(row['done'])} of {count_text(row['operations'])}",
            *("-" if row[key] is None else time_text(row[key]) for key in ("p50_ps", "max_ps", "skew_ps")),
            *("-" if row[key] is None else rate_text(row[key]) for key in ("algbw_bps", "busbw_bps")),
        ]
        for row in rows
    ]
    return "\n".join(align([list(HEADER), *lines], right=range(2, len(HEADER))))


def slowest_link_row(result: Result) -> dict[str, Any] | None:
    """Return the slowest link of all collectives together and why it was; None unless one was done."""
    done = result.operations[result.operations["duration_ps"] > 0]
    if not len(done):
        return None
    jobs = done["job"]
    chain = max(int(done["chain"][jobs == job].sum()) for job in np.unique(jobs))
    duration_ps = int(done["left_ps"].max() - done["entered_ps"].min())
    found = slowest_link(result, duration_ps=duration_ps, chain=chain)
    if not found.link:
        return None
    return {
        "link": found.link,
        "cause": found.cause,
        "busy_ps": found.busy_ps,
        "of_ps": duration_ps,
        "lost_ps": dict(found.lost_ps),
    }


def slowest_link_text(row: Mapping[str, Any] | None) -> str:
    """Return that as a line: the link, the cause, for how long it sent, and what the cause took."""
    if row is None:
        return ""
    text = f"{row['link']}  {row['cause']}: sent for {time_text(row['busy_ps'])} of {time_text(row['of_ps'])}"
    if row["cause"] in CAUSES[: len(row["lost_ps"])]:
        text += f", {time_text(row['lost_ps'][row['cause']])} lost"
    return text
