"""A switch: shared memory, output queues, marks, and PFC towards whoever sends too much.

A frame that arrives is routed, admitted to the buffer (or dropped), may cause a PAUSE towards its
sender, joins the queue of its egress port and class, and begins at once if the port is idle. When it
begins it leaves the queue and the buffer, which may cause a RESUME. The PAUSE or RESUME is a frame like
any other and waits for the one being sent in its direction. Marks are made when a frame joins the
queue (which then counts it) or when it leaves (which then does not), as the class profile says. Depths
are recorded after a frame has had its chance, so one that begins at once never shows as a queue.

Latency of the pipeline is part of the delay of the links that end here.
"""

from __future__ import annotations

from fabric.lowered import DropReason

from .buffer import IngressAccount, SharedPool, admit, may_resume, must_pause, release
from .ecn import should_mark
from .environment import Environment
from .frame import DATA, Frame, pfc_frame
from .node import Node
from .pfc import Wish
from .port import Port
from .queues import EgressQueue
from .routing import Group, Router
from .tables import EcnMode, Profile
from .telemetry import Hop

__all__ = ["Switch"]


class Switch(Node):
    """One switch.

    Parameters
    ----------
    profiles : list of list of Profile
        By local port and class.
    router : Router
        Chooses egress ports.
    shared_bytes : int
        Size of the shared pool.
    per_ingress : bool
        Round robin over ingress ports within a class queue.
    """

    def __init__(
        self,
        number: int,
        ports: list[Port],
        *,
        profiles: list[list[Profile]],
        router: Router,
        shared_bytes: int,
        per_ingress: bool,
        pfc_response_ps: int,
        environment: Environment,
    ) -> None:
        super().__init__(number, ports, pfc_response_ps=pfc_response_ps, environment=environment)
        self._router = router
        self._profiles = profiles
        self.pool = SharedPool(shared_bytes)
        self.accounts = [[IngressAccount(profile) for profile in row] for row in profiles]
        self.queues = [[EgressQueue(len(ports), per_ingress=per_ingress) for _ in row] for row in profiles]
        for port, queues in zip(ports, self.queues, strict=True):
            port.queues = queues

    def on_frame(self, frame: Frame, *, port: Port, now_ps: int) -> None:
        """Route, admit, pause the sender if need be, enqueue."""
        if self.environment.watchdog.closes_ingress(port, frame.traffic_class):
            self._drop(frame, port, DropReason.WATCHDOG, now_ps)
            return
        if frame.ttl == 1:
            self._drop(frame, port, DropReason.TTL_EXPIRED, now_ps)
            return
        frame.ttl = max(0, frame.ttl - 1)
        egress_local = self._router.choose(frame, ports=self.ports, ingress=port.number, now_ps=now_ps)
        if egress_local is None:
            self._drop(frame, port, DropReason.NO_ROUTE, now_ps)
            return
        if self.environment.watchdog.closes(self.ports[egress_local], frame.traffic_class):
            self._drop(frame, self.ports[egress_local], DropReason.WATCHDOG, now_ps)
            return
        account = self.accounts[port.local][frame.traffic_class]
        reason = admit(
            account,
            pool=self.pool,
            size_bytes=frame.size_bytes,
            egress=self._profiles[egress_local][frame.traffic_class],
            egress_bytes=self.queues[egress_local][frame.traffic_class].bytes,
        )
        if reason is not None:
            self._drop(frame, port, reason, now_ps)
            return
        if must_pause(account, pool=self.pool):
            account.paused = True
            account.pauses_sent += 1
            account.cause_flow = frame.flow
            self._send_pfc(port, frame.traffic_class, Wish.PAUSE)
            self.try_port(port, now_ps)
        self._enqueue(frame, ingress=port, egress=self.ports[egress_local], now_ps=now_ps)

    def on_link_up(self, port: Port) -> None:
        """Say again what the peer has forgotten: that this ingress is over its threshold."""
        for traffic_class, account in enumerate(self.accounts[port.local]):
            if account.paused:
                account.pauses_sent += 1
                self._send_pfc(port, traffic_class, Wish.PAUSE)

    def repeat_pauses(self, now_ps: int) -> None:
        """Say again which ingresses have paused their peers; what waits is begun when ports are tried."""
        for port, accounts in zip(self.ports, self.accounts, strict=True):
            standing = [c for c, account in enumerate(accounts) if account.paused]
            if standing and not port.is_down:
                for traffic_class in standing:
                    self.environment.tally.pauses_repeated += 1
                    self._send_pfc(port, traffic_class, Wish.REPEAT)
                self.wake(port, now_ps)

    def drop_queue(self, port: Port, traffic_class: int, now_ps: int) -> int:
        """Drop all that waits in a class queue; returns how many frames. Senders that may go on are told
        when their ports are tried."""
        queue, frames = self.queues[port.local][traffic_class], 0
        while not queue.is_empty():
            waiting = queue.pop(now_ps)
            frames += 1
            self._drop(waiting.frame, port, DropReason.WATCHDOG, now_ps)
            ingress = self.ports[waiting.ingress]
            if self._release(waiting.frame, ingress, now_ps):
                self.wake(ingress, now_ps)
        port.scheduler.charge(traffic_class, 0, queue_is_empty=True)
        self._record_depth(port, traffic_class, now_ps)
        return frames

    def _release(self, frame: Frame, ingress: Port, now_ps: int) -> bool:
        """Give the memory of a frame back; whether a sender may go on because of it."""
        account = self.accounts[ingress.local][frame.traffic_class]
        release(account, pool=self.pool, size_bytes=frame.size_bytes)
        if account.paused:
            account.released_ps = now_ps
            self.environment.deadlocks.touch()
        resumes = may_resume(account, pool=self.pool)
        if resumes:
            account.paused = False
            self._send_pfc(ingress, frame.traffic_class, Wish.RESUME)
        return resumes

    def set_route(self, edge: int, group: Group | None) -> None:
        """The hosts of an edge are reached by other next hops from now on."""
        self._router.set_entry(edge, group)

    def _enqueue(self, frame: Frame, *, ingress: Port, egress: Port, now_ps: int) -> None:
        queue = self.queues[egress.local][frame.traffic_class]
        queue.push(frame, ingress=ingress.local, now_ps=now_ps)
        if egress.pauses[frame.traffic_class].is_paused:
            self.environment.deadlocks.touch()
        self._mark_if_due(frame, egress, EcnMode.ENQUEUE, now_ps)
        self.try_port(egress, now_ps)
        queue.take_peak()
        self._record_depth(egress, frame.traffic_class, now_ps)

    def _begin_class(self, port: Port, traffic_class: int, now_ps: int) -> None:
        """Dequeue, mark, give the memory back, begin; a sender that may go on is told last."""
        waiting = self.queues[port.local][traffic_class].pop(now_ps)
        frame, ingress = waiting.frame, self.ports[waiting.ingress]
        self._mark_if_due(frame, port, EcnMode.DEQUEUE, now_ps)
        resumes = self._release(frame, ingress, now_ps)
        if frame.kind == DATA and frame.memory is not None and frame.memory.wants_hops:
            frame.memory.hops.append(self._hop(port, now_ps))
        self.environment.links.begin(port, frame, now_ps=now_ps)
        self._record_depth(port, traffic_class, now_ps)
        if resumes:
            self.try_port(ingress, now_ps)

    def _hop(self, port: Port, now_ps: int) -> Hop:
        """What telemetry says of a port where a frame begins to leave."""
        queue_bytes = sum(queue.bytes for queue in self.queues[port.local])
        return Hop(now_ps, port.tx_bytes, queue_bytes, port.number, port.line_bps)

    def _on_idle(self, port: Port, now_ps: int) -> None:
        """Wait: frames in a switch are not paced, so only an event can make a start possible."""

    def _mark_if_due(self, frame: Frame, egress: Port, mode: int, now_ps: int) -> None:
        profile = self._profiles[egress.local][frame.traffic_class]
        if profile.ecn_mode != mode:
            return
        queue = self.queues[egress.local][frame.traffic_class]
        if should_mark(
            frame,
            profile=profile,
            queue_bytes=queue.bytes,
            key=self.environment.ecn_key,
            port=egress.number,
            time_ps=now_ps,
        ):
            frame.mark = 1
            queue.marks += 1
            self.environment.recorder.on_mark(
                frame, port=egress.number, queue_bytes=queue.bytes, now_ps=now_ps
            )

    def _send_pfc(self, port: Port, traffic_class: int, wish: int) -> None:
        self.environment.tally.created += 1
        size_bytes = self.environment.pfc_frame_bytes
        port.mac_queue.append(pfc_frame(traffic_class, wish=wish, size_bytes=size_bytes))

    def _drop(self, frame: Frame, port: Port, reason: int, now_ps: int) -> None:
        self.environment.drop(frame, port=port.number, reason=reason, now_ps=now_ps)

    def _record_depth(self, port: Port, traffic_class: int, now_ps: int) -> None:
        depth_bytes = self.queues[port.local][traffic_class].bytes
        self.environment.recorder.on_depth(
            depth_bytes, port=port.number, traffic_class=traffic_class, now_ps=now_ps
        )
