"""A port: one end of a cable, and what waits there to be sent.

A port sends one frame at a time: it is busy until `busy_ps`. PFC frames wait in a queue of their own
that goes before everything and is never paused. Everything else waits in the class queues of the node
that owns the port (`queues.EgressQueue` in a switch, `host_queue.HostQueue` in a host); the scheduler
chooses among those that have something to send now and that the peer has not paused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from fabric.lowered import Lowered

from .frame import Frame
from .pfc import PeerPause
from .queues import ClassQueue, EgressQueue
from .scheduler import Scheduler

__all__ = ["Port", "make_ports", "serialization_ps"]

BITS_PER_BYTE = 8
PS_PER_SECOND = 10**12
NS_PER_SECOND = 10**9
PS_PER_NS = 1000


def serialization_ps(wire_bytes: int, *, rate_bps: int, tick_timing: bool) -> int:
    """Time that so many bytes take at a rate: rounded up to a picosecond, or in ticks of ns-3.

    ns-3 evaluates seconds as a double, turns that into a 64.64 fixed-point number and truncates to a
    nanosecond, so that most times come out a nanosecond short.

    Examples
    --------
    >>> serialization_ps(1048, rate_bps=100 * 10**9, tick_timing=False)
    83840
    >>> serialization_ps(1250, rate_bps=100 * 10**9, tick_timing=True)
    99000
    """
    if not tick_timing:
        return -(-wire_bytes * BITS_PER_BYTE * PS_PER_SECOND // rate_bps)
    seconds = float(BITS_PER_BYTE * wire_bytes) / float(rate_bps)
    return (int(seconds * 2.0**64) * NS_PER_SECOND >> 64) * PS_PER_NS


@dataclass(slots=True, eq=False)
class Port:
    """One port and the link that it sends on.

    Parameters
    ----------
    number, local, node : int
        Its global number, its number within its node, and that node.
    peer : int
        Global number of the port at the other end.
    rate_bps, delay_ps : int
        Of the link: bit rate; propagation with the receiver's fixed latency.
    gap_bytes : int
        Bytes on the wire for each frame beyond its size.
    cut_bytes : int
        Bytes after which the receiver can act on a frame (cut-through); 0: the whole frame.
    loss, ber_rate : float
        Probability that a frame is lost; and -log1p(-bit error rate).
    scheduler : Scheduler
        Chooses the class to serve.
    pauses : list of PeerPause
        By class, whether the peer has paused it.
    queues : sequence of ClassQueue
        By class, what waits.
    line_bps : int
        The rate as built; `rate_bps` is less while the link is degraded.
    on_link : deque of Frame
        What is on the link, first to arrive first.
    is_down : bool
        Whether frames that begin are lost.
    deaf_until_ps : int
        What would act before this instant as a PFC frame came before the link went down, and does not.
    """

    number: int
    local: int
    node: int
    peer: int
    rate_bps: int
    delay_ps: int
    gap_bytes: int
    cut_bytes: int
    loss: float
    ber_rate: float
    scheduler: Scheduler
    pauses: list[PeerPause]
    line_bps: int
    queues: Sequence[ClassQueue] = ()
    mac_queue: deque[Frame] = field(default_factory=deque)
    on_link: deque[Frame] = field(default_factory=deque)
    busy_ps: int = 0
    is_down: bool = False
    deaf_until_ps: int = 0
    is_sending: bool = False
    wake_ps: int = -1
    wake_number: int = 0
    tx_bytes: int = 0
    tick_timing: bool = False

    def serialization_ps(self, wire_bytes: int) -> int:
        """Time that so many bytes occupy the link."""
        return serialization_ps(wire_bytes, rate_bps=self.rate_bps, tick_timing=self.tick_timing)

    def candidates(self, now_ps: int) -> list[int]:
        """Classes that could begin a frame now."""
        return [
            c
            for c, (queue, pause) in enumerate(zip(self.queues, self.pauses, strict=True))
            if (queue.ignores_pause() if pause.is_paused else queue.is_candidate(now_ps))
        ]

    def head_bytes(self, traffic_class: int) -> int:
        """Size of the frame that a class would begin."""
        return self.queues[traffic_class].head_bytes()

    def queue_cost(self, traffic_class: int, now_ps: int) -> int:
        """Twice the bytes that wait in a class, and one more if none could begin now (switches only)."""
        queue = self.queues[traffic_class]
        assert isinstance(queue, EgressQueue)
        waits = self.busy_ps > now_ps or self.pauses[traffic_class].is_paused
        return 2 * queue.bytes + waits

    def has_startable_frame(self) -> bool:
        """Something waits that will begin without anything else happening first."""
        return bool(self.mac_queue) or any(
            queue.ignores_pause() if pause.is_paused else not queue.is_empty()
            for queue, pause in zip(self.queues, self.pauses, strict=True)
        )


def make_ports(lowered: Lowered, schedulers: list[Scheduler]) -> list[Port]:
    """All ports, by global number; `schedulers` holds one for each. Their nodes add the queues."""
    first_port: list[int] = lowered.node_port_base.tolist()
    node_of: list[int] = lowered.port_node.tolist()
    return [
        Port(
            number=number,
            local=number - first_port[node],
            node=node,
            peer=int(lowered.port_peer[number]),
            rate_bps=int(lowered.port_rate_bps[number]),
            line_bps=int(lowered.port_rate_bps[number]),
            delay_ps=int(lowered.port_delay_ps[number]),
            gap_bytes=int(lowered.port_gap_bytes[number]),
            cut_bytes=int(lowered.port_cut_bytes[number]),
            loss=float(lowered.port_loss[number]),
            ber_rate=float(lowered.port_ber_rate[number]),
            scheduler=schedulers[number],
            tick_timing=bool(lowered.port_tick_timing[number]),
            pauses=[PeerPause() for _ in range(lowered.n_classes)],
        )
        for number, node in enumerate(node_of)
    ]
