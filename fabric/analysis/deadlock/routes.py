"""Routes as matrices: how far every switch is from every destination edge, and where frames enter.

For a destination edge (hosts on the same switches, `fabric.topology.distance`) a switch may forward to every
neighbour that is one link closer. So distances hold all equal-cost routes of all hosts at once, whatever
a switch hashes, draws or takes in turn; there is never a list of pairs of hosts. Up-down routes have
a distance of their own: downwards where a descent leads to the edge, otherwise upwards.

Which switches forward to an edge at all follows from where frames enter, by decreasing distance. A spine that
has lost its cable to a leaf has a detour in its table; as no leaf sends it such frames, no buffer waits
there.

Links are named by the port that sends on them, as everywhere in the project.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.topology import TIER_SCALE_UP, Network
from fabric.topology.distance import UNREACHABLE, edge_distances, host_edges
from fabric.topology.heights import up_down_links

__all__ = ["RouteSet", "entries", "find_route_set", "wanted_pairs", "without"]

BoolMatrix = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
ALL = slice(None)


@dataclass(frozen=True, kw_only=True, eq=False)
class RouteSet:
    """Routes between hosts over the cables that are up.

    Attributes
    ----------
    network : Network
        All cables, also those that are down.
    up : numpy.ndarray of bool [ports]
        Ports whose cable and owners are up.
    links : numpy.ndarray of int16 [switches, edges]
        Links from a switch to an edge; -1: no path.
    host_edge : numpy.ndarray of uint32 [hosts]
    sources : numpy.ndarray of bool [switches, edges]
        Switches at which frames to an edge enter from hosts.
    heights : numpy.ndarray of int64 [switches] or None
        For up-down routes the order of the switches; None: shortest paths.
    descends : numpy.ndarray of bool [switches, edges] or None
        For up-down routes, whether an edge lies below a switch.
    """

    network: Network
    up: npt.NDArray[np.bool_]
    links: npt.NDArray[np.int16]
    host_edge: npt.NDArray[np.uint32]
    sources: BoolMatrix
    heights: Int64Array | None = None
    descends: BoolMatrix | None = None

    @property
    def n_edges(self) -> int:
        """Destination edges."""
        return int(self.links.shape[1])

    @cached_property
    def fabric_ports(self) -> Int64Array:
        """Ports between two switches that are up, ascending."""
        network = self.network
        peer = network.port_node[network.port_peer]
        between = (network.port_node >= network.n_hosts) & (peer >= network.n_hosts)
        return np.flatnonzero(between & self.up)

    @cached_property
    def switch_ports(self) -> list[Int64Array]:
        """Fabric ports of every switch."""
        owner = self.network.port_node[self.fabric_ports]
        nodes = np.arange(self.network.n_hosts, self.network.n_nodes + 1)
        bounds = np.searchsorted(owner, nodes)
        return [self.fabric_ports[first:last] for first, last in pairwise(bounds)]

    def peers(self, ports: Any) -> Int64Array:
        """Switches (rows) at the other end of ports."""
        network = self.network
        nodes = network.port_node[network.port_peer[np.asarray(ports, dtype=np.int64)]]
        return np.asarray(nodes.astype(np.int64) - network.n_hosts)

    def next_hops(self, row: int) -> BoolMatrix:
        """Whether each fabric port of a switch leads towards each edge: bool [ports, edges]."""
        return self.leads(np.full(len(self.switch_ports[row]), row), self.peers(self.switch_ports[row]))

    def comes_from(self, row: int) -> BoolMatrix:
        """Whether the peer of each fabric port of a switch forwards to it, by edge: bool [ports, edges]."""
        peers = self.peers(self.switch_ports[row])
        return self.forwarding[peers] & self.leads(peers, np.full(len(peers), row))

    def next_hops_to(self, row: int, edge: int) -> npt.NDArray[np.bool_]:
        """Whether each fabric port of a switch leads towards one edge: bool [ports]."""
        peers = self.peers(self.switch_ports[row])
        return self.leads(np.full(len(peers), row), peers, slice(edge, edge + 1))[:, 0]

    def leads(self, here: Int64Array, there: Int64Array, edges: slice = ALL) -> BoolMatrix:
        """Whether switches `here` forward to their neighbours `there`, by edge: bool [pairs, edges]."""
        links = self.links[:, edges]
        closer = (links[there] == links[here] - 1) & (links[here] > 0)
        if self.heights is None or self.descends is None:
            return np.asarray(closer)
        down = (self.heights[there] < self.heights[here])[:, None]
        return np.asarray(closer & np.where(down, self.descends[there, edges], ~self.descends[here, edges]))

    @cached_property
    def forwarding(self) -> BoolMatrix:
        """Whether frames to an edge ever pass a switch, on their way from where they enter.

        By decreasing distance, all edges at once: rows of bits, and one OR over the peers of each switch.
        """
        visited = self.sources & (self.links >= 0)
        ports = self.fabric_ports
        here = self.network.port_node[ports].astype(np.int64) - self.network.n_hosts
        peers = self.peers(ports)
        downwards = None if self.heights is None else self.heights[peers] > self.heights[here]
        for distance in range(int(self.links.max(initial=0)), 0, -1):
            senders = visited & (self.links == distance)
            closer = self.links == distance - 1
            if self.descends is None:
                visited |= _reached(senders, here, peers) & closer
                continue
            assert downwards is not None
            falls = _reached(senders & self.descends, here[downwards], peers[downwards])
            rises = _reached(senders & ~self.descends, here[~downwards], peers[~downwards])
            visited |= (falls & closer & self.descends) | (rises & closer)
        return visited

    def towards(self, edges: npt.NDArray[np.intp]) -> RouteSet:
        """The routes to some edges, which are numbered anew; `host_edge` is that of all."""
        fewer = replace(
            self,
            links=self.links[:, edges],
            sources=self.sources[:, edges],
            descends=None if self.descends is None else self.descends[:, edges],
        )
        vars(fewer)["forwarding"] = self.forwarding[:, edges]
        return fewer

    def up_down(self, heights: Int64Array) -> RouteSet:
        """The same hosts and traffic over up-down routes.

        Parameters
        ----------
        heights : numpy.ndarray of int64 [switches]
            `fabric.analysis.deadlock.heights` of the network.
        """
        peers = [self.peers(ports) for ports in self.switch_ports]
        links, descends = up_down_links(self.links == 0, peers, heights)
        return replace(self, links=links, heights=heights, descends=descends)

    def unreached(self) -> int:
        """Entries (switch, edge) at which frames enter that have no route."""
        return int((self.sources & (self.links == UNREACHABLE)).sum())


def _reached(senders: BoolMatrix, here: Int64Array, peers: Int64Array) -> BoolMatrix:
    """OR of the rows of each switch's peers; `here` is ascending."""
    out = np.zeros_like(senders)
    if len(here):
        packed = np.packbits(senders, axis=1)
        rows, starts = np.unique(here, return_index=True)
        joined = np.bitwise_or.reduceat(packed[peers], starts, axis=0)
        out[rows] = np.unpackbits(joined, axis=1, count=senders.shape[1]).view(np.bool_)
    return out


