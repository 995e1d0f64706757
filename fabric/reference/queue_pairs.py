"""Queue pairs of a host port, served in turn: the NIC of the HPCC simulator.

Flows stand in a list in the order in which they have started. Whenever the port could begin a frame and no
control frame goes first, the list is *scanned*, from the one behind the one that was served last, up to
the first that may send: it has bytes left, its window is open, its pause is over, and its class is not
paused. Complete flows that are met in a scan are struck from the list, with all complete ones behind the
first of them; the place of the flow that was found follows, that of the one served last does not.

If nothing can be sent, a wake-up is set for the earliest end of a pause among flows with bytes left,
whether they could send then or not, provided that it lies in the future and no wake-up is pending. So
a flow that is held by its window can keep a paced one waiting. Source: github.com/alibaba-edu/
High-Precision-Congestion-Control, `qbb-net-device.cc`.
"""

from __future__ import annotations

from .host_queue import HostQueue
from .sender import Sender

__all__ = ["QueuePairs"]


class QueuePairs(HostQueue):
    """The queue of one (port, class) whose flows take turns."""

    __slots__ = ("_chosen", "_flows", "_last")

    def __init__(self, *, control_ignores_pause: bool) -> None:
        super().__init__(control_ignores_pause=control_ignores_pause)
        self._flows: list[Sender] = []
        self._chosen: int | None = None
        self._last = 0

    def scan(self, now_ps: int, *, is_paused: bool) -> None:
        """Look for the flow whose turn it is; a try of the port may then take it."""
        self._chosen = None
        if self.control and (self.ignores_pause() or not is_paused):
            return
        met_complete: list[int] = []
        count = len(self._flows)
        for step in range(1, count + 1):
            index = (self._last + step) % count
            sender = self._flows[index]
            if not is_paused and sender.is_sendable:
                if sender.next_time_ps <= now_ps:
                    self._chosen = index
                    break
            elif sender.is_complete:
                met_complete.append(index)
        if met_complete:
            self._strike_from(min(met_complete))

    def _strike_from(self, first: int) -> None:
        flows = self._flows
        chosen = None if self._chosen is None else flows[self._chosen]
        self._flows = [each for k, each in enumerate(flows) if k < first or not each.is_complete]
        if chosen is not None:
            self._chosen = self._flows.index(chosen)

    def wake_ps(self) -> int | None:
        """The earliest end of a pause of any flow with bytes left."""
        ends = [each.next_time_ps for each in self._flows if each.next_frame < each.messages.frames]
        return min(ends, default=None)

    def is_candidate(self, now_ps: int) -> bool:
        """A control frame waits, or the last scan has found a flow."""
        return bool(self.control) or self._chosen is not None

    def is_empty(self) -> bool:
        """Nothing waits that could go without anything else happening first."""
        return not self.control and not any(sender.is_sendable for sender in self._flows)

    def head_bytes(self) -> int:
        """Size of the frame that would begin."""
        if self.control:
            return self.control[0].size_bytes
        assert self._chosen is not None
        return self._flows[self._chosen].next_frame_bytes()

    def enter(self, sender: Sender, *, eligible_ps: int) -> None:
        """Let a flow join, which then stays until it is struck."""
        sender.is_ready = True
        self._flows.append(sender)

    def take(self) -> Sender:
        """The flow that the last scan has found; its turn is over."""
        assert self._chosen is not None
        self._last, chosen = self._chosen, self._flows[self._chosen]
        self._chosen = None
        return chosen

    def move_away(self, sender: Sender) -> None:
        """Take a flow that goes to another port off the list; whose turn it is stays as it is."""
        place = self._flows.index(sender)
        del self._flows[place]
        sender.is_ready = False
        if place <= self._last:
            self._last -= 1

    def leave(self, sender: Sender) -> None:
        """Nothing: a flow stays in the list while it cannot send."""
