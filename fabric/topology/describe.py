"""What a network amounts to: sizes, cables per tier, oversubscription, diameter, bisection.

The figures say, before anything runs, what a fabric can carry at best. Oversubscription compares what
a switch can receive from below with what it can send upwards. The bisection bandwidth is that of a
layered fabric cut into two equal halves of hosts: half of the smallest total capacity between two
neighbouring tiers, in one direction; a network in which cables join switches of one tier, or skip a
tier, is not layered and has none here. Scale-up networks stand beside the tree and are left out of
both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.topology.distance import UNREACHABLE, edge_distances
from fabric.topology.network import TIER_CORE, TIER_HOST, TIER_LEAF, TIER_SCALE_UP, TIER_SPINE, Network

__all__ = ["NetworkSummary", "describe", "tier_name"]

TIER_NAMES = {
    TIER_HOST: "host",
    TIER_LEAF: "leaf",
    TIER_SPINE: "spine",
    TIER_CORE: "core",
    TIER_SCALE_UP: "scaleup",
}


@dataclass(frozen=True, kw_only=True)
class NetworkSummary:
    """Figures of a network.

    Attributes
    ----------
    n_hosts, n_switches, n_links, n_ports : int
    nodes_per_tier : dict of str to int
        "host", "leaf", "spine", "core", "scaleup" (other tiers: "tier4", ...).
    links_per_tier : dict of str to int
        Cables by the tiers they join, "host-leaf", "leaf-spine", ...
    oversubscription : dict of str to float
        By switch that has cables both downwards and upwards: rate from below over rate to above.
    diameter_links : int
        The most links that a frame crosses between two hosts, on shortest paths; 0 for one host.
    bisection_bps : int or None
        Bandwidth between two halves of the hosts, one direction; None if the network is not layered.
    """

    n_hosts: int
    n_switches: int
    n_links: int
    n_ports: int
    nodes_per_tier: dict[str, int]
    links_per_tier: dict[str, int]
    oversubscription: dict[str, float]
    diameter_links: int
    bisection_bps: int | None


def describe(network: Network) -> NetworkSummary:
    """Sum a network up.

    Parameters
    ----------
    network : Network

    Returns
    -------
    NetworkSummary

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> summary = describe(build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=4)))
    >>> summary.links_per_tier, summary.oversubscription["leaf0"], summary.diameter_links
    ({'host-leaf': 16, 'leaf-spine': 8}, 2.0, 4)
    """
    tiers, counts = np.unique(network.tier, return_counts=True)
    return NetworkSummary(
        n_hosts=network.n_hosts,
        n_switches=network.n_switches,
        n_links=network.n_links,
        n_ports=network.n_ports,
        nodes_per_tier={tier_name(int(tier)): int(count) for tier, count in zip(tiers, counts, strict=True)},
        links_per_tier=_links_per_tier(network),
        oversubscription=_oversubscription(network),
        diameter_links=_diameter(network),
        bisection_bps=_bisection(network),
    )


def tier_name(tier: int) -> str:
    """Name of a tier ("leaf"), or its number for tiers without one ("tier4")."""
    return TIER_NAMES.get(tier, f"tier{tier}")


def _link_tiers(network: Network) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Lower and higher tier of every cable."""
    tier = network.tier.astype(np.int64)
    one, other = tier[network.link_a], tier[network.link_b]
    return np.minimum(one, other), np.maximum(one, other)


def _links_per_tier(network: Network) -> dict[str, int]:
    low, high = _link_tiers(network)
    pairs, counts = np.unique(low * 256 + high, return_counts=True)
    return {
        f"{tier_name(pair // 256)}-{tier_name(pair % 256)}": count
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
    }


def _oversubscription(network: Network) -> dict[str, float]:
    own = network.tier[network.port_node].astype(np.int64)
    peer = network.tier[network.port_node[network.port_peer]].astype(np.int64)
    rate = network.link_rate_bps[network.port_link].astype(np.float64)
    in_tree = (own != TIER_SCALE_UP) & (peer != TIER_SCALE_UP)
    n = network.n_nodes
    down_bps = np.bincount(network.port_node, weights=rate * (in_tree & (peer < own)), minlength=n)
    up_bps = np.bincount(network.port_node, weights=rate * (in_tree & (peer > own)), minlength=n)
    both = np.flatnonzero((down_bps > 0) & (up_bps > 0))
    return {network.names[node]: float(down_bps[node] / up_bps[node]) for node in both}


def _diameter(network: Network) -> int:
    distances = edge_distances(network)
    hosts_per_edge = np.bincount(distances.host_edge, minlength=distances.n_edges)
    longest = 0
    for edge in range(distances.n_edges):
        to_edges = distances.links[distances.links[:, edge] == 0]
        if len(to_edges) == 0:
            longest = max(longest, 1)
            continue
        reachable = np.where(to_edges == UNREACHABLE, np.iinfo(np.int16).max, to_edges).min(axis=0)
        reachable[reachable == np.iinfo(np.int16).max] = UNREACHABLE
        if hosts_per_edge[edge] == 1:
            reachable[edge] = UNREACHABLE
        if reachable.max() != UNREACHABLE:
            longest = max(longest, int(reachable.max()) + 2)
    return longest


def _bisection(network: Network) -> int | None:
    low, high = _link_tiers(network)
    in_tree = high != TIER_SCALE_UP
    low, high = low[in_tree], high[in_tree]
    if len(low) == 0 or (high != low + 1).any():
        return None
    capacity_bps = np.zeros(int(high.max()), dtype=np.int64)
    np.add.at(capacity_bps, low, network.link_rate_bps[in_tree])
    return int(capacity_bps.min()) // 2
