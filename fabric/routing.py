"""Equal-cost shortest-path next hops of every switch, and the exact path of a flow.

The cost of a path is its number of links. Hosts never forward. Destinations are grouped by edge (hosts
attached to the same set of switches), and at each switch the ports whose peer is one link closer to an
edge form its next-hop group; edges with the same group share it, so a leaf of a fat tree stores its
uplinks once. A host with several ports is reached over any of its switches, whichever is closest.
Parallel cables are next hops each. How routes change when cables fail: `fabric.reroute`. Weighted by rate, a
port stands in its group as often as its link is faster than the slowest, so a hash, a draw or a turn
finds it that much more often (Zhou et al., "WCMP", EuroSys 2014).

The tables have the layout that the engines read (`docs/design.md`, section 9). `trace_path` walks them
as a switch does, so its paths are those that frames take (section 5.1): `port = group[hash * count >> 32]`
with `hash = fmix32(path_hash ^ node_salt)`, or `group[hash % count]` with MurmurHash3 of addresses and ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.keyed_hash import fmix32, murmur3
from fabric.lowered import ROUTE_DIRECT
from fabric.topology.distance import UNREACHABLE, EdgeDistances, edge_distances
from fabric.topology.network import TIER_SCALE_UP, Network

__all__ = [
    "LARGEST_GROUP_POOL",
    "NO_PORT",
    "RouteTables",
    "Routes",
    "closest_ports",
    "distinct_groups",
    "find_routes",
    "hashed_words",
    "trace_path",
    "weighted_group",
]

NO_PORT = -1
"""Padding after the last link of a path."""
MOST_PORTS = 2**16
"""Ports of one node: local port numbers have 16 bits."""
MOST_SHARES = 64
"""Weights finer than 1/64 of the fastest port of a group are rounded: tables of switches are finite."""
LARGEST_GROUP_POOL = 2**16 - 1
"""Next-hop ports that one switch can store: offsets and counts of groups have 16 bits."""

UInt32Array = npt.NDArray[np.uint32]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Routes:
    """Next-hop tables of a network.

    Attributes
    ----------
    host_edge : numpy.ndarray of uint32 [hosts]
        Destination edge of every host.
    n_edges : int
    route_base : numpy.ndarray of int64 [nodes]
        Where a switch's row of `n_edges` entries starts in `route_entry`; -1 for hosts.
    route_entry : numpy.ndarray of uint32 [switches * edges]
        `count << 16 | offset` of the group in the switch's pool; `ROUTE_DIRECT` if the hosts of the edge
        hang on this switch; 0 if there is no path.
    route_ports_base : numpy.ndarray of int64 [nodes]
        Where a switch's pool starts in `route_ports`; -1 for hosts.
    route_ports : numpy.ndarray of uint16
        Local port numbers, within a group in the order that was asked for.
    distances : EdgeDistances
        What the tables were made from.
    """

    host_edge: UInt32Array
    n_edges: int
    route_base: Int64Array
    route_entry: UInt32Array
    route_ports_base: Int64Array
    route_ports: npt.NDArray[np.uint16]
    distances: EdgeDistances


class RouteTables(Protocol):
    """What `trace_path` reads; `Lowered` is one."""

    @property
    def n_hosts(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def node_port_base(self) -> UInt32Array: ...
    @property
    def node_salt(self) -> UInt32Array: ...
    @property
    def host_address(self) -> UInt32Array: ...
    @property
    def flow_ports(self) -> UInt32Array: ...
    @property
    def port_node(self) -> UInt32Array: ...
    @property
    def port_peer(self) -> UInt32Array: ...
    @property
    def host_edge(self) -> UInt32Array: ...
    @property
    def route_base(self) -> Int64Array: ...
    @property
    def route_entry(self) -> UInt32Array: ...
    @property
    def route_ports_base(self) -> Int64Array: ...
    @property
    def route_ports(self) -> npt.NDArray[np.uint16]: ...


def find_routes(
    network: Network,
    *,
    weights: Literal["equal", "rate"] = "equal",
    order: Literal["ports", "neighbours_descending"] = "ports",
) -> Routes:
    """Build the next-hop tables of all switches.

    Parameters
    ----------
    network : Network
    weights : {"equal", "rate"}
        Whether a port stands in a group once, or in proportion to its rate: its rate over the
        greatest common divisor of the group's, or if a port would then stand there more than 64
        times, over 1/64 of the highest, rounded, at least once.
    order : {"ports", "neighbours_descending"}
        Of the ports of a group: ascending, or by the number of the neighbour, highest first.

    Returns
    -------
    Routes

    Raises
    ------
    fabric.errors.SpecError
        A node has more than 65,536 ports, or the groups of a switch hold more than 65,535 together.

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> routes = find_routes(build_network(LeafSpine(leaves=2, spines=4, hosts_per_leaf=4)))
    >>> routes.route_ports[:4].tolist()
    [4, 5, 6, 7]
    """
    _check_degrees(network)
    distances = edge_distances(network)
    entries = np.where(distances.links == 0, np.uint32(ROUTE_DIRECT), np.uint32(0))
    pools: list[npt.NDArray[np.uint16]] = []
    for row in range(network.n_switches):
        pools.append(
            _switch_groups(
                network,
                distances,
                row,
                entries[row],
                weighted=weights == "rate",
                descending=order == "neighbours_descending",
            )
        )
    hosts = np.full(network.n_hosts, -1, dtype=np.int64)
    sizes = np.array([0, *(len(pool) for pool in pools)], dtype=np.int64)
    starts = np.arange(network.n_switches, dtype=np.int64) * distances.n_edges
    return Routes(
        host_edge=distances.host_edge,
        n_edges=distances.n_edges,
        route_base=np.concatenate([hosts, starts]),
        route_entry=entries.ravel(),
        route_ports_base=np.concatenate([hosts, np.cumsum(sizes)[:-1]]),
        route_ports=np.concatenate([np.empty(0, dtype=np.uint16), *pools]),
        distances=distances,
    )


def _check_degrees(network: Network) -> None:
    degrees = np.diff(network.node_port_base.astype(np.int64))
    if degrees.max(initial=0) > MOST_PORTS:
        node = int(np.argmax(degrees))
        found = f"{network.names[node]}: {degrees[node]} ports"
        raise SpecError("topology", found, f"at most {MOST_PORTS} ports at a node")


def _switch_groups(
    network: Network,
    distances: EdgeDistances,
    row: int,
    entries: UInt32Array,
    *,
    weighted: bool,
    descending: bool,
) -> npt.NDArray[np.uint16]:
    """Write the entries of one switch and return its pool of next-hop ports.

    Groups stand in the pool in the order of the first edge that uses them.
    """
    node = network.n_hosts + row
    base, end = int(network.node_port_base[node]), int(network.node_port_base[node + 1])
    peers = network.port_node[network.port_peer[base:end]].astype(np.int64) - network.n_hosts
    ports = np.flatnonzero(peers >= 0)
    if descending:
        ports = ports[np.argsort(-network.node_ids[network.n_hosts + peers[ports]], kind="stable")]
    edges = np.flatnonzero(distances.links[row] > 0)
    if len(ports) == 0 or len(edges) == 0:
        return np.empty(0, dtype=np.uint16)
    closer = distances.links[np.ix_(peers[ports], edges)] == distances.links[row, edges] - 1
    groups, group_of_edge = distinct_groups(closer, ports)
    if weighted:
        rate_bps = network.link_rate_bps[network.port_link[base:end]]
        groups = [weighted_group(group, rate_bps[group]) for group in groups]
    counts = np.array([len(group) for group in groups], dtype=np.int64)
    if counts.sum() > LARGEST_GROUP_POOL:
        allowed = f"next-hop groups of at most {LARGEST_GROUP_POOL} ports together at one switch"
        raise SpecError("topology", f"{network.names[node]}: {counts.sum()} ports", allowed)
    offsets = np.cumsum(counts) - counts
    entries[edges] = (counts << 16 | offsets)[group_of_edge]
    return np.concatenate(groups).astype(np.uint16)


def distinct_groups(closer: npt.NDArray[np.bool_], ports: Int64Array) -> tuple[list[Int64Array], Int64Array]:
    """The different groups of next hops of a switch, in order of the first edge that uses each.

    Parameters
    ----------
    closer : numpy.ndarray of bool [ports, edges]
        Whether a port leads towards an edge.
    ports : numpy.ndarray of int64 [ports]
        Their local numbers.

    Returns
    -------
    groups : list of numpy.ndarray of int64
        Local numbers of the ports of each group.
    group_of_edge : numpy.ndarray of int64 [edges]
    """
    packed = np.ascontiguousarray(np.packbits(closer, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return [ports[closer[:, edge]] for edge in first[order]], np.asarray(rank[inverse.ravel()])


def weighted_group(ports: Int64Array, rate_bps: Int64Array) -> Int64Array:
    """A group in which each port stands in proportion to its rate."""
    shares = rate_bps // np.gcd.reduce(rate_bps)
    if shares.max(initial=0) > MOST_SHARES:
        shares = np.maximum(1, np.rint(rate_bps / rate_bps.max() * MOST_SHARES)).astype(np.int64)
    return np.repeat(ports, shares)


def closest_ports(
    network: Network, distances: EdgeDistances, *, source: UInt32Array, destination: UInt32Array
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Ports of a source host that begin a shortest path to a destination host.

    Of equally short paths those over a scale-up network are preferred, whose links are there for it.

    Parameters
    ----------
    network : Network
    distances : EdgeDistances
    source, destination : numpy.ndarray of uint32 [pairs]
        Host numbers.

    Returns
    -------
    ports : numpy.ndarray of int64 [pairs, most ports of a host]
        Global numbers of the source's ports, -1 where it has fewer.
    closest : numpy.ndarray of bool, the same shape
        Whether a (preferred) shortest path starts there; a row without any True is a pair without a path.
    """
    base = network.node_port_base[: network.n_hosts + 1].astype(np.int64)
    degree = np.diff(base)
    column = np.arange(int(degree.max(initial=0)))
    ports = np.where(column < degree[source, None], base[source, None] + column, NO_PORT)
    peers = network.port_node[network.port_peer[np.maximum(ports, 0)]].astype(np.int64)
    is_switch = (ports >= 0) & (peers >= network.n_hosts)
    row = np.where(is_switch, peers - network.n_hosts, 0)
    far = np.int64(np.iinfo(np.int64).max)
    links = np.full(ports.shape, far, dtype=np.int64)
    if network.n_switches:
        from_switch = distances.links[row, distances.host_edge[destination][:, None]].astype(np.int64)
        links = np.where(is_switch & (from_switch != UNREACHABLE), from_switch + 2, far)
    links[(ports >= 0) & (peers == destination[:, None])] = 1
    closest = (links != far) & (links == links.min(axis=1, keepdims=True, initial=far))
    scale_up = closest & (network.tier[peers] == TIER_SCALE_UP)
    return ports, np.where(scale_up.any(axis=1, keepdims=True), scale_up, closest)


