"""Broadcast down a tree, from which tree algorithms are made."""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["depths", "own_sends_in_turn", "tree_broadcast"]


def tree_broadcast(
    parent: Int64Array,
    *,
    n_ranks: int,
    name: str,
    step: Int64Array | None = None,
    count: int = 1,
    one_by_one: bool = False,
) -> Template:
    """Every place passes on to its children what it got from its parent.

    Parameters
    ----------
    parent : ndarray of int64 [ranks and reducers]
        -1 for the root.
    n_ranks : int
        Places from here on are reducers.
    name : str
    step : ndarray of int64 [ranks and reducers], optional
        When each place receives; as deep as it is, less one.
    count : int
        Pieces of the vector.
    one_by_one : bool
        A place sends to a child when the one before has all.
    """
    places = len(parent)
    step = depths(parent) - 1 if step is None else step
    child = np.flatnonzero(parent >= 0)
    child = child[np.argsort(step[child], kind="stable")]
    row_of = np.full(places, -1, dtype=np.int64)
    row_of[child] = np.arange(len(child))
    rows = Rows()
    follows = own_sends_in_turn(parent[child]) if one_by_one else -1
    rows.add(
        parent[child],
        child,
        piece=0,
        count=count,
        step=step[child],
        after=[row_of[parent[child]]],
        follows=follows,
    )
    root = int(np.flatnonzero(parent < 0)[0])
    return rows.build(
        name,
        "broadcast",
        n_ranks=n_ranks,
        n_pieces=count,
        n_reducers=places - n_ranks,
        root=root if root < n_ranks else 0,
    )


def own_sends_in_turn(source: Int64Array) -> Int64Array:
    """For each row the row before of the same source, -1: none.

    Examples
    --------
    >>> own_sends_in_turn(np.array([5, 6, 5, 5])).tolist()
    [-1, -1, 0, 2]
    """
    before = np.full(len(source), -1, dtype=np.int64)
    order = np.argsort(source, kind="stable")
    same = source[order][1:] == source[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def depths(parent: Int64Array) -> Int64Array:
    """Edges between each place and the root.

    Examples
    --------
    >>> depths(np.array([-1, 0, 1, 0])).tolist()
    [0, 1, 2, 1]
    """
    depth = np.zeros(len(parent), dtype=np.int64)
    at = parent.copy()
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, parent[np.maximum(at, 0)], -1)
    return depth
