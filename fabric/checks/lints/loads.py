"""Lints of load: uplinks with what the hosts below send, and links between switches in the long run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fabric.analysis.deadlock import RouteSet
from fabric.checks.lints.lint import Lint
from fabric.spec import Poisson, Scenario
from fabric.topology import Network
from fabric.units import Rate
from fabric.workload import FlowTable

__all__ = ["LARGEST_LOAD", "even_load_bytes", "load_lints"]

LARGEST_LOAD = 0.7
"""Long-run load of a link beyond which its queue is long whatever is done about bursts."""
PS_PER_SECOND = 10**12
BITS_PER_BYTE = 8

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]


def load_lints(scenario: Scenario, routes: RouteSet, flows: FlowTable) -> Iterator[Lint]:
    network = routes.network
    crossing = np.zeros(network.n_nodes)
    hosts = np.unique(flows.source)
    rate = _host_rates_bps(network)
    sent = np.bincount(flows.source, weights=flows.size_bytes, minlength=network.n_hosts)
    away = routes.host_edge[flows.source] != routes.host_edge[flows.destination]
    left = np.bincount(flows.source[away], weights=flows.size_bytes[away], minlength=network.n_hosts)
    base = network.node_port_base[hosts].astype(np.int64)
    single = np.diff(network.node_port_base.astype(np.int64))[hosts] == 1
    hosts, base = hosts[single], base[single]
    leaf = network.port_node[network.port_peer[base]]
    np.add.at(crossing, leaf, rate[hosts] * left[hosts] / np.maximum(sent[hosts], 1))
    uplinks = np.zeros(network.n_nodes)
    owner = network.port_node[routes.fabric_ports]
    rises = network.tier[owner] < network.tier[network.port_node[network.port_peer[routes.fabric_ports]]]
    speeds = network.link_rate_bps[network.port_link[routes.fabric_ports]]
    np.add.at(uplinks, owner[rises], speeds[rises].astype(np.float64))
    ratio = np.divide(crossing, uplinks, out=np.zeros_like(crossing), where=uplinks > 0)
    if ratio.max(initial=0) > 1 + 1e-9:
        node = int(np.argmax(ratio))
        yield Lint(
            "warning",
            "topology",
            f"hosts of {network.names[node]} can send {Rate(int(crossing[node]))} of this traffic "
            f"beyond it, over "
            f"uplinks of {Rate(int(uplinks[node]))} ({ratio[node]:.2f}:1): the load exceeds the "
            f"oversubscription",
        )
    yield from _long_run_lints(scenario, routes, flows)


def _host_rates_bps(network: Network) -> Float64Array:
    rate = network.link_rate_bps[network.port_link].astype(np.float64)
    total = np.bincount(network.port_node, weights=rate, minlength=network.n_nodes)
    return total.astype(np.float64)


def _long_run_lints(scenario: Scenario, routes: RouteSet, flows: FlowTable) -> Iterator[Lint]:
    entries = [entry is not None and isinstance(scenario.traffic[entry], Poisson) for entry in flows.entries]
    poisson = np.array(entries, dtype=bool)[flows.pattern]
    span_ps = int(np.ptp(flows.start_ps[poisson])) if poisson.any() else 0
    if span_ps == 0:
        return
    demand = np.zeros(routes.links.shape)
    network = routes.network
    row = network.port_node[network.port_peer[network.node_port_base[flows.source[poisson]]]]
    inside = row >= network.n_hosts
    rows = row[inside].astype(np.int64) - network.n_hosts
    np.add.at(
        demand,
        (rows, routes.host_edge[flows.destination[poisson][inside]]),
        flows.size_bytes[poisson][inside],
    )
    load = even_load_bytes(routes, demand) * BITS_PER_BYTE * PS_PER_SECOND / span_ps
    load /= network.link_rate_bps[network.port_link]
    port = int(np.argmax(load))
    if load[port] > LARGEST_LOAD:
        yield Lint(
            "warning",
            "traffic",
            f"long-run load of {network.port_arrow(port)} is {100 * load[port]:.3g} %, over "
            f"{100 * LARGEST_LOAD:g} %, if equal paths share it evenly: queues are long, and a "
            f"failure overloads it",
        )


def even_load_bytes(routes: RouteSet, demand: Float64Array) -> Float64Array:
    """Bytes on every port when each switch splits what goes to an edge evenly over its next hops.

    Parameters
    ----------
    routes : RouteSet
        Of shortest paths.
    demand : numpy.ndarray of float64 [switches, edges]
        Bytes that enter at each switch for each edge.

    Returns
    -------
    numpy.ndarray of float64 [ports]
        Ports to hosts, and from them, have none.
    """
    passing = np.where(routes.links >= 0, demand, 0.0)
    load = np.zeros(routes.network.n_ports)
    for distance in range(int(routes.links.max(initial=0)), 0, -1):
        at = np.where(routes.links == distance, passing, 0.0)
        for row in np.flatnonzero(at.any(axis=1)).tolist():
            hops = routes.next_hops(row)
            share = hops * (at[row] / np.maximum(hops.sum(axis=0), 1))
            load[routes.switch_ports[row]] += share.sum(axis=1)
            np.add.at(passing, routes.peers(routes.switch_ports[row]), share)
    return load
