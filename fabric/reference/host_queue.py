"""What waits at a host port, per class: control frames first, then flows that may send.

Control frames (ACK, NACK, CNP) exist already and wait in a FIFO. Data frames do not exist until they
begin: a flow that has something to send stands in a heap by the instant from which its pacing allows
it, flows of the same instant by number. The class can begin a frame as soon as there is a control frame
or the first flow's instant has come.
"""

from __future__ import annotations

import heapq
from collections import deque

from .frame import Frame
from .sender import Sender

__all__ = ["HostQueue"]


class HostQueue:
    """The queue of one (port, class) of a host."""

    __slots__ = ("_control_ignores_pause", "_ready", "control")

    def __init__(self, *, control_ignores_pause: bool) -> None:
        self._control_ignores_pause = control_ignores_pause
        self.control: deque[Frame] = deque()
        self._ready: list[tuple[int, int, Sender]] = []

    def is_candidate(self, now_ps: int) -> bool:
        """A control frame waits, or a flow may send now."""
        return bool(self.control) or (bool(self._ready) and self._ready[0][0] <= now_ps)

    def ignores_pause(self) -> bool:
        """A control frame waits that goes although the peer has paused the class."""
        return self._control_ignores_pause and bool(self.control)

    def is_empty(self) -> bool:
        """No control frame waits, and no flow stands here, not even for later."""
        return not self.control and not self._ready

    def head_bytes(self) -> int:
        """Size of the frame that would begin."""
        return self.control[0].size_bytes if self.control else self._ready[0][2].next_frame_bytes()

    def waiting_frames(self) -> int:
        """Control frames that wait; data frames do not exist yet."""
        return len(self.control)

    def next_eligible_ps(self) -> int | None:
        """The instant from which the first flow may send, None if no flow stands here."""
        return self._ready[0][0] if self._ready else None

    def enter(self, sender: Sender, *, eligible_ps: int) -> None:
        """Let a flow stand in the heap, where it is not yet."""
        sender.is_ready = True
        heapq.heappush(self._ready, (eligible_ps, sender.flow.number, sender))

    def take(self) -> Sender:
        """Take the first flow off the heap."""
        sender = heapq.heappop(self._ready)[2]
        sender.is_ready = False
        return sender

    def move_away(self, sender: Sender) -> None:
        """Take off a flow that goes to another port."""
        self.leave(sender)

    def leave(self, sender: Sender) -> None:
        """Take a flow off the heap, wherever it stands."""
        sender.is_ready = False
        self._ready = [entry for entry in self._ready if entry[2] is not sender]
        heapq.heapify(self._ready)
