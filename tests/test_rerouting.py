"""Rerouting after failures: next hops in every state, flows that move, levels of detection."""

from __future__ import annotations

import numpy as np
import pytest
from support_failures import AT_ONCE, US, changes, fabric_of, outcome

from fabric.failures import find_occurrences
from fabric.failures.intervals import isolated_intervals
from fabric.failures.timeline import milestones
from fabric.lower import lower
from fabric.lowered import FaultKind, Lowered
from fabric.reroute import Rerouter
from fabric.reroute.groups import resilient_group
from fabric.routing import find_routes, trace_path
from fabric.spec import (
    Corruption,
    Flow,
    Flows,
    HostHang,
    LeafSpine,
    LinkDown,
    LinkDrain,
    LinkFlap,
    Permutation,
    Recovery,
    SwitchDown,
)
from fabric.topology import Network, build_network


class TestRerouting:
    def network(self, **shape: int) -> Network:
        return build_network(LeafSpine(**{"leaves": 4, "spines": 2, "hosts_per_leaf": 2, **shape}))

    def without(self, network: Network, *names: str) -> np.ndarray:
        up = np.ones(network.n_links, dtype=np.bool_)
        for name in names:
            up[network.find_links(name)] = False
        return up

    def entry(
        self, network: Network, table: np.ndarray, switch: str, host: str, rerouter: Rerouter
    ) -> list[str]:
        """Names of the next hops of a switch to a host."""
        node, number = network.node_numbers[switch], network.node_numbers[host]
        value = int(table[node - network.n_hosts, rerouter.host_edge[number]])
        routes = rerouter.routes()
        first = int(routes.route_ports_base[node]) + (value & 0xFFFF)
        ports = routes.route_ports[first : first + (value >> 16)].tolist()
        base = int(network.node_port_base[node])
        return [network.names[network.port_node[network.port_peer[base + port]]] for port in ports]

    def test_tables_of_the_beginning_are_those_without_failures(self) -> None:
        network = self.network()
        everything = self.without(network)
        rerouter = Rerouter(network, ever_down=~self.without(network, "leaf0-spine0"))
        table = rerouter.entries(everything, everything)
        plain = find_routes(network)
        np.testing.assert_array_equal(table.ravel(), plain.route_entry)
        np.testing.assert_array_equal(rerouter.routes().route_ports, plain.route_ports)

    def test_ecmp_bounces_where_up_down_gives_up(self) -> None:
        """leaf0-spine0 and leaf1-spine1 down: between leaf0 and leaf1 only a third leaf is left."""
        network = self.network()
        up = self.without(network, "leaf0-spine0", "leaf1-spine1")
        free = Rerouter(network, ever_down=~up)
        assert self.entry(network, free.entries(up, up), "leaf0", "host2", free) == ["spine1"]
        assert set(self.entry(network, free.entries(up, up), "spine1", "host2", free)) == {"leaf2", "leaf3"}
        strict = Rerouter(network, ever_down=~up, paths="up_down")
        assert self.entry(network, strict.entries(up, up), "leaf0", "host2", strict) == []
        assert self.entry(network, strict.entries(up, up), "leaf0", "host4", strict) == ["spine1"]

    def test_neighbours_know_before_everybody(self) -> None:
        network = self.network()
        near, far = self.without(network, "leaf0-spine0"), self.without(network)
        rerouter = Rerouter(network, ever_down=~near)
        table = rerouter.entries(near, far)
        assert self.entry(network, table, "leaf0", "host4", rerouter) == ["spine1"]
        assert self.entry(network, table, "leaf1", "host0", rerouter) == ["spine0", "spine1"]
        assert self.entry(network, table, "spine0", "host0", rerouter) == []
        table = rerouter.entries(near, near)
        assert self.entry(network, table, "leaf1", "host0", rerouter) == ["spine1"]

    @pytest.mark.parametrize("count", [2, 3, 5, 8])
    def test_resilient_hashing_moves_nobody_else(self, count: int) -> None:
        members = tuple(range(10, 10 + count))
        healthy = resilient_group(members, left=members, buckets=12)
        lost = resilient_group(members, left=members[1:], buckets=12)
        moved = [one for one, other in zip(healthy, lost, strict=True) if one != other]
        assert moved == [10] * 12
        heirs = np.bincount(np.array(lost[:12]) - 11, minlength=count - 1)
        assert heirs.max() - heirs.min() <= 1

    def test_plain_hashing_moves_others_too(self) -> None:
        """Of flows on the seven other links: by the overlaps of eighths and sevenths 0.816 stay."""
        scenario = fabric_of(
            topology=LeafSpine(leaves=2, spines=8, hosts_per_leaf=32),
            traffic=[Permutation(size="1KB", cross_leaf=True)] * 20,
            failures=[LinkDown(link="leaf0-spine3", at="1us")],
        )
        kept = {}
        for method in ("ecmp", "resilient"):
            recovery = AT_ONCE.replace(reroute=method)
            lowered = lower(scenario.replace(recovery=recovery))
            before, after = (self._paths(lowered, failed=failed) for failed in (False, True))
            up = lowered.flow_source < 32
            lost = before == int(build_network(scenario.topology).find_ports(["leaf0->spine3"])[0])
            kept[method] = float(np.mean((before == after)[up & ~lost]))
        assert kept["resilient"] == 1.0
        assert abs(kept["ecmp"] - 0.816) < 0.05

    def _paths(self, lowered: Lowered, *, failed: bool) -> np.ndarray:
        """The uplink of every flow."""
        from dataclasses import replace

        if failed:
            assert lowered.faults is not None
            entries = lowered.route_entry.copy()
            entries[lowered.faults.route_place] = lowered.faults.route_value
            lowered = replace(lowered, route_entry=entries)
        ports = trace_path(
            lowered,
            first_port=lowered.flow_port,
            destination=lowered.flow_destination,
            path_hash=lowered.flow_hash,
        )
        return ports[:, 1]

    def test_hosts_change_paths_by_themselves(self) -> None:
        """Half of the paths are dead for good; every flow finds the other half after some time-outs."""
        scenario = fabric_of(
            failures=[SwitchDown(switch="spine0", at="3us")],
            recovery=Recovery(reroute="end_host"),
            traffic=[Permutation(size="100KB", cross_leaf=True)],
        )
        result = outcome(scenario)
        assert result.reason == "FINISHED"
        assert result.columns["flow_timeouts"].max() >= 1
        stuck = outcome(scenario.replace(recovery=Recovery(reroute="none")))
        assert stuck.reason == "UNTIL"

    def test_a_flow_moves_to_the_other_port_and_back(self) -> None:
        topology = LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2, planes=2)
        scenario = fabric_of(
            topology=topology,
            traffic=[Flows(flows=[Flow(source=0, destination=3, size="2MB")])],
            failures=[LinkDown(link="host3-leaf2", at="10us", lasts="20us")],
            recovery=AT_ONCE.replace(convergence="1us"),
        )
        lowered = lower(scenario)
        assert lowered.faults is not None
        assert lowered.faults.move_port.tolist() == [1, 0]
        assert changes(lowered, FaultKind.MOVES) == [(11 * US, 0), (31 * US, 1)]
        result = outcome(scenario)
        assert result.reason == "FINISHED"
        assert result.columns["port_tx_bytes"][1] > 500_000
        stays = outcome(scenario.replace(recovery=AT_ONCE.replace(failover="none")))
        assert stays.columns["port_tx_bytes"][1] == 0

    def test_a_drained_link_loses_nothing(self) -> None:
        scenario = fabric_of(failures=[LinkDrain(link="leaf0-spine0", at="3us")], recovery=AT_ONCE)
        result = outcome(scenario)
        assert result.columns["drops_by_reason"].sum() == 0
        assert result.reason == "FINISHED"
        assert len(changes(lower(scenario), FaultKind.DOWN)) == 0

    def test_a_link_that_flaps_stays_out(self) -> None:
        recovery = Recovery(suspect=0, isolate="1us", restore="10us")
        flap = LinkFlap(link="leaf0-spine0", at="5us", period="8us", duty=0.5, lasts="30us")
        network = build_network(fabric_of().topology)
        found = find_occurrences(fabric_of(failures=[flap], recovery=recovery), network)
        cable = int(network.find_links("leaf0-spine0")[0])
        assert isolated_intervals(found, recovery) == {cable: [(6 * US, 43 * US)]}
        quick = recovery.replace(restore="1us")
        found = find_occurrences(fabric_of(failures=[flap], recovery=quick), network)
        assert isolated_intervals(found, quick)[cable][:2] == [(6 * US, 10 * US), (14 * US, 18 * US)]

    def test_short_failures_change_no_route(self) -> None:
        failure = LinkDown(link="leaf0-spine0", at="5us", lasts="10us")
        lowered = lower(fabric_of(failures=[failure], recovery=Recovery(suspect=0, isolate="10us")))
        assert changes(lowered, FaultKind.ROUTES) == []

    def test_states_that_come_again_are_kept_once(self) -> None:
        flap = LinkFlap(link="leaf0-spine0", at="5us", period="8us", duty=0.5, lasts="800us")
        lowered = lower(fabric_of(failures=[flap], recovery=AT_ONCE))
        assert lowered.faults is not None
        assert len(changes(lowered, FaultKind.ROUTES)) == 200
        assert len(lowered.faults.route_base) == 3

    def test_levels(self) -> None:
        recovery = Recovery(suspect="1us", isolate="2us", convergence="5us", dead="20us", restore="3us")
        failures = [
            LinkDown(link="leaf0-spine0", at="10us", lasts="15us"),
            HostHang(host="host0", at="10us", lasts="30us"),
            Corruption(link="leaf0-spine1", at="10us", bit_error_rate=1e-7, isolate="4us"),
        ]
        network = build_network(fabric_of().topology)
        by_kind = {
            each.kind: each
            for each in milestones(find_occurrences(fabric_of(failures=failures), network), recovery)
        }
        link = find_occurrences(fabric_of(failures=failures, recovery=recovery), network)
        by_kind = {each.kind: each for each in milestones(link, recovery)}
        down = by_kind["link_down"]
        assert (down.suspected_ps, down.isolated_ps, down.converged_ps) == (11 * US, 12 * US, 17 * US)
        assert (down.dead_ps, down.ended_ps, down.restored_ps) == (-1, 25 * US, 28 * US)
        assert (by_kind["host_hang"].isolated_ps, by_kind["host_hang"].dead_ps) == (-1, 30 * US)
        assert (by_kind["corruption"].suspected_ps, by_kind["corruption"].isolated_ps) == (-1, 14 * US)
