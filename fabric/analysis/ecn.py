"""RED marking as switches use it for ECN: probability against queue length, and back.

    p(q) = 0                                  q <= Kmin
           Pmax (q - Kmin) / (Kmax - Kmin)    Kmin < q <= Kmax
           1                                  q > Kmax

on the instantaneous queue of one egress class, strict at both ends, so Kmin = Kmax is a step (DCTCP).
Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1;
the strictness is that of the switch model in github.com/alibaba-edu/High-Precision-Congestion-Control.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np
import numpy.typing as npt

__all__ = ["marking_probability", "queue_at_probability"]


def _check(kmin_bytes: int, kmax_bytes: int, pmax: float) -> None:
    if not 0 <= kmin_bytes <= kmax_bytes:
        raise ValueError(f"thresholds must satisfy 0 <= kmin <= kmax, not {kmin_bytes} and {kmax_bytes}")
    if not 0 < pmax <= 1:
        raise ValueError(f"pmax must lie in (0, 1], not {pmax}")


@overload
def marking_probability(queue_bytes: int, *, kmin_bytes: int, kmax_bytes: int, pmax: float) -> float: ...
@overload
def marking_probability(
    queue_bytes: npt.NDArray[np.int64], *, kmin_bytes: int, kmax_bytes: int, pmax: float
) -> npt.NDArray[np.float64]: ...
def marking_probability(
    queue_bytes: int | npt.NDArray[np.int64], *, kmin_bytes: int, kmax_bytes: int, pmax: float
) -> float | npt.NDArray[np.float64]:
    """Probability that a frame is marked at a given queue length.

    Parameters
    ----------
    queue_bytes : int or ndarray of int64
        Length of the egress class queue, in bytes.
    kmin_bytes, kmax_bytes : int
        Thresholds, kmin at most kmax.
    pmax : float
        Probability at Kmax, in (0, 1].

    Returns
    -------
    float or ndarray of float64, like `queue_bytes`

    Raises
    ------
    ValueError
        If the thresholds are not in order or `pmax` is out of range.

    Examples
    --------
    >>> marking_probability(102_500, kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01)
    0.005
    """
    _check(kmin_bytes, kmax_bytes, pmax)
    q = np.asarray(queue_bytes, dtype=np.float64)
    width = max(kmax_bytes - kmin_bytes, 1)
    ramp = pmax * (q - kmin_bytes) / width
    p = np.where(q > kmax_bytes, 1.0, np.where(q > kmin_bytes, ramp, 0.0))
    return float(p) if p.ndim == 0 else p


def queue_at_probability(probability: float, *, kmin_bytes: int, kmax_bytes: int, pmax: float) -> float:
    """Queue length at which frames are marked with a given probability.

    Parameters
    ----------
    probability : float
        Marking probability, in [0, 1].
    kmin_bytes, kmax_bytes, pmax
        As in :func:`marking_probability`.

    Returns
    -------
    float
        Bytes; NaN above `pmax`, where no constant queue has this probability.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> queue_at_probability(0.1, kmin_bytes=400_000, kmax_bytes=1_600_000, pmax=0.2)
    1000000.0
    """
    _check(kmin_bytes, kmax_bytes, pmax)
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must lie in [0, 1], not {probability}")
    if probability > pmax:
        return math.nan
    return kmin_bytes + probability / pmax * (kmax_bytes - kmin_bytes)
