"""Completion time of a flow in an empty network, exact to the picosecond.

A flow is `frames` frames, sent back to back at the line rate of its first link; all are full but the
last, which may be shorter. Every link is a FIFO server that is busy with a frame for its serialisation
time and delivers it one delay later. With nobody else in the network the frames move as in a tandem
queue, whose departures have a closed form (Friedman, "Reduction methods for tandem queuing systems",
Operations Research 13, 1965: with deterministic service only the slowest server matters):

    start of full frame m at link j  =  sum_{i<j} (f_i + d_i)  +  m * max_{i<=j} s_i

with s_i the time that a full frame occupies link i, d_i the link's delay and f_i the time after which
the next node may begin to forward: f_i = s_i for store and forward, the serialisation of the bytes
that it waits for under cut-through. The short last frame then waits behind the last full one at each
hop, and acknowledgements return as a tandem queue of their own.

Left out: congestion control that starts below line rate, windows below the bandwidth-delay product,
loss, and links that are faster than their feeder under cut-through (a real switch would run dry).
All results are int64 picoseconds; arrays have one row per flow and one column per hop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.spec.link import LARGEST_FRAME_BYTES

__all__ = ["PathTimes", "ideal_completion_ps", "ideal_delivery_ps", "serialisation_ps"]

Int64Array = npt.NDArray[np.int64]

BITS_PER_BYTE = 8
PS_PER_SECOND = 10**12


def serialisation_ps(wire_bytes: npt.ArrayLike, *, rate_bps: npt.ArrayLike) -> Int64Array:
    """Time that a frame occupies a link, rounded up to the picosecond once per frame.

    Parameters
    ----------
    wire_bytes : array_like of int
        Bytes on the wire: frame plus preamble and inter-packet gap. At most 65,535.
    rate_bps : array_like of int
        Link rates in bit/s; broadcast against `wire_bytes`.

    Returns
    -------
    ndarray of int64
        Picoseconds.

    Raises
    ------
    ValueError
        If a frame is negative or larger than 65,535 bytes, or a rate is not positive.

    Examples
    --------
    >>> serialisation_ps(4160, rate_bps=[400 * 10**9, 900 * 10**9]).tolist()
    [83200, 36978]
    """
    size = np.asarray(wire_bytes, dtype=np.int64)
    rate = np.asarray(rate_bps, dtype=np.int64)
    if size.size and (size.min() < 0 or size.max() > LARGEST_FRAME_BYTES):
        raise ValueError(f"wire_bytes must lie in [0, {LARGEST_FRAME_BYTES}]")
    if rate.size and rate.min() <= 0:
        raise ValueError("rate_bps must be positive")
    return np.asarray(-(-(size * (BITS_PER_BYTE * PS_PER_SECOND)) // rate), dtype=np.int64)


@dataclass(frozen=True)
class PathTimes:
    """What the links of each flow's path do to its frames.

    All arrays have shape [flows, hops]. Shorter paths are padded with zeros, which change nothing.

    Attributes
    ----------
    full_ps, last_ps : ndarray of int64
        Time that a full frame and the last frame occupy each link.
    delay_ps : ndarray of int64
        Delay of each link: propagation and the receiver's fixed latency.
    full_forward_ps, last_forward_ps : ndarray of int64
        Time from the start of a frame until the next node may forward it, less the delay. Equal to
        `full_ps` and `last_ps` for store and forward, and on the last link always, since a host
        counts a frame when its last bit has arrived.
    """

    full_ps: Int64Array
    last_ps: Int64Array
    delay_ps: Int64Array
    full_forward_ps: Int64Array
    last_forward_ps: Int64Array

    def __post_init__(self) -> None:
        shapes = {np.shape(value) for value in vars(self).values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise ValueError(f"arrays of PathTimes must have one shape [flows, hops], not {sorted(shapes)}")
        if np.any(self.full_forward_ps > self.full_ps) or np.any(self.last_forward_ps > self.last_ps):
            raise ValueError("a frame cannot be forwarded later than its last bit")

    @classmethod
    def from_links(
        cls,
        rate_bps: npt.ArrayLike,
        *,
        delay_ps: npt.ArrayLike,
        full_bytes: npt.ArrayLike,
        last_bytes: npt.ArrayLike | None = None,
        cut_bytes: npt.ArrayLike = 0,
    ) -> PathTimes:
        """Times of frames on given links.

        Parameters
        ----------
        rate_bps, delay_ps : array_like of int, shape [flows, hops] or [hops]
            Rate and delay of every link of the path; pad shorter paths with rate 0.
        full_bytes, last_bytes : array_like of int, shape [flows] or scalar
            Wire bytes (with preamble and gap) of a full frame and of the last one (default: full).
        cut_bytes : array_like of int, shape [flows, hops], [hops] or scalar
            Wire bytes after which the node at the end of the link may forward; 0: the whole frame.

        Returns
        -------
        PathTimes

        Examples
        --------
        >>> path = PathTimes.from_links([400 * 10**9] * 2, delay_ps=[10**6] * 2, full_bytes=4160)
        >>> path.full_ps.tolist()
        [[83200, 83200]]
        """
        rate = np.atleast_2d(np.asarray(rate_bps, dtype=np.int64))
        delay = np.broadcast_to(np.asarray(delay_ps, dtype=np.int64), rate.shape)
        cut = np.broadcast_to(np.asarray(cut_bytes, dtype=np.int64), rate.shape)
        full = np.broadcast_to(_column(full_bytes), rate.shape)
        last = full if last_bytes is None else np.broadcast_to(_column(last_bytes), rate.shape)
        return cls(
            full_ps=_padded_serialisation(full, rate),
            last_ps=_padded_serialisation(last, rate),
            delay_ps=np.where(rate > 0, delay, 0),
            full_forward_ps=_padded_serialisation(np.where(cut > 0, np.minimum(full, cut), full), rate),
            last_forward_ps=_padded_serialisation(np.where(cut > 0, np.minimum(last, cut), last), rate),
        )


def ideal_delivery_ps(frames: npt.ArrayLike, *, path: PathTimes) -> Int64Array:
    """Time from a flow's start until its last bit has arrived at the receiver.

    Parameters
    ----------
    frames : array_like of int, shape [flows]
        Frames of each flow, at least 1.
    path : PathTimes
        The way there.

    Returns
    -------
    ndarray of int64, shape [flows]
        Picoseconds.

    Raises
    ------
    ValueError
        If a flow has no frame, or the shapes do not match.

    Examples
    --------
    One megabyte in 245 frames of 4160 B over two links of 400 Gbit/s and 1 us:

    >>> path = PathTimes.from_links([400 * 10**9] * 2, delay_ps=[10**6] * 2, full_bytes=4160)
    >>> ideal_delivery_ps([245], path=path).tolist()
    [22467200]
    """
    return _last_delivery(_frame_counts(frames, path), path)


def ideal_completion_ps(
    frames: npt.ArrayLike, *, path: PathTimes, ack_path: PathTimes, ack_every: int = 1
) -> Int64Array:
    """Time from a flow's start until its sender has the last acknowledgement.

    The receiver acknowledges every `ack_every`-th frame and the last one. An acknowledgement can
    wait behind the one before it, where the last frame is shorter than an acknowledgement or the
    way back is slower; that is part of the result.

    Parameters
    ----------
    frames : array_like of int, shape [flows]
        Frames of each flow, at least 1.
    path, ack_path : PathTimes
        The way there, and the way back with the times of an acknowledgement in both frame fields.
    ack_every : int
        Frames per acknowledgement, at least 1.

    Returns
    -------
    ndarray of int64, shape [flows]
        Picoseconds.

    Raises
    ------
    ValueError
        If a flow has no frame, `ack_every` is not positive, or the shapes do not match.

    Examples
    --------
    Two megabytes in 489 frames of 4160 B, acknowledged by 64 B over the same six links:

    >>> rates, delays = [400 * 10**9] * 6, [10**6] * 6
    >>> path = PathTimes.from_links(rates, delay_ps=delays, full_bytes=4160)
    >>> back = PathTimes.from_links(rates, delay_ps=delays, full_bytes=64)
    >>> ideal_completion_ps([489], path=path, ack_path=back).tolist()
    [53108480]
    """
    if ack_every < 1:
        raise ValueError(f"ack_every must be at least 1, not {ack_every}")
    count = _frame_counts(frames, path)
    if len(ack_path.full_ps) != len(count):
        raise ValueError(f"ack_path has {len(ack_path.full_ps)} rows for {len(count)} flows")
    pace = np.max(path.full_ps, axis=1)
    first_delivery = np.sum(path.full_forward_ps + path.delay_ps, axis=1)
    regular = (count - 1) // ack_every
    return _through_links(
        ack_path,
        frames_before=regular,
        first_ps=first_delivery + (ack_every - 1) * pace,
        spacing_ps=ack_every * pace,
        last_ps=_last_delivery(count, path),
    )


def _last_delivery(count: Int64Array, path: PathTimes) -> Int64Array:
    zero = np.zeros(len(count), dtype=np.int64)
    return _through_links(path, frames_before=count - 1, first_ps=zero, spacing_ps=zero, last_ps=zero)


def _through_links(
    path: PathTimes,
    *,
    frames_before: Int64Array,
    first_ps: Int64Array,
    spacing_ps: Int64Array,
    last_ps: Int64Array,
) -> Int64Array:
    """Delivery of the last frame, behind `frames_before` equally spaced full ones.

    Full frame m reaches the first link at `first_ps + m * spacing_ps`, the last frame at `last_ps`.
    """
    offset = first_ps
    slowest = spacing_ps
    start = last_ps
    queued = frames_before > 0
    for hop in range(path.full_ps.shape[1]):
        occupied = path.full_ps[:, hop]
        slowest = np.maximum(slowest, occupied)
        link_free = offset + (frames_before - 1) * slowest + occupied
        start = np.where(queued, np.maximum(start, link_free), start)
        start = start + path.last_forward_ps[:, hop] + path.delay_ps[:, hop]
        offset = offset + path.full_forward_ps[:, hop] + path.delay_ps[:, hop]
    return start


def _frame_counts(frames: npt.ArrayLike, path: PathTimes) -> Int64Array:
    count = np.atleast_1d(np.asarray(frames, dtype=np.int64))
    if count.shape != (len(path.full_ps),):
        raise ValueError(f"frames has shape {count.shape} for {len(path.full_ps)} paths")
    if count.size and count.min() < 1:
        raise ValueError("a flow has at least one frame")
    return count


def _column(values: npt.ArrayLike) -> Int64Array:
    array = np.asarray(values, dtype=np.int64)
    return array if array.ndim == 0 else array.reshape(-1, 1)


def _padded_serialisation(wire_bytes: Int64Array, rate: Int64Array) -> Int64Array:
    times = serialisation_ps(wire_bytes, rate_bps=np.where(rate > 0, rate, 1))
    return np.where(rate > 0, times, 0)
