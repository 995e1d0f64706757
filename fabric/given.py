"""Networks and flows that a script made itself, in place of those that a scenario describes.

A run is to be had again from its provenance, so what came as objects is written down as the files that
scenarios name: the network as node-link JSON, the flows as CSV, one file for each of their patterns. The
provenance's scenario names these files, and a saved result has them beside it.

Flows that others wait for get a name if they have none, and labels that repeat are told apart, as they
would be in a scenario; both as results show them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from fabric.errors import Said, SpecError
from fabric.spec import Flows, GraphFile, Scenario
from fabric.topology import Network, from_networkx
from fabric.topology.network_json import network_json
from fabric.workload import FlowTable
from fabric.workload.build import free_label
from fabric.workload.flow_csv import flow_csv
from fabric.workload.flow_table import numbered_names

__all__ = ["NETWORK_FILE", "as_flows", "as_network", "described", "files_of"]

NETWORK_FILE = "network.json"


def as_network(given: Any, *, scenario: Scenario) -> Network:
    """Return a network that was given to a run.

    Parameters
    ----------
    given : Network or networkx.Graph
        What a graph leaves out is as `topology.link` says if the scenario's topology is a `GraphFile`,
        otherwise as `Link()`.
    scenario : Scenario

    Raises
    ------
    SpecError
        If it is neither, or a graph that is no network.
    """
    if isinstance(given, Network):
        return given
    if not all(hasattr(given, name) for name in ("is_directed", "nodes", "edges")):
        raise SpecError("network", given, "a Network or a networkx graph")
    topology = scenario.topology
    return from_networkx(given, link=topology.link if isinstance(topology, GraphFile) else None)


def as_flows(given: Any, *, network: Network) -> FlowTable:
    """Return flows that were given to a run, checked against its network.

    Parameters
    ----------
    given : FlowTable
        Flows of one pattern stand together.
    network : Network

    Raises
    ------
    SpecError
        If it is no table, is empty, or names hosts that the network does not have.
    """
    if not isinstance(given, FlowTable):
        raise SpecError("flows", given, "a FlowTable, such as FlowTable.from_arrays(...)")
    if not len(given):
        raise SpecError("flows", Said("an empty table"), "at least one flow")
    for name in ("source", "destination"):
        hosts = getattr(given, name)
        flow = int(np.argmax(hosts))
        if hosts[flow] >= network.n_hosts:
            allowed = f"a host number from 0 to {network.n_hosts - 1}"
            raise SpecError(f"flows[{flow}].{name}", int(hosts[flow]), allowed)
    if (np.diff(given.pattern.astype(np.int64)) < 0).any():
        raise SpecError("flows.pattern", given.pattern.tolist(), "flows of one pattern one after the other")
    labels: list[str] = []
    for label in given.patterns:
        labels.append(free_label(label, labels))
    return _with_named_predecessors(replace(given, patterns=tuple(labels)))


def _with_named_predecessors(flows: FlowTable) -> FlowTable:
    waited_for = np.unique(flows.after_predecessor).tolist()
    if not waited_for:
        return flows
    names = list(flows.names or ("",) * len(flows))
    shown = numbered_names(flows)
    for flow in waited_for:
        names[flow] = shown[flow]
    return replace(flows, names=tuple(names))


def described(scenario: Scenario, *, network: Network | None, flows: FlowTable | None) -> Scenario:
    """Return the scenario that names the files of what was given.

    Parameters
    ----------
    scenario : Scenario
    network : Network, optional
    flows : FlowTable, optional
        None each: the scenario's own.

    Raises
    ------
    SpecError
        If the flows do not fit the scenario (a class or transport that cannot be).
    """
    changes: dict[str, object] = {}
    if network is not None:
        changes["topology"] = GraphFile(file=NETWORK_FILE)
    if flows is not None:
        patterns = zip(flows.patterns, flows.traffic_class, flows.transport, strict=True)
        changes["traffic"] = tuple(
            Flows(
                name="" if label == "flows" else label,
                file=_flow_file(number),
                traffic_class=traffic_class,
                transport=transport,
            )
            for number, (label, traffic_class, transport) in enumerate(patterns)
        )
    return msgspec.structs.replace(scenario, **changes) if changes else scenario


def _flow_file(pattern: int) -> str:
    return "flows.csv" if pattern == 0 else f"flows-{pattern + 1}.csv"


def files_of(network: Network, *, with_network: bool, flows: FlowTable | None) -> dict[str, bytes]:
    """Return the contents of the files that `described` names, by name.

    Parameters
    ----------
    network : Network
        Of the run.
    with_network : bool
        Whether it was given.
    flows : FlowTable, optional
        None: they were not given.
    """
    files = {NETWORK_FILE: network_json(network)} if with_network else {}
    if flows is not None:
        for pattern in range(len(flows.patterns)):
            files[_flow_file(pattern)] = flow_csv(flows, network=network, pattern=pattern)
    return files