def hashed_words(
    tables: RouteTables, *, source: npt.ArrayLike, destination: npt.ArrayLike, flow: npt.ArrayLike
) -> UInt32Array | None:
    """What switches hash of data frames, if they hash addresses and ports.

    Parameters
    ----------
    tables : RouteTables
    source, destination : array_like of integers [frames]
        Hosts.
    flow : array_like of integers [frames]
        Flows, whose ports they have.

    Returns
    -------
    numpy.ndarray of uint32 [frames, 3], or None
        Source address, destination address, and `source port | destination port << 16`.
    """
    address = tables.host_address
    if not len(address):
        return None
    columns = (
        address[np.asarray(source)],
        address[np.asarray(destination)],
        tables.flow_ports[np.asarray(flow)],
    )
    return np.stack(columns, axis=1)


def trace_path(
    tables: RouteTables,
    *,
    first_port: npt.ArrayLike,
    destination: npt.ArrayLike,
    path_hash: npt.ArrayLike,
    words: npt.NDArray[np.uint32] | None = None,
) -> Int64Array:
    """The ports that frames leave by on their way, for many flows at once.

    Parameters
    ----------
    tables : RouteTables
        A `Lowered`, or anything with its routing columns.
    first_port : array_like of integers [flows]
        Global number of the host port that each flow sends from.
    destination : array_like of integers [flows]
        Destination hosts.
    path_hash : array_like of integers [flows]
        32-bit path hashes (`Lowered.flow_hash`).
    words : numpy.ndarray of uint32 [flows, 3], optional
        What switches hash that hash addresses and ports (`hashed_words`); needed where there are some.

    Returns
    -------
    numpy.ndarray of int64 [flows, longest path]
        Global port numbers from `first_port` to the last switch's port, then -1. A path that ends
        early (no route) ends at the port before the switch that has none.

    Examples
    --------
    Ports of the paths of all flows of a scenario, and how many flows cross each port::

        paths = trace_path(lowered, first_port=lowered.flow_port,
                           destination=lowered.flow_destination, path_hash=lowered.flow_hash)
        flows_per_port = numpy.bincount(paths[paths >= 0], minlength=lowered.n_ports)
    """
    port = np.array(first_port, dtype=np.int64)
    target = np.asarray(destination, dtype=np.int64)
    hashes = np.asarray(path_hash, dtype=np.uint32)
    peers_of_host = _host_peers(tables)
    columns = [port]
    active = np.arange(len(port))
    while True:
        node = tables.port_node[tables.port_peer[port[active]]].astype(np.int64)
        active = active[node >= tables.n_hosts]
        if len(active) == 0:
            return np.stack(columns, axis=1)
        node = node[node >= tables.n_hosts]
        hashed = fmix32(hashes[active] ^ tables.node_salt[node]).astype(np.uint64)
        hashed_words = None
        if words is not None:
            hashed_words = murmur3(words[active], seed=tables.node_salt[node]).astype(np.int64)
        port = np.full(len(target), NO_PORT, dtype=np.int64)
        port[active] = _next_ports(tables, peers_of_host, node, target[active], hashed, hashed_words)
        active = active[port[active] != NO_PORT]
        if len(active) == 0:
            return np.stack(columns, axis=1)
        columns.append(port)


