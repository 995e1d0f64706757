"""A network as node-link JSON, the file that `GraphFile` names and networkx reads.

One node or edge a line, so that two versions of a file compare well. Everything that a `Network` holds
is there: reading the file gives an equal network, port numbers included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fabric.topology.network import Network
from fabric.units import Duration, Rate

__all__ = ["network_json"]


def network_json(network: Network) -> bytes:
    """Return a network as the content of a node-link JSON file.

    Parameters
    ----------
    network : Network

    Returns
    -------
    bytes
        UTF-8 text.

    Examples
    --------
    >>> from fabric.spec.topology import SingleSwitch
    >>> from fabric.topology import build_network
    >>> json.loads(network_json(build_network(SingleSwitch(hosts=2))))["nodes"][2]
    {'id': 'switch0', 'kind': 'switch', 'tier': 1}
    """
    nodes = (
        {
            "id": name,
            "kind": "host" if number < network.n_hosts else "switch",
            "tier": int(network.tier[number]),
        }
        for number, name in enumerate(network.names)
    )
    head = '{"directed": false, "multigraph": true, "graph": {},\n"nodes": [\n'
    return (head + _lines(nodes) + '\n],\n"edges": [\n' + _lines(_edges(network)) + "\n]}\n").encode()


def _lines(records: Iterator[dict[str, Any]]) -> str:
    return ",\n".join(json.dumps(record) for record in records)


def _edges(network: Network) -> Iterator[dict[str, Any]]:
    columns = (
        network.link_a,
        network.link_b,
        network.link_rate_bps,
        network.link_delay_ps,
        network.link_loss,
        network.link_bit_error_rate,
        network.link_gap_bytes,
    )
    for link, (a, b, rate, delay, loss, errors, gap) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        yield {
            "source": network.names[a],
            "target": network.names[b],
            "key": link,
            "link": link,
            "rate": str(Rate(rate)),
            "delay": str(Duration(delay)),
            "loss": loss,
            "bit_error_rate": errors,
            "gap": gap,
        }
