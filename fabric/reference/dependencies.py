"""When flows start: at a time, and after the flows that they wait for.

A flow starts at the latest of its own start time and, for each predecessor, that one's end plus a
delay. A predecessor ends for its successor when it is *delivered* (the receiver has everything) or
*complete* (the sender knows), as the dependency says. Delays between different hosts are at least as
long as the way, so a start is never scheduled for an instant that its host has passed. Where ends are known
everywhere at once, such a start comes after all else that happens in its instant.
"""

from __future__ import annotations

from fabric.lowered import Lowered

from .clock import Clock, TimerKind
from .tables import Flow

__all__ = ["ON_COMPLETE", "ON_DELIVERED", "Dependencies"]

ON_DELIVERED, ON_COMPLETE, ON_COMPLETE_ELSEWHERE = range(3)
"""Values of `Lowered.dep_on`."""


class Dependencies:
    """The starts that are still to come."""

    def __init__(self, lowered: Lowered, *, flows: list[Flow], clock: Clock, start_phase_ps: int = 0) -> None:
        self._start_phase_ps = start_phase_ps
        self._flows = flows
        self._clock = clock
        self._waits: list[int] = lowered.flow_waits.tolist()
        self._start_ps = [flow.start_ps for flow in flows]
        self._base: list[int] = lowered.dep_base.tolist()
        self._successor: list[int] = lowered.dep_flow.tolist()
        self._delay_ps: list[int] = lowered.dep_delay_ps.tolist()
        self._on: list[int] = lowered.dep_on.tolist()

    def schedule_first(self) -> None:
        """Schedule the flows that wait for no other; connections start with their first message."""
        for flow in self._flows:
            if self._waits[flow.number] == 0 and not flow.is_connection:
                self._schedule(flow)

    def on_end(self, number: int, *, kind: int, now_ps: int) -> None:
        """A flow was delivered, or is complete (`kind`); schedule those that waited for it last."""
        for dependency in range(self._base[number], self._base[number + 1]):
            if self._on[dependency] == kind:
                successor = self._successor[dependency]
                earliest_ps = now_ps + self._delay_ps[dependency]
                self._start_ps[successor] = max(self._start_ps[successor], earliest_ps)
                self._waits[successor] -= 1
                if self._waits[successor] == 0:
                    at_once = self._start_ps[successor] + self._start_phase_ps == now_ps
                    if kind == ON_COMPLETE_ELSEWHERE and at_once:
                        self._clock.schedule_start_elsewhere(now_ps, self._flows[successor].source, successor)
                    else:
                        self._schedule(self._flows[successor])

    def _schedule(self, flow: Flow) -> None:
        start_ps = self._start_ps[flow.number] + self._start_phase_ps
        self._clock.schedule_timer(start_ps, flow.source, TimerKind.FLOW_START, flow.number)
