"""What a congestion control is to its sender: it is told what happens, and asked for a rate.

A congestion control has no events of its own. Its timers are regular, so what they have done by an
instant is worked out when the sender next asks or tells: everything acts first that expired strictly
before. (The exception is the order of one global list of events, see `dcqcn_vendor_timers.py`.) Rates
are IEEE doubles in bit/s, evaluated in the order in which the formulas of the implementing files are
written. A new algorithm is a class that overrides what it needs, in a file of its own, and a line in
`congestion.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from .telemetry import Memory

__all__ = ["MOST_CONGESTION_TIMERS", "Acknowledgement", "CongestionControl", "RateListener", "SetTimer"]

MOST_CONGESTION_TIMERS = 3
"""Timers that a congestion control may have as events, numbered from 0."""

RateListener = Callable[[int, float], None]
"""Told (time in ps, rate in bit/s) after each change of a rate."""

SetTimer = Callable[[int, int], int]
"""Schedules `CongestionControl.on_timer` for (timer, time in ps); returns the number of the event."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An ACK or a NACK, once its sender has taken it.

    Parameters
    ----------
    now_ps : int
        When it came.
    sequence : int
        The frame that the receiver expects next.
    acknowledged : int
        How many frames it acknowledges for the first time.
    next_frame : int
        The frame that the sender sends next; with selective repeat the first that it has never sent.
    mark : int
        1 if it reports congestion.
    memory : Memory or None
        Telemetry of the frame that caused it, if that has any and `acknowledged` is not 0. A NACK has
        none.
    """

    now_ps: int
    sequence: int
    acknowledged: int
    next_frame: int
    mark: int
    memory: Memory | None


class CongestionControl(ABC):
    """The rate of one flow; it starts with the flow, at line rate."""

    __slots__ = ()

    moves_pauses = False
    """Whether a pause that has begun is measured anew when an acknowledgement changes the rate."""

    @abstractmethod
    def rate_at(self, now_ps: int) -> float:
        """The rate in bit/s now."""

    def on_send(self, now_ps: int, *, wire_bytes: int) -> float:
        """The rate in bit/s at which a frame that begins now is paced."""
        return self.rate_at(now_ps)

    def on_acknowledgement(self, ack: Acknowledgement) -> None:
        """An ACK or NACK has come, for a flow that is not complete."""
        if ack.mark:
            self.on_mark(ack.now_ps)

    def on_notification(self, now_ps: int) -> None:
        """A CNP has come."""
        self.on_mark(now_ps)

    def on_mark(self, now_ps: int) -> None:
        """Congestion was reported in either way; by default nothing follows from it."""
        return

    def on_timer(self, timer: int, *, number: int, now_ps: int) -> None:
        """A timer has come whose event has this number; by default there are none."""
        return
