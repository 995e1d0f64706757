"""Ring both ways: half the data goes around in each direction.

Where a rank has a port to each neighbour, both are busy in both directions, and the bandwidth term is
half that of one ring. Source: as of `fabric.workload.collectives.ring`.
"""

from __future__ import annotations

from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from fabric.workload.collectives.split import relabel, side_by_side
from fabric.workload.collectives.template import Template

__all__ = ["two_way_all_gather", "two_way_all_reduce", "two_way_reduce_scatter"]

NAME = "bidirectional_ring"


@algorithm("all_reduce", NAME)
def two_way_all_reduce(n_ranks: int) -> Template:
    """All-reduce in 2(n-1) steps of S/2n each way."""
    return _both_ways(ring_all_reduce(n_ranks))


@algorithm("reduce_scatter", NAME)
def two_way_reduce_scatter(n_ranks: int) -> Template:
    """Reduce-scatter in n-1 steps of S/2n each way."""
    return _both_ways(ring_reduce_scatter(n_ranks))


@algorithm("all_gather", NAME)
def two_way_all_gather(n_ranks: int) -> Template:
    """All-gather in n-1 steps of S/2n each way."""
    return _both_ways(ring_all_gather(n_ranks))


def _both_ways(ring: Template) -> Template:
    backward = relabel(ring, range(ring.n_ranks - 1, -1, -1))
    return side_by_side([ring, backward], name=NAME)
