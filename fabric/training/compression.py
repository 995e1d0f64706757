"""When gradient compression pays, in a closed form; what it leaves to send is in its specs."""

from __future__ import annotations

__all__ = ["step_time"]


def step_time(
    compute: float, communication: float, *, ratio: float = 1.0, hidden: float = 0.0, encode: float = 0.0
) -> float:
    """Time of a step whose gradients shrink to `ratio`.

    Parameters
    ----------
    compute, communication : float
        Time of each, without compression.
    ratio : float
        What is left of the communication's time.
    hidden : float
        Share of the uncompressed communication's time that passes behind compute.
    encode : float
        Time of encoding and decoding.

    Examples
    --------
    >>> step_time(100, 60), step_time(100, 60, ratio=0.1)
    (160.0, 106.0)
    """
    return compute + max(0.0, ratio * communication - hidden * communication) + encode
