"""In-band telemetry: what a frame collects on its way, and an ACK brings back.

A sender that wants it gives every frame that it sends for the first time a `Memory`, which holds when
the frame began to leave and, if hops are wanted, one `Hop` for each switch port that it has begun to
leave since. A frame that is sent again has none: by its number it cannot be told apart from the first
(Karn and Partridge, *Improving Round-Trip Time Estimates in Reliable Transport Protocols*, SIGCOMM
1987). Values are whole and exact, paths may have any length, and nothing is added to the frame's size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Hop", "Memory"]


class Hop(NamedTuple):
    """One switch port, at the instant at which the frame began to leave it.

    Parameters
    ----------
    time_ps : int
        That instant.
    tx_bytes : int
        Wire bytes that the port had begun to send before.
    queue_bytes : int
        In all queues of the port, without the frame.
    port, rate_bps : int
        The port, and its rate as built.
    """

    time_ps: int
    tx_bytes: int
    queue_bytes: int
    port: int
    rate_bps: int


@dataclass(slots=True, eq=False)
class Memory:
    """What is known of one frame.

    Parameters
    ----------
    sent_ps : int
        When it began to leave its source.
    wants_hops : bool
        Whether switches add to `hops`.
    """

    sent_ps: int
    wants_hops: bool
    hops: list[Hop] = field(default_factory=list)
