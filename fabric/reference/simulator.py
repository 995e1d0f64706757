"""The run: build the nodes from a `Lowered`, then handle one event after the other.

This is the classical simulator: one heap of events, two for each hop of a frame (its arrival, and the
end of its occupation of the link, when the port may begin the next), and nothing clever. All order is
in `clock.py`, all behaviour in the nodes. A run may be stopped and resumed anywhere without a trace.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.lowered import ON_ITS_WAY, POSTED, DropReason, Lowered

from .balance import Balancer
from .clock import EVERYWHERE, Clock, Event, InsertionClock, Phase, Phases, TimerKind
from .columns import flow_columns, node_columns, port_columns, program_columns, scalar_counters
from .congestion import make_congestion_control
from .control import MOST_CONGESTION_TIMERS, CongestionControl
from .deadlock import DeadlockSearch
from .dependencies import Dependencies
from .environment import Environment
from .faults import Faults
from .frame import PFC
from .host import Host
from .invariants import check_empty, check_flows, check_frames, check_memory
from .link import Links
from .messages import Messages
from .node import Node
from .pfc import Wish, decode_effect
from .port import Port, make_ports
from .program import Walker
from .quanta import Quanta
from .receiver import Receiver
from .recorder import Recorder
from .rng import Purpose, purpose_key
from .routing import Router
from .scheduler import Scheduler
from .sender import Sender
from .sockets import Sockets
from .switch import Switch
from .tables import Flow, read_flows, read_profiles, read_schedulers
from .tally import Tally
from .watchdog import Watchdog

__all__ = ["BUDGET", "DEADLOCK", "FINISHED", "STALLED", "UNTIL", "Simulator"]

FINISHED, STALLED, UNTIL, BUDGET = "FINISHED", "STALLED", "UNTIL", "BUDGET"
DEADLOCK = "DEADLOCK"
"""Why a run stopped: every flow is complete; nothing can happen any more although some are not; the
given time was reached; the given number of arrivals was handled; a deadlock was to end it."""


_CLOCKS = {"own": Clock, "insertion": InsertionClock}


class Simulator:
    """The readable engine.

    Parameters
    ----------
    lowered : Lowered
        The scenario as arrays.
    order : {"own", "insertion"}
        What happens first at one instant: the rule of `docs/design.md` (default), or what was scheduled
        first, as in ns-3, to compare with runs of it.

    Examples
    --------
    >>> from fabric.lower import lower
    >>> from fabric.spec import Incast, Scenario, SingleSwitch
    >>> scenario = Scenario(topology=SingleSwitch(hosts=3), traffic=[Incast(senders=2, size="100KB")])
    >>> simulator = Simulator(lower(scenario))
    >>> simulator.run()
    'FINISHED'
    >>> simulator.check_invariants()
    >>> simulator.columns()["flow_sent"].tolist()
    [25, 25]
    """

    def __init__(self, lowered: Lowered, *, order: str = "own") -> None:
        self._until_ps = lowered.until_ps
        self._now_ps = 0
        flows = read_flows(lowered)
        self._phases = Phases(bool(lowered.ties_by_start) and order == "own")
        self._clock = _CLOCKS[order](lowered.node_tie_key.tolist(), by_start=self._phases.are_used)
        self._tally = Tally(lowered.n_ports, lowered.n_classes, fingerprint=bool(lowered.fingerprint))
        self._recorder = Recorder(lowered)
        self._ports = make_ports(lowered, _make_schedulers(lowered))
        self._quanta = Quanta(lowered, clock=self._clock, tally=self._tally)
        self._deadlocks = DeadlockSearch(lowered, ports=self._ports, holds=self._quanta.holds)
        self._watchdog = Watchdog(lowered, clock=self._clock, recorder=self._recorder)
        self._environment = self._make_environment(lowered)
        messages = [Messages(flow) for flow in flows]
        self._senders = [self._make_sender(flow, messages[flow.number]) for flow in flows]
        self._receivers = [Receiver(flow, messages[flow.number]) for flow in flows]
        self._dependencies = Dependencies(
            lowered, flows=flows, clock=self._clock, start_phase_ps=self._phases.start_ps
        )
        self._sockets = Sockets(lowered)
        self._hosts, self._switches = self._make_nodes(lowered)
        self._nodes: list[Node] = [*self._hosts, *self._switches]
        self._deadlocks.watch(self._switches)
        self._watchdog.watch(self._switches)
        self._quanta.watch(self._switches)
        self._faults = Faults(
            lowered, ports=self._ports, nodes=self._nodes, links=self._environment.links, clock=self._clock
        )
        self._faults.schedule()
        self._dependencies.schedule_first()
        self._walker = self._make_walker(lowered)

    @property
    def now_ps(self) -> int:
        """Simulated time in ps up to which the run has come: its last event, or where it was stopped."""
        return self._now_ps

    @property
    def pool_peak_bytes(self) -> int:
        """The most that was ever used of one switch's pool; the native engine does not know it."""
        return max((switch.pool.peak_bytes for switch in self._switches), default=0)

    def run(self, until_ps: int | None = None, max_hops: int | None = None) -> str:
        """Go on with the run.

        Parameters
        ----------
        until_ps : int, optional
            Handle events before this time only; at most, and by default, the scenario's own end.
        max_hops : int, optional
            Stop after so many further arrivals of frames.

        Returns
        -------
        str
            Why it stopped: "FINISHED", "STALLED", "DEADLOCK", "UNTIL" or "BUDGET".
        """
        end_ps = self._until_ps if until_ps is None else min(until_ps, self._until_ps)
        last_hop = None if max_hops is None else self._tally.arrived + max_hops
        is_over = False
        while (next_ps := self._next_ps()) is not None and next_ps < end_ps:
            if last_hop is not None and self._tally.arrived >= last_hop:
                return BUDGET
            self._deadlocks.pass_to(next_ps)
            if self._watchdog.next_ps == next_ps or self._clock.changes_at(next_ps):
                self._deadlocks.report(next_ps)
            if self._is_stopped(next_ps):
                return DEADLOCK
            if self._watchdog.next_ps == next_ps:
                self._now_ps = next_ps
                self._watchdog.poll()
                self._deadlocks.note_broken(next_ps)
                continue
            if self._quanta.next_ps == next_ps and not self._clock.changes_at(next_ps):
                if not self._has_live_events():
                    is_over = True
                    break
                self._now_ps = next_ps
                self._quanta.repeat()
                continue
            event = self._clock.pop()
            if self._is_live(event) or self._is_of_pause(event):
                self._now_ps = event.time_ps
            self._handle(event)
        if not is_over and (self._has_live_events() or self._has_pauses_left()):
            self._deadlocks.pass_to(end_ps)
            if self._is_stopped(end_ps - 1):
                return DEADLOCK
            self._now_ps = max(self._now_ps, end_ps)
            return UNTIL
        self._deadlocks.finish(self._until_ps)
        if self._deadlocks.stop_ps() is not None:
            return DEADLOCK
        return FINISHED if self._is_finished() else STALLED

    def columns(self) -> dict[str, npt.NDArray[np.generic] | dict[str, int]]:
        """What has happened so far, as columns.

        Returns
        -------
        dict
            By name: arrays over flows, ports, (ports, classes) and nodes as `docs/design.md`, section 9,
            lists them, and "counters", a dict of integers.
        """
        return {
            **flow_columns(self._senders, self._receivers),
            **port_columns(self._nodes, self._ports, self._tally),
            **node_columns(self._nodes, self._tally),
            **program_columns(self._walker),
            "counters": scalar_counters(self._tally),
        }

    def rows(self, stream: str) -> npt.NDArray[np.void]:
        """The rows of a stream, as if the run ended here.

        Parameters
        ----------
        stream : str
            One of `fabric.lowered.STREAMS`.

        Returns
        -------
        numpy.ndarray, shape (rows,), dtype `fabric.lowered.ROW`
            Sorted by all fields in the order of `fabric.lowered.ROW_ORDER`.
        """
        return self._recorder.rows(stream, ports=self._ports, end_ps=self._tally.end_ps)

    def deadlocks(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """The deadlocks that have formed so far; see `docs/design.md`, section 13.

        Returns
        -------
        numpy.ndarray of `fabric.lowered.DEADLOCK_CHANNEL`
            The links of each deadlock, in order of deadlock, port and class.
        numpy.ndarray of `fabric.lowered.DEADLOCK_FRAME`
            The frames that waited for them when it formed, for each in order of time.
        """
        return self._deadlocks.rows()

    def waiting(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """What the ranks of a program that are at work lack.

        Returns
        -------
        numpy.ndarray of `fabric.lowered.POSTED`
            For each lane of each such task, how many of its transfers have been posted.
        numpy.ndarray of `fabric.lowered.ON_ITS_WAY`
            The messages that have been posted and have not arrived, by connection.
        """
        if self._walker is None:
            return np.zeros(0, POSTED), np.zeros(0, ON_ITS_WAY)
        first = len(self._senders) - self._walker.program.n_connections
        rows = [
            (number, message.operation, message.transfer)
            for number, receiver in enumerate(self._receivers[first:])
            for message in receiver.messages.not_arrived()
        ]
        sent = np.array(rows, dtype=ON_ITS_WAY)
        return self._walker.posted(), np.concatenate([sent, self._walker.copies_on_their_way()])

    def check_invariants(self) -> None:
        """Check that frames, memory and flows add up.

        Raises
        ------
        AssertionError
            Saying what does not.
        """
        check_frames(self._tally, clock=self._clock, ports=self._ports)
        check_flows(self._senders, self._receivers)
        for switch in self._switches:
            check_memory(switch)
        if self._is_finished() and not self._has_live_events():
            check_empty(self._nodes, tally=self._tally)

    def _handle(self, event: Event) -> None:
        if event.node == EVERYWHERE:
            self._faults.apply(event.major)
            self._deadlocks.note_broken(event.time_ps)
            return
        node = self._nodes[event.node]
        if event.phase == Phase.START:
            port = self._ports[event.major]
            if event.minor:
                port.is_sending = port.busy_ps > event.time_ps
                node.try_port(port, event.time_ps)
            else:
                node.on_wake(port, event.scheduled, event.time_ps)
        elif event.phase == Phase.ARRIVAL:
            self._on_arrival(event, node)
        else:
            self._on_timer(event, node)

    def _on_arrival(self, event: Event, node: Node) -> None:
        frame, port = event.frame, node.ports[event.minor]
        assert frame is not None
        if not self._environment.links.arrives(frame, sender=self._ports[port.peer]):
            return
        self._tally.on_arrival(frame, port=port.number, now_ps=event.time_ps)
        sender = self._ports[port.peer]
        if self._environment.links.loses(frame, sender=sender, now_ps=event.time_ps):
            self._environment.drop(
                frame, port=sender.number, reason=DropReason.LINK_LOSS, now_ps=event.time_ps
            )
        else:
            node.on_arrival(frame, port=port, now_ps=event.time_ps)

    def _on_timer(self, event: Event, node: Node) -> None:
        if event.major == TimerKind.PFC_EFFECT:
            port, traffic_class, wish = decode_effect(event.minor)
            if event.time_ps < self._ports[port].deaf_until_ps:
                self._ports[port].pauses[traffic_class].taken += wish == Wish.PAUSE
                return
            node.apply_pfc(self._ports[port], traffic_class, wish=wish, now_ps=event.time_ps)
            return
        if event.major == TimerKind.QUANTA:
            port, traffic_class, _ = decode_effect(event.minor)
            node.on_quanta(self._ports[port], traffic_class, event.time_ps)
            return
        assert isinstance(node, Host)
        if event.major == TimerKind.RETRANSMISSION:
            node.on_retransmission_timer(event.minor, event.time_ps)
        elif event.major == TimerKind.FLOW_START and self._clock.defers_flow_starts():
            self._clock.schedule_timer(event.time_ps, event.node, TimerKind.DEFERRED_START, event.minor)
        elif event.major == TimerKind.DELAYED_ACK:
            node.on_delayed_ack(event.minor, event.time_ps)
        elif event.major == TimerKind.CONGESTION:
            node.on_congestion_timer(event.minor, number=event.scheduled, now_ps=event.time_ps)
        elif event.major in (TimerKind.FLOW_START, TimerKind.DEFERRED_START):
            node.on_flow_start(event.minor, event.time_ps)
        else:
            self._on_program_timer(event)
            node.try_ports(event.time_ps)

    def _on_program_timer(self, event: Event) -> None:
        assert self._walker is not None
        if event.major == TimerKind.COPIED:
            self._walker.on_copied(event.minor, event.time_ps)
        elif event.major == TimerKind.ENTER:
            self._walker.on_enter(event.minor, event.time_ps)
        else:
            self._walker.on_begin(event.minor, event.time_ps)

    def _next_ps(self) -> int | None:
        """When something happens next: an event, or what all switches do at once, as long as any can."""
        next_ps = self._clock.peek_ps()
        if next_ps is None and not self._watchdog.may_act():
            return None
        return min(
            each for each in (next_ps, self._watchdog.next_ps, self._quanta.next_ps) if each is not None
        )

    def _has_live_events(self) -> bool:
        """Whether anything is left to happen."""
        return self._watchdog.may_act() or any(self._is_live(event) for event in self._clock.pending())

    def _has_pauses_left(self) -> bool:
        """Whether a pause has yet to run out, or a repetition to act; so it is not known if a run is over."""
        return any(self._is_of_pause(event) for event in self._clock.pending())

    def _is_of_pause(self, event: Event) -> bool:
        if event.phase == Phase.ARRIVAL:
            frame = event.frame
            assert frame is not None
            return not frame.is_lost and frame.kind == PFC and frame.sequence == Wish.REPEAT
        if event.phase != Phase.TIMER or event.major not in (TimerKind.PFC_EFFECT, TimerKind.QUANTA):
            return False
        number, traffic_class, wish = decode_effect(event.minor)
        port = self._ports[number]
        if event.major == TimerKind.QUANTA:
            return port.pauses[traffic_class].until_ps == event.time_ps
        return event.time_ps >= port.deaf_until_ps and wish == Wish.REPEAT

    def _is_stopped(self, next_ps: int) -> bool:
        """Whether a deadlock ends the run before what comes next."""
        stop_ps = self._deadlocks.stop_ps()
        if stop_ps is None or stop_ps > next_ps:
            return False
        self._now_ps = stop_ps
        return True

    def _is_finished(self) -> bool:
        """Every flow is complete, every connection idle, and every rank of a program done."""
        flows = all(s.is_idle if s.flow.is_connection else s.is_complete for s in self._senders)
        return flows and (self._walker is None or self._walker.is_finished)

    def _is_live(self, event: Event) -> bool:
        """Whether an event may still have an effect; overtaken ones are not worth waiting for."""
        if event.node == EVERYWHERE:
            return not self._is_finished()
        if event.phase == Phase.ARRIVAL:
            frame = event.frame
            assert frame is not None
            return not frame.is_lost and not (frame.kind == PFC and frame.sequence == Wish.REPEAT)
        if event.phase == Phase.TIMER and event.major == TimerKind.PFC_EFFECT:
            number, _, wish = decode_effect(event.minor)
            return event.time_ps >= self._ports[number].deaf_until_ps and wish != Wish.REPEAT
        if event.phase == Phase.TIMER and event.major == TimerKind.QUANTA:
            number, traffic_class, _ = decode_effect(event.minor)
            return self._quanta.will_run_out(self._ports[number], traffic_class, event.time_ps)
        if event.phase == Phase.START:
            port = self._ports[event.major]
            was_moved = not event.minor and self._nodes[event.node].has_moved_wake(port, event.scheduled)
            return port.has_startable_frame() and not was_moved
        if event.phase == Phase.TIMER and event.major == TimerKind.RETRANSMISSION:
            sender = self._senders[event.minor]
            return sender.has_outstanding and not sender.is_complete
        if event.phase == Phase.TIMER and event.major == TimerKind.DELAYED_ACK:
            return self._receivers[event.minor].ack_due_ps is not None
        return not (event.phase == Phase.TIMER and event.major == TimerKind.CONGESTION)

    def _make_environment(self, lowered: Lowered) -> Environment:
        links = Links(
            self._ports,
            clock=self._clock,
            tally=self._tally,
            recorder=self._recorder,
            loss_key=purpose_key(lowered.seed, Purpose.LINK_LOSS),
            phases=self._phases,
        )
        return Environment(
            ttl=lowered.ttl,
            deadlocks=self._deadlocks,
            watchdog=self._watchdog,
            quanta=self._quanta,
            clock=self._clock,
            links=links,
            tally=self._tally,
            recorder=self._recorder,
            ecn_key=purpose_key(lowered.seed, Purpose.ECN),
            pfc_frame_bytes=lowered.pfc_frame_bytes,
            phases=self._phases,
        )

    def _make_sender(self, flow: Flow, messages: Messages) -> Sender:
        port = self._ports[flow.port]
        return Sender(flow, port, self._make_control(flow, port), messages, self._phases)

    def _make_walker(self, lowered: Lowered) -> Walker | None:
        if lowered.program is None:
            return None

        def post(host: int, flow: int, size_bytes: int, **message: int) -> None:
            self._hosts[host].post(flow, size_bytes, **message)

        first_connection = lowered.n_flows - lowered.program.n_connections
        walker = Walker(lowered.program, first_connection=first_connection, clock=self._clock, post=post)
        for host in self._hosts:
            host.program = walker
        walker.schedule_first()
        return walker

    def _make_control(self, flow: Flow, port: Port) -> CongestionControl:
        line_bps = float(port.rate_bps)

        def on_change(time_ps: int, rate_bps: float) -> None:
            window_frames = flow.transport.window_at(rate_bps, line_bps=line_bps)
            self._recorder.on_rate(rate_bps, flow=flow.number, window_frames=window_frames, now_ps=time_ps)

        def set_timer(timer: int, time_ps: int) -> int:
            ident = flow.number * MOST_CONGESTION_TIMERS + timer
            return self._clock.schedule_timer(time_ps, flow.source, TimerKind.CONGESTION, ident)

        return make_congestion_control(
            flow.transport,
            line_bps=line_bps,
            on_change=on_change,
            set_timer=set_timer if self._clock.holds_congestion_timers() else None,
        )

    def _make_balancer(self, lowered: Lowered, node: int) -> Balancer:
        return Balancer(
            int(lowered.node_choice[node]),
            salt=int(lowered.node_salt[node]),
            key=purpose_key(lowered.seed, Purpose.PATH_CHOICE),
            flowlet_gap_ps=lowered.flowlet_gap_ps,
            sockets=self._sockets,
        )

    def _make_nodes(self, lowered: Lowered) -> tuple[list[Host], list[Switch]]:
        base: list[int] = lowered.node_port_base.tolist()
        response_ps: list[int] = lowered.node_pfc_response_ps.tolist()
        profiles = read_profiles(lowered)
        of_port = lowered.port_profile.reshape(lowered.n_ports, lowered.n_classes).tolist()
        hosts = [
            Host(
                node,
                self._ports[base[node] : base[node + 1]],
                n_classes=lowered.n_classes,
                control_ignores_pause=bool(lowered.node_control_unpausable[node]),
                takes_turns=bool(lowered.node_takes_turns[node]),
                senders=self._senders,
                receivers=self._receivers,
                dependencies=self._dependencies,
                pfc_response_ps=response_ps[node],
                environment=self._environment,
            )
            for node in range(lowered.n_hosts)
        ]
        switches = [
            Switch(
                node,
                self._ports[base[node] : base[node + 1]],
                profiles=[[profiles[k] for k in row] for row in of_port[base[node] : base[node + 1]]],
                router=Router(lowered, node, self._make_balancer(lowered, node)),
                shared_bytes=int(lowered.node_shared_bytes[node]),
                per_ingress=bool(lowered.node_arbiter[node]),
                pfc_response_ps=response_ps[node],
                environment=self._environment,
            )
            for node in range(lowered.n_hosts, lowered.n_nodes)
        ]
        return hosts, switches


def _make_schedulers(lowered: Lowered) -> list[Scheduler]:
    tables = read_schedulers(lowered)
    of_node: list[int] = lowered.node_scheduler.tolist()
    return [Scheduler(tables[of_node[node]]) for node in lowered.port_node.tolist()]
