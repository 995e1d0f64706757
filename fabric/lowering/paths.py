"""Columns of path choice: how each switch chooses, lifetimes, and next hops that are given.

A pin names a switch and its neighbour; here it becomes a local port under a key, the flow or the
destination that it is about, ascending for each switch. A pair of hosts becomes one pin for each of its
flows.

Where switches hash addresses and ports, host n has the address 11.(n div 256).(n mod 256).1, and the k-th
flow from one host to another the source port 10000 + k, as in the HPCC simulator (github.com/alibaba-edu/
High-Precision-Congestion-Control, `simulation/scratch/third.cc`). What answers a frame has both swapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fabric.errors import SpecError
from fabric.lowering.flows import occurrence
from fabric.spec.decode import did_you_mean
from fabric.spec.routing import Pin, Routing
from fabric.topology.network import Network
from fabric.workload.flow_table import FlowTable

__all__ = ["PIN_FLOW", "path_columns"]

NO_SOCKETS = {"host_address": np.zeros(0, dtype=np.uint32), "flow_ports": np.zeros(0, dtype=np.uint32)}
BASE_ADDRESS = 0x0B000001
FIRST_SOURCE_PORT = 10000
CHOICE = {"ecmp": 0, "spray_random": 1, "spray_round_robin": 2, "adaptive": 3, "flowlet": 4}
CHOICE_TUPLE = 5
"""ECMP by addresses and ports."""
PIN_FLOW = 1 << 32
"""Added to a flow in the key of a pin; a destination stands for itself."""


def path_columns(routing: Routing, *, network: Network, flows: FlowTable) -> dict[str, Any]:
    """The choice of every switch, and all pins.

    Parameters
    ----------
    routing : Routing
    network : Network
    flows : FlowTable

    Returns
    -------
    dict
        `node_choice`, `flowlet_gap_ps`, `ttl`, `pin_base`, `pin_key`, `pin_port`, `host_address` and
        `flow_ports` (empty where nothing hashes them), and, where something does, `node_salt`.

    Raises
    ------
    fabric.errors.SpecError
        A pin names what the network or the traffic does not have, or contradicts another.
    """
    hashes_sockets = routing.hash == "murmur3"
    chosen = CHOICE_TUPLE if hashes_sockets else CHOICE[routing.choice]
    choice = np.full(network.n_nodes, chosen, dtype=np.uint8)
    choice[: network.n_hosts] = 0
    pinned: dict[tuple[int, int], int] = {}
    for index, pin in enumerate(routing.pins):
        path = f"routing.pins[{index}]"
        node, local = _next_hop(pin, network, path)
        for key in _keys(pin, network, flows, path):
            if pinned.setdefault((node, key), local) != local:
                raise SpecError(f"{path}.next", pin.next, f"one next hop for the same frames at {pin.at}")
    entries = sorted(pinned.items())
    counts = np.bincount([node for (node, _), _ in entries], minlength=network.n_nodes)
    return {
        "node_choice": choice,
        "flowlet_gap_ps": int(routing.flowlet_gap),
        "ttl": routing.ttl or 0,
        "pin_base": np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        "pin_key": np.array([key for (_, key), _ in entries], dtype=np.uint64),
        "pin_port": np.array([local for _, local in entries], dtype=np.uint16),
        **(_socket_columns(routing, network, flows) if hashes_sockets else NO_SOCKETS),
    }


def _socket_columns(routing: Routing, network: Network, flows: FlowTable) -> dict[str, Any]:
    ids = network.node_ids
    host = ids[: network.n_hosts]
    pair = (flows.source.astype(np.uint64) << np.uint64(32)) | flows.destination
    source_port = (FIRST_SOURCE_PORT + occurrence(pair)) & 0xFFFF
    return {
        "host_address": (BASE_ADDRESS + (host // 256 << 16) + (host % 256 << 8)).astype(np.uint32),
        "flow_ports": (source_port | routing.udp_port << 16).astype(np.uint32),
        "node_salt": ids.astype(np.uint32),
    }


def _next_hop(pin: Pin, network: Network, path: str) -> tuple[int, int]:
    """The switch of a pin, and its local port to the neighbour."""
    node = _node(pin.at, network, f"{path}.at", network.names[network.n_hosts :], "a switch")
    base, end = int(network.node_port_base[node]), int(network.node_port_base[node + 1])
    neighbours = [network.names[n] for n in network.port_node[network.port_peer[base:end]].tolist()]
    ports = [local for local, name in enumerate(neighbours) if name == pin.next]
    if not ports:
        _node(pin.next, network, f"{path}.next", list(dict.fromkeys(neighbours)), f"a neighbour of {pin.at}")
    if pin.cable >= len(ports):
        raise SpecError(
            f"{path}.cable", pin.cable, f"below the number of cables to {pin.next} ({len(ports)})"
        )
    return node, ports[pin.cable]


def _keys(pin: Pin, network: Network, flows: FlowTable, path: str) -> Iterator[int]:
    """What the pin is about: a destination, or each of some flows."""
    ends_at = network.names.index(pin.next)
    hosts = network.names[: network.n_hosts]
    if pin.flow is not None:
        known = [name for name in flows.names or () if name]
        if pin.flow not in known:
            raise SpecError(f"{path}.flow", pin.flow, f"the name of a flow{did_you_mean(pin.flow, known)}")
        number = (flows.names or ()).index(pin.flow)
        destination, chosen = int(flows.destination[number]), [PIN_FLOW + number]
    else:
        assert pin.destination is not None
        destination = _node(pin.destination, network, f"{path}.destination", hosts, "a host")
        chosen = [destination]
        if pin.source is not None:
            source = _node(pin.source, network, f"{path}.source", hosts, "a host")
            same = (flows.source == source) & (flows.destination == destination)
            chosen = (PIN_FLOW + np.flatnonzero(same)).tolist()
    if ends_at < network.n_hosts and ends_at != destination:
        raise SpecError(f"{path}.next", pin.next, "a switch, or the destination: hosts do not forward")
    yield from chosen


def _node(name: str, network: Network, path: str, known: Any, what: str) -> int:
    """The number of a node by its name."""
    if name not in known:
        shown = ", ".join(f'"{each}"' for each in list(known)[:8])
        raise SpecError(path, name, f"the name of {what}: {shown}{did_you_mean(name, known)}")
    return network.names.index(name)
