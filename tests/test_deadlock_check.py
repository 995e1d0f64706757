"""The static deadlock check: known verdicts, random networks against all paths, every single failure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support_deadlock import Stream, clos, ring, square
from support_oracles import graph, link
from support_routes import girth, listed_arcs, random_network

from fabric.analysis.deadlock import (
    Demand,
    DependencyGraph,
    Failure,
    RouteSet,
    check_deadlock,
    demands_of,
    failed_routes,
    find_route_set,
    heights,
    remedies,
    remedy,
    rounds,
    shortest_cycle,
    single_failures,
    turns_of,
    walk,
    without,
)
from fabric.spec import Clos3, LeafSpine, RailOptimized, Topology
from fabric.topology import Network, build_network

SEEDS = range(60)


def arcs_of(graph: DependencyGraph) -> set[tuple[int, int]]:
    return {
        (int(turns.inputs[k]), int(turns.outputs[j]))
        for turns in graph.turns
        for k, j in zip(*np.nonzero(turns.held), strict=True)
    }


def pinned(cables: list[tuple[str, str]], streams: list[Stream]) -> tuple[RouteSet, list[Demand]]:
    """Every stream along its own way, and nothing else."""
    ends = [
        (f"h-{stream.name}{end}", stream.path[k]) for stream in streams for k, end in ((0, ""), (-1, "-to"))
    ]
    _, network = graph(*cables, *ends, default=link(40_000_000_000, "1us"))
    routes = find_route_set(network, source=[], destination=[])
    row = {name: number - network.n_hosts for name, number in network.node_numbers.items()}
    demands = [
        Demand(
            label=stream.name,
            destination=network.node_numbers[f"h-{stream.name}-to"],
            entries=(row[stream.path[0]],),
            pinned={
                row[here]: int(network.find_ports([f"{here}->{there}"])[0])
                for here, there in pairwise(stream.path)
            },
        )
        for stream in streams
    ]
    return routes, demands


class TestKnownVerdicts:
    """Rings and the square of Hu et al., HotNets 2016; a bounce as in Tagger, CoNEXT 2017."""

    @pytest.mark.parametrize("switches", [3, 4, 5, 8])
    def test_rings(self, switches: int) -> None:
        routes, demands = pinned(*ring(switches, 1, 1))
        assert not check_deadlock(routes, demands=demands).can_deadlock
        for hops in range(2, switches):
            routes, demands = pinned(*ring(switches, hops, 1))
            verdict = check_deadlock(routes, demands=demands)
            assert len(verdict.cycle) == verdict.links_in_cycles == switches

    def test_the_square_has_a_cycle_whether_it_deadlocks_or_not(self) -> None:
        for f3_gbps in (0, 40):
            routes, demands = pinned(*square(f3_gbps))
            verdict = check_deadlock(routes, demands=demands)
            links = [step.link for step in verdict.cycle]
            assert set(links) == {"sA->sB", "sB->sC", "sC->sD", "sD->sA"}
            assert {step.route for step in verdict.cycle} == {"f1", "f2"}
            assert all(step.waits_for == after for step, after in zip(verdict.cycle, links[1:], strict=False))

    def test_a_bounce_makes_a_cycle_and_up_down_does_not(self) -> None:
        routes, demands = pinned(*clos(bounced=True))
        verdict = check_deadlock(routes, demands=demands)
        assert {step.link for step in verdict.cycle} == {"L3->S1", "S1->L1", "L1->S2", "S2->L3"}
        assert "can deadlock, if 4 links" in verdict.reason
        routes, demands = pinned(*clos(bounced=False))
        verdict = check_deadlock(routes, demands=demands)
        assert not verdict.can_deadlock
        assert "cannot deadlock: the buffer-dependency graph is acyclic" in verdict.reason

    def test_two_classes_or_lossy_frames_break_the_bounce(self) -> None:
        routes, demands = pinned(*clos(bounced=True))
        for each in remedies(routes, demands=demands):
            assert not each.verdict.can_deadlock, each.name
        assert "2 lossless classes" in remedy("classes", routes, demands=demands).what
        assert remedy("up-down", routes, demands=demands).price == "no path is lost"

    @pytest.mark.parametrize("switches", [2, 3, 4, 5])
    def test_a_routing_loop_needs_frames_that_live_long_enough(self, switches: int) -> None:
        names = [f"s{k}" for k in range(switches)]
        cables = list(pairwise(names)) + ([(names[-1], names[0])] if switches > 2 else [])
        _, network = graph(*cables, ("h0", names[0]), ("h1", names[0]), default=link(40_000_000_000, "1us"))
        routes = find_route_set(network, source=[], destination=[])
        row = {name: number - network.n_hosts for name, number in network.node_numbers.items()}
        loop = {
            row[here]: int(network.find_ports([f"{here}->{there}"])[0])
            for here, there in pairwise([*names, names[0]])
        }
        demand = Demand(
            label="loop", destination=network.node_numbers["h1"], entries=(row[names[0]],), pinned=loop
        )
        for lifetime in range(2, 3 * switches):
            verdict = check_deadlock(routes, demands=[demand], lifetime=lifetime)
            assert verdict.can_deadlock is (lifetime >= switches + 2), lifetime
        assert check_deadlock(routes, demands=[demand]).can_deadlock


class TestAgainstAllPaths:
    @pytest.mark.parametrize("several_ports", [False, True])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_arcs_and_shortest_cycle(self, seed: int, several_ports: bool) -> None:
        network = random_network(seed, several_ports=several_ports)
        random = np.random.default_rng(seed)
        up = random.random(network.n_links) > 0.1 * (seed % 3)
        routes = find_route_set(network, up=up)
        expected = listed_arcs(network, up)
        found = turns_of(routes)
        assert arcs_of(found) == expected
        assert set(walk(routes, demands_of(routes)).arcs) == expected
        cycle = shortest_cycle(found)
        assert len(cycle) == girth(expected)
        assert all(arc in expected for arc in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
        order = rounds(found)
        assert ((order >= 0).all()) == (not cycle)
        assert all(order[first] < order[second] for first, second in expected if not cycle)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_routes_of_given_pairs(self, seed: int) -> None:
        network = random_network(seed, several_ports=True)
        random = np.random.default_rng(seed)
        pairs = [tuple(random.choice(network.n_hosts, 2, replace=False).tolist()) for _ in range(3)]
        source, destination = zip(*pairs, strict=True)
        routes = find_route_set(network, source=source, destination=destination)
        listed = listed_arcs(network, np.ones(network.n_links, dtype=bool), pairs)
        assert (
            listed <= arcs_of(turns_of(routes)) <= listed_arcs(network, routes.up[network.link_ports[:, 0]])
        )
        """Hosts on the same switches are alike: what goes between two of them goes between any."""
        edges = {(routes.host_edge[a], routes.host_edge[b]) for a, b in pairs}
        alike = [
            (a, b)
            for a in range(network.n_hosts)
            for b in range(network.n_hosts)
            if a != b and (routes.host_edge[a], routes.host_edge[b]) in edges
        ]
        up = np.ones(network.n_links, dtype=bool)
        assert arcs_of(turns_of(routes)) == listed_arcs(network, up, alike)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_every_step_of_a_cycle_has_a_route_that_makes_it(self, seed: int) -> None:
        network = random_network(seed, several_ports=bool(seed % 2))
        for step in check_deadlock(find_route_set(network)).cycle:
            nodes = step.route.split(" -> ")
            hops = [f"{here}->{there}" for here, there in pairwise(nodes)]
            links = [step.link.partition("#")[0], step.waits_for.partition("#")[0]]
            assert links in [list(pair) for pair in pairwise(hops)]
            assert all(node in network.node_numbers for node in nodes)
            assert max(network.node_numbers[node] for node in (nodes[0], nodes[-1])) < network.n_hosts

    @pytest.mark.parametrize("seed", SEEDS)
    def test_remedies_break_every_cycle(self, seed: int) -> None:
        routes = find_route_set(random_network(seed, several_ports=bool(seed % 2)))
        for each in remedies(routes):
            assert not each.verdict.can_deadlock, each.name

    @pytest.mark.parametrize("seed", SEEDS)
    def test_up_down_reaches_all_from_one_root(self, seed: int) -> None:
        network = random_network(seed, several_ports=False)
        routes = find_route_set(network)
        changed = routes.up_down(heights(network))
        if len(set(network.link_b[network.link_a < network.n_hosts].tolist())) == network.n_switches:
            assert changed.unreached() == 0
        shorter = (changed.links >= 0) & (changed.links < routes.links)
        assert not shorter.any()


class TestFailures:
    @pytest.mark.parametrize("several_ports", [False, True])
    def test_single_failures_of_random_networks(self, several_ports: bool) -> None:
        judged, dangerous = 0, 0
        for seed in range(250):
            network = random_network(seed, several_ports=several_ports)
            routes = find_route_set(network)
            graph = turns_of(routes)
            if shortest_cycle(graph):
                continue
            for failure, cycle in single_failures(routes, graph):
                up = without(network, cables=failure.cables, switches=failure.switches)
                assert bool(cycle) == bool(girth(listed_arcs(network, up))), (seed, failure.name(network))
                judged += 1
                dangerous += bool(cycle)
        assert judged > 500
        assert dangerous > 5

    @pytest.mark.parametrize(
        "shape",
        [
            RailOptimized(servers=4, accelerators_per_server=4, spines=2, servers_per_rail_leaf=2),
            LeafSpine(leaves=4, spines=4, hosts_per_leaf=4, ports_per_host=2, planes=2),
        ],
        ids=["scale-up", "dual plane"],
    )
    def test_cables_of_hosts_on_several_switches_are_judged_together(
        self, shape: Topology, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of 1,024 accelerators in seconds, not in a quarter of an hour."""
        monkeypatch.setattr("fabric.analysis.deadlock.failures._Scan._all_again", None)
        routes = find_route_set(build_network(shape))
        found = list(single_failures(routes, turns_of(routes)))
        assert len(found) == routes.network.n_links + routes.network.n_switches
        assert not any(cycle for _, cycle in found)

    def test_names(self) -> None:
        network = build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2, links_per_pair=2))
        failure = Failure(cables=tuple(network.find_links("leaf0-spine1#1").tolist()), switches=(6,))
        assert failure.name(network) == "leaf0-spine1#1, spine0"

    def test_two_failures_in_a_leaf_spine_fabric(self) -> None:
        """No single one; two at different spines leave two leaves with a path that bounces at any other."""
        network = build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=2))
        routes = find_route_set(network)
        assert not any(cycle for _, cycle in single_failures(routes, turns_of(routes)))
        names = ("leaf0-spine0", "leaf1-spine1")
        pair = Failure(cables=tuple(int(network.find_links(name)[0]) for name in names))
        verdict = check_deadlock(failed_routes(network, pair))
        assert len(verdict.cycle) == 4
        up_down = remedy("up-down", failed_routes(network, pair))
        assert up_down.price == "2 pairs of switch and destination lose their path"
        same = Failure(cables=tuple(int(network.find_links(f"leaf{k}-spine0")[0]) for k in (0, 1)))
        assert not check_deadlock(failed_routes(network, same)).can_deadlock


