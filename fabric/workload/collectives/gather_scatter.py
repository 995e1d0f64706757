"""Scatter and gather: down a binomial tree, or directly.

In the binomial tree, a rank gets its own block with those of all ranks below it, and passes these on, one
child after the other: few steps, more data. Directly, the root sends every block itself. A gather is a
scatter backwards.

Source: Thakur, Rabenseifner and Gropp, doi 10.1177/1094342005051521.
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.broadcast import from_root
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.sequence import backwards
from fabric.workload.collectives.template import Template

__all__ = ["binomial_gather", "binomial_scatter", "direct_gather", "direct_scatter"]


@algorithm("scatter", "binomial")
def binomial_scatter(n_ranks: int, *, root: int = 0) -> Template:
    """Scatter in ⌈lg n⌉ steps of S/2, S/4, ... from rank `root`."""
    rows = Rows()
    arrived, sent = np.full((2, n_ranks), -1, dtype=np.int64)
    steps = (n_ranks - 1).bit_length()
    for step in range(steps):
        reach = 1 << (steps - 1 - step)
        child = np.arange(reach, n_ranks, 2 * reach, dtype=np.int64)
        count = np.minimum(reach, n_ranks - child)
        parent = child - reach
        arrived[child] = rows.add(
            parent,
            child,
            piece=child,
            count=count,
            step=step,
            after=[arrived[parent]],
            follows=sent[parent],
        )
        sent[parent] = arrived[child]
    return from_root(rows.build("binomial", "scatter", n_ranks=n_ranks, n_pieces=n_ranks), root)


@algorithm("scatter", "direct")
def direct_scatter(n_ranks: int, *, root: int = 0) -> Template:
    """Scatter in which rank `root` sends every block itself, all at once."""
    child = np.arange(1, n_ranks, dtype=np.int64)
    rows = Rows()
    rows.add(0 * child, child, piece=child, step=0)
    return from_root(rows.build("direct", "scatter", n_ranks=n_ranks, n_pieces=n_ranks), root)


@algorithm("gather", "binomial")
def binomial_gather(n_ranks: int, *, root: int = 0) -> Template:
    """Gather in ⌈lg n⌉ steps to rank `root`."""
    return backwards(binomial_scatter(n_ranks, root=root), collective="gather")


@algorithm("gather", "direct")
def direct_gather(n_ranks: int, *, root: int = 0) -> Template:
    """Gather in which every rank sends its block to rank `root`, all at once."""
    return backwards(direct_scatter(n_ranks, root=root), collective="gather")
