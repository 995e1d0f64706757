"""A network from a graph of the user's own: checked records of nodes and edges.

Both ways in, a networkx graph and a node-link JSON file, come down to two lists of records, a name and
attributes each. What a node is, is its attribute `kind` ("host" or "switch"); without one, its name
decides ("host3", "gpu0" against "leaf1", "switch"), and failing that its degree: one cable makes a host.
Edges may carry `rate` or `rate_bps`, `delay` or `delay_ps`, `loss`, `bit_error_rate`, `gap` or
`gap_bytes`; what is missing comes from a default link. Other attributes are errors, so that none is
misspelt unnoticed; what a file needs beside them (ends, keys) is the reader's. Every host must reach
every other one through switches or over a cable of their own, because hosts do not forward.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
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
NODE_FIELDS = ("kind", "tier")
DRAWING_FIELDS = ("pos", "weight", "label", "color")
"""What networkx itself writes into graphs and draws by; it says nothing about the network."""
HIGHEST_TIER = 8
LARGEST_LINK_NUMBER = 2**32 - 1

Node = tuple[str, Mapping[str, Any]]
Edge = tuple[str, str, Mapping[str, Any]]


def network_from_records(
    nodes: Sequence[Node], edges: Sequence[Edge], *, link: Link, path: str = "graph", name: str = "graph"
) -> Network:
    """Build and check a network.

    Parameters
    ----------
    nodes : sequence of (name, attributes)
        Hosts and switches keep their order, hosts first.
    edges : sequence of (name, name, attributes)
        One cable each, in order (or in that of the attribute `link`, a number, where edges have it).
    link : Link
        What edges leave out.
    path : str
        Where the graph stands in the scenario ("topology.file"), for errors about all of it.
    name : str
        What a node or edge is of (the file), for errors about one.

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        A bad name, kind or attribute, a loop, a host without a cable, or two hosts without a path.
    """
    degrees = _degrees(nodes, edges, path=path)
    kinds = {node[0]: _kind(node, degrees[node[0]], where=f"{name}, node {node[0]}") for node in nodes}
    ordered = sorted(nodes, key=lambda node: kinds[node[0]] != "host")
    numbers = {node: number for number, (node, _) in enumerate(ordered)}
    n_hosts = sum(kind == "host" for kind in kinds.values())
    for host in list(numbers)[:n_hosts]:
        if degrees[host] == 0:
            raise SpecError(path, host, "hosts with at least one edge; this one has none")
    edges = sorted(edges, key=lambda edge: _link_number(edge, name=name))
    links = [_link(edge, link, name=name) for edge in edges]
    ends = [sorted((numbers[one], numbers[other])) for one, other, _ in edges]
    columns = np.array(ends, dtype=np.uint32).reshape(-1, 2)
    network = Network(
        names=tuple(numbers),
        n_hosts=n_hosts,
        tier=infer_tiers(ordered, columns, n_hosts, name=name),
        link_a=columns[:, 0],
        link_b=columns[:, 1],
        link_rate_bps=np.array([each.rate for each in links], dtype=np.int64),
        link_delay_ps=np.array([each.delay for each in links], dtype=np.int64),
        link_loss=np.array([each.loss for each in links], dtype=np.float64),
        link_bit_error_rate=np.array([each.bit_error_rate for each in links], dtype=np.float64),
        link_gap_bytes=np.array([each.gap for each in links], dtype=np.int64),
    )
    check_reachable(network, path=path)
    return network


def check_reachable(network: Network, *, path: str = "graph") -> None:
    """Raise a `SpecError` that names two hosts if some pair of hosts has no path.

    Raises
    ------
    fabric.errors.SpecError
        Also when there is no host at all.
    """
    if network.n_hosts == 0:
        raise SpecError(path, Said("no hosts"), "at least one host")
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
            raise SpecError(path, pair, "a path through switches between every two hosts")


def _degrees(nodes: Sequence[Node], edges: Sequence[Edge], *, path: str) -> dict[str, int]:
    """Edges per node, having checked names and ends."""
    degrees: dict[str, int] = {}
    for name, _ in nodes:
        if not name or FORBIDDEN_IN_NAMES.search(name):
            allowed = 'a node name without spaces and without any of :#*?[] or "->"'
            raise SpecError(path, name, allowed)
        if name in degrees:
            raise SpecError(path, name, "a different name for every node")
        degrees[name] = 0
    for one, other, _ in edges:
        if one == other:
            raise SpecError(path, f"{one}-{other}", "edges between two different nodes")
        for name in (one, other):
            if name not in degrees:
                raise SpecError(path, name, "a node of the graph" + did_you_mean(name, degrees))
            degrees[name] += 1
    return degrees


def _kind(node: Node, degree: int, *, where: str) -> str:
    name, attributes = node
    _check_known(attributes, NODE_FIELDS, where=where)
    kind = attributes.get("kind")
    if kind is None:
        if HOST_NAMES.match(name):
            return "host"
        if SWITCH_NAMES.match(name):
            return "switch"
        return "host" if degree == 1 else "switch"
    if kind not in ("host", "switch"):
        raise SpecError(f"{where}, kind", kind, '"host" or "switch"')
    return str(kind)


def _check_known(attributes: Mapping[str, Any], known: Sequence[str], *, where: str) -> None:
    for key in attributes:
        if key not in known and key not in DRAWING_FIELDS:
            hint = did_you_mean(str(key), known)
            raise SpecError(where, key, f"attributes among {', '.join(known)}{hint}")


def _whole(value: object) -> int | None:
    """A whole number, also of NumPy; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _link_number(edge: Edge, *, name: str) -> int:
    one, other, attributes = edge
    number = _whole(attributes.get("link", 0))
    if number is None or not 0 <= number <= LARGEST_LINK_NUMBER:
        allowed = f"a whole number from 0 to {LARGEST_LINK_NUMBER}, by which edges are ordered"
        raise SpecError(f"{name}, edge {one}-{other}, link", attributes["link"], allowed)
    return number


