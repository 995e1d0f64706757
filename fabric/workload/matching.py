"""Which send meets which receive: the k-th of a source, destination and tag meets the k-th.

Two-sided schedules (GOAL, Chakra) say at each end alone what is sent and expected. Both ends are first in,
first out for one source, destination and tag, so counting is enough; it is done for whole columns at a time.
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.arrays import Int64Array

__all__ = ["matched"]

NOTHING = -1


def matched(sent: Int64Array, expected: Int64Array) -> Int64Array:
    """Return the column of `expected` that each column of `sent` meets.

    Parameters
    ----------
    sent, expected : ndarray of int64 [rows, columns]
        A row for each thing in which both must agree (source, destination, tag); columns in the order in
        which they happen.

    Returns
    -------
    ndarray of int64 [columns of sent]
        -1: none.

    Examples
    --------
    >>> matched(np.array([[0, 0, 1, 0]]), np.array([[1, 0, 0]])).tolist()
    [1, 2, 0, -1]
    """
    one, other = _numbered(sent), _numbered(expected)
    both = np.concatenate([one, other], axis=1)
    order = np.lexsort(both[::-1])
    same = (both[:, order][:, 1:] == both[:, order][:, :-1]).all(axis=0)
    first, second = order[:-1][same], order[1:][same]
    meets = np.full(sent.shape[1], NOTHING, dtype=np.int64)
    meets[np.minimum(first, second)] = np.maximum(first, second) - sent.shape[1]
    return meets


def _numbered(columns: Int64Array) -> Int64Array:
    """The same with one more row: the how manieth of its kind each column is."""
    order = np.lexsort(columns[::-1])
    each = columns[:, order]
    first = np.append(np.ones(min(len(order), 1), dtype=np.bool_), (each[:, 1:] != each[:, :-1]).any(axis=0))
    starts = np.flatnonzero(first)
    count = np.empty(len(order), dtype=np.int64)
    count[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.vstack([columns, count])
