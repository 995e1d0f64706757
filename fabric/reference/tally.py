"""What is always counted: frames, drops, and the fingerprint of the run.

The fingerprint is a sum, modulo 2^64, of one hash for every arrival of a frame at a node and one for
every drop. A sum does not depend on the order in which nodes are handled, yet any arrival that differs
in place, picosecond, content or mark changes it. Arrivals are taken before a lossy link may lose the
frame; a drop is taken at the port that it is counted at: the sending port for a loss on the link, the
ingress port for everything that a switch drops.

`created` and `consumed` count frames that begin to exist at a node (a host's data and control frames,
PFC frames) and that end at one; with those dropped, in flight and waiting they must balance.
"""

from __future__ import annotations

from .frame import Frame
from .rng import GOLDEN, MASK64, mix64

__all__ = ["Tally"]

IDENTITY_FACTOR = 0xD6E8FEB86659FD93
"""An odd constant that spreads small numbers over 64 bits."""


class Tally:
    """Counters of the whole run.

    Parameters
    ----------
    n_ports, n_classes : int
        Shape of the drop counts.
    fingerprint : bool
        Whether to compute the fingerprint; it is 0 otherwise.
    """

    __slots__ = (
        "_takes_fingerprint",
        "arrived",
        "consumed",
        "created",
        "drops",
        "drops_by_reason",
        "end_ps",
        "fingerprint",
        "lost_in_flight",
        "pauses_repeated",
        "pauses_run_out",
        "started",
    )

    def __init__(self, n_ports: int, n_classes: int, *, fingerprint: bool) -> None:
        self._takes_fingerprint = fingerprint
        self.fingerprint = 0
        self.started = 0
        self.arrived = 0
        self.lost_in_flight = 0
        self.pauses_repeated = 0
        self.pauses_run_out = 0
        self.created = 0
        self.consumed = 0
        self.end_ps = 0
        self.drops = [[0] * n_classes for _ in range(n_ports)]
        self.drops_by_reason = [0] * 8

    @property
    def in_flight(self) -> int:
        """Frames that are on a link."""
        return self.started - self.arrived - self.lost_in_flight

    def on_arrival(self, frame: Frame, *, port: int, now_ps: int) -> None:
        """A frame has come to `port` (and may yet turn out to be lost)."""
        self.arrived += 1
        self.end_ps = now_ps
        if self._takes_fingerprint:
            self._add(arrival_hash(frame, port=port, time_ps=now_ps))

    def on_drop(self, frame: Frame, *, port: int, reason: int, now_ps: int) -> None:
        """A frame vanishes; `port` is where it is counted."""
        self.drops[port][frame.traffic_class] += 1
        self.drops_by_reason[reason] += 1
        if self._takes_fingerprint:
            self._add(drop_hash(frame, port=port, reason=reason, time_ps=now_ps))

    def _add(self, value: int) -> None:
        self.fingerprint = self.fingerprint + value & MASK64


def arrival_hash(frame: Frame, *, port: int, time_ps: int) -> int:
    """What one arrival adds to the fingerprint."""
    fields = frame.mark << 48 | frame.traffic_class << 40 | frame.kind << 32 | frame.size_bytes
    content = _identity(frame) + fields
    return _place(port, time_ps) * (2 * content + 1) & MASK64


def drop_hash(frame: Frame, *, port: int, reason: int, time_ps: int) -> int:
    """What one drop adds to the fingerprint."""
    return mix64(_place(port, time_ps) ^ _identity(frame) ^ reason)


def _identity(frame: Frame) -> int:
    return (frame.sequence << 32 | frame.flow) * IDENTITY_FACTOR & MASK64


def _place(port: int, time_ps: int) -> int:
    return time_ps + (port + 1) * GOLDEN & MASK64