def _next_ports(
    tables: RouteTables,
    peers_of_host: Int64Array,
    node: Int64Array,
    destination: Int64Array,
    hashed: npt.NDArray[np.uint64],
    hashed_words: Int64Array | None,
) -> Int64Array:
    """Egress ports at switches `node`, -1 where there is no route."""
    entry = tables.route_entry[tables.route_base[node] + tables.host_edge[destination]].astype(np.int64)
    direct = entry == ROUTE_DIRECT
    candidates = peers_of_host[destination]
    here = (candidates >= 0) & (tables.port_node[np.maximum(candidates, 0)] == node[:, None])
    count = np.where(direct, here.sum(axis=1), entry >> 16)
    index = ((hashed * count.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    chosen = np.argmax(here & (np.cumsum(here, axis=1) == index[:, None] + 1), axis=1)
    ports = np.where(direct, candidates[np.arange(len(node)), chosen], NO_PORT)
    routed = ~direct & (count > 0)
    if hashed_words is not None:
        index = np.where(routed, hashed_words % np.maximum(count, 1), index)
    slot = tables.route_ports_base[node] + (entry & 0xFFFF) + index
    ports[routed] = tables.node_port_base[node[routed]] + tables.route_ports[slot[routed]].astype(np.int64)
    return ports


def _host_peers(tables: RouteTables) -> Int64Array:
    """Ports that face each host, ascending, padded with -1: int64 [hosts, most ports of a host]."""
    base = tables.node_port_base[: tables.n_hosts + 1].astype(np.int64)
    degree = np.diff(base)
    peers = np.full((tables.n_hosts, max(1, int(degree.max(initial=0)))), NO_PORT, dtype=np.int64)
    host = np.repeat(np.arange(tables.n_hosts), degree)
    facing = tables.port_peer[: int(base[-1])].astype(np.int64)
    order = np.lexsort((facing, host))
    peers[host, np.arange(len(host)) - base[host]] = facing[order]
    return peers