def _link(edge: Edge, default: Link, *, name: str) -> Link:
    one, other, attributes = edge
    where = f"{name}, edge {one}-{other}"
    _check_known(attributes, (*LINK_FIELDS, "link"), where=where)
    given: dict[str, Any] = {}
    for key, value in attributes.items():
        field = LINK_FIELDS.get(key)
        if field in given:
            both = next(other for other in attributes if LINK_FIELDS.get(other) == field)
            raise SpecError(f"{where}, {key}", value, f"one of {both} and {key}, not both")
        if field is not None:
            given[field] = value
    try:
        return msgspec.structs.replace(default, **given) if given else default
    except SpecError as error:
        field = error.path.rpartition(".")[2]
        raise SpecError(f"{where}, {field}", error.value, error.allowed) from None


def infer_tiers(
    nodes: Sequence[Node], ends: npt.NDArray[np.uint32], n_hosts: int, *, name: str = "graph"
) -> npt.NDArray[np.uint8]:
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
    for number, (node, attributes) in enumerate(nodes):
        if "tier" in attributes:
            where = f"{name}, node {node}, tier"
            tier[number] = _tier(attributes["tier"], is_host=number < n_hosts, where=where)
        elif number >= n_hosts and SCALE_UP_NAMES.match(node):
            tier[number] = TIER_SCALE_UP
    return tier


def _tier(value: object, *, is_host: bool, where: str) -> int:
    tier = _whole(value)
    if is_host and tier != TIER_HOST:
        raise SpecError(where, value, f"{TIER_HOST}, or no tier: this node is a host")
    if tier is None or (not is_host and not TIER_LEAF <= tier <= 255):
        raise SpecError(where, value, "a whole number from 1 (leaf) to 255")
    return tier
