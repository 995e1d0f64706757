"""Frames that wait at an egress port of a switch, per class: one FIFO, or one for each ingress port.

With the FIFO arbiter a class queue serves frames in the order in which they came. With the round-robin
arbiter it holds one FIFO for each ingress port and serves these in turn: the first that is not empty
after the one served last, cyclic by local port number. It decides who suffers behind whom, and whether
some cyclic traffic patterns deadlock. Bytes in the queue, their peak and the integral of waiting bytes
over time belong to the queue; the frame being sent has left it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from .frame import Frame

__all__ = ["ClassQueue", "EgressQueue", "Waiting"]


class ClassQueue(Protocol):
    """What a port needs to know of the queue of one of its classes."""

    def is_candidate(self, now_ps: int) -> bool:
        """There is a frame that may begin now, if the peer has not paused the class."""

    def ignores_pause(self) -> bool:
        """There is a frame that may begin now although the peer has paused the class."""

    def is_empty(self) -> bool:
        """Nothing waits, neither for now nor for later."""

    def head_bytes(self) -> int:
        """Size of the frame that would begin."""

    def waiting_frames(self) -> int:
        """How many frames (which exist already) wait."""


class Waiting(NamedTuple):
    """A frame in a switch: where it came in, and since when it waits."""

    frame: Frame
    ingress: int
    since_ps: int


class EgressQueue:
    """The queue of one (egress port, class) of a switch.

    Parameters
    ----------
    n_ports : int
        Ports of the switch.
    per_ingress : bool
        Round robin over ingress ports, instead of one FIFO.
    """

    __slots__ = ("_fifos", "_last", "_per_ingress", "bytes", "marks", "peak_bytes", "wait_integral")

    def __init__(self, n_ports: int, *, per_ingress: bool) -> None:
        self._per_ingress = per_ingress
        self._fifos: list[deque[Waiting]] = [deque() for _ in range(n_ports if per_ingress else 1)]
        self._last = len(self._fifos) - 1
        self.bytes = 0
        self.peak_bytes = 0
        self.wait_integral = 0.0
        self.marks = 0

    def is_candidate(self, now_ps: int) -> bool:
        """There is a frame; frames in a switch are not paced."""
        return not self.is_empty()

    def ignores_pause(self) -> bool:
        """Never: PFC holds everything that waits in a switch."""
        return False

    def is_empty(self) -> bool:
        """Nothing waits."""
        return not any(self._fifos)

    def head_bytes(self) -> int:
        """Size of the frame that would begin."""
        return self._fifos[self._next()][0].frame.size_bytes

    def waiting_frames(self) -> int:
        """How many frames wait."""
        return sum(len(fifo) for fifo in self._fifos)

    def push(self, frame: Frame, *, ingress: int, now_ps: int) -> None:
        """Append a frame that came in at the local port `ingress`."""
        self._fifos[ingress if self._per_ingress else 0].append(Waiting(frame, ingress, now_ps))
        self.bytes += frame.size_bytes

    def take_peak(self) -> None:
        """Take the depth for the peak, once a frame that came has had its chance to begin at once."""
        self.peak_bytes = max(self.peak_bytes, self.bytes)

    def pop(self, now_ps: int) -> Waiting:
        """Take the frame that begins at `now_ps`."""
        self._last = self._next()
        waiting = self._fifos[self._last].popleft()
        size_bytes = waiting.frame.size_bytes
        self.bytes -= size_bytes
        self.wait_integral += float(size_bytes) * float(now_ps - waiting.since_ps)
        return waiting

    def waiting(self) -> Iterator[Waiting]:
        """All that waits, by FIFO."""
        return (waiting for fifo in self._fifos for waiting in fifo)

    def frame_bytes(self) -> int:
        """Sum of the sizes of all waiting frames, counted anew."""
        return sum(waiting.frame.size_bytes for waiting in self.waiting())

    def _next(self) -> int:
        n = len(self._fifos)
        return next(i % n for i in range(self._last + 1, self._last + 1 + n) if self._fifos[i % n])
