"""Failure domains: what the loss of one cable or one switch takes away.

By kind (a cable between two tiers, a switch of a tier) the worst case: hosts that no path reaches any more;
hosts that lose some of their own bandwidth, as one of several ports; and the share of the bisection
bandwidth that is gone. The bisection is that of a layered fabric (`fabric.topology.describe`): half of the
smallest capacity between neighbouring tiers, so a cut that is wider than the narrowest hides a loss until
it becomes the narrowest. Hosts cut off are those outside the largest part that still holds together; a host
alone is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.topology import TIER_SCALE_UP, Network
from fabric.topology.describe import tier_name

__all__ = ["Domain", "failure_domains"]

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Domain:
    """The worst loss of one part of a kind.

    Attributes
    ----------
    kind : str
        "leaf-spine cable", "spine".
    count : int
        Parts of this kind.
    example : str
        The part whose loss is worst (the first of them).
    cut_off : int
        Hosts outside the largest part that is left.
    slowed : int
        Other hosts that lose a port.
    bisection_lost : float or None
        Share of the bisection bandwidth; None where the network is not layered.
    """

    kind: str
    count: int
    example: str
    cut_off: int
    slowed: int
    bisection_lost: float | None


def failure_domains(network: Network) -> Iterator[Domain]:
    """The worst loss of every kind of part, cables first, from the hosts up.

    Parameters
    ----------
    network : Network

    Yields
    ------
    Domain

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=4, spines=4, hosts_per_leaf=4))
    >>> [(each.kind, each.cut_off, each.bisection_lost) for each in failure_domains(network)][1:]
    [('leaf-spine cable', 0, 0.0625), ('leaf', 4, 0.25), ('spine', 0, 0.25)]
    """
    cut_by_cable, cut_by_node = _cut_off(network)
    lost_by_cable, lost_by_node = _bisection_lost(network)
    tier = network.tier.astype(np.int64)
    ends = np.sort(np.stack([tier[network.link_a], tier[network.link_b]]), axis=0)
    to_host = network.link_a < network.n_hosts
    slowed_by_cable = np.where(to_host, 1 - np.minimum(cut_by_cable, 1), 0)
    attached = np.bincount(network.link_b[to_host], minlength=network.n_nodes)
    alone = np.bincount(network.link_b[to_host], weights=cut_by_cable[to_host] > 0, minlength=network.n_nodes)
    slowed_by_node = attached - alone.astype(np.int64)
    pairs = ends[0] * 256 + ends[1]
    for pair in np.unique(pairs).tolist():
        yield _worst(
            f"{tier_name(pair // 256)}-{tier_name(pair % 256)} cable",
            np.flatnonzero(pairs == pair),
            (cut_by_cable, slowed_by_cable, lost_by_cable),
            lambda cable: f"{network.names[network.link_a[cable]]}-{network.names[network.link_b[cable]]}",
        )
    for number in np.unique(tier[network.n_hosts :]).tolist():
        yield _worst(
            tier_name(number),
            np.flatnonzero(tier == number),
            (cut_by_node, slowed_by_node, lost_by_node),
            lambda node: network.names[node],
        )


def _worst(
    kind: str,
    parts: Int64Array,
    losses: tuple[Int64Array, Int64Array, Float64Array | None],
    name: Callable[[int], str],
) -> Domain:
    cut_off, slowed = losses[0][parts], losses[1][parts]
    lost = np.zeros(len(parts)) if losses[2] is None else losses[2][parts]
    worst = int(np.lexsort((-np.arange(len(parts)), slowed, lost, cut_off))[-1])
    return Domain(
        kind=kind,
        count=len(parts),
        example=name(int(parts[worst])),
        cut_off=int(cut_off[worst]),
        slowed=int(slowed[worst]),
        bisection_lost=None if losses[2] is None else float(lost[worst]),
    )


def _bisection_lost(network: Network) -> tuple[Float64Array | None, Float64Array | None]:
    """Share of the bisection that goes with each cable, and with each node."""
    tier = network.tier.astype(np.int64)
    ends = np.sort(np.stack([tier[network.link_a], tier[network.link_b]]), axis=0)
    tree = ends[1] != TIER_SCALE_UP
    if not tree.any() or (ends[1][tree] != ends[0][tree] + 1).any():
        return None, None
    low = np.where(tree, ends[0], 0)
    rate = np.where(tree, network.link_rate_bps, 0).astype(np.float64)
    n_cuts = int(ends[1][tree].max())
    capacity = np.bincount(low, weights=rate, minlength=n_cuts)
    before = capacity.min()
    left = np.minimum(before, capacity[low] - rate)
    taken = np.zeros((network.n_nodes, n_cuts))
    for nodes in (network.link_a, network.link_b):
        np.add.at(taken, (nodes, low), rate)
    return 1 - left / before, 1 - (capacity - taken).min(axis=1) / before


def _cut_off(network: Network) -> tuple[Int64Array, Int64Array]:
    """Hosts outside the largest part that is left without each cable, and without each node.

    One depth-first search (Tarjan, SIAM J. Comput. 1972): a subtree is separated by the cable, or the node,
    above it if no cable leads from it to any earlier node; of a node's parts the rest of the network is
    one.
    """
    by_cable = np.zeros(network.n_links, dtype=np.int64)
    by_node = np.zeros(network.n_nodes, dtype=np.int64)
    base = network.node_port_base.tolist()
    peer = network.port_node[network.port_peer].tolist()
    cable = network.port_link.tolist()
    order = [0] * network.n_nodes
    low = [0] * network.n_nodes
    hosts = [int(node < network.n_hosts) for node in range(network.n_nodes)]
    parts: list[list[int]] = [[] for _ in range(network.n_nodes)]
    clock = 0
    for root in range(network.n_nodes):
        if order[root]:
            continue
        clock += 1
        order[root] = low[root] = clock
        visited, bridges = [root], []
        stack = [(root, -1, base[root])]
        while stack:
            node, above, port = stack.pop()
            if port < base[node + 1]:
                stack.append((node, above, port + 1))
                there = peer[port]
                if cable[port] == above:
                    continue
                if order[there]:
                    low[node] = min(low[node], order[there])
                    continue
                clock += 1
                order[there] = low[there] = clock
                visited.append(there)
                stack.append((there, cable[port], base[there]))
            elif stack:
                parent = stack[-1][0]
                low[parent] = min(low[parent], low[node])
                hosts[parent] += hosts[node]
                if low[node] >= order[parent]:
                    parts[parent].append(hosts[node])
                if low[node] > order[parent]:
                    bridges.append((above, hosts[node]))
        total = hosts[root]
        for number, below in bridges:
            by_cable[number] = total - _together([below, total - below])
        for node in visited:
            left = total - (node < network.n_hosts)
            by_node[node] = left - _together([left - sum(parts[node]), *parts[node]])
    return by_cable, by_node


def _together(parts: list[int]) -> int:
    """Hosts of the largest part; none if that is one host by itself."""
    largest = max(parts)
    return largest if largest > 1 else 0
