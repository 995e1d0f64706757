"""Ring: every rank sends to the next; n-1 steps scatter sums, n-1 more gather them.

In step k of a reduce-scatter, rank r sends what it has of block r-k-1, to which it has added what arrived in
the step before; so block b is complete at rank b. In the all-gather that follows blocks go on around.
Every rank sends and receives `2 (n-1)/n` of the vector, the least that is possible; the steps grow with n.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
J. Parallel Distrib. Comput. 69 (2009). Rings over several channels in different orders as in NCCL
(`src/graph/rings.cc`), one for each NIC.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rotation import Rotation
from fabric.workload.collectives.split import relabel, side_by_side
from fabric.workload.collectives.template import Template

__all__ = ["ring_all_gather", "ring_all_reduce", "ring_reduce_scatter"]


@algorithm("all_reduce", "ring")
def ring_all_reduce(n_ranks: int, *, orders: Sequence[Sequence[int]] | None = None) -> Template:
    """All-reduce in 2(n-1) steps of S/n.

    Parameters
    ----------
    n_ranks : int
    orders : sequence of sequences of int, optional
        Orders of the ranks, one for each of several rings with an equal share of the data; one ring in
        the order of the ranks.
    """
    return _in_orders(_ring(n_ranks, "all_reduce", first=0, steps=2 * (n_ranks - 1)), orders)


@algorithm("reduce_scatter", "ring")
def ring_reduce_scatter(n_ranks: int, *, orders: Sequence[Sequence[int]] | None = None) -> Template:
    """Reduce-scatter in n-1 steps of S/n; `orders` as of the all-reduce."""
    return _in_orders(_ring(n_ranks, "reduce_scatter", first=0, steps=n_ranks - 1), orders)


@algorithm("all_gather", "ring")
def ring_all_gather(n_ranks: int, *, orders: Sequence[Sequence[int]] | None = None) -> Template:
    """All-gather in n-1 steps of S/n; `orders` as of the all-reduce."""
    return _in_orders(_ring(n_ranks, "all_gather", first=n_ranks - 1, steps=n_ranks - 1), orders)


def _ring(n_ranks: int, collective: str, *, first: int, steps: int) -> Template:
    """Steps `first ..` of an all-reduce's 2(n-1); its first n-1 add up."""
    step = np.arange(steps, dtype=np.int64)
    rotation = Rotation(
        n_ranks,
        distance=np.ones_like(step),
        piece=(-step - first - 1) % n_ranks,
        reduce=(step + first < n_ranks - 1).astype(np.uint8),
        step=step,
        after=step - 1,
    )
    return Template.rotated("ring", collective, rotation)


def _in_orders(ring: Template, orders: Sequence[Sequence[int]] | None) -> Template:
    if orders is None:
        return ring
    rings = [relabel(ring, order) for order in orders]
    return side_by_side(rings, name="ring") if rings else ring
