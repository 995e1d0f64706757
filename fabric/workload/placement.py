"""Where hosts sit: the leaf and the rate of each, and an order of hosts that spreads over leaves.

The leaf of a host is the switch of the lowest tier that it is attached to, of those the one with the
lowest number: a leaf for a host with several ports, its rail's leaf for an accelerator, and the
scale-up switch only for a host that has nothing else. The rate of a host is the sum of its links, those
to scale-up switches left out unless it has no other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.topology.network import TIER_SCALE_UP, Network
from fabric.workload.draws import EntryDraws, Stream

__all__ = ["host_leaves", "host_rates_bps", "rank_in_leaf", "spread_over_leaves"]

Int64Array = npt.NDArray[np.int64]


def host_leaves(network: Network) -> Int64Array:
    """Node number of each host's leaf.

    Parameters
    ----------
    network : Network

    Returns
    -------
    ndarray of int64 [hosts]

    Examples
    --------
    >>> from fabric.spec import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=2, spines=1, hosts_per_leaf=2))
    >>> [network.names[leaf] for leaf in host_leaves(network)]
    ['leaf0', 'leaf0', 'leaf1', 'leaf1']
    """
    host, switch, _ = _host_links(network)
    order = np.lexsort((switch, network.tier[switch], host))
    host, first = np.unique(host[order], return_index=True)
    leaves = np.full(network.n_hosts, -1, dtype=np.int64)
    leaves[host] = switch[order][first]
    return leaves


def host_rates_bps(network: Network) -> Int64Array:
    """Bits per second that each host can send into the fabric.

    Parameters
    ----------
    network : Network

    Returns
    -------
    ndarray of int64 [hosts]

    Examples
    --------
    >>> from fabric.spec import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=2, spines=1, hosts_per_leaf=2, ports_per_host=2))
    >>> host_rates_bps(network).tolist()
    [800000000000, 800000000000]
    """
    host, switch, rate = _host_links(network)
    scale_up = network.tier[switch] == TIER_SCALE_UP
    fabric = np.zeros(network.n_hosts, dtype=np.int64)
    np.add.at(fabric, host[~scale_up], rate[~scale_up])
    inside = np.zeros(network.n_hosts, dtype=np.int64)
    np.add.at(inside, host[scale_up], rate[scale_up])
    return np.where(fabric > 0, fabric, inside)


def _host_links(network: Network) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Host, peer and rate of every cable of a host, seen from each of its hosts."""
    a, b = network.link_a.astype(np.int64), network.link_b.astype(np.int64)
    from_a, from_b = a < network.n_hosts, b < network.n_hosts
    host = np.concatenate([a[from_a], b[from_b]])
    peer = np.concatenate([b[from_a], a[from_b]])
    return host, peer, np.concatenate([network.link_rate_bps[from_a], network.link_rate_bps[from_b]])


def spread_over_leaves(hosts: Int64Array, *, leaf: Int64Array, draws: EntryDraws, turn: int) -> Int64Array:
    """Random order of hosts in which every leaf has its turn before one has a second.

    Parameters
    ----------
    hosts : ndarray of int64 [n]
        The hosts to order.
    leaf : ndarray of int64 [hosts of the network]
        Of :func:`host_leaves`.
    draws : EntryDraws
    turn : int
        Different turns give different orders.

    Returns
    -------
    ndarray of int64 [n]
    """
    rank = rank_in_leaf(hosts, leaf=leaf, draws=draws, turn=turn)
    leaf_order = draws.bits(Stream.LEAF_ORDER, leaf[hosts], turn)
    return hosts[np.lexsort((hosts, leaf_order, rank))]


def rank_in_leaf(
    hosts: Int64Array,
    *,
    leaf: Int64Array,
    draws: EntryDraws,
    turn: int,
    group: Int64Array | None = None,
) -> Int64Array:
    """Random rank of each host among those of `hosts` that share its leaf (and its group).

    Parameters
    ----------
    hosts, leaf, draws, turn
        As in :func:`spread_over_leaves`.
    group : ndarray of int64 [n], optional
        Hosts of different groups are ranked apart.

    Returns
    -------
    ndarray of int64 [n]
    """
    groups = np.zeros(len(hosts), dtype=np.int64) if group is None else group
    at = leaf[hosts]
    order = np.lexsort((hosts, draws.bits(Stream.HOST_ORDER, hosts, turn), groups, at))
    begins = np.ones(len(hosts), dtype=np.bool_)
    begins[1:] = (np.diff(at[order]) != 0) | (np.diff(groups[order]) != 0)
    position = np.arange(len(hosts), dtype=np.int64)
    rank = np.empty(len(hosts), dtype=np.int64)
    rank[order] = position - np.maximum.accumulate(np.where(begins, position, 0))
    return rank
