"""A frame: what occupies a link.

A frame is made once, at the node where it begins (a host's data or control frame, a switch's or
host's PFC frame), and travels as one object; all that changes on its way is the congestion
mark, what is left of its lifetime, and what telemetry it collects. What a switch knows about a frame
while it holds it (where it came in, since when it waits) is the switch's, and lives in its queue.
`size_bytes` is what buffers are charged; the wire adds the gap of the port that sends it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .telemetry import Memory

__all__ = ["ACK", "CNP", "DATA", "NACK", "PFC", "PFC_FLOW", "Frame", "pfc_frame"]

DATA, ACK, NACK, CNP, PFC = range(5)
"""Kinds of frames."""

PFC_FLOW = 0xFFFFFFFF
"""The flow number of frames that belong to no flow."""


@dataclass(slots=True, eq=False)
class Frame:
    """One frame.

    Parameters
    ----------
    kind : int
        DATA, ACK, NACK, CNP or PFC.
    flow : int
        The flow it belongs to, `PFC_FLOW` for PFC.
    sequence : int
        DATA: number of the frame in its flow, from 0. ACK, NACK: the frame number that the receiver
        expects next. CNP: 0. PFC: 1 pause, 0 resume.
    traffic_class : int
        The class that it travels in; PFC: the class that it speaks about.
    size_bytes : int
        Size as charged to buffers.
    destination : int
        Host that it goes to (PFC: unused, it ends at the next node).
    path_hash : int
        32 bits that choose among equal-cost paths.
    mark : int
        1: congestion experienced (DATA), or its echo (ACK, NACK).
    memory : Memory or None
        Telemetry that the frame collects (DATA), or that the frame which caused it had collected (ACK).
    ttl : int
        Switches that it may still reach; 0: any number.
    is_lost : bool
        Its link went down while it was on it: it does not arrive.
    """

    kind: int
    flow: int
    sequence: int
    traffic_class: int
    size_bytes: int
    destination: int
    path_hash: int
    mark: int = 0
    memory: Memory | None = None
    ttl: int = 0
    is_lost: bool = False

    @property
    def identity(self) -> int:
        """Flow and sequence as one number; it keys every draw about this frame."""
        return self.flow << 32 | self.sequence


def pfc_frame(traffic_class: int, *, wish: int, size_bytes: int) -> Frame:
    """A PAUSE or a RESUME for one class (`pfc.Wish`)."""
    return Frame(PFC, PFC_FLOW, wish, traffic_class, size_bytes, 0, 0)
