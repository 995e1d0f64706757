"""Rings over servers: one for each accelerator of a server, so that all rails are used.

A group that has several ranks on each of several servers runs a ring collective as several rings, each with
its share of the data. Ring r enters a server at its rank r, visits the others in turn, leaves from its
last, and enters the next server on that rail, where it goes round the other way. So what crosses stays on
its rail, and each rail has one ring in and one out. NCCL lays its rings like this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ring_orders"]

Int64Array = npt.NDArray[np.int64]


def ring_orders(ranks: npt.ArrayLike, *, server_of: Int64Array | None) -> list[Int64Array]:
    """Return the ranks of a group in the order of each of its rings.

    Parameters
    ----------
    ranks : array_like of int [n]
    server_of : ndarray of int64, optional
        Server of every rank. None: each has one of its own.

    Returns
    -------
    list of ndarray of int64 [n]
        One, the group as it is, unless it has several ranks, as many and side by side, on each of several
        servers.

    Examples
    --------
    >>> [order.tolist() for order in ring_orders(range(4), server_of=np.array([0, 0, 1, 1]))]
    [[0, 1, 3, 2], [1, 0, 2, 3]]
    """
    group = np.asarray(ranks, dtype=np.int64)
    if server_of is None:
        return [group]
    servers = server_of[group]
    count = int((servers == servers[0]).sum())
    if count < 2 or count == len(group) or len(group) % count:
        return [group]
    blocks = group.reshape(-1, count)
    inside = servers.reshape(-1, count)
    if (inside != inside[:, :1]).any() or len(np.unique(inside[:, 0])) < len(inside):
        return [group]
    orders = []
    for first in range(count):
        turned = np.roll(blocks, -first, axis=1)
        turned[1::2] = turned[1::2, ::-1]
        orders.append(turned.ravel())
    return orders
