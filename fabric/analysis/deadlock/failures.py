"""Every failure of one cable or one switch, without going through all routes for each.

Routes converge again on shortest paths. A switch that loses some of its next hops to an edge, but not all,
keeps its distance: its routes become fewer. One that loses all is *withdrawn*; whoever had only withdrawn
next hops is withdrawn in turn, and nobody else ever routes over a withdrawn switch, as that is now farther
than before. So new routes begin only where hosts hang on a withdrawn switch. If none do, the dependency
graph is part of what it was. If some do, only the routes to those edges are made again; where each of their
arcs leads to a later round (`fabric.analysis.deadlock.cycles`) the graph without a cycle proves that there
still is none, and only otherwise all is done again.

Hosts on several switches lose one of them with a cable: frames to such a host then take routes of their own,
and its frames enter elsewhere. All these routes and entries are put to the same proof together; only if it
fails is each done again, one for all hosts that are alike. That goes for a scale-up switch as well, which
leads to its hosts alone; where another of their switches fails, the proof is for the routes that are not
part of what they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabric.analysis.deadlock.cycles import rounds, shortest_cycle
from fabric.analysis.deadlock.graph import DependencyGraph, turns_of
from fabric.analysis.deadlock.routes import RouteSet, entries, find_route_set, wanted_pairs, without
from fabric.topology import Network
from fabric.topology.distance import UNREACHABLE, host_edges, spread

__all__ = ["Failure", "failed_routes", "single_failures"]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Failure:
    """Cables (rows of the network's link columns) and switches (node numbers) that are down together."""

    cables: tuple[int, ...] = ()
    switches: tuple[int, ...] = ()

    def name(self, network: Network) -> str:
        """What fails, by its names: "leaf0-spine1, spine3"."""
        return ", ".join(
            [
                *(_cable_name(network, cable) for cable in self.cables),
                *(network.names[node] for node in self.switches),
            ]
        )


def _cable_name(network: Network, cable: int) -> str:
    name = f"{network.names[network.link_a[cable]]}-{network.names[network.link_b[cable]]}"
    parallel = f"#{network.link_parallel[cable]}" if network.link_parallel_count[cable] > 1 else ""
    return name + parallel


def failed_routes(
    network: Network,
    failure: Failure,
    *,
    source: npt.ArrayLike | None = None,
    destination: npt.ArrayLike | None = None,
) -> RouteSet:
    """Shortest-path routes once a failure is known everywhere; hosts as in `find_route_set`."""
    up = without(network, cables=failure.cables, switches=failure.switches)
    return find_route_set(network, up=up, source=source, destination=destination)


def single_failures(
    routes: RouteSet,
    graph: DependencyGraph,
    *,
    source: npt.ArrayLike | None = None,
    destination: npt.ArrayLike | None = None,
) -> Iterator[tuple[Failure, list[int]]]:
    """Each cable and each switch by itself, with a cycle of links that its failure makes.

    Parameters
    ----------
    routes : RouteSet
        Shortest-path routes with all cables up.
    graph : DependencyGraph
        Theirs, without a cycle.
    source, destination : array_like of integers [pairs], optional
        As given to `find_route_set`.

    Yields
    ------
    (Failure, list of int)
        Cables in order, then switches; the list is empty where nothing can deadlock.

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> routes = find_route_set(build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=2)))
    >>> sum(bool(cycle) for _, cycle in single_failures(routes, turns_of(routes)))
    0
    """
    scan = _Scan(routes, graph, source, destination)
    network = routes.network
    for cable in range(network.n_links):
        yield (failure := Failure(cables=(cable,))), scan.cycle_after(failure)
    for node in range(network.n_hosts, network.n_nodes):
        yield (failure := Failure(switches=(node,))), scan.cycle_after(failure)


class _Scan:
    """What all failures of a network have in common."""

    def __init__(
        self,
        routes: RouteSet,
        graph: DependencyGraph,
        source: npt.ArrayLike | None,
        destination: npt.ArrayLike | None,
    ) -> None:
        self.routes, self.source, self.destination = routes, source, destination
        self.round = rounds(graph)
        rows = range(len(routes.links))
        self.next_hops = np.array([routes.next_hops(row).sum(axis=0) for row in rows])
        self.peers_of = [routes.peers(ports) for ports in routes.switch_ports]
        _, self.edge_switches = host_edges(routes.network)
        self.several = np.array([len(switches) > 1 for switches in self.edge_switches], dtype=bool)
        self.shared_switches = {
            node for edge in np.flatnonzero(self.several) for node in self.edge_switches[edge].tolist()
        }
        self.first_host = np.unique(routes.host_edge, return_index=True)[1]
        self.known: dict[tuple[int, int], list[int]] = {}

    def cycle_after(self, failure: Failure) -> list[int]:
        network = self.routes.network
        if failure.switches:
            node = failure.switches[0]
            if node in self.shared_switches:
                leads_nowhere = len(self.routes.switch_ports[node - network.n_hosts]) == 0
                if leads_nowhere and self.host_cables_are_safe:
                    return []
                return self._after_loss_of_entries(failure)
            ports = range(int(network.node_port_base[node]), int(network.node_port_base[node + 1]))
            return self._after_loss_of(failure, list(ports))
        cable = failure.cables[0]
        a, b = int(network.link_a[cable]), int(network.link_b[cable])
        if b < network.n_hosts:
            return []
        if a >= network.n_hosts:
            return self._after_loss_of(failure, [int(network.link_ports[cable, 0])])
        edge = int(self.routes.host_edge[a])
        if not self.several[edge] or network.link_parallel_count[cable] > 1 or self.host_cables_are_safe:
            return []
        if (edge, b) not in self.known:
            self.known[edge, b] = self._all_again(failure)
        return self.known[edge, b]

    def _all_again(self, failure: Failure) -> list[int]:
        return shortest_cycle(turns_of(self._routes_after(failure)))

    def _routes_after(self, failure: Failure) -> RouteSet:
        return failed_routes(self.routes.network, failure, source=self.source, destination=self.destination)

    def _proves(self, graph: DependencyGraph) -> bool:
        """Whether further arcs make no cycle: each leads to a later round."""
        return not any(
            (turns.held & (self.round[turns.inputs][:, None] >= self.round[turns.outputs])).any()
            for turns in graph.turns
        )

    @cached_property
    def host_cables_are_safe(self) -> bool:
        """Whether no host on several switches makes a cycle by losing its cable to one of them."""
        routes, network = self.routes, self.routes.network
        lost = [
            (edge, switch)
            for edge in np.flatnonzero(self.several).tolist()
            for switch in self.edge_switches[edge].tolist()
        ]
        edges = np.array([edge for edge, _ in lost], dtype=np.int64)
        left = [self.edge_switches[edge][self.edge_switches[edge] != switch] for edge, switch in lost]
        links = np.full((network.n_switches, len(left)), UNREACHABLE, dtype=np.int16)
        for column, switches in enumerate(left):
            links[switches.astype(np.int64) - network.n_hosts, column] = 0
        spread(network, links)
        wanted = wanted_pairs(
            routes.host_edge, routes.n_edges, source=self.source, destination=self.destination
        )
        to_them = entries(network, links, self.edge_switches, wanted[:, edges])
        from_them = entries(network, routes.links, left, wanted[edges])
        return self._proves(turns_of(replace(routes, links=links, sources=to_them))) and self._proves(
            turns_of(replace(routes, sources=routes.sources | from_them))
        )

    def _after_loss_of_entries(self, failure: Failure) -> list[int]:
        """The cycle after a switch went down on which hosts with several hang."""
        routes, before = self._routes_after(failure), self.routes
        host = np.unique(routes.host_edge, return_index=True)[1]
        edge = before.host_edge[host]
        other = (routes.links != before.links[:, edge]) & routes.forwarding
        more = routes.forwarding & ~before.forwarding[:, edge]
        return self._cycle_of(routes, np.flatnonzero((other | more).any(axis=0)))

    def _cycle_of(self, routes: RouteSet, changed: npt.NDArray[np.intp]) -> list[int]:
        """The cycle of routes, those to some edges of which are not part of what they were."""
        return [] if self._proves(turns_of(routes, changed)) else shortest_cycle(turns_of(routes))

    def _after_loss_of(self, failure: Failure, ports: list[int]) -> list[int]:
        """The cycle after cables between switches went down; `ports` are one end of each."""
        edges = self._rerouted(failure, ports)
        if len(edges) == 0:
            return []
        routes = self._routes_after(failure)
        return self._cycle_of(routes, np.unique(routes.host_edge[self.first_host[edges]]).astype(np.intp))

    def _rerouted(self, failure: Failure, ports: list[int]) -> Int64Array:
        """Edges that some switch with hosts has lost all next hops to."""
        routes, network = self.routes, self.routes.network
        down = np.concatenate([ports, network.port_peer[ports]]).astype(np.int64)
        down = down[(network.port_node[down] >= network.n_hosts) & (routes.peers(down) >= 0)]
        here = network.port_node[down].astype(np.int64) - network.n_hosts
        leads = routes.leads(here, routes.peers(down))
        rows, inverse = np.unique(here, return_inverse=True)
        lost_here = np.zeros((len(rows), routes.n_edges), dtype=np.int64)
        np.add.at(lost_here, inverse, leads)
        emptied = (lost_here > 0) & (lost_here == self.next_hops[rows])
        edges = np.flatnonzero(emptied.any(axis=0))
        if len(edges) == 0:
            return edges
        lost = np.zeros((len(routes.links), len(edges)), dtype=np.int64)
        lost[rows] = lost_here[:, edges]
        links, sources = routes.links[:, edges], routes.sources[:, edges]
        next_hops = self.next_hops[:, edges]
        dead_rows = np.array(failure.switches, dtype=np.int64) - network.n_hosts
        living = np.ones(len(routes.links), dtype=bool)
        living[dead_rows] = False
        is_down = np.zeros(network.n_ports, dtype=bool)
        is_down[down] = True
        withdrawn = np.zeros(lost.shape, dtype=bool)
        while len(rows):
            rows = rows[living[rows]]
            new = (lost[rows] > 0) & (lost[rows] == next_hops[rows]) & ~withdrawn[rows]
            changed = new.any(axis=1)
            rows, new = rows[changed], new[changed]
            if len(rows) == 0:
                break
            withdrawn[rows] |= new
            ports_of = [routes.switch_ports[row] for row in rows]
            peers = np.concatenate([self.peers_of[row] for row in rows])
            owner = np.repeat(np.arange(len(rows)), [len(each) for each in ports_of])
            alive = ~is_down[np.concatenate(ports_of)]
            peers, owner = peers[alive], owner[alive]
            loses = new[owner] & (links[peers] == links[rows][owner] + 1)
            met, column = np.nonzero(loses)
            lost += np.bincount(peers[met] * len(edges) + column, minlength=lost.size).reshape(lost.shape)
            touched = np.zeros(len(lost), dtype=bool)
            touched[peers[met]] = True
            rows = np.flatnonzero(touched)
        rerouted = (withdrawn & sources).any(axis=0) & (links[dead_rows] != 0).all(axis=0)
        return np.asarray(edges[rerouted])
