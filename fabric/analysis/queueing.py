"""Closed forms of queues, incast and retransmission that a simulation must reproduce.

Waiting times are in units of the service time of one frame unless a name says otherwise. The queueing
formulas are those of Kleinrock, "Queueing Systems", volume 1, 1975 (Pollaczek-Khinchine for M/G/1); the
recursion is that of Lindley, "The theory of queues with a single server", 1952. The others follow from
counting, as each docstring says. What they leave out: anything that reacts to congestion.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = [
    "frame_loss_probability",
    "go_back_n_share",
    "incast_drain_ps",
    "incast_peak_frames",
    "lindley_waits",
    "mg1_wait",
    "selective_repeat_share",
]

BITS_PER_BYTE = 8


def mg1_wait(load: float, *, squared_cv: float) -> float:
    """Mean wait in an M/G/1 queue, in mean service times.

    Parameters
    ----------
    load : float
        Arrival rate times mean service time, in [0, 1).
    squared_cv : float
        Squared coefficient of variation of the service time: 0 for equal frames (M/D/1), 1 for
        exponential sizes (M/M/1).

    Returns
    -------
    float
        load (1 + squared_cv) / (2 (1 - load)). The mean number in the system is
        `load * (1 + wait)` by Little's law.

    Raises
    ------
    ValueError
        If the load is outside [0, 1) or `squared_cv` negative.

    Examples
    --------
    >>> round(mg1_wait(0.8, squared_cv=0), 9), round(mg1_wait(0.8, squared_cv=1), 9)
    (2.0, 4.0)
    """
    if not 0 <= load < 1:
        raise ValueError(f"load must lie in [0, 1), not {load}")
    if squared_cv < 0:
        raise ValueError(f"squared_cv must not be negative, not {squared_cv}")
    return load * (1 + squared_cv) / (2 * (1 - load))


def lindley_waits(
    arrival_ps: npt.NDArray[np.int64], *, service_ps: npt.NDArray[np.int64] | int
) -> npt.NDArray[np.int64]:
    """Wait of each frame in one FIFO queue with the given arrivals, exactly.

    W[k] = max(0, W[k-1] + S[k-1] - (A[k] - A[k-1])). For frames of equal size that cross a switch whose
    links are all equal, the wait at the host plus the wait at the egress equals this, frame by frame.

    Parameters
    ----------
    arrival_ps : ndarray of int64, shape [n]
        Arrival times, ascending.
    service_ps : int or ndarray of int64, shape [n]
        Service times.

    Returns
    -------
    ndarray of int64, shape [n]
        Picoseconds between arrival and start of service.

    Raises
    ------
    ValueError
        If the arrivals descend.

    Examples
    --------
    >>> lindley_waits(np.array([0, 1, 2, 50]), service_ps=10).tolist()
    [0, 9, 18, 0]
    """
    arrival = np.asarray(arrival_ps, dtype=np.int64)
    if np.any(np.diff(arrival) < 0):
        raise ValueError("arrivals must ascend")
    service = np.broadcast_to(np.asarray(service_ps, dtype=np.int64), arrival.shape)
    work_before = np.cumsum(service) - service
    slack = arrival - work_before
    start = work_before + np.maximum.accumulate(slack)
    return np.asarray(start - arrival, dtype=np.int64)


def incast_drain_ps(senders: int, *, frames: int, frame_ps: int, path_ps: int) -> int:
    """Time until the last frame of an incast has arrived.

    The receiver's link is busy from the first frame on: senders * frames * frame time, plus the way.

    Parameters
    ----------
    senders, frames : int
        Senders at line rate, all starting at one instant, and frames of each.
    frame_ps : int
        Serialisation time of a frame.
    path_ps : int
        Time for one frame alone from start to delivery, less its serialisation on the last link.

    Returns
    -------
    int
        Picoseconds; within one frame time of a simulation.

    Examples
    --------
    >>> incast_drain_ps(8, frames=489, frame_ps=83_200, path_ps=2_083_200)
    327561600
    """
    return senders * frames * frame_ps + path_ps


def incast_peak_frames(senders: int, *, frames: int) -> int:
    """Largest queue at the receiver's port, without congestion control or PFC.

    Arrivals come at `senders` times the rate at which frames leave: (senders - 1) * frames + 1 with
    the frame in service, when all first frames arrive at one instant.

    Parameters
    ----------
    senders, frames : int
        As in :func:`incast_drain_ps`.

    Returns
    -------
    int
        Frames, the one in service included.

    Examples
    --------
    >>> incast_peak_frames(8, frames=489)
    3424
    """
    return (senders - 1) * frames + 1


def go_back_n_share(loss: float, *, round_trip_frames: float) -> float:
    """Share of the line rate that go-back-N delivers under independent frame loss.

    A lost frame wastes D = RTT + 1/(1-p) frames: the next frame that arrives reveals the gap, and all
    that was sent until the rewind is sent again. Goodput is (1-p) / (1-p + pD).

    Parameters
    ----------
    loss : float
        Probability that a frame is lost, in [0, 1).
    round_trip_frames : float
        Round-trip time in frame times.

    Returns
    -------
    float
        Share in (0, 1].

    Raises
    ------
    ValueError
        If the loss is outside [0, 1).

    Examples
    --------
    >>> round(go_back_n_share(1e-3, round_trip_frames=100), 3)
    0.908
    """
    arrives = selective_repeat_share(loss)
    wasted = round_trip_frames + 1 / arrives
    return arrives / (arrives + loss * wasted)


def selective_repeat_share(loss: float) -> float:
    """Share of the line rate that selective repeat delivers with a window that never limits: 1 - p.

    Parameters
    ----------
    loss : float
        Probability that a frame is lost, in [0, 1).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the loss is outside [0, 1).

    Examples
    --------
    >>> selective_repeat_share(0.25)
    0.75
    """
    if not 0 <= loss < 1:
        raise ValueError(f"loss must lie in [0, 1), not {loss}")
    return 1 - loss


def frame_loss_probability(bit_error_rate: float, *, wire_bytes: int) -> float:
    """Probability that independent bit errors hit a frame: 1 - (1-b)^bits.

    Parameters
    ----------
    bit_error_rate : float
        Probability of an error per bit, in [0, 1).
    wire_bytes : int
        Bytes of the frame.

    Returns
    -------
    float

    Examples
    --------
    >>> round(frame_loss_probability(1e-12, wire_bytes=4160) * 1e8, 3)
    3.328
    """
    return -math.expm1(BITS_PER_BYTE * wire_bytes * math.log1p(-bit_error_rate))
