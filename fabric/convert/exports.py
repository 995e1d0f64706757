"""Networks and flows as files of other simulators: `topology.txt`, `flow.txt` and `.cm`.

In HPCC's files a node has the number of its name where those cover 0 to n-1 ("host4", "switch11"), else its
position; in a connection matrix host n is the n-th. What a format cannot say is not written: bit
errors and gaps of links, classes other than "group<n>", transports.
"""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from fabric.formats import FlowData, NetworkData
from fabric.formats.hpcc_flows import flows_text
from fabric.formats.hpcc_topology import node_ids, topology_text
from fabric.formats.htsim_text import matrix_text
from fabric.topology import Network
from fabric.workload import FlowTable

__all__ = ["export_flows", "export_topology"]

DEFAULT_GROUP = 3
"""The priority group that the HPCC simulator's generator gives to all flows."""


def export_topology(network: Network) -> str:
    """Return a network as `topology.txt`.

    Parameters
    ----------
    network : Network

    Returns
    -------
    str

    Examples
    --------
    >>> from fabric.spec import SingleSwitch
    >>> from fabric.topology import build_network
    >>> print(export_topology(build_network(SingleSwitch(hosts=2))), end="")
    3 1 2
    2
    0 2 400Gbps 500ns 0
    1 2 400Gbps 500ns 0
    """
    return topology_text(
        NetworkData(
            names=network.names,
            n_hosts=network.n_hosts,
            tier=network.tier.astype(np.int64),
            link_a=network.link_a.astype(np.int64),
            link_b=network.link_b.astype(np.int64),
            link_rate_bps=network.link_rate_bps,
            link_delay_ps=network.link_delay_ps,
            link_loss=network.link_loss,
        )
    )


def export_flows(flows: FlowTable, *, network: Network, form: Literal["hpcc", "htsim"] = "hpcc") -> str:
    """Return flows as `flow.txt` ("hpcc") or `.cm` ("htsim").

    Parameters
    ----------
    flows : FlowTable
    network : Network
    form : "hpcc" or "htsim"

    Returns
    -------
    str

    Raises
    ------
    SpecError
        If flows wait for each other in a way that the format cannot say.

    Examples
    --------
    >>> from fabric.spec import SingleSwitch
    >>> from fabric.topology import build_network
    >>> table = FlowTable.from_arrays([0, 1], [1, 0], size_bytes=1000, after=[(1, 0)])
    >>> network = build_network(SingleSwitch(hosts=2))
    >>> print(export_flows(table, network=network, form="htsim"), end="")
    Nodes 2
    Connections 2
    Triggers 1
    0->1 id 1 start 0 size 1000 recv_done_trigger 1
    1->0 id 2 trigger 1 size 1000
    trigger id 1 oneshot
    """
    ids = np.array(node_ids(network.names) if form == "hpcc" else range(network.n_nodes), dtype=np.int64)
    names = tuple(f"flow{number}" for number in range(1, len(flows) + 1))
    data = FlowData(
        source=ids[flows.source],
        destination=ids[flows.destination],
        size_bytes=flows.size_bytes,
        start_ps=flows.start_ps,
        group=np.array([_group(name) for name in flows.traffic_class], dtype=np.int64)[flows.pattern],
        line=np.zeros(len(flows), dtype=np.int64),
        names=names,
        waits=_waits(flows, names),
    )
    return flows_text(data) if form == "hpcc" else matrix_text(data, n_hosts=network.n_hosts)


def _group(traffic_class: str | None) -> int:
    found = re.fullmatch(r"group([0-7])", traffic_class or "")
    return int(found[1]) if found else DEFAULT_GROUP


def _waits(flows: FlowTable, names: tuple[str, ...]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    before: dict[int, list[str]] = {}
    for flow, predecessor in zip(flows.after_flow.tolist(), flows.after_predecessor.tolist(), strict=True):
        before.setdefault(flow, []).append(names[predecessor])
    return tuple((flow, tuple(each)) for flow, each in before.items())
