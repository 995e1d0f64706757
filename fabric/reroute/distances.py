"""Distances of switches from edges while some cables are down: of shortest paths, or of up-down paths.

An up-down path climbs, then descends, and never climbs again (Schroeder et al., "Autonet", IEEE JSAC 1991);
which way is up is `fabric.topology.heights`. Tables are by destination alone, so a switch below which an edge
lies always descends to it, and one that climbs meets only switches that climb or descend: no path bounces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.topology.distance import UNREACHABLE, spread
from fabric.topology.heights import heights, up_down_links
from fabric.topology.network import Network

__all__ = ["Distances", "Surveyor"]

BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distances:
    """Of every switch from every edge.

    Attributes
    ----------
    links : numpy.ndarray of int16 [switches, edges]
        Links on the path, -1 for none.
    descends : numpy.ndarray of bool [switches, edges] or None
        For up-down paths, whether they only descend.
    """

    links: npt.NDArray[np.int16]
    descends: BoolArray | None = None


class Surveyor:
    """Measures a network in its states.

    Parameters
    ----------
    network : Network
    host_edge : numpy.ndarray of uint32 [hosts]
        Edges; hosts of one edge never differ in what is down.
    up_down : bool
        Whether paths must not bounce.
    """

    def __init__(self, network: Network, host_edge: npt.NDArray[np.uint32], *, up_down: bool) -> None:
        self._network = network
        first = np.unique(host_edge, return_index=True)[1]
        stands_for = np.zeros(network.n_nodes, dtype=np.bool_)
        stands_for[first] = True
        self._cables = np.flatnonzero(stands_for[network.link_a] & (network.link_b >= network.n_hosts))
        self._edge = host_edge[network.link_a[self._cables]].astype(np.int64)
        self._n_edges = len(first)
        self.heights = heights(network) if up_down else None

    def measure(self, up: BoolArray) -> Distances:
        """Distances with only the cables `up` (bool [links])."""
        network = self._network
        links = np.full((network.n_switches, self._n_edges), UNREACHABLE, dtype=np.int16)
        attached = up[self._cables]
        switches = network.link_b[self._cables].astype(np.int64) - network.n_hosts
        links[switches[attached], self._edge[attached]] = 0
        if self.heights is None:
            spread(network, links, up=up)
            return Distances(links)
        return Distances(*up_down_links(links == 0, self._peers(up), self.heights))

    def _peers(self, up: BoolArray) -> list[Int64Array]:
        """Switches at the other end of each switch's cables."""
        network = self._network
        cables = np.flatnonzero(up & (network.link_a >= network.n_hosts))
        a = network.link_a[cables].astype(np.int64) - network.n_hosts
        b = network.link_b[cables].astype(np.int64) - network.n_hosts
        here, there = np.concatenate([a, b]), np.concatenate([b, a])
        order = np.argsort(here, kind="stable")
        bounds = np.searchsorted(here[order], np.arange(network.n_switches + 1))
        return np.split(there[order], bounds[1:-1])
