"""Rows of queue depth, in one of two modes.

*On change*: a row whenever a depth differs by at least `delta` from the last one recorded (at first 0).

*At an interval*: the depth at the end of instant k * interval, for those k at which it differs from the
last such row (at first 0). Which depth that is becomes known only when the next change comes, so
each queue holds one pending depth. The state after the last change is emitted for the first k *
interval at or after that change: when a later change happens at a time beyond k * interval, or at the
end of the run if k * interval is not beyond the last arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["DepthListener", "OnChange", "OnInterval"]

DepthListener = Callable[[int, int, int, int], None]
"""Takes a row: (time in ps, bytes, port, class)."""


class OnChange:
    """Depth rows by size of the change."""

    __slots__ = ("_delta", "_emit", "_last")

    def __init__(self, delta: int, emit: DepthListener) -> None:
        self._delta = delta
        self._emit = emit
        self._last: dict[tuple[int, int], int] = {}

    def on_depth(self, now_ps: int, depth: int, port: int, traffic_class: int) -> None:
        """The depth of a queue has changed."""
        if abs(depth - self._last.get((port, traffic_class), 0)) >= self._delta:
            self._last[port, traffic_class] = depth
            self._emit(now_ps, depth, port, traffic_class)

    def pending(self, end_ps: int) -> Iterator[tuple[int, int, int, int]]:
        """Nothing is ever held back."""
        return iter(())


class OnInterval:
    """Depth rows on a grid of instants."""

    __slots__ = ("_emit", "_emitted", "_interval_ps", "_pending")

    def __init__(self, interval_ps: int, emit: DepthListener) -> None:
        self._interval_ps = interval_ps
        self._emit = emit
        self._emitted: dict[tuple[int, int], int] = {}
        self._pending: dict[tuple[int, int], tuple[int, int]] = {}

    def on_depth(self, now_ps: int, depth: int, port: int, traffic_class: int) -> None:
        """The depth of a queue has changed; what held until now may become a row."""
        queue = (port, traffic_class)
        at_ps, held = self._pending.get(queue, (now_ps, 0))
        if at_ps < now_ps and held != self._emitted.get(queue, 0):
            self._emitted[queue] = held
            self._emit(at_ps, held, port, traffic_class)
        next_instant_ps = -(-now_ps // self._interval_ps) * self._interval_ps
        self._pending[queue] = (next_instant_ps, depth)

    def pending(self, end_ps: int) -> Iterator[tuple[int, int, int, int]]:
        """The rows that are due if the run ends here; nothing changes by asking."""
        for (port, traffic_class), (at_ps, held) in self._pending.items():
            if at_ps <= end_ps and held != self._emitted.get((port, traffic_class), 0):
                yield at_ps, held, port, traffic_class
