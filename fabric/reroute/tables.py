"""Routing tables of a network in any state of failure, all over the same edges and pools.

A state says which cables the switches next to them still use (`near`), and which everybody believes to be in
order (`far`). Distances follow from what everybody believes; a switch takes out of its groups what it knows
better. So between the two a failure costs the flows of its own links alone, and those for which no other next
hop is left.

Hosts that ever lose a cable have an edge for themselves, so that edges are the same in all states. Groups of
all states stand side by side in their switch's pool, each once.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.lowered import ROUTE_DIRECT
from fabric.reroute.distances import Distances, Surveyor
from fabric.reroute.groups import Group, resilient_group
from fabric.routing import LARGEST_GROUP_POOL, Routes, distinct_groups, weighted_group
from fabric.topology.distance import EdgeDistances, host_edges
from fabric.topology.network import Network

__all__ = ["Rerouter"]

BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
Entries = npt.NDArray[np.uint32]


class Rerouter:
    """Makes the tables of one state after the other.

    Parameters
    ----------
    network : Network
        With all cables, also those that fail.
    ever_down : numpy.ndarray of bool [links]
        Cables that fail in some state.
    paths : {"ecmp", "up_down", "resilient"}
        Which paths, and how groups change (`fabric.spec.recovery`).
    buckets : int
        Places of each next hop in a resilient group.
    weights, order
        As for `fabric.routing.find_routes`.

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=1))
    >>> failed = np.isin(np.arange(network.n_links), network.find_links("leaf0-spine0"))
    >>> rerouter = Rerouter(network, ever_down=failed)
    >>> everything = ~np.zeros_like(failed)
    >>> before, after = rerouter.entries(everything, everything), rerouter.entries(~failed, ~failed)
    >>> (before >> 16).tolist(), (after >> 16).tolist()
    ([[65535, 2], [2, 65535], [1, 1], [1, 1]], [[65535, 1], [1, 65535], [1, 1], [1, 1]])
    """

    def __init__(
        self,
        network: Network,
        *,
        ever_down: BoolArray,
        paths: Literal["ecmp", "up_down", "resilient"] = "ecmp",
        buckets: int = 16,
        weights: Literal["equal", "rate"] = "equal",
        order: Literal["ports", "neighbours_descending"] = "ports",
    ) -> None:
        self._network = network
        self._buckets = buckets if paths == "resilient" else 0
        self._weighted = weights == "rate"
        self._descending = order == "neighbours_descending"
        alone = np.zeros(network.n_hosts, dtype=np.bool_)
        alone[network.link_a[ever_down & (network.link_a < network.n_hosts)]] = True
        self.host_edge, edge_switches = host_edges(network, alone=alone)
        self.n_edges = len(edge_switches)
        self._lone_edges = self.host_edge[np.flatnonzero(alone)].astype(np.int64)
        self._lone_hosts = np.flatnonzero(alone)
        self._surveyor = Surveyor(network, self.host_edge, up_down=paths == "up_down")
        self._pools: list[list[int]] = [[] for _ in range(network.n_switches)]
        self._places: list[dict[Group, int]] = [{} for _ in range(network.n_switches)]
        self._measured: dict[bytes, Distances] = {}
        everything = np.ones(network.n_links, dtype=np.bool_)
        self._best = self._measure(everything)
        self._members: list[dict[int, Group]] = [{} for _ in range(network.n_switches)]
        self._base = np.zeros((network.n_switches, self.n_edges), dtype=np.uint32)
        for row in range(network.n_switches):
            self._base[row] = self._row(row, self._best, everything, is_base=True)

    def entries(self, near: BoolArray, far: BoolArray) -> Entries:
        """The entries of all switches in a state.

        Parameters
        ----------
        near, far : numpy.ndarray of bool [links]
            Cables that their own ends use; that everybody counts on.

        Returns
        -------
        numpy.ndarray of uint32 [switches, edges]

        Raises
        ------
        fabric.errors.SpecError
            A switch has more groups than its table can hold.
        """
        network, usable = self._network, near & far
        distances = self._measure(far)
        entries = self._base.copy()
        moved = (distances.links != self._best.links).any(axis=1)
        if distances.descends is not None and self._best.descends is not None:
            moved |= (distances.descends != self._best.descends).any(axis=1)
        for row in self._affected(moved, usable):
            entries[row] = self._row(int(row), distances, usable)
        assert entries.shape == (network.n_switches, self.n_edges)
        return entries

    def routes(self) -> Routes:
        """Tables of the network in order, with the groups of all states that were asked for."""
        network = self._network
        hosts = np.full(network.n_hosts, -1, dtype=np.int64)
        sizes = np.array([0, *(len(pool) for pool in self._pools)], dtype=np.int64)
        starts = np.arange(network.n_switches, dtype=np.int64) * self.n_edges
        return Routes(
            host_edge=self.host_edge,
            n_edges=self.n_edges,
            route_base=np.concatenate([hosts, starts]),
            route_entry=self._base.ravel(),
            route_ports_base=np.concatenate([hosts, np.cumsum(sizes)[:-1]]),
            route_ports=np.array([port for pool in self._pools for port in pool], dtype=np.uint16),
            distances=EdgeDistances(self.host_edge, self.n_edges, self._best.links),
        )

    def _measure(self, far: BoolArray) -> Distances:
        key = np.packbits(far).tobytes()
        if key not in self._measured:
            self._measured[key] = self._surveyor.measure(far)
        return self._measured[key]

    def _affected(self, moved: BoolArray, usable: BoolArray) -> Int64Array:
        """Switches whose own distance or whose neighbours' have changed, or that have a cable down."""
        network = self._network
        node = np.concatenate([np.zeros(network.n_hosts, dtype=np.bool_), moved])
        affected = node.copy()
        for one, other in ((network.link_a, network.link_b), (network.link_b, network.link_a)):
            affected[one[node[other]]] = True
            affected[one[~usable]] = True
        return np.flatnonzero(affected[network.n_hosts :])

    def _row(self, row: int, distances: Distances, usable: BoolArray, *, is_base: bool = False) -> Entries:
        """The entries of one switch."""
        network = self._network
        node = network.n_hosts + row
        first, end = int(network.node_port_base[node]), int(network.node_port_base[node + 1])
        peers = network.port_node[network.port_peer[first:end]].astype(np.int64) - network.n_hosts
        in_order = usable[network.port_link[first:end]]
        ports = np.flatnonzero((peers >= 0) & in_order)
        if self._descending:
            ports = ports[np.argsort(-network.node_ids[network.n_hosts + peers[ports]], kind="stable")]
        entries = np.where(distances.links[row] == 0, np.uint32(ROUTE_DIRECT), np.uint32(0))
        for edge, host in zip(self._lone_edges.tolist(), self._lone_hosts.tolist(), strict=True):
            here = np.flatnonzero(peers == host - network.n_hosts)
            if len(here) and not in_order[here].all():
                entries[edge] = self._place(row, tuple(here[in_order[here]].tolist()))
        edges = np.flatnonzero(distances.links[row] > 0)
        if len(ports) == 0 or len(edges) == 0:
            return entries
        groups, which = distinct_groups(self._closer(row, peers[ports], edges, distances), ports)
        if self._buckets:
            self._enter_resilient(
                row, entries, edges, [tuple(group.tolist()) for group in groups], which, is_base
            )
            return entries
        rate_bps = network.link_rate_bps[network.port_link[first:end]]
        placed = [
            self._place(
                row, tuple((weighted_group(g, rate_bps[g]) if self._weighted and len(g) else g).tolist())
            )
            for g in groups
        ]
        entries[edges] = np.array(placed, dtype=np.uint32)[which]
        return entries

    def _closer(self, row: int, peers: Int64Array, edges: Int64Array, distances: Distances) -> BoolArray:
        """Whether each of some neighbours is a next hop to each of some edges."""
        links, heights = distances.links, self._surveyor.heights
        closer = links[np.ix_(peers, edges)] == links[row, edges] - 1
        if heights is None or distances.descends is None:
            return np.asarray(closer)
        down = (heights[peers] < heights[row])[:, None]
        descends = distances.descends
        return np.asarray(closer & np.where(down, descends[np.ix_(peers, edges)], ~descends[row, edges]))

    def _enter_resilient(
        self,
        row: int,
        entries: Entries,
        edges: Int64Array,
        groups: list[Group],
        which: Int64Array,
        is_base: bool,
    ) -> None:
        members = self._members[row]
        placed: dict[tuple[Group, int], int] = {}
        for edge, group in zip(edges.tolist(), which.tolist(), strict=True):
            left = groups[group]
            if is_base:
                members[edge] = left
            if not left:
                continue
            kind = (members.get(edge, ()), group)
            if kind not in placed:
                places = resilient_group(kind[0], left=left, buckets=self._buckets)
                placed[kind] = self._place(row, places)
            entries[edge] = placed[kind]

    def _place(self, row: int, group: Group) -> int:
        """The entry of a group, which joins its switch's pool if it is new."""
        if not group:
            return 0
        pool, places = self._pools[row], self._places[row]
        if group not in places:
            if len(pool) + len(group) > LARGEST_GROUP_POOL:
                name = self._network.names[self._network.n_hosts + row]
                allowed = f"next-hop groups of at most {LARGEST_GROUP_POOL} places together over all failures"
                raise SpecError("failures", f"{name}: over {len(pool)} places", allowed)
            places[group] = len(group) << 16 | len(pool)
            pool.extend(group)
        return places[group]
