"""What changes in the fabric while it runs: failures, repairs, and what the fabric makes of them.

All changes are worked out before the run (`fabric.lowering.faults`) and come before everything else that
happens at their instant, wherever. A change begins no frame: ports that may send because of it are tried at
that instant, in the order of all starts.

A link that is down loses what is on it, and what its port begins. Neither end remembers a PAUSE that came
over it; a switch that still has too much from a link says so when it is up again.
"""

from __future__ import annotations

from fabric.lowered import FaultKind, Lowered, LoweredFaults

from .clock import Clock
from .host import Host
from .link import Links
from .node import Node
from .pfc import Wish
from .port import Port
from .routing import group_of
from .switch import Switch

__all__ = ["Faults"]


class Faults:
    """The changes of a run.

    Parameters
    ----------
    lowered : Lowered
    ports, nodes : list
        What changes, by global number.
    links : Links
        Loses what is on a link.
    clock : Clock
        Where changes are scheduled.
    """

    def __init__(
        self, lowered: Lowered, *, ports: list[Port], nodes: list[Node], links: Links, clock: Clock
    ) -> None:
        self._lowered = lowered
        self._ports = ports
        self._nodes = nodes
        self._links = links
        self._clock = clock

    def schedule(self) -> None:
        """Schedule all changes."""
        if self._lowered.faults is not None:
            for number, time_ps in enumerate(self._lowered.faults.changes["time_ps"].tolist()):
                self._clock.schedule_fault(time_ps, number)

    def apply(self, number: int) -> None:
        """Let a change happen."""
        faults = self._lowered.faults
        assert faults is not None
        change = faults.changes[number]
        now_ps, value, port = int(change["time_ps"]), int(change["value"]), self._ports[int(change["port"])]
        kind = int(change["kind"])
        if kind == FaultKind.DOWN:
            self._down(port, loses=bool(value), now_ps=now_ps)
        elif kind == FaultKind.UP:
            port.is_down = False
            self._nodes[port.node].on_link_up(port)
            self._touch(port, now_ps)
        elif kind == FaultKind.RATE:
            port.rate_bps = value
        elif kind == FaultKind.LOSS:
            port.loss, port.ber_rate = float(change["loss"]), float(change["ber_rate"])
        elif kind == FaultKind.PAUSE:
            wish = Wish.STORM if value & 1 else Wish.RESUME
            self._nodes[port.node].heed(port, value >> 1, wish=wish, now_ps=now_ps)
            self._touch(port, now_ps)
        elif kind == FaultKind.ROUTES:
            self._set_routes(faults, value)
        elif kind == FaultKind.CUT:
            port.cut_bytes = value
        elif kind == FaultKind.MOVES:
            self._move_flows(faults, value, now_ps)

    def _down(self, port: Port, *, loses: bool, now_ps: int) -> None:
        port.is_down = True
        if loses:
            self._links.lose_all(port, now_ps=now_ps)
        peer = self._ports[port.peer]
        self._nodes[peer.node].on_link_down(peer, now_ps)
        self._touch(peer, now_ps)

    def _set_routes(self, faults: LoweredFaults, number: int) -> None:
        lowered = self._lowered
        first, end = int(faults.route_base[number]), int(faults.route_base[number + 1])
        places, values = faults.route_place[first:end].tolist(), faults.route_value[first:end].tolist()
        for place, value in zip(places, values, strict=True):
            row, edge = divmod(place, lowered.n_edges)
            switch = self._nodes[lowered.n_hosts + row]
            assert isinstance(switch, Switch)
            switch.set_route(edge, group_of(lowered, switch.number, value))

    def _move_flows(self, faults: LoweredFaults, number: int, now_ps: int) -> None:
        first, end = int(faults.move_base[number]), int(faults.move_base[number + 1])
        flows, ports = faults.move_flow[first:end].tolist(), faults.move_port[first:end].tolist()
        for flow, port in zip(flows, ports, strict=True):
            host = self._nodes[self._ports[port].node]
            assert isinstance(host, Host)
            host.move_flow(flow, self._ports[port], now_ps)
            self._touch(self._ports[port], now_ps)

    def _touch(self, port: Port, now_ps: int) -> None:
        """Try a port at this instant, when its turn comes."""
        self._nodes[port.node].wake(port, now_ps)
