"""The static deadlock check of a scenario: each lossless class, its routes, its pins, what fails.

Of all routes (whatever any host may ever send to any other) every lossless class has the same graph, and it
is judged once. Of given traffic a class carries the data frames of its flows, and towards their sources the
control frames of transports that send these in it; all next hops that a switch may choose count, whichever
a hash prefers. Pins are followed as they are (`fabric.analysis.deadlock.walks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fabric.analysis.deadlock import (
    Demand,
    Failure,
    Remedy,
    RouteSet,
    Verdict,
    check_deadlock,
    failed_routes,
    remedies,
    remedy,
    single_failures,
    turns_of,
)
from fabric.lowered import Lowered
from fabric.lowering.paths import PIN_FLOW
from fabric.topology import Network

__all__ = ["ClassCheck", "SingleFailures", "check_classes"]

NOTHING = Failure()
"""Everything is up."""


@dataclass(frozen=True)
class SingleFailures:
    """Cables and switches tried one by one, and those whose failure makes a cycle, with its links."""

    cables: int
    switches: int
    cycles: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class ClassCheck:
    """The verdict on some lossless classes that have the same routes.

    Attributes
    ----------
    classes : tuple of str
    verdict : Verdict
    applied : Remedy or None
        What the routes were judged with.
    remedies : tuple of Remedy
        What would break the cycle, if there is one.
    single : SingleFailures or None
        None if it was not asked for, or there is a cycle without any failure.
    """

    classes: tuple[str, ...]
    verdict: Verdict
    applied: Remedy | None = None
    remedies: tuple[Remedy, ...] = ()
    single: SingleFailures | None = None


@dataclass(frozen=True)
class _Frames:
    """What a class carries: pairs of hosts (None: all), and flows that are pinned."""

    source: np.ndarray | None = None
    destination: np.ndarray | None = None
    flows: list[int] = field(default_factory=list)


def check_classes(
    lowered: Lowered,
    network: Network,
    *,
    class_names: Sequence[str],
    flow_names: Sequence[str] | None = None,
    routes: Literal["all", "traffic"] = "all",
    failure: Failure = NOTHING,
    single: bool = False,
    apply: str | None = None,
) -> list[ClassCheck]:
    """Check every lossless class.

    Parameters
    ----------
    lowered : Lowered
        Of the scenario.
    network : Network
        That it was lowered with.
    class_names : sequence of str
        By number of the class.
    flow_names : sequence of str, optional
        By number of the flow.
    routes : {"all", "traffic"}
        Of all pairs of hosts, or those of the scenario's flows.
    failure : Failure
        What is down (default nothing); routes have converged again.
    single : bool
        Whether to try each single failure; not together with `failure`.
    apply : {"up-down", "classes", "lossy"}, optional
        A remedy that is applied first.

    Returns
    -------
    list of ClassCheck
        Empty if there is no lossless class.
    """
    lossless = [number for number in range(lowered.n_classes) if _is_lossless(lowered, number)]
    if routes == "all":
        groups = [(lossless, _Frames(flows=list(range(lowered.n_flows))))] if lossless else []
    else:
        groups = [([number], _frames_of(lowered, number)) for number in lossless]
    return [
        _check(
            lowered,
            network,
            frames,
            names=tuple(class_names[number] for number in numbers),
            flow_names=flow_names,
            failure=failure,
            single=single and failure == NOTHING,
            apply=apply,
        )
        for numbers, frames in groups
    ]


def _is_lossless(lowered: Lowered, number: int) -> bool:
    rows = lowered.port_profile.reshape(-1, lowered.n_classes)[:, number]
    return bool(lowered.profiles["lossless"][rows].any())


def _frames_of(lowered: Lowered, number: int) -> _Frames:
    """Data frames of the class, and control frames back, of flows without a pin."""
    control = lowered.transports["control_class"][lowered.flow_transport] == number
    data = lowered.flow_class == number
    keys = set(lowered.pin_key.tolist())
    pinned_flow = np.array([PIN_FLOW + flow in keys for flow in range(lowered.n_flows)], dtype=bool)
    pinned_host = np.array([host in keys for host in range(lowered.n_hosts)], dtype=bool)
    there = data & ~pinned_flow & ~pinned_host[lowered.flow_destination]
    back = control & ~pinned_host[lowered.flow_source]
    return _Frames(
        np.concatenate([lowered.flow_source[there], lowered.flow_destination[back]]),
        np.concatenate([lowered.flow_destination[there], lowered.flow_source[back]]),
        np.flatnonzero(data | control).tolist(),
    )


def _check(
    lowered: Lowered,
    network: Network,
    frames: _Frames,
    *,
    names: tuple[str, ...],
    flow_names: Sequence[str] | None,
    failure: Failure,
    single: bool,
    apply: str | None,
) -> ClassCheck:
    lifetime = lowered.ttl or None

    def routes_after(failure: Failure) -> tuple[RouteSet, list[Demand]]:
        routes = failed_routes(network, failure, source=frames.source, destination=frames.destination)
        return routes, _demands(lowered, routes, frames, flow_names)

    routes, demands = routes_after(failure)
    if apply is not None:
        chosen = remedy(apply, routes, demands=demands, lifetime=lifetime)
        return ClassCheck(classes=names, verdict=chosen.verdict, applied=chosen)
    verdict = check_deadlock(routes, demands=demands, lifetime=lifetime)
    if verdict.can_deadlock:
        found = tuple(remedies(routes, demands=demands, lifetime=lifetime))
        return ClassCheck(classes=names, verdict=verdict, remedies=found)
    if not single:
        return ClassCheck(classes=names, verdict=verdict)
    cycles: list[tuple[str, tuple[str, ...]]] = []
    if demands:
        tried = [Failure(cables=(cable,)) for cable in range(network.n_links)]
        tried += [Failure(switches=(node,)) for node in range(network.n_hosts, network.n_nodes)]
        for each in tried:
            after, pinned = routes_after(each)
            steps = check_deadlock(after, demands=pinned, lifetime=lifetime).cycle
            if steps:
                cycles.append((each.name(network), tuple(step.link for step in steps)))
    else:
        ends = {"source": frames.source, "destination": frames.destination}
        for each, cycle in single_failures(routes, turns_of(routes), **ends):
            if cycle:
                cycles.append((each.name(network), tuple(map(network.port_arrow, cycle))))
    counts = SingleFailures(network.n_links, network.n_switches, tuple(cycles))
    return ClassCheck(classes=names, verdict=verdict, single=counts)


def _demands(
    lowered: Lowered, routes: RouteSet, frames: _Frames, flow_names: Sequence[str] | None
) -> list[Demand]:
    """Pinned destinations, from wherever frames to them may enter, and pinned flows from their source."""
    pins = _pins(lowered)
    by_host = {key: ports for key, ports in pins.items() if key < PIN_FLOW}
    network = routes.network
    demands = []
    for host, ports in by_host.items():
        edge = int(routes.host_edge[host])
        if frames.source is None:
            entries = np.flatnonzero(routes.sources[:, edge]).tolist()
        else:
            flows = np.array(frames.flows, dtype=np.int64)
            towards = flows[lowered.flow_destination[flows] == host]
            senders = lowered.flow_port[towards]
            back = flows[lowered.flow_source[flows] == host]
            first = lowered.node_port_base[lowered.flow_destination[back]]
            entries = sorted(set(routes.peers(np.concatenate([senders, first]).astype(np.int64)).tolist()))
        label = f"frames to {network.names[host]}"
        demands.append(Demand(label=label, destination=host, entries=tuple(entries), pinned=ports))
    for flow in frames.flows:
        if PIN_FLOW + flow not in pins:
            continue
        host = int(lowered.flow_destination[flow])
        named = flow_names[flow] if flow_names else ""
        ends = f"{network.names[lowered.flow_source[flow]]} -> {network.names[host]}"
        demands.append(
            Demand(
                label=f"flow {named} ({ends})" if named else f"flow {ends}",
                destination=host,
                entries=(int(routes.peers(int(lowered.flow_port[flow]))),),
                pinned=by_host.get(host, {}) | pins[PIN_FLOW + flow],
            )
        )
    return [each for each in demands if min(each.entries, default=0) >= 0]


def _pins(lowered: Lowered) -> dict[int, dict[int, int]]:
    """Port by switch (row), by key of the pin."""
    found: dict[int, dict[int, int]] = {}
    for node in np.flatnonzero(np.diff(lowered.pin_base)).tolist():
        for k in range(int(lowered.pin_base[node]), int(lowered.pin_base[node + 1])):
            port = int(lowered.node_port_base[node]) + int(lowered.pin_port[k])
            found.setdefault(int(lowered.pin_key[k]), {})[node - lowered.n_hosts] = port
    return found
