"""Topologies: their counts, cables, ports, patterns of names, overrides."""

from __future__ import annotations

import numpy as np
import pytest
from support_networks import arrows_of, check_ports, ends, names_of

from fabric.errors import SpecError
from fabric.spec.link import Link, LinkOverride
from fabric.spec.topology import Clos3, FatTree, LeafSpine, RailOptimized, SingleSwitch, host_count
from fabric.topology import TIER_CORE, TIER_LEAF, TIER_SCALE_UP, TIER_SPINE, Network, build_network, describe


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
