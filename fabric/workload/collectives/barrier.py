"""Barrier by dissemination: in step k every rank tells the rank 2^k further who is there, as far as it knows.

Its size is 0: messages without payload. News may arrive twice where n is no power of two.

Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", Int. J. Parallel
Programming 17 (1988).
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["dissemination_barrier"]


@algorithm("barrier", "dissemination")
def dissemination_barrier(n_ranks: int) -> Template:
    """Barrier in ⌈lg n⌉ steps."""
    rank = np.arange(n_ranks, dtype=np.int64)
    rows = Rows()
    arrived: list[Int64Array] = []
    for step in range((n_ranks - 1).bit_length()):
        stride = 1 << step
        sent = rows.add(rank, (rank + stride) % n_ranks, piece=0, reduce=1, step=step, after=arrived)
        arrived.append(sent[(rank - stride) % n_ranks])
    return rows.build("dissemination", "barrier", n_ranks=n_ranks, n_pieces=1)
