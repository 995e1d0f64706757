"""What the recorders watch: patterns of ports and flows as bits, intervals and switches.

A pattern of flows is matched against the flow's name, the label of its traffic entry and its ends
("host3->host7"); shell patterns as for ports. "incast#3", as results call a flow without a name, is the
fourth flow of the entry "incast". A pattern that matches nothing is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.run import Record
from fabric.topology.network import Network
from fabric.topology.patterns import did_you_mean, match_names
from fabric.workload.flow_table import FlowTable

__all__ = ["find_flows", "record_columns"]

PORT_QUEUE, PORT_THROUGHPUT, PORT_PACKETS = 1, 2, 4
FLOW_RATE, FLOW_PACKETS = 1, 2
PAUSES, MARKS, DROPS = 1, 2, 4
NUMBERED_FLOW = re.compile(r"(.+)#(\d+)")


def record_columns(record: Record, *, network: Network, flows: FlowTable) -> dict[str, Any]:
    """Columns of the recorders.

    Parameters
    ----------
    record : Record
    network : Network
    flows : FlowTable

    Returns
    -------
    dict
        `record`, `record_queue_interval_ps`, `record_queue_delta`, `record_throughput_interval_ps`,
        `port_record`, `flow_record`.

    Raises
    ------
    fabric.errors.SpecError
        A pattern that matches nothing, or queue recorders that name no port of a switch.
    """
    port_record = np.zeros(network.n_ports, dtype=np.uint8)
    flow_record = np.zeros(len(flows), dtype=np.uint8)
    queues, throughput, packets = record.queues, record.throughput, record.packets
    if queues is not None:
        port_record[_queue_ports(network, queues.ports)] |= PORT_QUEUE
    if throughput is not None:
        ports = network.find_ports(throughput.ports, path="record.throughput.ports")
        port_record[ports] |= PORT_THROUGHPUT
    if packets is not None:
        port_record[network.find_ports(packets.ports, path="record.packets.ports")] |= PORT_PACKETS
        chosen = find_flows(flows, packets.flows, network=network, path="record.packets.flows")
        flow_record[chosen] |= FLOW_PACKETS
    flow_record[find_flows(flows, record.rates, network=network, path="record.rates")] |= FLOW_RATE
    return {
        "record": PAUSES * record.pauses + MARKS * record.marks + DROPS * record.drops,
        "record_queue_interval_ps": int(queues.interval or 0) if queues is not None else 0,
        "record_queue_delta": int(queues.delta or 0) if queues is not None else 0,
        "record_throughput_interval_ps": int(throughput.interval) if throughput is not None else 0,
        "port_record": port_record,
        "flow_record": flow_record,
    }


def find_flows(
    flows: FlowTable, patterns: Sequence[str], *, network: Network, path: str
) -> npt.NDArray[np.int64]:
    """Flows that match any of the patterns, in ascending order.

    Parameters
    ----------
    flows : FlowTable
    patterns : sequence of str
        Each matches names of flows ("gradients-3"), labels of traffic entries ("incast"), one flow of
        an entry ("incast#3") and ends ("host3->host7", "*->host7").
    network : Network
        Names the hosts.
    path : str
        Where the patterns stand in the scenario, for the error (`path[0]`, ...).

    Returns
    -------
    numpy.ndarray of int64

    Raises
    ------
    fabric.errors.SpecError
        A pattern matches no flow.
    """
    chosen = np.zeros(len(flows), dtype=np.bool_)
    for index, pattern in enumerate(patterns):
        matching = _match_flows(flows, pattern, network)
        if not matching.any():
            known = [*dict.fromkeys(flows.patterns), *(name for name in flows.names or () if name)]
            allowed = 'the name of a flow, the label of a traffic entry, or ends such as "host3->host7"'
            raise SpecError(f"{path}[{index}]", pattern, allowed + did_you_mean(pattern, known))
        chosen |= matching
    return np.flatnonzero(chosen)


def _match_flows(flows: FlowTable, pattern: str, network: Network) -> npt.NDArray[np.bool_]:
    matching = match_names(flows.patterns, pattern)[flows.pattern]
    if flows.names is not None:
        matching |= match_names(flows.names, pattern)
    numbered = NUMBERED_FLOW.fullmatch(pattern)
    if numbered is not None and numbered[1] in flows.patterns and not matching.any():
        members = np.flatnonzero(flows.pattern == flows.patterns.index(numbered[1]))
        matching[members[int(numbered[2]) : int(numbered[2]) + 1]] = True
    if "->" in pattern:
        source, _, destination = pattern.partition("->")
        hosts = network.names[: network.n_hosts]
        sends, receives = match_names(hosts, source), match_names(hosts, destination)
        matching |= sends[flows.source] & receives[flows.destination]
    return matching


def _queue_ports(network: Network, patterns: Sequence[str]) -> npt.NDArray[np.uint32]:
    """Switch ports among those that match; hosts have no queue to record."""
    ports = network.find_ports(patterns, path="record.queues.ports")
    ports = ports[network.port_node[ports] >= network.n_hosts]
    if len(ports) == 0:
        raise SpecError("record.queues.ports", patterns, "ports of switches (hosts have no egress queue)")
    return ports
