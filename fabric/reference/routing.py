"""Which egress port a switch chooses: equal-cost groups and a hash of the flow.

A switch has, for each destination *edge* (the set of switches that a host hangs on), either a group of
ports that lead there at equal cost, or the note that the host hangs on this very switch. Among several
ports the flow's path hash, salted by the switch so that successive switches choose independently,
picks one by multiplication instead of division. All frames of a flow take one path.
"""

from __future__ import annotations

from fabric.lowered import ROUTE_DIRECT, Lowered

from .rng import fmix32

__all__ = ["Router"]


class Router:
    """The routing table of one switch."""

    __slots__ = ("_direct", "_groups", "_host_edge", "_salt")

    def __init__(self, lowered: Lowered, node: int) -> None:
        self._salt = int(lowered.node_salt[node])
        self._host_edge: list[int] = lowered.host_edge.tolist()
        self._direct = _hosts_at(lowered, node)
        self._groups = _groups_of(lowered, node)

    def choose(self, destination: int, *, path_hash: int) -> int | None:
        """Local number of the egress port, None if there is no route."""
        group = self._groups[self._host_edge[destination]]
        ports = self._direct.get(destination, []) if group is None else group
        if len(ports) < 2:
            return ports[0] if ports else None
        return ports[fmix32(path_hash ^ self._salt) * len(ports) >> 32]


def _groups_of(lowered: Lowered, node: int) -> list[list[int] | None]:
    """Ports by destination edge; None where the destination host itself decides (DIRECT)."""
    first_entry, first_port = int(lowered.route_base[node]), int(lowered.route_ports_base[node])
    groups: list[list[int] | None] = []
    for entry in lowered.route_entry[first_entry : first_entry + lowered.n_edges].tolist():
        count, offset = entry >> 16, first_port + (entry & 0xFFFF)
        is_direct = entry == ROUTE_DIRECT
        groups.append(None if is_direct else lowered.route_ports[offset : offset + count].tolist())
    return groups


def _hosts_at(lowered: Lowered, node: int) -> dict[int, list[int]]:
    """The hosts whose cables end at `node`: host to local port numbers, ascending."""
    base, end = int(lowered.node_port_base[node]), int(lowered.node_port_base[node + 1])
    direct: dict[int, list[int]] = {}
    for port in range(base, end):
        peer_node = int(lowered.port_node[int(lowered.port_peer[port])])
        if peer_node < lowered.n_hosts:
            direct.setdefault(peer_node, []).append(port - base)
    return direct
