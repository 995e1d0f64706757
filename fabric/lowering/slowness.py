"""Stretches of time in which ranks compute longer, apart from each other and in order.

Stretches of a rank that overlap multiply, so they are cut where one begins or ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fabric.errors import SpecError
from fabric.workload.job import Job

__all__ = ["slow_columns"]

Stretch = tuple[int, int, float]


def slow_columns(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the columns of slowness of a program; empty if no rank is slow for a while.

    Raises
    ------
    fabric.errors.SpecError
        A rank that is none, an end before its beginning, or a factor below 1.

    Examples
    --------
    >>> from fabric.workload.program import ProgramBuilder
    >>> work = ProgramBuilder(n_ranks=1)
    >>> number = work.compute(0, picoseconds=100)
    >>> job = Job(program=work.build(), hosts=[0], slow=((0, 0, 50, 2.0), (0, 20, 30, 3.0)))
    >>> {name: column.tolist() for name, column in slow_columns([job]).items()}["slow_factor"]
    [2.0, 6.0, 2.0]
    """
    rows: list[list[Stretch]] = []
    for job in jobs:
        first = len(rows)
        rows += [[] for _ in range(len(job.host_of))]
        for number, (rank, begin_ps, end_ps, factor) in enumerate(job.slow):
            path = f"{job.path}.slow[{number}]"
            if not 0 <= rank < len(job.host_of):
                raise SpecError(path, rank, f"ranks from 0 to {len(job.host_of) - 1}")
            if not 0 <= begin_ps < end_ps or not 1 <= factor < math.inf:
                raise SpecError(
                    path, (begin_ps, end_ps, factor), "a begin, a later end, a factor of at least 1"
                )
            rows[first + rank].append((begin_ps, end_ps, factor))
    apart = [_apart(row) for row in rows]
    flat = [one for row in apart for one in row]
    base = np.cumsum([0, *(len(row) for row in apart)]) if flat else np.zeros(0)
    return {
        "slow_base": base.astype(np.uint32),
        "slow_begin_ps": np.array([one[0] for one in flat], dtype=np.int64),
        "slow_end_ps": np.array([one[1] for one in flat], dtype=np.int64),
        "slow_factor": np.array([one[2] for one in flat], dtype=np.float64),
    }


def _apart(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The same slowness in stretches that do not overlap, in order."""
    ends = sorted({time for begin, end, _ in stretches for time in (begin, end)})
    found = []
    for begin, end in pairwise(ends):
        factors = [factor for first, last, factor in stretches if first <= begin and end <= last]
        if factors:
            found.append((begin, end, math.prod(factors)))
    return found
