"""Congestion marks: RED on the instantaneous bytes of one egress class queue.

Nothing up to Kmin, everything above Kmax, and between them with a probability that rises linearly to
Pmax (Floyd and Jacobson 1993, without the averaging; Zhu et al., SIGCOMM 2015, section 3.1). Both ends
are strict. Whether the queue is read when a frame comes or when it leaves is the caller's: see
`switch.py`. A draw is made only between the thresholds. A frame that carries a mark already is tested
like any other.
"""

from __future__ import annotations

from .frame import DATA, Frame
from .rng import draw, mix64, unit
from .tables import Profile

__all__ = ["mark_probability", "should_mark"]


def mark_probability(queue_bytes: int, *, kmin_bytes: int, kmax_bytes: int, pmax: float) -> float:
    """Probability of a mark at this queue depth; floating point from left to right.

    Examples
    --------
    >>> red = dict(kmin_bytes=5000, kmax_bytes=200_000, pmax=0.01)
    >>> [mark_probability(q, **red) for q in (5000, 102_500, 200_000, 200_001)]
    [0.0, 0.005, 0.01, 1.0]
    """
    if queue_bytes <= kmin_bytes:
        return 0.0
    if queue_bytes > kmax_bytes:
        return 1.0
    return pmax * float(queue_bytes - kmin_bytes) / float(kmax_bytes - kmin_bytes)


def should_mark(
    frame: Frame, *, profile: Profile, queue_bytes: int, key: int, port: int, time_ps: int
) -> bool:
    """Whether `frame`, at egress `port` at `time_ps`, is to be marked; only DATA ever is."""
    kmin_bytes, kmax_bytes = profile.ecn_kmin_bytes, profile.ecn_kmax_bytes
    if frame.kind != DATA or queue_bytes <= kmin_bytes:
        return False
    if queue_bytes > kmax_bytes:
        return True
    chance = unit(draw(key, port, time_ps ^ mix64(frame.identity)))
    return chance < mark_probability(
        queue_bytes, kmin_bytes=kmin_bytes, kmax_bytes=kmax_bytes, pmax=profile.ecn_pmax
    )
