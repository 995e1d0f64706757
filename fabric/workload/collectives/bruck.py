"""Bruck: lg n steps for any number of ranks, blocks sent together with others that go the same way.

As all-gather, a rank sends in step k the first min(2^k, n - 2^k) blocks that it has, counted from its own, to
the rank 2^k below; backwards it is a reduce-scatter. As all-to-all, blocks for distances with bit k set
travel 2^k further in step k, packed into one message: n/2 blocks a step, few messages for small data.

Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in
multiport message-passing systems", IEEE TPDS 8 (1997).
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.sequence import backwards
from fabric.workload.collectives.template import Template

__all__ = ["bruck_all_gather", "bruck_all_to_all", "bruck_reduce_scatter"]


@algorithm("all_gather", "bruck")
def bruck_all_gather(n_ranks: int) -> Template:
    """All-gather in ⌈lg n⌉ steps of S/n, 2 S/n, 4 S/n, ..., the last with the rest."""
    rank = np.arange(n_ranks, dtype=np.int64)
    rows = Rows()
    arrived: list[Int64Array] = []
    for step, stride in enumerate(_strides(n_ranks)):
        sent = rows.add(
            rank,
            (rank - stride) % n_ranks,
            piece=rank,
            count=min(stride, n_ranks - stride),
            step=step,
            after=arrived,
        )
        arrived.append(sent[(rank + stride) % n_ranks])
    twice = np.arange(2 * n_ranks, dtype=np.uint32)
    return rows.build(
        "bruck",
        "all_gather",
        n_ranks=n_ranks,
        n_pieces=2 * n_ranks,
        n_blocks=n_ranks,
        block_base=np.arange(2 * n_ranks + 1, dtype=np.uint32),
        block=twice % n_ranks,
    )


@algorithm("reduce_scatter", "bruck")
def bruck_reduce_scatter(n_ranks: int) -> Template:
    """Reduce-scatter in ⌈lg n⌉ steps: the all-gather backwards."""
    return backwards(bruck_all_gather(n_ranks), collective="reduce_scatter")


@algorithm("all_to_all", "bruck")
def bruck_all_to_all(n_ranks: int) -> Template:
    """All-to-all in ⌈lg n⌉ steps of about S/2."""
    rank = np.arange(n_ranks, dtype=np.int64)
    distance = np.arange(n_ranks, dtype=np.uint32)
    rows = Rows()
    arrived: list[Int64Array] = []
    packed = []
    for step, stride in enumerate(_strides(n_ranks)):
        packed.append(distance[(distance & stride) > 0])
        sent = rows.add(rank, (rank + stride) % n_ranks, piece=step, step=step, after=arrived)
        arrived.append(sent[(rank - stride) % n_ranks])
    if not packed:
        packed.append(distance)
    return rows.build(
        "bruck",
        "all_to_all",
        n_ranks=n_ranks,
        n_pieces=len(packed),
        n_blocks=n_ranks,
        block_base=bases(np.array([len(each) for each in packed])).astype(np.uint32),
        block=np.concatenate(packed),
    )


def _strides(n_ranks: int) -> list[int]:
    return [1 << bit for bit in range((n_ranks - 1).bit_length())]
