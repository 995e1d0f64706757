"""Which class a port serves next: strict priority between levels, deficit round robin within one.

A port asks with the classes that could send now. The first level that has one of them is served. A
level of one class needs no arithmetic. In a level of several, deficit weighted round robin (Shreedhar
and Varghese, *Efficient Fair Queueing Using Deficit Round Robin*, SIGCOMM 1995) hands out a quantum of
bytes whenever the turn comes to a class, and the class keeps the turn while its deficit lasts.

A class that cannot send (empty, paused, paced) is passed over without a quantum and keeps its
deficit; one whose queue has become empty loses it, so that credit is not saved up while idle.
"""

from __future__ import annotations

from collections.abc import Callable

from .tables import SchedulerTable

__all__ = ["Scheduler"]


class Scheduler:
    """The scheduler state of one port."""

    __slots__ = ("_current", "_deficit", "_levels", "_quantum", "_shared")

    def __init__(self, table: SchedulerTable) -> None:
        self._levels = table.levels
        self._quantum = table.quantum
        self._current = [level[0] for level in table.levels]
        self._deficit = [0] * len(table.quantum)
        self._shared = {c for level in table.levels if len(level) > 1 for c in level}

    def choose(self, candidates: list[int], head_bytes: Callable[[int], int]) -> int | None:
        """The class to serve, None if there is no candidate.

        Parameters
        ----------
        candidates : list of int
            Classes that could send now.
        head_bytes : callable
            Size in bytes of the frame that a class would send.
        """
        for number, level in enumerate(self._levels):
            ready = [c for c in level if c in candidates]
            if ready:
                return ready[0] if len(level) == 1 else self._take_turn(number, ready, head_bytes)
        return None

    def charge(self, traffic_class: int, size_bytes: int, *, queue_is_empty: bool) -> None:
        """Account for a frame of the class that was chosen, after it has left its queue."""
        if traffic_class in self._shared:
            self._deficit[traffic_class] -= size_bytes
            if queue_is_empty:
                self._deficit[traffic_class] = 0

    def _take_turn(self, number: int, ready: list[int], head_bytes: Callable[[int], int]) -> int:
        current = self._current[number]
        if current not in ready or self._deficit[current] < head_bytes(current):
            while True:
                current = next((c for c in ready if c > current), ready[0])
                self._deficit[current] += self._quantum[current]
                if self._deficit[current] >= head_bytes(current):
                    break
        self._current[number] = current
        return current
