"""How far every switch is from every destination edge, in links through switches.

Hosts never forward, so distances live on the graph of the switches alone. Hosts that are attached to
the same set of switches look the same to all others and share an *edge*: in a fat tree one per leaf,
in a rail-optimised fabric one per host. A breadth-first search runs from all edges at once: the set of
edges that have reached a switch is a row of bits, and one level is one OR over the rows of its
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.topology.network import Network

__all__ = ["UNREACHABLE", "EdgeDistances", "edge_distances", "host_edges", "spread"]

UNREACHABLE = -1
"""Distance of a switch from an edge that it has no path to."""


@dataclass(frozen=True, eq=False)
class EdgeDistances:
    """Distances of switches from edges.

    Attributes
    ----------
    host_edge : numpy.ndarray of uint32 [hosts]
        The edge of every host, numbered in order of its first host.
    n_edges : int
    links : numpy.ndarray of int16 [switches, edges]
        Links on a shortest path from switch `n_hosts + row` to a switch that the edge's hosts are
        attached to: 0 is that switch itself, -1 no path.
    """

    host_edge: npt.NDArray[np.uint32]
    n_edges: int
    links: npt.NDArray[np.int16]


def host_edges(
    network: Network, *, alone: npt.NDArray[np.bool_] | None = None
) -> tuple[npt.NDArray[np.uint32], list[npt.NDArray[np.uint32]]]:
    """Group hosts by the set of switches that they are attached to.

    Parameters
    ----------
    network : Network
    alone : numpy.ndarray of bool [hosts], optional
        Hosts that get an edge for themselves, as they may lose a cable.

    Returns
    -------
    host_edge : numpy.ndarray of uint32 [hosts]
        Edges are numbered in order of their first host.
    edge_switches : list of numpy.ndarray of uint32, one per edge
        The switches (node numbers, ascending) of each edge; empty for hosts without a switch.
    """
    attached = (network.link_a < network.n_hosts) & (network.link_b >= network.n_hosts)
    pairs = np.unique(network.link_a[attached].astype(np.int64) * network.n_nodes + network.link_b[attached])
    switches = (pairs % network.n_nodes).astype(np.uint32)
    bounds = np.searchsorted(pairs // network.n_nodes, np.arange(network.n_hosts + 1))
    numbers: dict[bytes, int] = {}
    host_edge = np.empty(network.n_hosts, dtype=np.uint32)
    edge_switches: list[npt.NDArray[np.uint32]] = []
    for host in range(network.n_hosts):
        group = switches[bounds[host] : bounds[host + 1]]
        key = group.tobytes() if alone is None or not alone[host] else b"host" + bytes(str(host), "ascii")
        number = numbers.setdefault(key, len(edge_switches))
        if number == len(edge_switches):
            edge_switches.append(group)
        host_edge[host] = number
    return host_edge, edge_switches


def edge_distances(network: Network, *, alone: npt.NDArray[np.bool_] | None = None) -> EdgeDistances:
    """Search breadth-first from every edge at once.

    Parameters
    ----------
    network : Network
    alone : numpy.ndarray of bool [hosts], optional
        As for `host_edges`.

    Returns
    -------
    EdgeDistances

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=2, spines=1, hosts_per_leaf=4))
    >>> edge_distances(network).links.tolist()
    [[0, 2], [2, 0], [1, 1]]
    """
    host_edge, edge_switches = host_edges(network, alone=alone)
    n_edges = len(edge_switches)
    links = np.full((network.n_switches, n_edges), UNREACHABLE, dtype=np.int16)
    for edge, switches in enumerate(edge_switches):
        links[switches.astype(np.int64) - network.n_hosts, edge] = 0
    spread(network, links)
    return EdgeDistances(host_edge, n_edges, links)


def spread(
    network: Network, links: npt.NDArray[np.int16], *, up: npt.NDArray[np.bool_] | None = None
) -> None:
    """Fill in distances from where they are 0.

    Parameters
    ----------
    network : Network
    links : numpy.ndarray of int16 [switches, edges]
        0 where an edge hangs on a switch, elsewhere `UNREACHABLE`; changed.
    up : numpy.ndarray of bool [links], optional
        Cables that are in order. Default: all.
    """
    n_edges = links.shape[1]
    rows, starts, neighbours = _switch_neighbours(network, up)
    frontier = np.packbits(links == 0, axis=1)
    visited = frontier.copy()
    level = 0
    while len(rows) and frontier.any():
        level += 1
        reached = np.zeros_like(frontier)
        reached[rows] = np.bitwise_or.reduceat(frontier[neighbours], starts, axis=0)
        frontier = reached & ~visited
        visited |= frontier
        links[np.unpackbits(frontier, axis=1, count=n_edges).view(np.bool_)] = level


def _switch_neighbours(
    network: Network,
    up: npt.NDArray[np.bool_] | None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Adjacency of the switches: those with neighbours, where each one's begin, and the neighbours."""
    between = network.link_a >= network.n_hosts
    if up is not None:
        between = between & up
    a = network.link_a[between].astype(np.int64) - network.n_hosts
    b = network.link_b[between].astype(np.int64) - network.n_hosts
    pairs = np.unique(np.concatenate([a, b]) * network.n_switches + np.concatenate([b, a]))
    rows, starts = np.unique(pairs // max(network.n_switches, 1), return_index=True)
    return rows, starts, pairs % max(network.n_switches, 1)
