"""Routes: next hops against a search by networkx, path counts, valley-free paths, hashing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.keyed_hash import Purpose, draw, fmix32, mix64, purpose_key, uniform
from fabric.lowered import ROUTE_DIRECT
from fabric.routing import NO_PORT, Routes, closest_ports, find_routes, trace_path
from fabric.spec.link import Link
from fabric.spec.topology import Clos3, FatTree, LeafSpine, RailOptimized, SingleSwitch
from fabric.topology import Network, build_network, from_networkx, to_networkx


def next_hops(network: Network, routes: Routes, node: int, host: int) -> list[int] | None:
    """Local port numbers of the group, None where the host hangs on the switch."""
    entry = int(routes.route_entry[routes.route_base[node] + routes.host_edge[host]])
    if entry == ROUTE_DIRECT:
        return None
    start = int(routes.route_ports_base[node]) + (entry & 0xFFFF)
    return routes.route_ports[start : start + (entry >> 16)].tolist()


def tables_of(network: Network, routes: Routes, *, seed: int = 1) -> Any:
    """What `trace_path` reads, with the salts of a seed."""
    salts = draw(purpose_key(seed, Purpose.ECMP_SALT), np.arange(network.n_nodes), 0)
    return SimpleNamespace(
        n_hosts=network.n_hosts,
        n_nodes=network.n_nodes,
        node_port_base=network.node_port_base,
        node_salt=(salts & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        port_node=network.port_node,
        port_peer=network.port_peer,
        **vars(routes),
    )


def hashes(count: int, seed: int = 1) -> np.ndarray:
    bits = draw(purpose_key(seed, Purpose.PATH_HASH), np.arange(count), 0)
    return (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def trace(network: Network, source: np.ndarray, destination: np.ndarray, *, seed: int = 1) -> np.ndarray:
    """Paths of flows that leave by the first closest port."""
    routes = find_routes(network)
    source, destination = np.asarray(source, np.uint32), np.asarray(destination, np.uint32)
    ports, closest = closest_ports(network, routes.distances, source=source, destination=destination)
    first = ports[np.arange(len(source)), closest.argmax(axis=1)]
    return trace_path(
        tables_of(network, routes, seed=seed),
        first_port=first,
        destination=destination,
        path_hash=hashes(len(source), seed),
    )


def all_host_pairs(network: Network) -> tuple[np.ndarray, np.ndarray]:
    source, destination = np.divmod(np.arange(network.n_hosts**2), network.n_hosts)
    return source[source != destination], destination[source != destination]


def count_paths(network: Network, routes: Routes, node: int, host: int) -> int:
    """Shortest paths from a switch to a host, parallel cables counted each."""
    ports = next_hops(network, routes, node, host)
    if ports is None:
        return 1
    base = int(network.node_port_base[node])
    peers = network.port_node[network.port_peer[base + np.array(ports, dtype=np.int64)]]
    return sum(count_paths(network, routes, int(peer), host) for peer in peers)


def node_of(network: Network, name: str) -> int:
    return network.node_numbers[name]


# Tables


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    switches=st.integers(1, 7),
    extra=st.integers(0, 10),
    hosts=st.integers(2, 6),
    second_homes=st.integers(0, 3),
)
def test_next_hops_are_those_of_a_breadth_first_search(
    seed: int, switches: int, extra: int, hosts: int, second_homes: int
) -> None:
    """On random graphs with parallel cables and multi-homed hosts."""
    rng = np.random.default_rng(seed)
    graph = networkx.MultiGraph()
    for switch in range(1, switches):
        graph.add_edge(f"switch{switch}", f"switch{rng.integers(switch)}")
    for _ in range(extra if switches > 1 else 0):
        one, other = rng.choice(switches, 2, replace=False)
        graph.add_edge(f"switch{one}", f"switch{other}")
    for host in range(hosts + second_homes):
        graph.add_edge(f"host{host % hosts}", f"switch{rng.integers(switches)}")
    network = from_networkx(graph)
    routes = find_routes(network)
    fabric = networkx.Graph(to_networkx(network))
    fabric.remove_nodes_from(network.names[: network.n_hosts])
    for host in range(network.n_hosts):
        attached = set(to_networkx(network)[network.names[host]])
        far = networkx.multi_source_dijkstra_path_length(fabric, attached)
        for node in range(network.n_hosts, network.n_nodes):
            name = network.names[node]
            base = int(network.node_port_base[node])
            degree = int(network.node_port_base[node + 1]) - base
            closer = [
                local
                for local in range(degree)
                if far.get(network.names[network.port_node[network.port_peer[base + local]]], -1)
                == far[name] - 1
            ]
            assert next_hops(network, routes, node, host) == (closer if far[name] else None)


def test_hosts_of_a_leaf_share_an_edge_and_uplinks_share_a_group() -> None:
    network = build_network(FatTree(k=4))
    routes = find_routes(network)
    assert routes.n_edges == 8
    assert routes.host_edge.tolist() == [host // 2 for host in range(16)]
    leaf0 = node_of(network, "leaf0")
    entries = routes.route_entry[routes.route_base[leaf0] : routes.route_base[leaf0] + 8].tolist()
    assert entries == [ROUTE_DIRECT] + [2 << 16] * 7
    assert next_hops(network, routes, leaf0, 15) == [2, 3]


def test_base_of_hosts_is_minus_one() -> None:
    network = build_network(SingleSwitch(hosts=3))
    routes = find_routes(network)
    assert routes.route_base.tolist() == [-1, -1, -1, 0]
    assert routes.route_ports_base.tolist() == [-1, -1, -1, 0]
    assert routes.route_entry.tolist() == [ROUTE_DIRECT]
    assert len(routes.route_ports) == 0


@pytest.mark.parametrize("k", [4, 6])
def test_path_counts_of_the_fat_tree(k: int) -> None:
    network = build_network(FatTree(k=k))
    routes = find_routes(network)
    leaf = node_of(network, "leaf0")
    half = k // 2
    assert count_paths(network, routes, leaf, 0) == 1
    assert count_paths(network, routes, leaf, half) == half
    assert count_paths(network, routes, leaf, network.n_hosts - 1) == half * half


def test_path_counts_with_parallel_cables_and_oversubscribed_cores() -> None:
    network = build_network(LeafSpine(leaves=2, spines=3, hosts_per_leaf=1, links_per_pair=2))
    routes = find_routes(network)
    assert count_paths(network, routes, node_of(network, "leaf0"), 1) == 3 * 2 * 2
    clos = Clos3(pods=2, leaves_per_pod=1, spines_per_pod=2, cores=6, hosts_per_leaf=1)
    network = build_network(clos)
    assert count_paths(network, find_routes(network), node_of(network, "leaf0"), 1) == 6


def test_scale_up_switches_lead_nowhere_else() -> None:
    network = build_network(RailOptimized(servers=3, accelerators_per_server=2, spines=2))
    routes = find_routes(network)
    assert routes.n_edges == network.n_hosts
    scale_up = node_of(network, "scaleup1")
    assert [next_hops(network, routes, scale_up, host) for host in range(6)] == [[], [], None, None, [], []]


def test_a_dual_homed_host_is_reached_over_both_leaves() -> None:
    network = build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2))
    routes = find_routes(network)
    assert routes.n_edges == 2
    spine = node_of(network, "spine0")
    assert next_hops(network, routes, spine, 0) == [0, 1]
    assert next_hops(network, routes, spine, 3) == [2, 3]


def test_a_slow_detour_is_not_shortened_through_hosts() -> None:
    """A chain of four switches, and a host on both of its ends that would be the shorter way."""
    graph = networkx.Graph([("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("h0", "s0"), ("h1", "s3")])
    graph.add_edges_from([("h2", "s0"), ("h2", "s3")])
    graph.add_nodes_from(["h0", "h1", "h2"], kind="host")
    network = from_networkx(graph)
    path = trace(network, [0], [1])[0]
    arrows = [network.port_arrow(int(port)) for port in path]
    assert arrows == ["h0->s0", "s0->s1", "s1->s2", "s2->s3", "s3->h1"]


# Paths


@pytest.mark.parametrize(
    "spec",
    [
        LeafSpine(leaves=3, spines=2, hosts_per_leaf=3, links_per_pair=2),
        LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2),
        FatTree(k=4),
        FatTree(k=4, ports_per_host=2),
        Clos3(pods=2, leaves_per_pod=4, spines_per_pod=2, cores=2, hosts_per_leaf=2, ports_per_host=2),
        Clos3(pods=2, leaves_per_pod=2, spines_per_pod=2, cores=4, hosts_per_leaf=2),
        SingleSwitch(hosts=5, ports_per_host=2),
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_paths_are_connected_shortest_and_valley_free(spec: FatTree) -> None:
    network = build_network(spec)
    source, destination = all_host_pairs(network)
    paths = trace(network, source, destination)
    graph = to_networkx(network)
    shortest = dict(networkx.all_pairs_shortest_path_length(graph))
    for path, one, other in zip(paths, source, destination, strict=True):
        ports = path[path != NO_PORT]
        nodes = [*network.port_node[ports].tolist(), int(network.port_node[network.port_peer[ports[-1]]])]
        assert nodes[0] == one
        assert nodes[-1] == other
        assert network.port_node[network.port_peer[ports[:-1]]].tolist() == nodes[1:-1]
        assert len(ports) == shortest[network.names[one]][network.names[other]]
        tiers = network.tier[nodes].tolist()
        top = tiers.index(max(tiers))
        assert tiers == sorted(tiers[: top + 1]) + sorted(tiers[top + 1 :], reverse=True)


def test_one_server_takes_its_scale_up_network_and_one_rail_one_leaf() -> None:
    network = build_network(RailOptimized(servers=3, accelerators_per_server=4, spines=2))
    paths = trace(network, [0, 1, 0], [3, 9, 5])
    arrows = [[network.port_arrow(int(port)) for port in path if port != NO_PORT] for path in paths]
    assert arrows[0] == ["host0->scaleup0", "scaleup0->host3"]
    assert arrows[1] == ["host1->leaf1", "leaf1->host9"]
    assert arrows[2][0] == "host0->leaf0"
    assert arrows[2][-1] == "leaf1->host5"
    assert len(arrows[2]) == 4


def test_a_path_follows_the_rule_of_the_switch() -> None:
    """The index among equal next hops is hash * count >> 32, hash salted by switch."""
    network = build_network(FatTree(k=8))
    routes = find_routes(network)
    tables = tables_of(network, routes)
    source, destination = np.array([0, 1, 2, 3]), np.array([127, 126, 64, 31])
    paths = trace(network, source, destination)
    for path, path_hash, host in zip(paths, hashes(4).tolist(), destination.tolist(), strict=True):
        node = int(network.port_node[network.port_peer[path[0]]])
        for port in path[1:]:
            group = next_hops(network, routes, node, host)
            if group is not None:
                hashed = int(fmix32(path_hash ^ int(tables.node_salt[node])))
                assert port - network.node_port_base[node] == group[hashed * len(group) >> 32]
            node = int(network.port_node[network.port_peer[port]])
        assert node == host


def test_parallel_host_cables_are_chosen_by_hash() -> None:
    network = build_network(SingleSwitch(hosts=2, ports_per_host=4))
    flows = 4000
    paths = trace(network, np.zeros(flows), np.ones(flows))
    used, counts = np.unique(paths[:, 1], return_counts=True)
    assert used.tolist() == network.find_ports(["switch0->host1"]).tolist()
    assert (abs(counts - flows / 4) < 5 * np.sqrt(flows * 3 / 16)).all()


def test_ecmp_spreads_flows_evenly() -> None:
    """Counts over 8 uplinks within five standard deviations; the spine tier is independent of the first."""
    network = build_network(FatTree(k=16))
    flows = 20_000
    paths = trace(network, np.zeros(flows), np.full(flows, network.n_hosts - 1))
    for column, ways in ((1, 8), (2, 64)):
        counts = np.unique(paths[:, column], return_counts=True)[1]
        assert len(counts) == ways
        deviation = np.sqrt(flows * (1 / ways) * (1 - 1 / ways))
        assert (abs(counts - flows / ways) < 5 * deviation).all()


def test_colliding_flows_share_the_expected_fraction_of_uplinks() -> None:
    """n flows over n links leave (1 - 1/n)^n of them idle on average."""
    network = build_network(LeafSpine(leaves=2, spines=8, hosts_per_leaf=8))
    shares = []
    for seed in range(300):
        paths = trace(network, np.arange(8), np.arange(8, 16), seed=seed)
        shares.append(len(np.unique(paths[:, 1])) / 8)
    expected = 1 - (1 - 1 / 8) ** 8
    assert abs(np.mean(shares) - expected) < 3 * np.std(shares) / np.sqrt(len(shares))


def test_paths_without_a_route_end_early() -> None:
    network = build_network(RailOptimized(servers=2, accelerators_per_server=2, spines=1))
    routes = find_routes(network)
    port = network.find_ports(["host0->scaleup0"])
    paths = trace_path(tables_of(network, routes), first_port=port, destination=[2], path_hash=[7])
    assert paths.tolist() == [[int(port[0])]]


def test_no_flows_have_no_paths() -> None:
    network = build_network(SingleSwitch(hosts=2))
    assert trace(network, np.array([]), np.array([])).shape == (0, 1)


def test_closest_ports_prefer_a_direct_cable() -> None:
    graph = networkx.Graph([("host0", "host1"), ("host0", "leaf0"), ("host1", "leaf0")])
    network = from_networkx(graph, link=Link(rate="100Gbps"))
    routes = find_routes(network)
    _, closest = closest_ports(
        network,
        routes.distances,
        source=np.array([0], dtype=np.uint32),
        destination=np.array([1], dtype=np.uint32),
    )
    assert closest.tolist() == [[True, False]]


# Hashes


def test_hashes_of_known_values() -> None:
    """SplitMix64 from state 0 and the finaliser of MurmurHash3, as their authors' code gives them."""
    golden = 0x9E3779B97F4A7C15
    assert [int(mix64(golden * n)) for n in (1, 2, 3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
    assert int(fmix32(0)) == 0
    assert int(fmix32(1)) == 0x514E28B7


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**40))
def test_draws_of_arrays_and_of_integers_agree(key: int, a: int, b: int) -> None:
    mask = 2**64 - 1

    def mix(x: int) -> int:
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
        return x ^ x >> 31

    expected = mix((mix(key ^ a) + b) & mask)
    assert int(draw(key, a, b)) == expected
    assert draw(key, [a, a], [b, b]).tolist() == [expected, expected]


def test_purpose_keys_and_uniform() -> None:
    keys = {purpose_key(seed, purpose) for seed in range(20) for purpose in Purpose}
    assert len(keys) == 20 * len(Purpose)
    numbers = uniform(draw(purpose_key(3, Purpose.ECN), np.arange(100_000), 0))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 5 / np.sqrt(12 * len(numbers))
    assert float(uniform(2**64 - 1)) == 1 - 2**-53
