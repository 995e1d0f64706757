"""The messages of one flow, as both of its ends see them.

A connection is a flow on which messages are posted while time runs, as on a queue pair: frame numbers
run on from one message to the next, and with them the window, the pace and congestion control. A plain
flow is a connection with one message, which is there from the beginning. The sender asks how large a
frame is and which messages are acknowledged; the receiver, which have arrived.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from .tables import Flow, Transport

__all__ = ["Message", "Messages"]


@dataclass(frozen=True, slots=True)
class Message:
    """A message on a connection.

    Parameters
    ----------
    end : int
        Number of the first frame after it.
    last_frame_bytes : int
        Size of its last frame; the others are full.
    operation, transfer : int
        What it is of a program; -1 for that of a plain flow.
    """

    end: int
    last_frame_bytes: int
    operation: int = -1
    transfer: int = -1


class Messages:
    """All messages that have been posted on one flow, and how far its ends have come with them."""

    __slots__ = ("_acknowledged", "_arrived", "_ends", "_posted", "_transport")

    def __init__(self, flow: Flow) -> None:
        self._transport: Transport = flow.transport
        self._posted: list[Message] = []
        self._ends: list[int] = []
        self._acknowledged = 0
        self._arrived = 0
        if not flow.is_connection:
            self._append(Message(flow.frames, flow.last_frame_bytes))

    @property
    def frames(self) -> int:
        """Frames of all of them."""
        return self._ends[-1] if self._ends else 0

    def post(self, size_bytes: int, *, operation: int, transfer: int) -> None:
        """Add a message; one without bytes takes one frame."""
        transport = self._transport
        frames = max(1, -(-size_bytes // transport.payload_bytes))
        rest_bytes = size_bytes - (frames - 1) * transport.payload_bytes
        header_bytes = transport.frame_bytes - transport.payload_bytes
        last_frame_bytes = max(rest_bytes + header_bytes, transport.least_frame_bytes)
        self._append(Message(self.frames + frames, last_frame_bytes, operation, transfer))

    def frame_bytes(self, sequence: int) -> int:
        """Size of the frame with this number; only the last one of a message may be shorter."""
        message = self._posted[bisect_right(self._ends, sequence)]
        return message.last_frame_bytes if sequence == message.end - 1 else self._transport.frame_bytes

    def has_end(self, frames: int) -> bool:
        """Whether a message ends with the frame before this number."""
        place = bisect_right(self._ends, frames)
        return place > 0 and self._ends[place - 1] == frames

    def take_arrived(self, expected: int) -> list[Message]:
        """The messages that have arrived since this was last asked: all frames before `expected` have."""
        first, self._arrived = self._arrived, max(self._arrived, bisect_right(self._ends, expected))
        return self._posted[first : self._arrived]

    def take_acknowledged(self, acked: int) -> list[Message]:
        """The messages that have been acknowledged since this was last asked."""
        first, self._acknowledged = self._acknowledged, bisect_right(self._ends, acked)
        return self._posted[first : self._acknowledged]

    def not_arrived(self) -> list[Message]:
        """The messages that have not arrived as far as `take_arrived` was told."""
        return self._posted[self._arrived :]

    def _append(self, message: Message) -> None:
        self._posted.append(message)
        self._ends.append(message.end)
