"""A host: the flows that begin and end at it, and its ports.

Frames are made when they begin, so a host has no buffer to overflow. A port serves its classes by the
node's scheduler; within a class control frames go first, then flows by the instant from which they may
send. A port with flows that have to wait for their instant is tried again at the first of these.

Timers are lazy: a retransmission timer that was set is left to run, and when it comes too early
(because there has been progress) it is set anew.
"""

from __future__ import annotations

from .clock import TimerKind
from .control import MOST_CONGESTION_TIMERS
from .dependencies import ON_COMPLETE, ON_COMPLETE_ELSEWHERE, ON_DELIVERED, Dependencies
from .environment import Environment
from .frame import CNP, DATA, Frame
from .host_queue import HostQueue
from .node import Node
from .port import Port
from .program import Walker
from .queue_pairs import QueuePairs
from .receiver import Receiver
from .sender import Sender

__all__ = ["Host"]


class Host(Node):
    """One host.

    Parameters
    ----------
    control_ignores_pause : bool
        Whether control frames go although the peer has paused their class.
    takes_turns : bool
        Whether flows are served in turn (`queue_pairs.py`), and not by the instant from which they may send.
    senders, receivers : list
        The two halves of every flow of the run, by flow; a host uses those that are its own.
    dependencies : Dependencies
        Told when flows end.
    """

    def __init__(
        self,
        number: int,
        ports: list[Port],
        *,
        n_classes: int,
        control_ignores_pause: bool,
        takes_turns: bool,
        senders: list[Sender],
        receivers: list[Receiver],
        dependencies: Dependencies,
        pfc_response_ps: int,
        environment: Environment,
    ) -> None:
        super().__init__(number, ports, pfc_response_ps=pfc_response_ps, environment=environment)
        self._senders = senders
        self._receivers = receivers
        self._dependencies = dependencies
        self._takes_turns = takes_turns
        kind = QueuePairs if takes_turns else HostQueue
        self.queues: list[list[HostQueue]] = [
            [kind(control_ignores_pause=control_ignores_pause) for _ in range(n_classes)] for _ in ports
        ]
        for port, queues in zip(ports, self.queues, strict=True):
            port.queues = queues
        self.program: Walker | None = None

    def try_port(self, port: Port, now_ps: int) -> None:
        """Begin a frame on `port` now, if that is possible."""
        if self._takes_turns and not port.is_sending and not port.mac_queue:
            for queue, pause in zip(self.queues[port.local], port.pauses, strict=True):
                assert isinstance(queue, QueuePairs)
                queue.scan(now_ps, is_paused=pause.is_paused)
        super().try_port(port, now_ps)

    def has_moved_wake(self, port: Port, number: int) -> bool:
        """Whether the event of this number is a wake-up of `port` that will not act."""
        return self._takes_turns and number != port.wake_number

    def on_wake(self, port: Port, number: int, now_ps: int) -> None:
        """A wake-up of `port` has come; where flows take turns it may have been moved."""
        if self.has_moved_wake(port, number):
            return
        if self._takes_turns:
            port.wake_ps = -1
        self.try_port(port, now_ps)

    def on_frame(self, frame: Frame, *, port: Port, now_ps: int) -> None:
        """Hand a frame to the half of its flow that is here."""
        self.environment.tally.consumed += 1
        if frame.kind == DATA:
            self._on_data(frame, port, now_ps)
            return
        sender = self._senders[frame.flow]
        if sender.is_complete:
            return
        if frame.kind == CNP:
            sender.on_notification(now_ps)
            self._settle(sender, now_ps)
        else:
            self._on_acknowledgement(sender, frame, now_ps)

    def on_flow_start(self, flow: int, now_ps: int) -> None:
        """The time of a flow has come."""
        sender = self._senders[flow]
        self._start(sender, now_ps)
        self._enter_if_sendable(sender, now_ps)
        self.try_port(sender.port, now_ps)

    def post(self, flow: int, size_bytes: int, *, operation: int, transfer: int, now_ps: int) -> None:
        """Post a message on a connection, which starts with its first one."""
        sender = self._senders[flow]
        if sender.started_ps < 0:
            self._start(sender, now_ps)
        sender.messages.post(size_bytes, operation=operation, transfer=transfer)
        self._enter_if_sendable(sender, now_ps)

    def try_ports(self, now_ps: int) -> None:
        """Messages may have been posted: try every port."""
        for port in self.ports:
            self.try_port(port, now_ps)

    def on_retransmission_timer(self, flow: int, now_ps: int) -> None:
        """A timer that was set has run out; there may have been progress since."""
        sender = self._senders[flow]
        sender.timer_is_pending = False
        if sender.is_complete or not sender.has_outstanding:
            return
        if sender.retransmit_ps > now_ps:
            self._set_timer(sender)
            return
        sender.on_timeout(now_ps)
        self._settle(sender, now_ps)

    def on_congestion_timer(self, ident: int, *, number: int, now_ps: int) -> None:
        """A timer of a congestion control has come; flows that take turns wait for another reason to try."""
        flow, timer = divmod(ident, MOST_CONGESTION_TIMERS)
        sender = self._senders[flow]
        if sender.is_complete:
            return
        sender.on_congestion_timer(timer, number=number, now_ps=now_ps)
        if not self._takes_turns:
            self._settle(sender, now_ps)

    def on_link_up(self, port: Port) -> None:
        """A host has nothing to tell its switch."""

    def move_flow(self, flow: int, port: Port, now_ps: int) -> None:
        """A flow leaves by another port from now on, which is not tried."""
        sender = self._senders[flow]
        if sender.is_ready and not sender.is_complete:
            self._queue_of(sender).move_away(sender)
        sender.port = port
        if sender.started_ps >= 0 and not sender.is_complete:
            self._enter_if_sendable(sender, now_ps)

    def _start(self, sender: Sender, now_ps: int) -> None:
        sender.started_ps = now_ps - (0 if sender.flow.is_connection else self.environment.phases.start_ps)
        self.environment.recorder.on_rate(
            sender.line_bps,
            flow=sender.flow.number,
            window_frames=sender.window_frames,
            now_ps=now_ps,
        )

    def _on_data(self, frame: Frame, port: Port, now_ps: int) -> None:
        receiver = self._receivers[frame.flow]
        was_due = receiver.ack_due_ps is not None
        for reply in receiver.on_data(frame, now_ps):
            self._answer(port, reply, now_ps)
        if receiver.ack_due_ps is not None and not was_due:
            receiver.ack_port = port.local
            if not receiver.timer_is_pending:
                self._set_ack_timer(receiver)
        messages = receiver.messages.take_arrived(receiver.expected)
        if not messages:
            return
        receiver.delivered_ps = now_ps
        if self.program is None or not receiver.flow.is_connection:
            self._dependencies.on_end(frame.flow, kind=ON_DELIVERED, now_ps=now_ps)
            return
        connection = self.program.connection_number(frame.flow)
        for message in messages:
            self.program.on_arrival(connection, message.operation, message.transfer, now_ps)
        self.try_ports(now_ps)

    def on_delayed_ack(self, flow: int, now_ps: int) -> None:
        """The timer of an ACK that was put off has run out; it may have been sent since."""
        receiver = self._receivers[flow]
        receiver.timer_is_pending = False
        if receiver.ack_due_ps is None:
            return
        if receiver.ack_due_ps > now_ps:
            self._set_ack_timer(receiver)
            return
        self._answer(self.ports[receiver.ack_port], receiver.delayed_ack(), now_ps)

    def _answer(self, port: Port, reply: Frame, now_ps: int) -> None:
        reply.ttl = self.environment.ttl
        self.environment.tally.created += 1
        self.queues[port.local][reply.traffic_class].control.append(reply)
        self.try_port(port, now_ps)

    def _set_ack_timer(self, receiver: Receiver) -> None:
        assert receiver.ack_due_ps is not None
        receiver.timer_is_pending = True
        self.environment.clock.schedule_timer(
            receiver.ack_due_ps, self.number, TimerKind.DELAYED_ACK, receiver.flow.number
        )

    def _on_acknowledgement(self, sender: Sender, frame: Frame, now_ps: int) -> None:
        sender.on_acknowledgement(frame, now_ps)
        if sender.is_complete:
            if sender.is_ready:
                self._queue_of(sender).leave(sender)
            for kind in (ON_COMPLETE, ON_COMPLETE_ELSEWHERE):
                self._dependencies.on_end(frame.flow, kind=kind, now_ps=now_ps)
            if self._takes_turns:
                self.try_port(sender.port, now_ps)
            return
        if self._takes_turns and sender.control.moves_pauses:
            self._advance_wake(sender.port, sender.next_time_ps, now_ps)
        self._settle(sender, now_ps)
        if self.program is not None and sender.flow.is_connection:
            connection = self.program.connection_number(frame.flow)
            for message in sender.messages.take_acknowledged(sender.acked):
                sender.completed_ps = now_ps
                self.program.on_acknowledged(connection, message.operation, message.transfer, now_ps)
            self.try_ports(now_ps)

    def _settle(self, sender: Sender, now_ps: int) -> None:
        """A flow may send now or earlier, or no longer (a window can shrink): the port is tried."""
        if not self._takes_turns and sender.is_ready and (sender.has_moved or not sender.is_sendable):
            self._queue_of(sender).leave(sender)
        sender.has_moved = False
        self._enter_if_sendable(sender, now_ps)
        self.try_port(sender.port, now_ps)

    def _begin_class(self, port: Port, traffic_class: int, now_ps: int) -> None:
        queue = self.queues[port.local][traffic_class]
        if queue.control:
            self.environment.links.begin(port, queue.control.popleft(), now_ps=now_ps)
            return
        sender = queue.take()
        frame = sender.begin_frame(now_ps)
        frame.ttl = self.environment.ttl
        self.environment.tally.created += 1
        self._enter_if_sendable(sender, now_ps)
        self._set_timer(sender)
        self.environment.links.begin(port, frame, now_ps=now_ps)

    def _enter_if_sendable(self, sender: Sender, now_ps: int) -> None:
        if (sender.is_sendable or self._takes_turns) and not sender.is_ready:
            self._queue_of(sender).enter(sender, eligible_ps=max(sender.next_time_ps, now_ps))

    def _queue_of(self, sender: Sender) -> HostQueue:
        return self.queues[sender.port.local][sender.flow.traffic_class]

    def _set_timer(self, sender: Sender) -> None:
        if sender.flow.transport.rto_ps > 0 and not sender.timer_is_pending:
            sender.timer_is_pending = True
            self.environment.clock.schedule_timer(
                sender.retransmit_ps, self.number, TimerKind.RETRANSMISSION, sender.flow.number
            )

    def _advance_wake(self, port: Port, end_ps: int, now_ps: int) -> None:
        """A pending wake-up comes earlier if the end of a pause that has just been set lies before it."""
        if port.wake_ps > end_ps:
            self.wake(port, max(now_ps + self.environment.phases.free_ps, end_ps))

    def wake(self, port: Port, time_ps: int) -> None:
        """Try `port` when the starts of that instant come; where flows take turns, and no sooner."""
        port.wake_ps = time_ps
        port.wake_number = self.environment.clock.schedule_start(
            time_ps, self.number, port.number, ends_frame=False
        )

    def _on_idle(self, port: Port, now_ps: int) -> None:
        """Try the port again when the first flow that its peer has not paused may send."""
        if self._takes_turns:
            ends = [queue.wake_ps() for queue in self.queues[port.local] if isinstance(queue, QueuePairs)]
            first_ps = min((end for end in ends if end is not None), default=now_ps)
            if port.wake_ps < 0 and first_ps > now_ps:
                self.wake(port, first_ps)
            return
        instants = [
            eligible_ps
            for queue, pause in zip(self.queues[port.local], port.pauses, strict=True)
            if not pause.is_paused and (eligible_ps := queue.next_eligible_ps()) is not None
        ]
        if instants and port.wake_ps != min(instants):
            self.wake(port, min(instants))
