"""Oracles of the static deadlock check: every path of every pair of hosts, listed one by one."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np

from fabric.spec import Link
from fabric.topology import Cables, Network, Switches, assemble_network
from fabric.topology.network import TIER_LEAF

Arc = tuple[int, int]


def random_network(seed: int, *, several_ports: bool) -> Network:
    """A connected network of 3 to 7 switches with chords, parallel cables, and hosts on most of them."""
    random = np.random.default_rng(seed)
    n_switches = int(random.integers(3, 8))
    pairs = [(int(random.integers(0, k)), k) for k in range(1, n_switches)]
    for _ in range(int(random.integers(0, 7))):
        a, b = sorted(random.choice(n_switches, 2, replace=False).tolist())
        pairs.append((a, b))
    n_hosts = int(random.integers(2, 7))
    homes = []
    for host in range(n_hosts):
        ports = int(random.integers(1, 3)) if several_ports else 1
        homes += [(host, int(each)) for each in random.choice(n_switches, ports, replace=False)]
    return assemble_network(
        n_hosts,
        switches=[Switches("s", n_switches, TIER_LEAF)],
        cables=[
            Cables(*_columns([(host, n_hosts + switch) for host, switch in homes]), Link()),
            Cables(*_columns([(n_hosts + a, n_hosts + b) for a, b in pairs]), Link()),
        ],
    )


def _columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def listed_arcs(network: Network, up: np.ndarray, pairs: list[tuple[int, int]] | None = None) -> set[Arc]:
    """Pairs of links that some shortest path of some pair of hosts crosses in turn; hosts forward nothing."""
    fabric = nx.MultiGraph()
    fabric.add_nodes_from(range(network.n_hosts, network.n_nodes))
    homes: dict[int, set[int]] = {host: set() for host in range(network.n_hosts)}
    for link in np.flatnonzero(up).tolist():
        a, b = int(network.link_a[link]), int(network.link_b[link])
        if a < network.n_hosts:
            homes[a].add(b)
        else:
            fabric.add_edge(a, b, cable=link)
    distance = dict(nx.all_pairs_shortest_path_length(fabric))
    arcs = set()
    for source in homes:
        for target in homes:
            if source == target or (pairs is not None and (source, target) not in pairs):
                continue
            ways = [
                (distance[first][last], first, last)
                for first in homes[source]
                for last in homes[target]
                if last in distance[first]
            ]
            for _, first, last in [way for way in ways if way[0] == min(ways)[0]]:
                for nodes in nx.all_shortest_paths(nx.Graph(fabric), first, last):
                    arcs |= _arcs_along(network, fabric, nodes)
    return arcs


def _arcs_along(network: Network, fabric: nx.MultiGraph, nodes: list[int]) -> set[Arc]:
    hops = [
        [_port(network, edge["cable"], here) for edge in fabric[here][there].values()]
        for here, there in pairwise(nodes)
    ]
    return {(first, second) for before, after in pairwise(hops) for first in before for second in after}


def _port(network: Network, cable: int, node: int) -> int:
    return int(network.link_ports[cable, 0 if network.link_a[cable] == node else 1])


def girth(arcs: set[Arc]) -> int:
    """Length of a shortest directed cycle; 0 if there is none."""
    graph = nx.DiGraph(arcs)
    lengths = [
        nx.shortest_path_length(graph, second, first) + 1
        for first, second in arcs
        if nx.has_path(graph, second, first)
    ]
    return min(lengths, default=0)
