"""Recursive doubling: in step k ranks at distance 2^k exchange all that they have.

As all-reduce every rank sends its whole vector lg n times: the fewest steps, for small data. As all-gather
what is exchanged doubles; backwards, halving, it is a reduce-scatter. Both send the least that is possible.
Numbers of ranks that are no power of two are folded (`fabric.workload.collectives.cores`).

Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
doi 10.1177/1094342005051521.
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.cores import core_ranks, folded
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.sequence import backwards
from fabric.workload.collectives.template import Template

__all__ = ["doubling_all_gather", "doubling_all_reduce", "halving_reduce_scatter"]


@algorithm("all_reduce", "recursive_doubling")
def doubling_all_reduce(n_ranks: int) -> Template:
    """All-reduce in lg n steps of S."""
    return folded(_exchange_all, n_ranks, name="recursive_doubling")


@algorithm("all_gather", "recursive_doubling")
def doubling_all_gather(n_ranks: int) -> Template:
    """All-gather in lg n steps of S/n, 2 S/n, 4 S/n, ..."""
    core, first = core_ranks(n_ranks)
    power, extra = len(core), n_ranks - len(core)
    rows = Rows()
    place = np.arange(power, dtype=np.int64)
    lent = np.full(power, -1, dtype=np.int64)
    lent[:extra] = rows.add(first[:extra], core[:extra], piece=first[:extra], step=0)
    arrived = [lent]
    step = int(extra > 0)
    for distance in _powers(power):
        low = place & ~(distance - 1)
        sent = rows.add(
            core,
            core[place ^ distance],
            piece=first[low],
            count=first[low + distance] - first[low],
            step=step,
            after=arrived,
        )
        arrived.append(sent[place ^ distance])
        step += 1
    _give_back(rows, core=core, lender=first[:extra], n_ranks=n_ranks, arrived=arrived, step=step)
    return rows.build("recursive_doubling", "all_gather", n_ranks=n_ranks, n_pieces=n_ranks)


@algorithm("reduce_scatter", "recursive_halving")
def halving_reduce_scatter(n_ranks: int) -> Template:
    """Reduce-scatter in lg n steps of S/2, S/4, ...: the all-gather backwards."""
    return backwards(doubling_all_gather(n_ranks), collective="reduce_scatter", name="recursive_halving")


def _exchange_all(power: int) -> Template:
    rows = Rows()
    place = np.arange(power, dtype=np.int64)
    arrived: list[Int64Array] = []
    for step, distance in enumerate(_powers(power)):
        sent = rows.add(place, place ^ distance, piece=0, reduce=1, step=step, after=arrived)
        arrived.append(sent[place ^ distance])
    return rows.build("recursive_doubling", "all_reduce", n_ranks=power, n_pieces=1)


def _give_back(
    rows: Rows, *, core: Int64Array, lender: Int64Array, n_ranks: int, arrived: list[Int64Array], step: int
) -> None:
    """Send ranks outside the core all but what they have: what lies below, and what lies above."""
    holder = core[: len(lender)]
    waits = [each[: len(lender)] for each in arrived]
    below, above = lender > 0, lender + 1 < n_ranks
    for there, piece, count in ((below, 0 * lender, lender), (above, lender + 1, n_ranks - 1 - lender)):
        rows.add(
            holder[there],
            lender[there],
            piece=piece[there],
            count=count[there],
            step=step,
            after=[each[there] for each in waits],
        )


def _powers(power: int) -> list[int]:
    return [1 << bit for bit in range(power.bit_length() - 1)]
