"""The clock: one heap of events, and the order of what happens at one instant.

An event is keyed by (time, node, phase, major, minor). At one node and one instant there are three
phases. First *starts*: ports that are free at that instant begin their next frame, ascending by port.
Then *arrivals*, in an order that a keyed hash of (time, node, port) permutes, so that no port always
wins a tie. Then *timers*, by kind and then by what they are about. Nodes influence each other only
after at least a link's delay, so the place of the node in the key is not observable; it is there to
keep what belongs together together.

Events are never withdrawn. One that has been overtaken (a port that has begun a frame meanwhile, a
retransmission timer of a flow that made progress) finds nothing to do when its time comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .frame import Frame
from .rng import GOLDEN, mix64

__all__ = ["EVERYWHERE", "Clock", "Event", "InsertionClock", "Phase", "Phases", "TimerKind", "arrival_tie"]

PS_PER_NS = 1000
EVERYWHERE = -1
"""The node of an event that belongs to none, and comes before those that do."""


class Phase:
    """What happens first at one node and instant."""

    START, ARRIVAL, TIMER = range(3)


class TimerKind:
    """Which timer acts first at one node and instant."""

    PFC_EFFECT, RETRANSMISSION, FLOW_START, DELAYED_ACK = range(4)
    COPIED, ENTER, BEGIN, QUANTA, DEFERRED_START, CONGESTION = range(4, 10)


class Event(NamedTuple):
    """One event; its first fields are its place in the order.

    A start has the port as `major`, and as `minor` whether it is the end of a frame. An arrival has its
    tie value and the local port, and the frame. A timer has its kind and id: the flow, or for PFC
    port, class and wish as one number. What is still equal then (frames that occupy a link for no
    time at all) comes in the order in which it was scheduled.
    """

    time_ps: int
    number: int
    node: int
    phase: int
    major: int
    minor: int
    scheduled: int
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Phases:
    """Where in a nanosecond things happen, if their order within one is that of transmission starts.

    All times are whole nanoseconds then. Frames arrive at the beginning of one, ports come free and
    pauses end 1 ps later, and flows start 1 ps after that; so no rule of its own is needed for the order.
    Otherwise everything happens when it happens.
    """

    are_used: bool

    @property
    def free_ps(self) -> int:
        """How much later than the end of a frame its port is free."""
        return 1 if self.are_used else 0

    @property
    def start_ps(self) -> int:
        """How much later than its time a flow starts."""
        return 2 if self.are_used else 0

    def tick(self, now_ps: int) -> int:
        """The nanosecond that an instant belongs to, or the instant itself."""
        return now_ps - now_ps % PS_PER_NS if self.are_used else now_ps


def arrival_tie(time_ps: int, tie_key: int, local_port: int) -> int:
    """16 bits that order the arrivals of one instant at one node."""
    return mix64((time_ps ^ tie_key) + (local_port + 1) * GOLDEN) >> 48


class Clock:
    """The pending events.

    Parameters
    ----------
    tie_keys : list of int
        By node, the key that permutes simultaneous arrivals there.
    by_start : bool
        Whether they come in the order in which their transmissions began instead.
    """

    __slots__ = ("_by_start", "_count", "_heap", "_tie_keys")

    def __init__(self, tie_keys: list[int], *, by_start: bool = False) -> None:
        self._by_start = by_start
        self._heap: list[Event] = []
        self._tie_keys = tie_keys
        self._count = 0

    def _number(self) -> int:
        """The place of an event among those of its instant, before its fields decide; here: none."""
        return 0

    def _push(self, time_ps: int, node: int, phase: int, major: int, minor: int, frame: Frame | None) -> int:
        self._count += 1
        event = Event(time_ps, self._number(), node, phase, major, minor, self._count, frame)
        heapq.heappush(self._heap, event)
        return self._count

    def schedule_fault(self, time_ps: int, change: int) -> None:
        """Let a change of the fabric happen before everything else at that instant; before the run begins."""
        self._push(time_ps, EVERYWHERE, Phase.START, change, 0, None)

    def schedule_start(self, time_ps: int, node: int, port: int, *, ends_frame: bool) -> int:
        """Try `port` at the beginning of that instant, at which it may end a frame; returns its number."""
        return self._push(time_ps, node, Phase.START, port, int(ends_frame), None)

    def schedule_arrival(
        self, time_ps: int, node: int, local_port: int, frame: Frame, *, began_ps: int
    ) -> None:
        """Let `frame`, whose transmission began at `began_ps`, arrive at a port of `node`."""
        tie = began_ps if self._by_start else arrival_tie(time_ps, self._tie_keys[node], local_port)
        self._push(time_ps, node, Phase.ARRIVAL, tie, local_port, frame)

    def schedule_timer(self, time_ps: int, node: int, kind: int, ident: int) -> int:
        """Let a timer of this kind act at the end of that instant; returns its number."""
        return self._push(time_ps, node, Phase.TIMER, kind, ident, None)

    def schedule_start_elsewhere(self, time_ps: int, node: int, flow: int) -> None:
        """Start a flow now, after all that happens at this instant at any node."""
        self._count += 1
        event = Event(time_ps, 1, node, Phase.TIMER, TimerKind.FLOW_START, flow, self._count, None)
        heapq.heappush(self._heap, event)

    def defers_flow_starts(self) -> bool:
        """Whether a flow that is due lets everything go first that was scheduled for its instant."""
        return False

    def holds_congestion_timers(self) -> bool:
        """Whether timers of congestion control are events here; if not, they are caught up with."""
        return False

    def changes_at(self, time_ps: int) -> bool:
        """Whether a change of the fabric comes next, and at this instant."""
        return bool(self._heap) and self._heap[0].node == EVERYWHERE and self._heap[0].time_ps == time_ps

    def peek_ps(self) -> int | None:
        """Time of the next event, None when there is none."""
        return self._heap[0].time_ps if self._heap else None

    def pop(self) -> Event:
        """Take the next event."""
        return heapq.heappop(self._heap)

    def pending(self) -> Iterator[Event]:
        """All pending events, in no particular order."""
        return iter(self._heap)


class InsertionClock(Clock):
    """The order of a simulator with one global list of events: first scheduled, first run.

    Among events of one instant, wherever they happen, the one that was scheduled first comes first.
    A frame that begins schedules its end before its arrival. Flows that are due start after all that
    was scheduled for their instant before. This is the order of ns-3; it needs global state, so only
    this engine offers it.

    Timers of congestion control that are events there are events here. They run as long as their flow
    does, and change nothing but its rate; so when nothing else is left, nothing is left.
    """

    __slots__ = ("_congestion_timers",)

    def __init__(self, tie_keys: list[int], *, by_start: bool = False) -> None:
        super().__init__(tie_keys, by_start=by_start)
        self._congestion_timers = 0

    def _number(self) -> int:
        return self._count

    def schedule_start_elsewhere(self, time_ps: int, node: int, flow: int) -> None:
        """Start a flow now, in the order of this clock."""
        self.schedule_timer(time_ps, node, TimerKind.FLOW_START, flow)

    def schedule_timer(self, time_ps: int, node: int, kind: int, ident: int) -> int:
        """Let a timer of this kind act in the order of this clock; returns its number."""
        self._congestion_timers += kind == TimerKind.CONGESTION
        return super().schedule_timer(time_ps, node, kind, ident)

    def defers_flow_starts(self) -> bool:
        """True: an event of its own starts the flow."""
        return True

    def holds_congestion_timers(self) -> bool:
        """True: each is scheduled when the one before it acts."""
        return True

    def peek_ps(self) -> int | None:
        """Time of the next event, None when there is none but timers of congestion control."""
        return super().peek_ps() if len(self._heap) > self._congestion_timers else None

    def pop(self) -> Event:
        """Take the next event."""
        event = super().pop()
        self._congestion_timers -= event.phase == Phase.TIMER and event.major == TimerKind.CONGESTION
        return event
