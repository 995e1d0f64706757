"""In-network reduction: switches add up what comes from below and send one result to each port.

Every rank sends its vector once and receives the result once, so the bandwidth term is S/B, half that of
the best algorithm between hosts, and busbw exceeds the link's rate. Reducers are ranks of their own, from
`n_ranks` on, level by level; where they stand in the fabric is for the operation to say. Cut into chunks,
data streams through the tree.

Source: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", COMHPC 2016. With one
level it is what NVLS does in one switch domain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.sequence import backwards, then
from fabric.workload.collectives.template import Template
from fabric.workload.collectives.trees import tree_broadcast

__all__ = ["in_network_all_reduce"]

NAME = "in_network"


@algorithm("all_reduce", NAME)
def in_network_all_reduce(n_ranks: int, *, fan_in: Sequence[int] = ()) -> Template:
    """All-reduce in switches.

    Parameters
    ----------
    n_ranks : int
    fan_in : sequence of int
        Ranks of a reducer of the first level, reducers of the first level of one of the second, and so on;
        the last level has one. Reducer i of a level takes members `i fan_in ..` of the one below. One
        reducer for all unless given.
    """
    sizes = tuple(fan_in) or (n_ranks,)
    parent: list[np.ndarray] = []
    first, members = 0, n_ranks
    for size in sizes:
        if size < 1:
            raise SpecError("fan_in", sizes, "at least one member to a reducer")
        above = first + members
        parent.append(above + np.arange(members, dtype=np.int64) // size)
        first, members = above, -(-members // size)
    if members != 1:
        raise SpecError("fan_in", sizes, f"levels with one reducer on top of {n_ranks} ranks, not {members}")
    if n_ranks == 1:
        return Rows().build(NAME, "all_reduce", n_ranks=1, n_pieces=1)
    tree = np.concatenate([*parent, [-1]])
    down = tree_broadcast(tree, n_ranks=n_ranks, name=NAME)
    return then(backwards(down, collective="reduce"), down, collective="all_reduce", name=NAME)
