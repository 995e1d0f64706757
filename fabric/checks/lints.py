"""Lints: settings that run, and that a network engineer would ask about.

Each compares a setting with a bound that the network and the traffic give: headroom with what arrives after
PAUSE; the ECN threshold with that of PFC, which should fire later; a dynamic threshold with what is left of
it when all ports are busy; quanta with how often PAUSE is repeated; RED with the marking that N flows of
DCQCN need at rest (`fabric.analysis.dcqcn_fluid`); uplinks with what the hosts below send through them; the
long-run load of links between switches with 70 %, above which queues are long for any arrivals that are not
paced; the class of control frames with the loss that it permits.

Long-run load is that of Poisson traffic, whose rate is stated, spread evenly over equal paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.analysis.dcqcn_fluid import DcqcnFluid, most_flows_at_rest
from fabric.analysis.deadlock import RouteSet, find_route_set
from fabric.analysis.pfc import dynamic_threshold_bytes
from fabric.lowered import Lowered
from fabric.lowering.buffers import auto_headroom_bytes, waiting_pfc_frames
from fabric.spec import Poisson, Scenario
from fabric.topology import Network
from fabric.units import Duration, Rate, Size
from fabric.workload import FlowTable

__all__ = ["LARGEST_LOAD", "Lint", "lints"]

LARGEST_LOAD = 0.7
"""Long-run load of a link beyond which its queue is long whatever is done about bursts."""
Q16 = 1 << 16
PS_PER_SECOND = 10**12
BITS_PER_BYTE = 8
DCQCN = (1, 2)
"""Numbers of its two forms in `Lowered.transports`."""

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lint:
    """Something to look at: "warning" what is likely wrong, "note" what one should know.

    Attributes
    ----------
    level : {"warning", "note"}
    path : str
        Where the setting stands in the scenario.
    text : str
        What is the case, with the figures, and what to do.
    """

    level: Literal["warning", "note"]
    path: str
    text: str


def lints(scenario: Scenario, *, network: Network, flows: FlowTable, lowered: Lowered) -> list[Lint]:
    """Judge the settings of a scenario.

    Parameters
    ----------
    scenario : Scenario
    network, flows, lowered
        What it makes.

    Returns
    -------
    list of Lint
    """
    found = [*_class_lints(scenario, network, lowered), *_dcqcn_lints(scenario, network, lowered)]
    found += [*_control_lints(scenario, lowered), *_pause_lints(scenario, network, lowered)]
    if network.n_switches:
        routes = find_route_set(network, source=flows.source, destination=flows.destination)
        found += _load_lints(scenario, routes, flows)
    return found


def _pause_lints(scenario: Scenario, network: Network, lowered: Lowered) -> Iterator[Lint]:
    """Ports at which a PAUSE can run out before it is repeated: the one at which it does so first."""
    short = np.flatnonzero(lowered.port_pause_holds == 0)
    if len(short):
        port = short[np.argmin(lowered.port_pause_ps[short])]
        again = (
            f"repeated every {Duration(lowered.pfc_refresh_ps)}"
            if lowered.pfc_refresh_ps
            else "never repeated"
        )
        yield Lint(
            "warning",
            "switch.pfc.refresh",
            f"a PAUSE for {network.port_arrow(int(port))} holds {Duration(int(lowered.port_pause_ps[port]))} "
            f"and is {again}: where an ingress wants longer it runs out, and lossless classes can drop",
        )


def _class_lints(scenario: Scenario, network: Network, lowered: Lowered) -> Iterator[Lint]:
    """Headroom, ECN against PFC, and starving thresholds: the worst port of each class."""
    ports = np.flatnonzero(network.port_node >= network.n_hosts)
    rows = lowered.port_profile.reshape(-1, lowered.n_classes)
    frame = _largest_frame_bytes(lowered)
    for number, each in enumerate(scenario.switch.classes):
        if each.pfc is False:
            continue
        where = f"switch.classes[{number}].pfc" if each.pfc is not True else "switch.pfc"
        profile = lowered.profiles[rows[ports, number]]
        short = _headroom_bounds(scenario, network, lowered, ports, frame) - profile["headroom_bytes"]
        if short.max(initial=0) > 0:
            k = int(np.argmax(short))
            have = int(profile["headroom_bytes"][k])
            yield Lint(
                "warning",
                f"{where}.headroom",
                f"{Size(have)} at {network.port_arrow(int(network.port_peer[ports[k]]))} of class "
                f"{each.name} is "
                f"below the bound of {Size(have + int(short[k]))}: a lossless class can drop; "
                f'"auto" is the bound',
            )
        yield from _threshold_lints(network, lowered, ports, profile, each.name, where, frame)


def _threshold_lints(
    network: Network,
    lowered: Lowered,
    ports: Int64Array,
    profile: npt.NDArray[np.void],
    name: str,
    where: str,
    frame: int,
) -> Iterator[Lint]:
    node = network.port_node[ports]
    shared = lowered.node_shared_bytes[node]
    alpha = profile["alpha_q16"] / Q16
    alone = np.where(profile["alpha_q16"] > 0, alpha * shared / (1 + alpha), profile["limit_bytes"])
    late = (profile["ecn_mode"] > 0) & (profile["ecn_kmin_bytes"] >= alone)
    if late.any():
        k = int(np.argmax(late))
        yield Lint(
            "warning",
            "switch.ecn.kmin",
            f"{Size(int(profile['ecn_kmin_bytes'][k]))} is not below the PFC threshold of class {name} at "
            f"{network.names[node[k]]} ({Size(int(alone[k]))} of one busy ingress): PFC pauses "
            f"before ECN marks",
        )
    degree = np.diff(network.node_port_base.astype(np.int64))[node]
    for k in np.flatnonzero(profile["alpha_q16"] > 0).tolist():
        busy, _ = dynamic_threshold_bytes(float(alpha[k]), queues=int(degree[k]), buffer_bytes=int(shared[k]))
        needed = int(profile["xon_offset_bytes"][k]) + frame
        if busy < needed:
            yield Lint(
                "warning",
                f"{where}.alpha",
                f"{alpha[k]:g} leaves an ingress of class {name} {Size(int(busy))} when all "
                f"{degree[k]} ports of "
                f"{network.names[node[k]]} are busy, less than one frame and the way back to XON "
                f"({Size(needed)}): "
                "it starves; raise alpha or the buffer",
            )
            return


def _largest_frame_bytes(lowered: Lowered) -> int:
    return int(max(lowered.transports["frame_bytes"].max(), lowered.transports["control_bytes"].max()))


def _headroom_bounds(
    scenario: Scenario, network: Network, lowered: Lowered, ports: Int64Array, frame: int
) -> Int64Array:
    """The bound of every port, worked out once for each kind."""
    peer = network.port_peer[ports]
    kinds, kind = np.unique(
        np.stack(
            [
                lowered.port_rate_bps[ports],
                lowered.port_delay_ps[ports] + lowered.port_delay_ps[peer],
                lowered.node_pfc_response_ps[network.port_node[peer]],
                lowered.port_gap_bytes[ports].astype(np.int64),
            ],
            axis=1,
        ),
        axis=0,
        return_inverse=True,
    )
    bounds = [
        auto_headroom_bytes(
            rate_bps,
            round_trip_ps=round_trip_ps,
            response_ps=response_ps,
            gap_bytes=gap_bytes,
            largest_frame_bytes=frame,
            waiting_pfc_frames=waiting_pfc_frames(scenario.switch),
            pfc_frame_bytes=lowered.pfc_frame_bytes,
        )
        for rate_bps, round_trip_ps, response_ps, gap_bytes in kinds.tolist()
    ]
    return np.array(bounds, dtype=np.int64)[kind.ravel()]


def _dcqcn_lints(scenario: Scenario, network: Network, lowered: Lowered) -> Iterator[Lint]:
    """RED has a queue at rest for so many flows of DCQCN; more of them meet at the last link of a host."""
    last = network.port_peer[network.node_port_base[: network.n_hosts]]
    for number, row in enumerate(lowered.transports):
        if int(row["congestion"]) not in DCQCN or row["feedback"] != 1:
            continue
        mine = lowered.flow_transport == number
        fan_in = np.bincount(lowered.flow_destination[mine], minlength=network.n_hosts)
        host = int(np.argmax(fan_in))
        flow = int(np.flatnonzero(mine & (lowered.flow_destination == host))[0]) if fan_in[host] else -1
        if flow < 0 or network.port_node[last[host]] < network.n_hosts:
            continue
        each = int(lowered.port_profile.reshape(-1, lowered.n_classes)[last[host], lowered.flow_class[flow]])
        profile = lowered.profiles[each]
        if not profile["ecn_mode"]:
            continue
        pmax, rate_bps = float(profile["ecn_pmax"]), int(lowered.port_rate_bps[last[host]])
        most = most_flows_at_rest(_fluid(row), link_bps=rate_bps, pmax=pmax)
        if fan_in[host] > most:
            yield Lint(
                "warning",
                "switch.ecn.pmax",
                f"with {pmax:g} DCQCN has a fixed point for at most {most} flows on {Rate(rate_bps)}, and "
                f"{fan_in[host]} go to {network.names[host]}: their queue swings about kmax; raise pmax",
            )


def _fluid(row: np.void) -> DcqcnFluid:
    def seconds(name: str) -> float:
        return max(int(row[name]), 1) / PS_PER_SECOND

    return DcqcnFluid(
        cnp_interval_s=seconds("cnp_interval_ps"),
        alpha_period_s=seconds("alpha_period_ps"),
        increase_period_s=seconds("increase_period_ps"),
        byte_counter_bytes=float(row["byte_counter"]) or None,
        fast_recovery=int(row["fast_recovery"]),
        additive_bps=float(row["ai_bps"]),
        packet_bytes=int(row["frame_bytes"]),
    )


def _control_lints(scenario: Scenario, lowered: Lowered) -> Iterator[Lint]:
    classes = scenario.switch.classes
    control = classes[scenario.switch.class_index(scenario.transport.control_class)]
    data = classes[scenario.switch.class_index(scenario.transport.data_class)]
    if control.pfc is not False or data.pfc is False:
        return
    above = control.priority > data.priority
    text = (
        f"class {control.name} of control frames is lossy: ACKs and CNPs can be dropped when buffers are full"
    )
    if above:
        yield Lint("note", "transport.control_class", f"{text}; it is served first, so its queue stays short")
    else:
        yield Lint(
            "warning", "transport.control_class", f"{text}, and it is not served before class {data.name}"
        )


def _load_lints(scenario: Scenario, routes: RouteSet, flows: FlowTable) -> Iterator[Lint]:
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
