"""Statistics of completion times and rates.

Percentiles here are order statistics: the p-th percentile of n values is the smallest value that at
least p % of them do not exceed (Hyndman and Fan, "Sample Quantiles in Statistical Packages", American
Statistician 50, 1996, definition 1). So a percentile is always one of the values, and the 99th of
fewer than a hundred flows is the slowest of them. Empty input gives NaN, never an exception, because
an interrupted run may have finished no flow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "SlowdownBins",
    "empirical_cdf",
    "goodput_bps",
    "jain_index",
    "percentiles",
    "slowdown",
    "slowdown_by_size",
]

FloatArray = npt.NDArray[np.float64]

PS_PER_SECOND = 1e12
BITS_PER_BYTE = 8
RANK_ROUNDING = 1e-6
"""Keeps 99.9 % of 1000 values from becoming the 1000th by rounding."""


def percentiles(values: npt.ArrayLike, *, q: npt.ArrayLike = (50.0, 90.0, 95.0, 99.0, 99.9)) -> FloatArray:
    """Order statistics at the given percentages.

    Parameters
    ----------
    values : array_like, shape [n]
        Any numbers, in any order.
    q : array_like, shape [k]
        Percentages, each in [0, 100]; 0 is the smallest value.

    Returns
    -------
    ndarray of float64, shape [k]
        NaN where `values` is empty.

    Raises
    ------
    ValueError
        If a percentage is outside [0, 100].

    Examples
    --------
    >>> percentiles(range(1, 201), q=[50, 99, 100]).tolist()
    [100.0, 198.0, 200.0]
    """
    wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if np.any((wanted < 0) | (wanted > 100)) or np.any(np.isnan(wanted)):
        raise ValueError(f"percentages must lie in [0, 100], not {wanted.tolist()}")
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if not ordered.size:
        return np.full(wanted.shape, np.nan)
    rank = np.ceil(wanted * ordered.size / 100.0 - RANK_ROUNDING).astype(np.int64)
    return np.asarray(ordered[np.maximum(rank, 1) - 1])


def empirical_cdf(values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Distinct values and the share of all values that are at most each.

    Parameters
    ----------
    values : array_like, shape [n]
        Any numbers.

    Returns
    -------
    (ndarray, ndarray) of float64, shape [k]
        Ascending distinct values; shares in (0, 1], the last exactly 1. Draw them as steps.

    Examples
    --------
    >>> x, share = empirical_cdf([3, 1, 1, 2])
    >>> x.tolist(), share.tolist()
    ([1.0, 2.0, 3.0], [0.5, 0.75, 1.0])
    """
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64).ravel(), return_counts=True)
    if not distinct.size:
        return distinct, np.empty(0)
    return distinct, np.cumsum(counts) / counts.sum()


def slowdown(completion_ps: npt.ArrayLike, *, ideal_ps: npt.ArrayLike) -> FloatArray:
    """Completion time over that in an empty network.

    Parameters
    ----------
    completion_ps : array_like of int, shape [flows]
        Measured times; negative means that the flow did not finish.
    ideal_ps : array_like of int, shape [flows]
        Times in an empty network, positive (:mod:`fabric.analysis.ideal`).

    Returns
    -------
    ndarray of float64, shape [flows]
        At least 1 for times of the same definition; NaN for unfinished flows.

    Raises
    ------
    ValueError
        If an ideal time is not positive or the shapes differ.

    Examples
    --------
    >>> slowdown([300, 200, -1], ideal_ps=[100, 200, 100]).tolist()
    [3.0, 1.0, nan]
    """
    measured = np.asarray(completion_ps, dtype=np.float64)
    ideal = np.asarray(ideal_ps, dtype=np.float64)
    if measured.shape != ideal.shape:
        raise ValueError(f"completion_ps has shape {measured.shape}, ideal_ps {ideal.shape}")
    if np.any(ideal <= 0):
        raise ValueError("ideal times must be positive")
    return np.where(measured < 0, np.nan, measured / ideal)


@dataclass(frozen=True)
class SlowdownBins:
    """Slowdown of flows grouped by size; row k holds `lower[k] < size <= upper[k]`.

    Attributes
    ----------
    lower_bytes, upper_bytes, count : ndarray of int64, shape [bins]
    mean, p50, p95, p99 : ndarray of float64, shape [bins]
        NaN where a bin has no finished flow.
    """

    lower_bytes: npt.NDArray[np.int64]
    upper_bytes: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    mean: FloatArray
    p50: FloatArray
    p95: FloatArray
    p99: FloatArray


