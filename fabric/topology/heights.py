"""Which way is up: a total order of the switches, by which every link goes up or down.

Up-down routing (Schroeder et al., "Autonet", IEEE JSAC 1991) lets a path climb, then descend, and never
climb again. Links that go up come before links that go down, ascending ones by height, descending ones
against it: so no chain of dependencies returns to where it began, whatever the network is.

Roots are the switches farthest from all hosts (spines of two tiers, cores of three); where every switch
has hosts, the first of each component. A switch is higher the fewer links lead to a root; of two at one
height the one with the lower number is higher.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fabric.topology.distance import UNREACHABLE
from fabric.topology.network import Network

__all__ = ["heights", "up_down_links"]

Int64Array = npt.NDArray[np.int64]
FAR = np.int16(np.iinfo(np.int16).max - 1)


def heights(network: Network) -> Int64Array:
    """Rank of every switch, distinct, highest last.

    Parameters
    ----------
    network : Network

    Returns
    -------
    numpy.ndarray of int64 [switches]
        0 is the lowest.

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> heights(build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=1))).tolist()
    [1, 0, 3, 2]
    """
    n = network.n_switches
    between = network.link_a >= network.n_hosts
    a = network.link_a[between].astype(np.int64) - network.n_hosts
    b = network.link_b[between].astype(np.int64) - network.n_hosts
    has_hosts = np.zeros(n, dtype=bool)
    to_host = (network.link_a < network.n_hosts) & ~(network.link_b < network.n_hosts)
    has_hosts[network.link_b[to_host].astype(np.int64) - network.n_hosts] = True
    from_hosts = _levels(np.flatnonzero(has_hosts), a, b, n)
    roots = np.flatnonzero((from_hosts == from_hosts.max(initial=0)) & (from_hosts > 0))
    depth = _levels(roots, a, b, n)
    while (depth < 0).any():
        root = np.flatnonzero(depth < 0)[:1]
        below = _levels(root, a, b, n)
        depth = np.where(depth < 0, below, depth)
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((-np.arange(n), -depth))] = np.arange(n)
    return rank


def up_down_links(
    attached: npt.NDArray[np.bool_], peers: Sequence[Int64Array], heights: Int64Array
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
    """Distances of switches from edges over paths that climb and then descend.

    Tables are by destination alone: a switch below which an edge lies always descends to it.

    Parameters
    ----------
    attached : numpy.ndarray of bool [switches, edges]
        Whether an edge's hosts hang on a switch.
    peers : sequence of numpy.ndarray of int64, one per switch
        Switches at the other end of its cables that are up.
    heights : numpy.ndarray of int64 [switches]
        As of :func:`heights`.

    Returns
    -------
    links : numpy.ndarray of int16 [switches, edges]
        Links on the shortest such path; -1 for none.
    descends : numpy.ndarray of bool [switches, edges]
        Whether it only descends.
    """
    order = np.argsort(heights)
    below = np.where(attached, np.int16(0), FAR)
    for row in order:
        lower = peers[row][heights[peers[row]] < heights[row]]
        if len(lower):
            below[row] = np.minimum(below[row], below[lower].min(axis=0) + 1)
    below = np.minimum(below, FAR)
    links = below.copy()
    for row in order[::-1]:
        higher = peers[row][heights[peers[row]] > heights[row]]
        if len(higher):
            climb = np.minimum(links[higher].min(axis=0) + 1, FAR)
            links[row] = np.where(below[row] < FAR, below[row], climb)
    return np.where(links == FAR, np.int16(UNREACHABLE), links), below < FAR


def _levels(start: Int64Array, a: Int64Array, b: Int64Array, n: int) -> Int64Array:
    """Links from the nearest of some switches, -1 where there is no way."""
    level = np.full(n, -1, dtype=np.int64)
    level[start] = 0
    depth = 0
    while True:
        reached = np.concatenate([b[level[a] == depth], a[level[b] == depth]])
        reached = reached[level[reached] < 0]
        if len(reached) == 0:
            return level
        depth += 1
        level[reached] = depth
