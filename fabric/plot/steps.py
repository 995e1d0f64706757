"""Step functions of time: the curves of queue depths and rates, and how many intervals cover a time.

A recorded queue may have millions of rows. A picture has a few thousand columns of pixels, so a long
curve is drawn by the least and the largest value in each of many equal stretches of time: the
envelope, in which no peak is lost.
"""

from __future__ import annotations

import numpy as np

from fabric.result.table import Array

__all__ = ["covered", "envelope"]

STRETCHES = 3000
"""Stretches of time into which a long curve is cut."""


def envelope(
    time_ps: Array, values: Array, *, end_ps: int, initial: float = 0, stretches: int = STRETCHES
) -> tuple[Array, Array]:
    """Return a step function as points to draw with steps after each.

    Parameters
    ----------
    time_ps, values : numpy.ndarray, [n]
        The function takes values[i] from time_ps[i] on; times ascend.
    end_ps : int
        End of the curve.
    initial : float
        Value before the first time.
    stretches : int
        If there are more than twice as many rows, the curve is thinned to this many pairs.

    Returns
    -------
    times, values : numpy.ndarray
        Starting at 0 with `initial` and ending at `end_ps`.

    Examples
    --------
    >>> times, depth = envelope(np.array([2, 5]), np.array([7, 0]), end_ps=9)
    >>> times.tolist(), depth.tolist()
    ([0.0, 2.0, 5.0, 9.0], [0.0, 7.0, 0.0, 0.0])
    """
    if len(time_ps) > 2 * stretches:
        time_ps, values = _extremes(time_ps, values, end_ps, stretches)
    last = values[-1] if len(values) else initial
    times = np.concatenate([[0.0], time_ps, [max(end_ps, time_ps[-1] if len(time_ps) else 0)]])
    return times, np.concatenate([[float(initial)], values, [last]])


def _extremes(time_ps: Array, values: Array, end_ps: int, stretches: int) -> tuple[Array, Array]:
    """Return for each stretch its least and largest value, and at last its final one."""
    stretch = np.minimum(time_ps * float(stretches) / max(end_ps, 1), stretches - 1).astype(np.int64)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    final = values[np.append(first[1:], len(values)) - 1]
    width = end_ps / stretches
    begin = stretch[first] * width
    times = np.stack([begin, begin + width / 3, begin + 2 * width / 3], axis=1).ravel()
    return times, np.stack([high, low, final], axis=1).ravel()


def covered(begin_ps: Array, stop_ps: Array, *, edges_ps: Array) -> Array:
    """Return how many of some intervals cover each stretch of time, on average over the stretch.

    Parameters
    ----------
    begin_ps, stop_ps : numpy.ndarray, [n]
        The intervals; they may overlap.
    edges_ps : numpy.ndarray, [k + 1]
        Ascending: the bounds of k stretches.

    Returns
    -------
    numpy.ndarray, [k]

    Examples
    --------
    >>> covered(np.array([0, 5]), np.array([10, 10]), edges_ps=np.array([0, 10, 20])).tolist()
    [1.5, 0.0]
    """
    time_before = _time_since(begin_ps, edges_ps) - _time_since(stop_ps, edges_ps)
    share: Array = np.diff(time_before) / np.diff(edges_ps)
    return share


def _time_since(instants_ps: Array, edges_ps: Array) -> Array:
    """Return for each edge the sum of its distances to all instants before it."""
    ordered = np.sort(instants_ps)
    sums = np.concatenate([[0.0], np.cumsum(ordered, dtype=np.float64)])
    before = np.searchsorted(ordered, edges_ps)
    total: Array = before * np.asarray(edges_ps, np.float64) - sums[before]
    return total
