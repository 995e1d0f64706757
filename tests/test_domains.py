"""Failure domains: worst losses of known fabrics, and of random networks against counted components."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from support_routes import random_network

from fabric.analysis.domains import failure_domains
from fabric.plot import failure_domains as draw
from fabric.spec import Clos3, LeafSpine, SingleSwitch
from fabric.topology import Network, build_network, describe


def hosts_cut_off(network: Network, *, cables: set[int], node: int = -1) -> int:
    """Hosts of one component that are outside its largest part afterwards, without a node that is gone."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(network.n_nodes))
    ends = zip(network.link_a.tolist(), network.link_b.tolist(), strict=True)
    graph.add_edges_from((a, b, k) for k, (a, b) in enumerate(ends))
    before = [set(part) for part in nx.connected_components(graph)]
    graph.remove_edges_from([edge for edge in graph.edges(keys=True) if edge[2] in cables])
    graph.remove_nodes_from([node] if node >= 0 else [])
    lost = 0
    for part in before:
        left = [
            len([each for each in piece if each < network.n_hosts])
            for piece in nx.connected_components(graph)
            if piece <= part
        ]
        largest = max(left, default=0)
        lost += sum(left) - (largest if largest > 1 else 0)
    return lost


@pytest.mark.parametrize("seed", range(60))
def test_hosts_cut_off_in_random_networks(seed: int) -> None:
    network = random_network(seed, several_ports=bool(seed % 2))
    found = {each.kind: each for each in failure_domains(network)}
    low = network.link_a < network.n_hosts
    for kind, cables in (("host-leaf cable", low), ("leaf-leaf cable", ~low)):
        losses = [hosts_cut_off(network, cables={cable}) for cable in np.flatnonzero(cables).tolist()]
        assert found[kind].cut_off == max(losses)
        assert found[kind].count == len(losses)
    losses = [hosts_cut_off(network, cables=set(), node=n) for n in range(network.n_hosts, network.n_nodes)]
    assert found["leaf"].cut_off == max(losses)
    example = network.node_numbers[found["leaf"].example]
    assert hosts_cut_off(network, cables=set(), node=example) == max(losses)
    assert found["leaf"].bisection_lost is None


def test_three_tiers() -> None:
    network = build_network(Clos3(pods=4, leaves_per_pod=2, spines_per_pod=2, cores=8, hosts_per_leaf=4))
    found = {each.kind: (each.count, each.cut_off, each.slowed) for each in failure_domains(network)}
    assert found == {
        "host-leaf cable": (32, 1, 0),
        "leaf-spine cable": (16, 0, 0),
        "spine-core cable": (32, 0, 0),
        "leaf": (8, 4, 0),
        "spine": (8, 0, 0),
        "core": (8, 0, 0),
    }


@pytest.mark.parametrize("spines", [2, 4, 8])
def test_bisection_is_that_of_what_is_left(spines: int) -> None:
    """Also where uplinks are not the narrowest cut, whose loss then does not show at once."""
    network = build_network(LeafSpine(leaves=4, spines=spines, hosts_per_leaf=4))
    whole = describe(network).bisection_bps
    assert whole is not None
    for each in failure_domains(network):
        if each.kind.endswith("cable"):
            gone = network.find_links(each.example)
        else:
            node = network.node_numbers[each.example]
            gone = np.flatnonzero((network.link_a == node) | (network.link_b == node))
        left = np.ones(network.n_links, dtype=bool)
        left[gone] = False
        columns = [name for name in network.__dataclass_fields__ if name.startswith("link_")]
        rest = describe(replace(network, **{name: getattr(network, name)[left] for name in columns}))
        assert each.bisection_lost == pytest.approx(1 - (rest.bisection_bps or 0) / whole)


def test_two_planes_slow_hosts_down_instead_of_cutting_them_off() -> None:
    network = build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=8, ports_per_host=2))
    found = {each.kind: (each.cut_off, each.slowed) for each in failure_domains(network)}
    assert found["leaf"] == (0, 8)
    assert found["host-leaf cable"] == (0, 1)


def test_a_single_switch_takes_all() -> None:
    found = list(failure_domains(build_network(SingleSwitch(hosts=5))))
    assert [(each.kind, each.cut_off) for each in found] == [("host-leaf cable", 1), ("leaf", 5)]


def test_the_picture_names_every_kind() -> None:
    axes = draw(list(failure_domains(build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2)))))
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [
        "host-leaf cable (of 4)",
        "leaf-spine cable (of 4)",
        "leaf (of 2)",
        "spine (of 2)",
    ]
    assert [bar.get_width() for bar in axes.patches] == [25, 25, 50, 50]
    said = [text.get_text() for text in axes.texts]
    assert said[:4] == ["25 %, 1 host cut off", "25 %", "50 %, 2 hosts cut off", "50 %"]