def clos_of(pods: int, leaves: int, spines: int, hosts: int) -> Network:
    return build_network(
        Clos3(
            pods=pods,
            leaves_per_pod=leaves,
            spines_per_pod=spines,
            cores=spines * leaves,
            hosts_per_leaf=hosts,
        )
    )


class TestLargeNetworks:
    def test_dependencies_of_three_tiers_by_counting(self) -> None:
        """Spine: down to down within a pod, and both ways past the cores; core: from pod to pod."""
        pods, leaves, spines = 16, 16, 16
        network = clos_of(pods, leaves, spines, 32)
        assert network.n_hosts == 8192
        verdict = check_deadlock(find_route_set(network))
        at_spine = leaves * (leaves - 1) + 2 * leaves * leaves
        at_core = pods * (pods - 1)
        assert not verdict.can_deadlock
        assert verdict.n_arcs == pods * spines * at_spine + spines * leaves * at_core
        assert verdict.n_links == 4 * pods * leaves * spines

    def test_failures_of_three_tiers(self) -> None:
        network = clos_of(4, 4, 4, 4)
        routes = find_route_set(network)
        found = list(single_failures(routes, turns_of(routes)))
        assert len(found) == network.n_links + network.n_switches
        assert not any(cycle for _, cycle in found)
        for failure, _ in found[:: len(found) // 40]:
            assert not check_deadlock(failed_routes(network, failure)).can_deadlock

    def test_rails(self) -> None:
        network = build_network(RailOptimized(servers=8, accelerators_per_server=4, spines=2))
        assert not check_deadlock(find_route_set(network)).can_deadlock