def slowdown_by_size(
    slowdowns: npt.ArrayLike, *, size_bytes: npt.ArrayLike, edges_bytes: npt.ArrayLike | None = None
) -> SlowdownBins:
    """Group slowdowns by flow size, as papers on congestion control plot them.

    Parameters
    ----------
    slowdowns : array_like of float, shape [flows]
        NaN where a flow did not finish; such flows are left out.
    size_bytes : array_like of int, shape [flows]
        Payload of each flow.
    edges_bytes : array_like of int, shape [bins + 1], optional
        Ascending edges. Default: at most ten bins of equally many flows.

    Returns
    -------
    SlowdownBins

    Raises
    ------
    ValueError
        If the shapes differ, or the edges do not ascend.

    Examples
    --------
    >>> table = slowdown_by_size([1.0, 2.0, 4.0], size_bytes=[100, 200, 5000], edges_bytes=[0, 1000, 10000])
    >>> table.count.tolist(), table.mean.tolist()
    ([2, 1], [1.5, 4.0])
    """
    value = np.asarray(slowdowns, dtype=np.float64)
    size = np.asarray(size_bytes, dtype=np.int64)
    if value.shape != size.shape or value.ndim != 1:
        raise ValueError(f"slowdowns has shape {value.shape}, size_bytes {size.shape}")
    finished = ~np.isnan(value)
    value, size = value[finished], size[finished]
    edges = _equal_count_edges(size) if edges_bytes is None else np.asarray(edges_bytes, dtype=np.int64)
    if edges.ndim != 1 or np.any(np.diff(edges) <= 0):
        raise ValueError(f"edges must ascend, not {edges.tolist()}")
    bin_of = np.searchsorted(edges, size, side="left") - 1
    groups = [value[bin_of == k] for k in range(max(len(edges) - 1, 0))]
    tails = np.array([percentiles(group, q=(50, 95, 99)) for group in groups]).reshape(-1, 3)
    return SlowdownBins(
        lower_bytes=edges[:-1],
        upper_bytes=edges[1:],
        count=np.array([group.size for group in groups], dtype=np.int64),
        mean=np.array([group.mean() if group.size else np.nan for group in groups], dtype=np.float64),
        p50=tails[:, 0],
        p95=tails[:, 1],
        p99=tails[:, 2],
    )


def _equal_count_edges(size: npt.NDArray[np.int64], bins: int = 10) -> npt.NDArray[np.int64]:
    if not size.size:
        return np.empty(0, dtype=np.int64)
    upper = np.unique(percentiles(size, q=np.linspace(100 / bins, 100, bins)).astype(np.int64))
    return np.concatenate(([np.int64(size.min() - 1)], upper))


def jain_index(shares: npt.ArrayLike) -> float:
    """Jain's fairness index of rates or shares: (sum x)^2 / (n * sum x^2).

    1 when all are equal, 1/n when one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984).

    Parameters
    ----------
    shares : array_like of float, shape [n]
        Rates, none negative.

    Returns
    -------
    float
        NaN when there are none or all are 0.

    Raises
    ------
    ValueError
        If a share is negative.

    Examples
    --------
    >>> jain_index([10, 10, 10]), jain_index([1, 0, 0, 0])
    (1.0, 0.25)
    """
    x = np.asarray(shares, dtype=np.float64).ravel()
    if np.any(x < 0):
        raise ValueError("shares must not be negative")
    squares = float(np.sum(x * x))
    return float(np.sum(x)) ** 2 / (x.size * squares) if squares > 0 else float("nan")


def goodput_bps(size_bytes: npt.ArrayLike, *, duration_ps: npt.ArrayLike) -> FloatArray:
    """Payload bits per second of flows that took the given times.

    Parameters
    ----------
    size_bytes : array_like of int, shape [flows]
        Payload delivered.
    duration_ps : array_like of int, shape [flows] or scalar
        Picoseconds taken; negative means that the flow did not finish.

    Returns
    -------
    ndarray of float64, shape [flows]
        NaN where the duration is not positive.

    Examples
    --------
    >>> goodput_bps([50_000, 1], duration_ps=[1_000_000, -1]).tolist()
    [400000000000.0, nan]
    """
    size, duration = np.broadcast_arrays(
        np.asarray(size_bytes, dtype=np.float64), np.asarray(duration_ps, dtype=np.float64)
    )
    rate = np.full(size.shape, np.nan)
    np.divide(size * BITS_PER_BYTE * PS_PER_SECOND, duration, out=rate, where=duration > 0)
    return rate
