"""Double binary tree: two trees, each with half the data; sums go up, results come down.

In a binary tree, half of the ranks are leaves, which send once and receive once, and the others do twice
that. In the second tree (mirrored if the number of nodes is even, shifted by one if it is odd) leaves and
inner ranks change places, so that no rank sends or receives more than twice the vector. With an odd number
of nodes, rank 0 is an inner rank in both. Cut into chunks, data streams through both trees at once.

Over nodes of several ranks, the trees connect the first rank of each node, and a chain runs from it
through the others.

Source: NCCL 2, `src/graph/trees.cc`; Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
broadcast, reduction and scan", Parallel Computing 35 (2009).
"""

from __future__ import annotations

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.sequence import backwards, then
from fabric.workload.collectives.split import side_by_side
from fabric.workload.collectives.template import Template
from fabric.workload.collectives.trees import tree_broadcast

__all__ = ["double_binary_tree", "tree_parents"]

NAME = "double_binary_tree"


@algorithm("all_reduce", NAME)
def double_binary_tree(n_ranks: int, *, ranks_per_node: int = 1) -> Template:
    """All-reduce through two trees.

    Parameters
    ----------
    n_ranks : int
    ranks_per_node : int
        Ranks `m k .. m k + m - 1` are a node.
    """
    if ranks_per_node < 1 or n_ranks % ranks_per_node:
        raise SpecError("ranks_per_node", ranks_per_node, f"a divisor of {n_ranks}")
    trees = [
        _all_reduce(_with_chains(parent, ranks_per_node), n_ranks)
        for parent in tree_parents(n_ranks // ranks_per_node)
    ]
    return side_by_side(trees, name=NAME)


def tree_parents(nodes: int) -> tuple[Int64Array, Int64Array]:
    """Parent of every node in both trees, -1 for the root.

    Examples
    --------
    >>> [tree.tolist() for tree in tree_parents(4)]
    [[-1, 2, 0, 2], [1, 3, 1, -1]]
    """
    node = np.arange(nodes, dtype=np.int64)
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    first = np.where(up < nodes, up, node ^ bit)
    first[0] = -1
    label = nodes - 1 - node if nodes % 2 == 0 else (node + 1) % nodes
    second = np.empty_like(first)
    second[label] = np.where(first >= 0, label[np.maximum(first, 0)], -1)
    return first, second


def _with_chains(parent: Int64Array, ranks_per_node: int) -> Int64Array:
    rank = np.arange(len(parent) * ranks_per_node, dtype=np.int64)
    above = np.where(parent >= 0, parent * ranks_per_node, -1)
    return np.where(rank % ranks_per_node, rank - 1, above[rank // ranks_per_node])


def _all_reduce(parent: Int64Array, n_ranks: int) -> Template:
    down = tree_broadcast(parent, n_ranks=n_ranks, name=NAME)
    return then(backwards(down, collective="reduce"), down, collective="all_reduce", name=NAME)
