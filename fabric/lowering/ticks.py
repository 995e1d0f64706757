"""Times as ns-3 keeps them: whole nanoseconds, cut off.

ns-3 evaluates seconds as a double, turns that into a 64.64 fixed-point number and truncates to a
nanosecond, so that "2.002" seconds are 2 001 999 999 ns. With `run.timing = "ns3"` that happens to all
times that a scenario gives in seconds: the starts of flows, and the end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ns3_ticks_ps"]

PS_PER_SECOND = 1e12
NS_PER_SECOND = 10**9
PS_PER_NS = 1000
FIXED_POINT_BITS = 64


def ns3_ticks_ps(time_ps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Times in picoseconds as the nanosecond, again in picoseconds, that ns-3 makes of the same seconds.

    Examples
    --------
    >>> ns3_ticks_ps(np.array([2_002_000_000_000, 2_000_020_000_000])).tolist()
    [2001999999000, 2000020000000]
    """
    distinct, place = np.unique(time_ps, return_inverse=True)
    ticks = [
        (int(seconds * 2.0**FIXED_POINT_BITS) * NS_PER_SECOND >> FIXED_POINT_BITS) * PS_PER_NS
        for seconds in (distinct / PS_PER_SECOND).tolist()
    ]
    return np.array(ticks, dtype=np.int64)[place.ravel()]
