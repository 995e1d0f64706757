"""Which egress port a switch chooses: pinned next hops, else a member of an equal-cost group.

A switch has, for each destination *edge* (the set of switches that a host hangs on), either a group of
ports that lead there at equal cost, or the note that the host hangs on this very switch. Among the
ports of a host the flow's path hash, salted by the switch so that successive switches choose
independently, picks one by multiplication instead of division. Among the ports of a group the switch's
choice does (`balance.py`); with ECMP it is the same hash, so that all frames of a flow take one path.

A pin overrides that for the data frames of a flow, or for all frames to a host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabric.lowered import ROUTE_DIRECT, Lowered

from .balance import Balancer, Candidate
from .frame import DATA, Frame
from .rng import fmix32

__all__ = ["Group", "Router", "group_of"]

PIN_FLOW = 1 << 32
"""Added to a flow in the key of a pin; a destination stands for itself."""


@dataclass(frozen=True, slots=True)
class Group:
    """Next hops of equal cost: local port numbers, and the place of the group in its switch's pool."""

    offset: int
    ports: tuple[int, ...]


class Router:
    """The routing table of one switch."""

    __slots__ = ("_balancer", "_direct", "_groups", "_host_edge", "_pins", "_salt")

    def __init__(self, lowered: Lowered, node: int, balancer: Balancer) -> None:
        self._salt = int(lowered.node_salt[node])
        self._host_edge: list[int] = lowered.host_edge.tolist()
        self._direct = _hosts_at(lowered, node)
        self._groups = _groups_of(lowered, node)
        self._pins = _pins_of(lowered, node)
        self._balancer = balancer

    def choose(self, frame: Frame, *, ports: Sequence[Candidate], ingress: int, now_ps: int) -> int | None:
        """Local number of the egress port of a frame, None if there is no route.

        Parameters
        ----------
        frame : Frame
        ports : sequence
            All ports of the switch, by local number.
        ingress : int
            Global number of the port at which the frame has come.
        """
        pin = self._pins.get(PIN_FLOW + frame.flow) if frame.kind == DATA else None
        if pin is None:
            pin = self._pins.get(frame.destination)
        if pin is not None:
            return pin
        group = self._groups[self._host_edge[frame.destination]]
        if group is None:
            direct = self._direct.get(frame.destination, [])
            if len(direct) < 2:
                return direct[0] if direct else None
            return direct[fmix32(frame.path_hash ^ self._salt) * len(direct) >> 32]
        if len(group.ports) < 2:
            return group.ports[0] if group.ports else None
        candidates = [ports[local] for local in group.ports]
        index = self._balancer.choose(
            frame, offset=group.offset, candidates=candidates, ingress=ingress, now_ps=now_ps
        )
        return group.ports[index]

    def set_entry(self, edge: int, group: Group | None) -> None:
        """The hosts of an edge are reached by another group from now on; None: they hang on this switch."""
        self._groups[edge] = group


def _groups_of(lowered: Lowered, node: int) -> list[Group | None]:
    """Groups by destination edge; None where the destination host itself decides (DIRECT)."""
    first_entry = int(lowered.route_base[node])
    entries = lowered.route_entry[first_entry : first_entry + lowered.n_edges].tolist()
    return [group_of(lowered, node, entry) for entry in entries]


def group_of(lowered: Lowered, node: int, entry: int) -> Group | None:
    """What an entry of a switch's routing table stands for; None: DIRECT."""
    if entry == ROUTE_DIRECT:
        return None
    count, offset = entry >> 16, entry & 0xFFFF
    first = int(lowered.route_ports_base[node]) + offset
    return Group(offset, tuple(lowered.route_ports[first : first + count].tolist()))


def _hosts_at(lowered: Lowered, node: int) -> dict[int, list[int]]:
    """The hosts whose cables end at `node`: host to local port numbers, ascending."""
    base, end = int(lowered.node_port_base[node]), int(lowered.node_port_base[node + 1])
    direct: dict[int, list[int]] = {}
    for port in range(base, end):
        peer_node = int(lowered.port_node[int(lowered.port_peer[port])])
        if peer_node < lowered.n_hosts:
            direct.setdefault(peer_node, []).append(port - base)
    return direct


def _pins_of(lowered: Lowered, node: int) -> dict[int, int]:
    """Local port numbers by key: a destination host, or `PIN_FLOW` and a flow."""
    first, end = int(lowered.pin_base[node]), int(lowered.pin_base[node + 1])
    keys, ports = lowered.pin_key[first:end].tolist(), lowered.pin_port[first:end].tolist()
    return dict(zip(keys, ports, strict=True))
