"""Hierarchical all-reduce: inside a node first, then across nodes along rails, any number of levels.

With `shape = (m, N)` ranks `m k .. m k + m - 1` are a node. A reduce-scatter inside every node leaves each
rank with 1/m of the node's sum; ranks with the same number in their nodes, a rail, all-reduce that part;
an all-gather inside the nodes ends it. Across nodes go only `2 (N-1)/N * S/m` bytes of each rank. More levels
nest: those that stand first in the shape scatter first and gather last.

Source: Cho, Finkler, Serrano, Kung and Hunter, "BlueConnect: decomposing all-reduce for deep learning on
heterogeneous network hierarchy", MLSys 2019; ASTRA-sim's multi-dimensional collectives are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.direct import direct_all_gather
from fabric.workload.collectives.recursive_doubling import doubling_all_gather
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.ring import ring_all_gather
from fabric.workload.collectives.sequence import backwards, in_groups, then
from fabric.workload.collectives.template import Template

__all__ = ["hierarchical_all_reduce"]

NAME = "hierarchical"

LEVELS: dict[str, Callable[[int], Template]] = {
    "ring": ring_all_gather,
    "direct": direct_all_gather,
    "halving_doubling": doubling_all_gather,
}
"""All-gathers of one level; backwards they are its reduce-scatter."""


@algorithm("all_reduce", NAME)
def hierarchical_all_reduce(
    n_ranks: int, *, shape: Sequence[int] = (), levels: Sequence[str] | str = "ring"
) -> Template:
    """All-reduce level by level.

    Parameters
    ----------
    n_ranks : int
    shape : sequence of int
        Members of a group of each level, from the ranks of a node up; their product is the number of ranks.
        One level of all ranks unless given.
    levels : str or sequence of str
        What each level does: "ring", "direct" or "halving_doubling".
    """
    sizes = tuple(shape) or (n_ranks,)
    if min(sizes) < 1 or int(np.prod(sizes, dtype=np.int64)) != n_ranks:
        raise SpecError("shape", sizes, f"numbers whose product is {n_ranks}")
    names = (levels,) * len(sizes) if isinstance(levels, str) else tuple(levels)
    if len(names) != len(sizes) or not set(names) <= set(LEVELS):
        raise SpecError("levels", levels, f"for each of {len(sizes)} levels one of {', '.join(LEVELS)}")
    gathers = [
        _level(LEVELS[name](sizes[level]), sizes=sizes, level=level) for level, name in enumerate(names)
    ]
    scatters = [backwards(each, collective="reduce_scatter") for each in gathers]
    phases = [*scatters, *gathers[::-1]]
    return reduce(lambda one, next_one: then(one, next_one, collective="all_reduce", name=NAME), phases)


def _level(gather: Template, *, sizes: tuple[int, ...], level: int) -> Template:
    """A gather in all groups of a level, on the parts that lower levels leave to their members."""
    n_ranks = int(np.prod(sizes, dtype=np.int64))
    ranks = np.arange(n_ranks, dtype=np.int64)
    piece, width = _parts(ranks, sizes=sizes[:level], pieces=n_ranks)
    below = int(np.prod(sizes[:level], dtype=np.int64))
    firsts = ranks[ranks // below % sizes[level] == 0]
    members = firsts[:, np.newaxis] + below * np.arange(sizes[level], dtype=np.int64)[np.newaxis, :]
    return in_groups(
        gather,
        members,
        n_ranks=n_ranks,
        n_pieces=n_ranks,
        piece=piece[firsts],
        width=width // sizes[level],
    )


def _parts(ranks: Int64Array, *, sizes: tuple[int, ...], pieces: int) -> tuple[Int64Array, int]:
    """First piece and number of pieces of what each rank has after reduce-scatters of some levels."""
    first = np.zeros_like(ranks)
    for size in sizes:
        pieces //= size
        first += ranks % size * pieces
        ranks = ranks // size
    return first, pieces
