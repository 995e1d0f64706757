"""Networks: counts and shapes of the generators, names and patterns, overrides, graphs in and out."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import SpecError
from fabric.spec.link import Link, LinkOverride
from fabric.spec.topology import (
    Clos3,
    FatTree,
    GraphFile,
    LeafSpine,
    RailOptimized,
    SingleSwitch,
    host_count,
)
from fabric.topology import (
    TIER_CORE,
    TIER_LEAF,
    TIER_SCALE_UP,
    TIER_SPINE,
    Network,
    build_network,
    describe,
    from_networkx,
    to_networkx,
)

COLUMNS = (
    "names",
    "n_hosts",
    "tier",
    "link_a",
    "link_b",
    "link_rate_bps",
    "link_delay_ps",
    "link_loss",
    "link_bit_error_rate",
    "link_gap_bytes",
)


def ends(network: Network) -> set[tuple[str, str]]:
    """The two names of every cable."""
    return {
        (network.names[a], network.names[b])
        for a, b in zip(network.link_a.tolist(), network.link_b.tolist(), strict=True)
    }


def names_of(network: Network, ports: np.ndarray) -> list[str]:
    return [network.port_name(int(port)) for port in ports]


def arrows_of(network: Network, ports: np.ndarray) -> list[str]:
    return [network.port_arrow(int(port)) for port in ports]


def check_ports(network: Network) -> None:
    """Ports of a node follow the order of the cables that name it; peers are mutual."""
    expected: list[list[int]] = [[] for _ in network.names]
    for link, (a, b) in enumerate(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True)):
        assert a < b
        expected[a].append(link)
        expected[b].append(link)
    base = network.node_port_base.tolist()
    for node, links in enumerate(expected):
        assert network.port_link[base[node] : base[node + 1]].tolist() == links
        assert (network.port_node[base[node] : base[node + 1]] == node).all()
    ports = np.arange(network.n_ports)
    assert (network.port_peer[network.port_peer] == ports).all()
    assert (network.port_peer != ports).all()
    assert (network.port_link[network.port_peer] == network.port_link).all()


def test_single_switch() -> None:
    network = build_network(SingleSwitch(hosts=3, ports_per_host=2, link=Link(rate="100Gbps", delay="1us")))
    assert network.names == ("host0", "host1", "host2", "switch0")
    assert network.link_a.tolist() == [0, 0, 1, 1, 2, 2]
    assert set(network.link_b.tolist()) == {3}
    assert set(network.link_rate_bps.tolist()) == {100 * 10**9}
    assert set(network.link_delay_ps.tolist()) == {10**6}
    assert network.node_port_base.tolist() == [0, 2, 4, 6, 12]
    check_ports(network)


def test_leaf_spine_counts_and_port_order() -> None:
    network = build_network(LeafSpine(leaves=3, spines=2, hosts_per_leaf=4, links_per_pair=2))
    assert (network.n_hosts, network.n_switches, network.n_links) == (12, 5, 12 + 3 * 2 * 2)
    assert network.tier[12:].tolist() == [TIER_LEAF] * 3 + [TIER_SPINE] * 2
    leaf1 = network.find_ports(["leaf1:*"])
    assert arrows_of(network, leaf1) == [
        "leaf1->host4",
        "leaf1->host5",
        "leaf1->host6",
        "leaf1->host7",
        "leaf1->spine0#0",
        "leaf1->spine0#1",
        "leaf1->spine1#0",
        "leaf1->spine1#1",
    ]
    spine0 = network.find_ports(["spine0:*"])
    assert arrows_of(network, spine0)[2:4] == ["spine0->leaf1#0", "spine0->leaf1#1"]
    check_ports(network)


def test_dual_homed_hosts_reach_both_leaves_of_their_group() -> None:
    network = build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=3, ports_per_host=2))
    assert network.n_hosts == 6
    assert {pair for pair in ends(network) if pair[0] == "host4"} == {("host4", "leaf2"), ("host4", "leaf3")}
    assert arrows_of(network, network.find_ports(["host4"])) == ["host4->leaf2", "host4->leaf3"]
    leaf_hosts = np.bincount(network.link_b[network.link_a < 6], minlength=network.n_nodes)
    assert leaf_hosts[6:10].tolist() == [3, 3, 3, 3]


def test_dual_homed_hosts_of_a_pod() -> None:
    spec = Clos3(pods=2, leaves_per_pod=4, spines_per_pod=2, cores=2, hosts_per_leaf=3, ports_per_host=2)
    network = build_network(spec)
    assert network.n_hosts == host_count(spec) == 2 * 2 * 3
    assert {pair for pair in ends(network) if pair[0] == "host4"} == {("host4", "leaf2"), ("host4", "leaf3")}
    assert {pair for pair in ends(network) if pair[0] == "host7"} == {("host7", "leaf4"), ("host7", "leaf5")}
    assert arrows_of(network, network.find_ports(["host11"])) == ["host11->leaf6", "host11->leaf7"]
    leaf_hosts = np.bincount(network.link_b[network.link_a < 12], minlength=network.n_nodes)
    assert leaf_hosts[12:20].tolist() == [3] * 8
    check_ports(network)


def test_dual_homed_hosts_of_a_fat_tree() -> None:
    spec = FatTree(k=4, ports_per_host=2)
    network = build_network(spec)
    assert network.n_hosts == host_count(spec) == 8
    assert arrows_of(network, network.find_ports(["host3"])) == ["host3->leaf2", "host3->leaf3"]
    ports = np.bincount(network.port_node, minlength=network.n_nodes)
    assert ports[:8].tolist() == [2] * 8
    assert ports[8:].tolist() == [4] * 20


@pytest.mark.parametrize(
    ("spines", "rate", "ratio"),
    [(8, "400Gbps", 1.0), (4, "400Gbps", 2.0), (4, "800Gbps", 1.0), (2, "200Gbps", 8.0)],
)
def test_oversubscription_follows_counts_and_rates(spines: int, rate: str, ratio: float) -> None:
    spec = LeafSpine(leaves=4, spines=spines, hosts_per_leaf=8, fabric_link=Link(rate=rate))
    assert describe(build_network(spec)).oversubscription == {f"leaf{n}": ratio for n in range(4)}


def test_oversubscription_sets_the_fabric_rate() -> None:
    network = build_network(LeafSpine(leaves=2, spines=4, hosts_per_leaf=8, oversubscription=1.5))
    assert describe(network).oversubscription["leaf0"] == pytest.approx(1.5, rel=1e-9)
    assert network.link_rate_bps[-1] == 8 * 400 * 10**9 * 2 // (4 * 3)


def test_clos3_planes() -> None:
    spec = Clos3(pods=3, leaves_per_pod=2, spines_per_pod=2, cores=4, hosts_per_leaf=2, links_per_pair=2)
    network = build_network(spec)
    assert (network.n_hosts, network.n_switches) == (12, 6 + 6 + 4)
    assert network.n_links == 12 + 3 * 2 * 2 * 2 + 3 * 4
    core_ends = {pair for pair in ends(network) if pair[1].startswith("core")}
    expected = {(f"spine{2 * pod + core % 2}", f"core{core}") for pod in range(3) for core in range(4)}
    assert core_ends == expected
    assert {b for a, b in ends(network) if a == "leaf3"} == {"spine2", "spine3"}
    assert describe(network).diameter_links == 6
    check_ports(network)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_formulas(k: int) -> None:
    network = build_network(FatTree(k=k))
    assert network.n_switches == 5 * k * k // 4
    assert network.n_hosts == k**3 // 4
    assert network.n_links == 3 * k**3 // 4
    switch_ports = np.diff(network.node_port_base.astype(np.int64))[network.n_hosts :]
    assert (switch_ports == k).all()
    summary = describe(network)
    assert set(summary.oversubscription.values()) == {1.0}
    assert summary.bisection_bps == k**3 // 4 * 400 * 10**9 // 2
    assert summary.nodes_per_tier["core"] == k * k // 4
    assert np.bincount(network.tier)[TIER_CORE] == k * k // 4


def test_rail_optimized() -> None:
    spec = RailOptimized(
        servers=4, accelerators_per_server=3, spines=2, scale_up_switches=2, servers_per_rail_leaf=2
    )
    network = build_network(spec)
    assert network.n_hosts == 12
    assert network.tier[12:].tolist() == [TIER_LEAF] * 6 + [TIER_SPINE] * 2 + [TIER_SCALE_UP] * 8
    # Host 7 is accelerator 1 of server 2, which is in the second block of servers.
    assert arrows_of(network, network.find_ports(["host7"])) == [
        "host7->leaf4",
        "host7->scaleup4",
        "host7->scaleup5",
    ]
    assert {a for a, b in ends(network) if b == "leaf1"} == {"host1", "host4"}
    summary = describe(network)
    assert summary.links_per_tier == {"host-leaf": 12, "host-scaleup": 24, "leaf-spine": 12}
    assert summary.oversubscription["leaf0"] == 1.0
    assert summary.diameter_links == 4
    rates = set(network.link_rate_bps[network.link_b >= 20].tolist())
    assert rates == {3_600 * 10**9}
    check_ports(network)


def test_describe_of_one_switch_has_no_fabric() -> None:
    summary = describe(build_network(SingleSwitch(hosts=4)))
    assert summary.oversubscription == {}
    assert summary.diameter_links == 2
    assert summary.bisection_bps == 2 * 400 * 10**9


def test_bisection_is_that_of_the_narrowest_tier() -> None:
    spec = LeafSpine(leaves=4, spines=2, hosts_per_leaf=8, fabric_link=Link(rate="800Gbps"))
    assert describe(build_network(spec)).bisection_bps == 4 * 2 * 800 * 10**9 // 2


def test_a_large_fat_tree() -> None:
    network = build_network(FatTree(k=32))
    assert (network.n_hosts, network.n_switches, network.n_links) == (8192, 1280, 24576)
    assert network.port_peer[network.port_peer[77]] == 77


# Names and patterns


@pytest.fixture(scope="module")
def small() -> Network:
    return build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2, links_per_pair=2))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("leaf0:3", ["leaf0:3"]),
        ("leaf0:[01]", ["leaf0:0", "leaf0:1"]),
        ("*->host3", ["leaf1:1"]),
        ("leaf0->host1", ["leaf0:1"]),
        ("leaf0->spine1", ["leaf0:4", "leaf0:5"]),
        ("leaf0->spine1#1", ["leaf0:5"]),
        ("leaf*->spine1#0", ["leaf0:4", "leaf1:4"]),
        ("host?:0", ["host0:0", "host1:0", "host2:0", "host3:0"]),
        ("spine1", ["spine1:0", "spine1:1", "spine1:2", "spine1:3"]),
    ],
)
def test_port_patterns(small: Network, pattern: str, found: list[str]) -> None:
    assert names_of(small, small.find_ports([pattern])) == found


def test_every_port_is_found_by_both_of_its_names(small: Network) -> None:
    for port in range(small.n_ports):
        assert small.find_ports([small.port_name(port)]).tolist() == [port]
        assert small.find_ports([small.port_arrow(port)]).tolist() == [port]


def test_patterns_are_joined_without_repetition(small: Network) -> None:
    ports = small.find_ports(["leaf0:*", "leaf0->*", "leaf0:0"])
    assert ports.tolist() == sorted(set(ports.tolist()))
    assert len(ports) == 6
    assert len(small.find_ports(["*"])) == small.n_ports
    assert len(small.find_ports([])) == 0


def test_a_pattern_without_a_match_names_the_closest_node(small: Network) -> None:
    with pytest.raises(SpecError, match=r'record\.queues\.ports\[1\].*laef0.*did you mean "leaf0"') as caught:
        small.find_ports(["leaf0:0", "laef0:*"], path="record.queues.ports")
    assert caught.value.value == "laef0:*"
    with pytest.raises(SpecError, match="leaf0:9"):
        small.find_ports(["leaf0:9"])
    with pytest.raises(SpecError):
        small.find_ports(["leaf0->leaf1"])


def test_find_hosts(small: Network) -> None:
    assert small.find_hosts("host2").tolist() == [2]
    assert small.find_hosts("*").tolist() == [0, 1, 2, 3]
    assert small.find_hosts("host[13]").tolist() == [1, 3]
    with pytest.raises(SpecError, match="host9"):
        small.find_hosts("host9", path="traffic[0].receivers[0]")
    with pytest.raises(SpecError):
        small.find_hosts("leaf0")


def test_find_links_in_either_order(small: Network) -> None:
    assert small.find_links("leaf0-spine1").tolist() == small.find_links("spine1-leaf0").tolist() == [6, 7]
    assert small.find_links("leaf0-spine1#1").tolist() == [7]
    assert len(small.find_links("leaf*-spine*")) == 8


# Overrides


def test_overrides_change_what_they_name_and_the_last_one_holds() -> None:
    spec = LeafSpine(
        leaves=2,
        spines=2,
        hosts_per_leaf=2,
        overrides=(
            LinkOverride(match="leaf*-spine0", rate="100Gbps", loss=0.01),
            LinkOverride(match="spine0-leaf1", rate="200Gbps", delay="2us", bit_error_rate=1e-9),
        ),
    )
    network = build_network(spec)
    rates = {
        f"{network.names[a]}-{network.names[b]}": rate // 10**9
        for a, b, rate in zip(network.link_a, network.link_b, network.link_rate_bps.tolist(), strict=True)
    }
    assert rates["leaf0-spine0"] == 100
    assert rates["leaf1-spine0"] == 200
    assert rates["leaf1-spine1"] == 400
    row = int(network.find_links("leaf1-spine0")[0])
    assert network.link_loss[row] == 0.01
    assert network.link_delay_ps[row] == 2 * 10**6
    assert network.link_bit_error_rate[row] == 1e-9
    assert (network.link_loss > 0).sum() == 2


def test_an_override_without_a_match_is_an_error() -> None:
    spec = LeafSpine(
        leaves=2, spines=2, hosts_per_leaf=2, overrides=(LinkOverride(match="leaf0-spin1", loss=0.1),)
    )
    with pytest.raises(SpecError, match=r'topology\.overrides\[0\].match.*spin1.*did you mean "spine1"'):
        build_network(spec)


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
