"""Selective repeat at the sender: what has arrived, what is lost, what to send next.

The receiver keeps every frame and reports each that comes out of order. A frame is lost when one at
least `reorder_frames` beyond it is known to have arrived, so frames of a slower path have that much
time. One that was sent again counts as sent just before the newest frame of that moment, so that a
second loss is seen as the first was. What no later frame can tell, the time-out does: everything not
known to have arrived is lost then. After IRN (Mittal et al., *Revisiting Network Support for RDMA*,
SIGCOMM 2018), where the distance is 1.

Sent first is what was lost again, in the order in which it was sent; then what was lost, in the order of
frame numbers; then what is new.
"""

from __future__ import annotations

from collections import deque

__all__ = ["SelectiveRepeat"]


class SelectiveRepeat:
    """What one sender knows about its frames.

    Parameters
    ----------
    reorder_frames : int
        Distance at which a frame counts as lost.
    """

    __slots__ = ("_arrived", "_first_not_examined", "_lost_before", "_reorder_frames", "_resent", "_top")

    def __init__(self, reorder_frames: int) -> None:
        self._reorder_frames = reorder_frames
        self._arrived: set[int] = set()
        self._resent: deque[tuple[int, int]] = deque()
        self._top = 0
        self._first_not_examined = 0
        self._lost_before = 0

    def on_acknowledged(self, frames: int) -> None:
        """All frames before this number have arrived."""
        self._arrived = {number for number in self._arrived if number >= frames}
        self._learn(frames)

    def on_arrived(self, number: int, *, acked: int) -> bool:
        """The frame with this number has arrived; whether that is news."""
        if number < acked or number in self._arrived:
            return False
        self._arrived.add(number)
        self._learn(number + 1)
        return True

    def on_sent_again(self, number: int, *, newest: int) -> None:
        """A lost frame has been sent again, just before frame `newest` (which has yet to be sent)."""
        if self._resent and self._resent[0][0] == number:
            self._resent.popleft()
        else:
            self._first_not_examined = number + 1
        self._resent.append((number, newest))

    def on_timeout(self, *, acked: int, newest: int) -> None:
        """Everything that is not known to have arrived is lost."""
        self._resent.clear()
        self._first_not_examined = acked
        self._lost_before = newest

    def next_frame(self, *, acked: int, newest: int) -> int:
        """The frame to send next; `newest` is the first that was never sent."""
        while self._resent:
            number, base = self._resent[0]
            if number >= acked and number not in self._arrived:
                if self._top >= base + self._reorder_frames:
                    return number
                break
            self._resent.popleft()
        self._first_not_examined = max(self._first_not_examined, acked)
        while self._first_not_examined < self._lost_before:
            if self._first_not_examined not in self._arrived:
                return self._first_not_examined
            self._first_not_examined += 1
        return newest

    def _learn(self, top: int) -> None:
        self._top = max(self._top, top)
        self._lost_before = max(self._lost_before, self._top - self._reorder_frames)