def without(
    network: Network, *, cables: Collection[int] = (), switches: Collection[int] = ()
) -> npt.NDArray[np.bool_]:
    """Which cables are up when some cables and some switches (node numbers) are down: bool [links]."""
    up = np.ones(network.n_links, dtype=bool)
    up[list(cables)] = False
    dead = np.zeros(network.n_nodes, dtype=bool)
    dead[list(switches)] = True
    return up & ~dead[network.link_a] & ~dead[network.link_b]


def find_route_set(
    network: Network,
    *,
    up: npt.NDArray[np.bool_] | None = None,
    source: npt.ArrayLike | None = None,
    destination: npt.ArrayLike | None = None,
) -> RouteSet:
    """Shortest-path routes over the cables that are up.

    Parameters
    ----------
    network : Network
    up : numpy.ndarray of bool [links], optional
        Cables that are up; default all.
    source, destination : array_like of integers [pairs], optional
        Hosts between which frames travel; default: from all to all.

    Returns
    -------
    RouteSet

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> routes = find_route_set(build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=4)))
    >>> routes.forwarding.astype(int).tolist()
    [[1, 1], [1, 1], [1, 1], [1, 1]]
    """
    alive = np.ones(network.n_links, dtype=bool) if up is None else up
    reduced = network
    if not alive.all():
        reduced = replace(network, link_a=network.link_a[alive], link_b=network.link_b[alive])
    distances = edge_distances(reduced)
    _, edge_switches = host_edges(reduced)
    wanted = wanted_pairs(distances.host_edge, distances.n_edges, source=source, destination=destination)
    return RouteSet(
        network=network,
        up=alive[network.port_link],
        links=distances.links,
        host_edge=distances.host_edge,
        sources=entries(network, distances.links, edge_switches, wanted),
    )


def wanted_pairs(
    host_edge: npt.NDArray[np.uint32],
    n_edges: int,
    *,
    source: npt.ArrayLike | None,
    destination: npt.ArrayLike | None,
) -> BoolMatrix:
    """Whether frames travel from hosts of one edge to those of another: bool [edges, edges]."""
    if source is None or destination is None:
        return np.ones((n_edges, n_edges), dtype=bool)
    wanted = np.zeros((n_edges, n_edges), dtype=bool)
    first, last = (host_edge[np.asarray(hosts, dtype=np.int64)] for hosts in (source, destination))
    wanted[first, last] = True
    return wanted


def entries(
    network: Network,
    links: npt.NDArray[np.int16],
    edge_switches: list[npt.NDArray[np.uint32]],
    wanted: BoolMatrix,
) -> BoolMatrix:
    """Where frames enter: a host on `edge_switches` sends over the closest, scale-up ones before others."""
    sources = np.zeros(links.shape, dtype=bool)
    far = np.iinfo(np.int16).max
    for edge, switches in enumerate(edge_switches):
        rows = switches.astype(np.int64) - network.n_hosts
        if len(rows) == 0:
            continue
        if len(rows) == 1:
            sources[rows[0]] |= wanted[edge]
            continue
        distance = np.where(links[rows] == UNREACHABLE, far, links[rows])
        closest = distance == distance.min(axis=0)
        inside = closest & (network.tier[switches] == TIER_SCALE_UP)[:, None]
        sources[rows] |= np.where(inside.any(axis=0), inside, closest) & wanted[edge]
    return sources
