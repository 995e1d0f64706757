"""Networks from networkx graphs and files of them, and back."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_networks import COLUMNS, check_ports

from fabric.errors import SpecError
from fabric.spec.link import Link
from fabric.spec.topology import FatTree, GraphFile, LeafSpine, RailOptimized, SingleSwitch
from fabric.topology import Network, build_network, describe, from_networkx, to_networkx

# Graphs

TOPOLOGIES = [
    SingleSwitch(hosts=4, ports_per_host=2),
    LeafSpine(leaves=3, spines=2, hosts_per_leaf=2, links_per_pair=2, host_link=Link(loss=0.1, gap=24)),
    LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2),
    FatTree(k=4, link=Link(rate="100Gbps", delay="300ns", bit_error_rate=1e-10)),
    RailOptimized(servers=3, accelerators_per_server=2, spines=2),
]


def assert_equal_networks(one: Network, other: Network) -> None:
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(other, column)), column


@pytest.mark.parametrize("spec", TOPOLOGIES, ids=lambda spec: type(spec).__name__)
def test_networkx_round_trip(spec: LeafSpine) -> None:
    network = build_network(spec)
    assert_equal_networks(from_networkx(to_networkx(network)), network)


@settings(max_examples=25, deadline=None)
@given(
    leaves=st.integers(1, 4), spines=st.integers(1, 3), hosts=st.integers(2, 4), parallel=st.integers(1, 3)
)
def test_any_leaf_spine_survives_the_round_trip(leaves: int, spines: int, hosts: int, parallel: int) -> None:
    spec = LeafSpine(leaves=leaves, spines=spines, hosts_per_leaf=hosts, links_per_pair=parallel)
    network = build_network(spec)
    check_ports(network)
    assert_equal_networks(from_networkx(to_networkx(network)), network)


@pytest.mark.parametrize("edges_key", ["edges", "links"])
def test_graph_file_round_trip(tmp_path: Path, edges_key: str) -> None:
    network = build_network(FatTree(k=4))
    data = networkx.node_link_data(to_networkx(network), edges=edges_key)
    (tmp_path / "network.json").write_text(json.dumps(data))
    assert_equal_networks(build_network(GraphFile(file="network.json"), base_dir=tmp_path), network)


def test_a_plain_graph_is_read_with_defaults() -> None:
    graph = networkx.Graph()
    graph.add_node("x", kind="switch")
    graph.add_edge("a", "x")
    graph.add_edge("x", "b", rate="100Gbps", delay="2us")
    graph.add_edge("x", "spine7", rate_bps=10**12)
    graph.add_edge("spine7", "host1")
    network = from_networkx(graph, link=Link(rate="50Gbps"))
    assert network.names == ("a", "b", "host1", "x", "spine7")
    assert network.tier.tolist() == [0, 0, 0, 1, 1]
    assert sorted(network.link_rate_bps.tolist()) == [50 * 10**9, 50 * 10**9, 100 * 10**9, 10**12]
    assert describe(network).bisection_bps is None


def test_tiers_are_inferred_from_the_distance_to_hosts() -> None:
    network = build_network(FatTree(k=4))
    graph = to_networkx(network)
    for _, attributes in graph.nodes(data=True):
        del attributes["tier"]
    assert from_networkx(graph).tier.tolist() == network.tier.tolist()


def graph_of(*edges: tuple[str, str], **kinds: str) -> networkx.Graph:
    graph = networkx.Graph(edges)
    for name, kind in kinds.items():
        graph.add_node(name, kind=kind)
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (networkx.DiGraph([("host0", "leaf0")]), "undirected"),
        (graph_of(("host0", "leaf0"), ("host1", "leaf1")), "host0 and host1.*a path through switches"),
        (graph_of(("host0", "host1"), ("host1", "leaf0"), ("leaf0", "host2")), "host0 and host2"),
        (graph_of(("host0", "leaf0"), host5="host"), "host5.*at least one edge"),
        (graph_of(("leaf0", "leaf1"), ("leaf1", "leaf2"), ("leaf2", "leaf0")), "at least one host"),
        (graph_of(("host0", "leaf0"), leaf0="router"), 'graph, node leaf0, kind.*"host" or "switch"'),
        (graph_of(("host0", "leaf0"), ("leaf0", "leaf0")), "two different nodes"),
        (graph_of(("host0", "leaf 0")), "without spaces"),
    ],
)
def test_graphs_that_are_no_networks(graph: networkx.Graph, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_networkx(graph)


def test_hosts_cabled_to_each_other_need_no_switch() -> None:
    network = from_networkx(graph_of(("host0", "host1")))
    assert (network.n_hosts, network.n_switches) == (2, 0)
    assert describe(network).diameter_links == 1


def test_errors_of_attributes_name_the_edge() -> None:
    graph = networkx.Graph()
    graph.add_edge("host0", "leaf0", rate="fast")
    with pytest.raises(SpecError, match=r"graph, edge host0-leaf0, rate.*fast"):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"rte": "1Gbps"}, "edge host0-leaf0: 'rte'.*did you mean \"rate\""),
        ({"bandwidth": 5}, "'bandwidth'.*rate_bps"),
        ({"rate": "1Gbps", "rate_bps": 10**9}, "rate_bps: 1000000000.*one of rate and rate_bps, not both"),
        ({"delay_ps": 5000, "delay": "5ns"}, "not both"),
        ({"link": "first"}, "link: 'first'.*a whole number"),
        ({"link": None}, "link: None.*a whole number"),
        ({"link": 1.5}, "link: 1.5.*a whole number"),
        ({"link": -1}, "link: -1.*a whole number"),
        ({"delay": 2**62}, "edge host0-leaf0, delay.*at most 1s"),
    ],
)
def test_attributes_of_edges_are_known_and_agree(attributes: dict[str, object], message: str) -> None:
    graph = networkx.Graph()
    graph.add_edge("host0", "leaf0", **attributes)
    graph.add_edge("host1", "leaf0")
    with pytest.raises(SpecError, match=message):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("node", "attributes", "message"),
    [
        ("leaf0", {"knd": "switch"}, "node leaf0: 'knd'.*did you mean \"kind\""),
        ("leaf0", {"tier": True}, "node leaf0, tier: True"),
        ("leaf0", {"tier": 0}, "from 1"),
        ("host0", {"tier": 2}, "this node is a host"),
    ],
)
def test_attributes_of_nodes_are_known_and_agree(
    node: str, attributes: dict[str, object], message: str
) -> None:
    graph = networkx.Graph([("host0", "leaf0"), ("host1", "leaf0")])
    graph.add_node(node, **attributes)
    with pytest.raises(SpecError, match=message):
        from_networkx(graph)


def test_errors_of_a_graph_file_name_the_file(tmp_path: Path) -> None:
    nodes = '"nodes": [{"id": "host0"}, {"id": "host1"}, {"id": "leaf0"}]'
    edge = '{"source": "host0", "target": "leaf0"}'
    wrong = '{"source": "host1", "target": "leaf0", "key": 0, "rate": "9KB"}'
    (tmp_path / "net.json").write_text(f'{{{nodes}, "edges": [{edge}, {wrong}]}}')
    with pytest.raises(SpecError, match=r"^net\.json, edge host1-leaf0, rate: '9KB'"):
        build_network(GraphFile(file="net.json"), base_dir=tmp_path)
    (tmp_path / "net.json").write_text(f'{{{nodes}, "edges": [{edge}]}}')
    with pytest.raises(SpecError, match=r"^topology\.file: 'host1'.*at least one edge"):
        build_network(GraphFile(file="net.json"), base_dir=tmp_path)


def test_a_graph_file_nested_too_deeply(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(SpecError, match=r"topology\.file.*nested") as caught:
        build_network(GraphFile(file="deep.json"), base_dir=tmp_path)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"nodes": [{}]}', '{"nodes": [], "edges": [], "directed": true}']
)
def test_files_that_are_no_graphs(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(SpecError, match=r"topology\.file"):
        build_network(GraphFile(file=str(tmp_path / "bad.json")))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"topology\.file.*No such file"):
        build_network(GraphFile(file="none.json"), base_dir=tmp_path)


def test_a_graph_may_carry_what_networkx_draws_by() -> None:
    graph = networkx.Graph()
    graph.add_edge("host0", "switch0", weight=1.0)
    graph.add_edge("host1", "switch0", label="right")
    graph.nodes["switch0"]["pos"] = (0.5, 0.5)
    assert from_networkx(graph).n_hosts == 2
