"""A network from a graph of the user's own: checked records of nodes and edges.

Both ways in, a networkx graph and a node-link JSON file, come down to two lists of records, a name and
attributes each. What a node is, is its attribute `kind` ("host" or "switch"); without one, its name
decides ("host3", "gpu0" against "leaf1", "switch"), and failing that its degree: one cable makes a host.
Edges may carry `rate` or `rate_bps`, `delay` or `delay_ps`, `loss`, `bit_error_rate`, `gap` or `gap_bytes`;
what is missing comes from a default link. Every host must reach every other one through switches or
over a cable of their own, because hosts do not forward.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.link import Link
from fabric.topology.distance import UNREACHABLE, edge_distances
from fabric.topology.network import TIER_HOST, TIER_LEAF, TIER_SCALE_UP, Network
from fabric.topology.patterns import did_you_mean

__all__ = ["check_reachable", "infer_tiers", "network_from_records"]

HOST_NAMES = re.compile(r"(host|server|gpu|npu|nic|accelerator|h)[-_.]?\d*$", re.IGNORECASE)
SWITCH_NAMES = re.compile(
    r"(switch|leaf|spine|core|tor|agg|scaleup|nvswitch|sw|s|l)[-_.]?\d*$", re.IGNORECASE
)
SCALE_UP_NAMES = re.compile(r"(scaleup|nvswitch)[-_.]?\d*$", re.IGNORECASE)
FORBIDDEN_IN_NAMES = re.compile(r"[\s:#*?\[\]]|->")
LINK_FIELDS = {
    "rate": "rate",
    "rate_bps": "rate",
    "delay": "delay",
    "delay_ps": "delay",
    "loss": "loss",
    "bit_error_rate": "bit_error_rate",
    "gap": "gap",
    "gap_bytes": "gap",
}
"""Attributes of an edge that are read, and the field of `Link` that each one sets."""
HIGHEST_TIER = 8

Node = tuple[str, Mapping[str, Any]]
Edge = tuple[str, str, Mapping[str, Any]]


def network_from_records(nodes: Sequence[Node], edges: Sequence[Edge], *, link: Link) -> Network:
    """Build and check a network.

    Parameters
    ----------
    nodes : sequence of (name, attributes)
        Hosts and switches keep their order, hosts first.
    edges : sequence of (name, name, attributes)
        One cable each, in order (or in that of the attribute `link`, a number, where edges have it).
    link : Link
        What edges leave out.

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        A bad name, kind or attribute, a loop, a host without a cable, or two hosts without a path.
    """
    degrees = _degrees(nodes, edges)
    kinds = {name: _kind(name, attributes, degrees[name]) for name, attributes in nodes}
    ordered = sorted(nodes, key=lambda node: kinds[node[0]] != "host")
    numbers = {name: number for number, (name, _) in enumerate(ordered)}
    n_hosts = sum(kind == "host" for kind in kinds.values())
    for name in list(numbers)[:n_hosts]:
        if degrees[name] == 0:
            raise SpecError("topology.graph", name, "hosts with at least one edge; this one has none")
    edges = sorted(edges, key=lambda edge: int(edge[2].get("link", 0)))
    links = [_link(edge, link) for edge in edges]
    ends = [sorted((numbers[one], numbers[other])) for one, other, _ in edges]
    columns = np.array(ends, dtype=np.uint32).reshape(-1, 2)
    network = Network(
        names=tuple(numbers),
        n_hosts=n_hosts,
        tier=infer_tiers(ordered, columns, n_hosts),
        link_a=columns[:, 0],
        link_b=columns[:, 1],
        link_rate_bps=np.array([each.rate for each in links], dtype=np.int64),
        link_delay_ps=np.array([each.delay for each in links], dtype=np.int64),
        link_loss=np.array([each.loss for each in links], dtype=np.float64),
        link_bit_error_rate=np.array([each.bit_error_rate for each in links], dtype=np.float64),
        link_gap_bytes=np.array([each.gap for each in links], dtype=np.int64),
    )
    check_reachable(network)
    return network


def check_reachable(network: Network) -> None:
    """Raise a `SpecError` that names two hosts if some pair of hosts has no path.

    Raises
    ------
    fabric.errors.SpecError
        Also when there is no host at all.
    """
    if network.n_hosts == 0:
        raise SpecError("topology.graph", "no hosts", "at least one host")
    distances = edge_distances(network)
    first_host = np.unique(distances.host_edge, return_index=True)[1]
    for host in first_host:
        own = distances.links[:, distances.host_edge[host]] == 0
        reached = (distances.links[own] != UNREACHABLE).any(axis=0)
        lost = np.flatnonzero(~reached[distances.host_edge])
        between_hosts = network.link_b < network.n_hosts
        cabled = np.concatenate(
            [
                network.link_b[between_hosts & (network.link_a == host)],
                network.link_a[between_hosts & (network.link_b == host)],
                [host],
            ]
        )
        lost = np.setdiff1d(lost, cabled)
        if len(lost):
            pair = f"{network.names[host]} and {network.names[lost[0]]}"
            raise SpecError("topology.graph", pair, "a path through switches between every two hosts")


def _degrees(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, int]:
    """Edges per node, having checked names and ends."""
    degrees: dict[str, int] = {}
    for name, _ in nodes:
        if not name or FORBIDDEN_IN_NAMES.search(name):
            allowed = 'a node name without spaces and without any of :#*?[] or "->"'
            raise SpecError("topology.graph", name, allowed)
        if name in degrees:
            raise SpecError("topology.graph", name, "a different name for every node")
        degrees[name] = 0
    for one, other, _ in edges:
        if one == other:
            raise SpecError("topology.graph", f"{one}-{other}", "edges between two different nodes")
        for name in (one, other):
            if name not in degrees:
                raise SpecError("topology.graph", name, "a node of the graph" + did_you_mean(name, degrees))
            degrees[name] += 1
    return degrees


def _kind(name: str, attributes: Mapping[str, Any], degree: int) -> str:
    kind = attributes.get("kind")
    if kind is None:
        if HOST_NAMES.match(name):
            return "host"
        if SWITCH_NAMES.match(name):
            return "switch"
        return "host" if degree == 1 else "switch"
    if kind not in ("host", "switch"):
        raise SpecError(f"topology.graph.{name}.kind", kind, '"host" or "switch"')
    return str(kind)


def _link(edge: Edge, default: Link) -> Link:
    one, other, attributes = edge
    given = {LINK_FIELDS[key]: value for key, value in attributes.items() if key in LINK_FIELDS}
    try:
        return msgspec.structs.replace(default, **given) if given else default
    except SpecError as error:
        where = f"topology.graph.{one}-{other}.{error.path.rpartition('.')[2]}"
        raise SpecError(where, error.value, error.allowed) from None


def infer_tiers(nodes: Sequence[Node], ends: npt.NDArray[np.uint32], n_hosts: int) -> npt.NDArray[np.uint8]:
    """Tier of every node: its attribute `tier`, else 1 more than that of its lowest neighbour.

    Switches called "scaleup3" or "nvswitch3" are of the scale-up tier unless they say otherwise.
    """
    tier = np.full(len(nodes), HIGHEST_TIER, dtype=np.uint8)
    tier[:n_hosts] = TIER_HOST
    for level in range(TIER_LEAF, HIGHEST_TIER):
        below = tier == level - 1
        beside = np.zeros(len(nodes), dtype=np.bool_)
        beside[ends[below[ends[:, 0]], 1]] = True
        beside[ends[below[ends[:, 1]], 0]] = True
        tier[beside & (tier == HIGHEST_TIER)] = level
    for number, (name, attributes) in enumerate(nodes[n_hosts:], start=n_hosts):
        if "tier" in attributes:
            tier[number] = _tier(name, attributes["tier"])
        elif SCALE_UP_NAMES.match(name):
            tier[number] = TIER_SCALE_UP
    return tier


def _tier(name: str, value: object) -> int:
    if not isinstance(value, int) or not TIER_LEAF <= value <= 255:
        raise SpecError(f"topology.graph.{name}.tier", value, "a whole number from 1 (leaf) to 255")
    return value
