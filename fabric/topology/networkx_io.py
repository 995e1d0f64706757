"""Networks to and from networkx graphs, and from node-link JSON files.

`to_networkx` gives a multigraph with everything that a `Network` holds, and `from_networkx` reads it back
equal, port numbers included. Any other undirected graph of networkx is read with defaults for what it
does not say (see `fabric.topology.graph`). The file format is the one that networkx itself writes:
`json.dump(networkx.node_link_data(graph), file)`, with the edges under "edges" or, as older versions
have it, under "links".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fabric.errors import SpecError
from fabric.spec.link import Link
from fabric.spec.topology import GraphFile
from fabric.topology.foreign import foreign_network
from fabric.topology.graph import Edge, Node, network_from_records
from fabric.topology.network import Network

__all__ = ["from_networkx", "graph_file", "graph_json", "to_networkx"]


def to_networkx(network: Network) -> Any:
    """Turn a network into a `networkx.MultiGraph`.

    Parameters
    ----------
    network : Network

    Returns
    -------
    networkx.MultiGraph
        Nodes are names with the attributes `kind` ("host" or "switch") and `tier`; edges have `link` (the
        cable's number), `rate_bps`, `delay_ps`, `loss`, `bit_error_rate` and `gap_bytes`.

    Examples
    --------
    >>> from fabric.spec.topology import SingleSwitch
    >>> from fabric.topology import build_network
    >>> graph = to_networkx(build_network(SingleSwitch(hosts=3)))
    >>> graph.nodes["switch0"]
    {'kind': 'switch', 'tier': 1}
    """
    import networkx

    graph = networkx.MultiGraph()
    for number, (name, tier) in enumerate(zip(network.names, network.tier.tolist(), strict=True)):
        graph.add_node(name, kind="host" if number < network.n_hosts else "switch", tier=tier)
    columns = zip(
        network.link_a.tolist(),
        network.link_b.tolist(),
        network.link_rate_bps.tolist(),
        network.link_delay_ps.tolist(),
        network.link_loss.tolist(),
        network.link_bit_error_rate.tolist(),
        network.link_gap_bytes.tolist(),
        strict=True,
    )
    for link, (a, b, rate_bps, delay_ps, loss, bit_error_rate, gap_bytes) in enumerate(columns):
        graph.add_edge(
            network.names[a],
            network.names[b],
            link=link,
            rate_bps=rate_bps,
            delay_ps=delay_ps,
            loss=loss,
            bit_error_rate=bit_error_rate,
            gap_bytes=gap_bytes,
        )
    return graph


def from_networkx(graph: Any, *, link: Link | None = None) -> Network:
    """Turn an undirected networkx graph into a network, having checked it.

    Parameters
    ----------
    graph : networkx.Graph or networkx.MultiGraph
        Node names become text. Attributes are described in `fabric.topology.graph`.
    link : Link, optional
        What edges leave out; `Link()` if not given.

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        A directed graph, a bad name, kind or attribute, a host without a cable, hosts without a path.

    Examples
    --------
    >>> import networkx
    >>> ring = networkx.cycle_graph(["leaf0", "leaf1", "leaf2"])
    >>> ring.add_edges_from((f"leaf{n}", f"host{n}", {"rate": "100Gbps"}) for n in range(3))
    >>> from_networkx(ring).names
    ('host0', 'host1', 'host2', 'leaf0', 'leaf1', 'leaf2')
    """
    if graph.is_directed():
        raise SpecError("graph", type(graph).__name__, "an undirected graph (links are full duplex)")
    nodes = [(str(name), attributes) for name, attributes in graph.nodes(data=True)]
    edges = [(str(one), str(other), attributes) for one, other, attributes in graph.edges(data=True)]
    return network_from_records(nodes, edges, link=link or Link())


def graph_file(spec: GraphFile, *, base_dir: str | Path | None = None) -> Network:
    """Read the file of a `GraphFile`: node-link JSON, or a topology of another simulator.

    Parameters
    ----------
    spec : GraphFile
    base_dir : path, optional
        Where a relative `file` is looked for; the working directory if not given.

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        A file that cannot be read, is not node-link JSON, or holds a graph that `from_networkx` refuses.
    """
    path = Path(base_dir or ".") / spec.file
    foreign = foreign_network(spec, path)
    if foreign is not None:
        return foreign
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError("topology.file", spec.file, f"a file that can be read ({reason})") from error
    return graph_json(spec, content)


def graph_json(spec: GraphFile, content: bytes) -> Network:
    """Read node-link JSON, the content of the file of a `GraphFile`.

    Parameters
    ----------
    spec : GraphFile
        Says what edges leave out; names the file in errors.
    content : bytes

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        If it is no node-link JSON, or holds a graph that `from_networkx` refuses.
    """
    try:
        data = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise SpecError("topology.file", spec.file, f"a JSON file ({error})") from error
    except RecursionError:
        allowed = "a JSON file without lists or objects nested hundreds deep"
        raise SpecError("topology.file", spec.file, allowed) from None
    nodes, edges = _records(data, spec.file)
    return network_from_records(nodes, edges, link=spec.link, path="topology.file", name=spec.file)


def _records(data: Any, file: str) -> tuple[list[Node], list[Edge]]:
    expected = (
        "node-link data of an undirected graph: "
        '{"nodes": [{"id": ...}, ...], "edges": [{"source": ..., "target": ...}, ...]}'
    )
    if not isinstance(data, Mapping) or data.get("directed"):
        raise SpecError("topology.file", file, expected)
    edges = data.get("edges", data.get("links"))
    try:
        return (
            [(_node_name(node["id"]), _without(node, "id")) for node in data["nodes"]],
            [
                (
                    _node_name(edge["source"]),
                    _node_name(edge["target"]),
                    _without(edge, "source", "target", "key"),
                )
                for edge in edges or ()
            ],
        )
    except (KeyError, TypeError) as error:
        raise SpecError("topology.file", file, expected) from error


def _node_name(value: Any) -> str:
    if not isinstance(value, str | int):
        raise TypeError
    return str(value)


def _without(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The attributes of a record beside those that say which node or edge it is."""
    return {key: value for key, value in record.items() if key not in names}
