"""Failures: what they do to links, routes and flows in both engines, against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_two_engines import compare_engines

import fabric
from fabric.errors import SpecError
from fabric.failures import draw_failures, find_occurrences, read_log
from fabric.failures.draw import PURPOSE_FAILURES, draw_times
from fabric.failures.intervals import isolated_intervals
from fabric.failures.occurrences import NEVER_PS
from fabric.failures.timeline import milestones
from fabric.keyed_hash import purpose_key
from fabric.lower import lower
from fabric.lowered import DropReason, FaultKind, Lowered
from fabric.reroute import Rerouter
from fabric.reroute.groups import resilient_group
from fabric.routing import find_routes, trace_path
from fabric.spec import (
    Corruption,
    DegradedLink,
    DrawnFailures,
    FailureLog,
    FailureRates,
    Flow,
    Flows,
    GoBackN,
    HostHang,
    LeafSpine,
    LinkDown,
    LinkDrain,
    LinkFlap,
    NoCongestionControl,
    Permutation,
    PfcStorm,
    Record,
    Recovery,
    Run,
    Scenario,
    SingleSwitch,
    SlowNic,
    SwitchDown,
    ThroughputRecord,
    Transport,
)
from fabric.topology import Network, build_network

US, MS = 10**6, 10**9
AT_ONCE = Recovery(suspect=0, isolate=0, convergence=0, restore=0)


def fabric_of(**parts: Any) -> Scenario:
    """Two leaves, two spines, no congestion control."""
    small: dict[str, Any] = {
        "topology": LeafSpine(leaves=2, spines=2, hosts_per_leaf=2),
        "traffic": [Permutation(size="400KB", cross_leaf=True)],
        "transport": Transport(congestion=NoCongestionControl(), reliability=GoBackN(rto="100us")),
        "run": Run(until="20ms"),
        "record": Record(drops=True, throughput=ThroughputRecord(interval="1us"), pauses=True),
    }
    return Scenario(**small | parts)


def outcome(scenario: Scenario) -> Any:
    """What both engines say."""
    return compare_engines(lower(scenario), steps=[("hops", 50), ("ps", 3 * US)], window=0.4)


def one_flow(size: str = "400KB", **parts: Any) -> Scenario:
    flow = Flow(source=0, destination=1, size=size)
    return fabric_of(topology=SingleSwitch(hosts=2), traffic=[Flows(flows=[flow])], **parts)


def changes(lowered: Lowered, kind: int) -> list[tuple[int, int]]:
    """Times and values of the changes of a kind."""
    assert lowered.faults is not None
    rows = lowered.faults.changes[lowered.faults.changes["kind"] == kind]
    return list(zip(rows["time_ps"].tolist(), rows["value"].tolist(), strict=True))


class TestLinks:
    def test_what_is_on_a_link_is_lost_with_it(self) -> None:
        """1 us (delay and latency) of frames of 83.56 ns, and the one that is still being sent."""
        result = outcome(one_flow(failures=[LinkDown(link="host0-switch0", at="5us", lasts="1us")]))
        drops = result.rows["drop"]
        at_once = drops[(drops["time_ps"] == 5 * US) & (drops["kind"] == 0)]
        assert len(at_once) == (1_000_000 + 83_560 - 1) // 83_560 + 1
        assert result.counters["lost_in_flight"] >= len(at_once)
        assert result.reason == "FINISHED"

    def test_a_port_whose_link_is_down_goes_on_at_line_rate(self) -> None:
        """Frames of 4178 bytes on the wire, one every 83.56 ns, into the hole until the window is full."""
        result = outcome(one_flow(failures=[LinkDown(link="host0-switch0", at="2us", lasts="4us")]))
        drops = result.rows["drop"]
        begun = drops[(drops["time_ps"] > 2 * US) & (drops["value"] == DropReason.LINK_DOWN)]
        spacing = np.diff(begun[begun["kind"] == 0]["time_ps"])
        assert len(spacing) > 30
        assert np.all(spacing == 83_560)
        assert not np.any(begun["time_ps"] >= 6 * US)

    def test_a_degraded_link_takes_as_much_longer(self) -> None:
        """97 frames of 4178 bytes on the wire and one of 2770, each four times as long on the first link.

        Without that, the last one waits for a full one at the second.
        """
        slow = outcome(one_flow(failures=[DegradedLink(link="host0-switch0", rate="100Gbps", at=0)]))
        fast = outcome(one_flow())
        longer_ps = int(slow.columns["flow_delivered_ps"][0] - fast.columns["flow_delivered_ps"][0])
        assert longer_ps == 3 * 97 * 83_560 + 4 * 55_400 - 83_560

    def test_one_direction(self) -> None:
        """ACKs come over the other one, at full rate."""
        slow = DegradedLink(link="host0->switch0", rate="100Gbps", at=0)
        rows = lower(one_flow(failures=[slow])).faults
        assert rows is not None
        assert rows.changes["port"].tolist() == [0]
        assert rows.changes["value"].tolist() == [100 * 10**9]

    def test_the_worst_of_several_holds(self) -> None:
        lowered = lower(
            one_flow(
                failures=[
                    DegradedLink(link="host0->switch0", rate="100Gbps", at="1us", lasts="4us"),
                    DegradedLink(link="host0->switch0", rate="200Gbps", at="2us", lasts="9us"),
                    DegradedLink(link="host0->switch0", rate="900Gbps", at="20us", lasts="1us"),
                ]
            )
        )
        expected = [(1, 100), (5, 200), (11, 400), (20, 400), (21, 400)]
        assert changes(lowered, FaultKind.RATE) == [(t * US, rate * 10**9) for t, rate in expected]

    def test_overlapping_failures_are_one(self) -> None:
        lowered = lower(
            fabric_of(
                failures=[
                    LinkDown(link="leaf0-spine0", at="1us", lasts="4us"),
                    SwitchDown(switch="spine0", at="3us", lasts="5us"),
                ]
            )
        )
        assert lowered.faults is not None
        rows = lowered.faults.changes
        network = build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2))
        port = int(network.find_ports(["leaf0->spine0"])[0])
        mine = rows[(rows["port"] == port) & np.isin(rows["kind"], (FaultKind.DOWN, FaultKind.UP))]
        assert mine["time_ps"].tolist() == [1 * US, 8 * US]

    def test_corruption_loses_as_many_frames_as_its_rate_says(self) -> None:
        """12,208 frames of 33,424 bits at 1e-7: 40.7 are lost on average, standard deviation 6.4."""
        scenario = one_flow(
            size="50MB", failures=[Corruption(link="host0->switch0", bit_error_rate=1e-7, at=0)]
        )
        result = fabric.run(scenario, progress=False)
        sent = int(result.flows["sent"][0])
        mean = sent * (1 - (1 - 1e-7) ** (8 * 4178))
        lost = result.summary["drops"]["link loss"]
        assert abs(lost - mean) < 3 * mean**0.5

    def test_a_flapping_link(self) -> None:
        flap = LinkFlap(link="host0-switch0", at="2us", period="10us", duty=0.2, lasts="25us")
        found = find_occurrences(one_flow(failures=[flap]), build_network(SingleSwitch(hosts=2)))
        assert [(each.began_ps // US, each.ended_ps // US) for each in found] == [(2, 4), (12, 14), (22, 24)]
        assert outcome(one_flow(failures=[flap])).reason == "FINISHED"


class TestHosts:
    def test_a_host_that_hangs_is_seen_by_nobody(self) -> None:
        """No route changes; what it sent before arrives."""
        scenario = one_flow(failures=[HostHang(host="host1", at="3us", lasts="30us")], recovery=AT_ONCE)
        assert changes(lower(scenario), FaultKind.ROUTES) == []
        result = outcome(scenario)
        assert result.reason == "FINISHED"
        assert result.columns["flow_timeouts"][0] > 0
        assert not np.any(result.rows["drop"]["kind"][result.rows["drop"]["time_ps"] == 3 * US])

    def test_a_slow_nic_holds_its_leaf_up(self) -> None:
        result = outcome(one_flow(failures=[SlowNic(host="host1", rate="50Gbps", at=0)]))
        assert result.columns["pauses_sent"].sum() > 0 or result.columns["queue_peak_bytes"].max() > 100_000
        assert result.columns["drops_by_reason"].sum() == 0

    def test_a_pfc_storm_holds_from_the_first_pause_to_the_end(self) -> None:
        """A PAUSE takes 84 bytes at 400 Gbit/s, 1.68 ns, the delay and the latency of the switch."""
        scenario = one_flow(failures=[PfcStorm(host="host1", at="3us", lasts="50us")])
        latency_ps = 1_680 + 500_000 + int(scenario.switch.latency) + int(scenario.switch.pfc_response)
        result = outcome(scenario)
        rows = result.rows["pause"]
        rows = rows[rows["value"] == 53 * US + latency_ps]
        assert rows["time_ps"].tolist() == [3 * US + latency_ps]
        assert result.columns["flow_delivered_ps"][0] > 53 * US

    def test_a_storm_ends_with_its_link_and_begins_again(self) -> None:
        failures = [
            PfcStorm(host="host1", at="3us", lasts="50us"),
            LinkDown(link="host1-switch0", at="10us", lasts="5us"),
        ]
        scenario = one_flow(failures=failures, recovery=Recovery(reroute="none"))
        pauses = [value for _, value in changes(lower(scenario), FaultKind.PAUSE)]
        assert pauses == [1, 1, 0]
        outcome(scenario)


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


class TestChance:
    def test_draws_have_the_mean_and_variance_of_a_poisson_process(self) -> None:
        """1,000 parts over a hundredth of their mean time, 400 seeds: 3 standard errors."""
        counts = []
        for seed in range(400):
            key = purpose_key(seed, PURPOSE_FAILURES)
            parts, times = draw_times(1000, mean_ps=1e6, horizon_ps=10_000, key=key)
            assert np.all((times >= 0) & (times < 10_000))
            counts.append(len(parts))
        mean, variance = np.mean(counts), np.var(counts, ddof=1)
        assert abs(mean - 10) < 3 * (10 / 400) ** 0.5
        assert abs(variance - 10) < 3 * ((10 + 2 * 100) / 400) ** 0.5

    def test_every_class_of_part_fails_at_its_rate(self) -> None:
        network = build_network(
            fabric.Clos3(pods=4, leaves_per_pod=2, spines_per_pod=2, hosts_per_leaf=4, cores=4)
        )
        for name, units in (
            ("accelerator", 32),
            ("nic", 32),
            ("optic", 2 * network.n_links),
            ("link", network.n_links),
            ("leaf", 8),
            ("spine", 8),
            ("core", 4),
        ):
            rates = FailureRates(**dict.fromkeys(FailureRates.__struct_fields__, 0.0) | {name: 1.0})
            entry = DrawnFailures(lasts="1s", rates=rates, acceleration=8760 * 3600 * 100 / units)
            count = np.mean([len(list(draw_failures(entry, network, seed=seed))) for seed in range(60)])
            assert abs(count - 100) < 4 * (100 / 60) ** 0.5, name

    def test_one_part_does_not_depend_on_others(self) -> None:
        small, large = (build_network(LeafSpine(leaves=n, spines=2, hosts_per_leaf=2)) for n in (2, 4))
        rates = FailureRates(**dict.fromkeys(FailureRates.__struct_fields__, 0.0) | {"accelerator": 1.0})
        entry = DrawnFailures(lasts="1ms", rates=rates, acceleration=1e11)
        mine = {(each.host, each.at) for each in draw_failures(entry, small, seed=5)}
        theirs = {(each.host, each.at) for each in draw_failures(entry, large, seed=5)}
        assert mine
        assert mine < theirs

    def test_drawn_and_replayed_do_the_same(self, tmp_path: Path) -> None:
        entry = DrawnFailures(lasts="40us", acceleration=3e13, repair="8us")
        drawn = fabric_of(failures=[entry], traffic=[Permutation(size="2MB", cross_leaf=True)])
        network = build_network(drawn.topology)
        lines = ["at,lasts,kind,target,value"]
        for each in draw_failures(entry, network, seed=1):
            target = next(getattr(each, name) for name in ("link", "switch", "host") if hasattr(each, name))
            kind, value = type(each).__struct_config__.tag, getattr(each, "bit_error_rate", "")
            lines.append(f"{int(each.at)},{int(each.lasts or 0)},{kind},{target},{value}")
        log = tmp_path / "faults.csv"
        log.write_text("\n".join(lines) + "\n")
        assert len(lines) > 4
        replayed = drawn.replace(failures=[FailureLog(file=str(log))])
        assert find_occurrences(drawn, network) == find_occurrences(replayed, network)
        results = [fabric.run(each, progress=False).fingerprint for each in (drawn, replayed)]
        assert results[0] == results[1]
        other = fabric.run(drawn.replace(run=drawn.run.replace(seed=2)), progress=False)
        assert other.fingerprint != results[0]

    def test_a_log_reproduces_every_beginning_and_end(self, tmp_path: Path) -> None:
        log = tmp_path / "faults.csv"
        log.write_text(
            "kind,target,at,lasts,value\n"
            "link_down,leaf0-spine1,1.5ms,200us,\n"
            "\n"
            "degraded_link,leaf0->spine0,10,5,100Gbps\n"
            "switch_down,spine1,2ms,,\n"
        )
        scenario = fabric_of(failures=[FailureLog(file=str(log))])
        found = find_occurrences(scenario, build_network(scenario.topology))
        assert [(each.target, each.began_ps, each.ended_ps) for each in found] == [
            ("leaf0->spine0", 10, 15),
            ("leaf0-spine1", 1_500 * US, 1_700 * US),
            ("spine1", 2 * MS, NEVER_PS),
        ]


BAD_LOGS = {
    "no column": ("at,kind\n", "{file}:1", "'at,kind'", "a column target"),
    "unknown column": ("at,kind,traget\n", "{file}:1", "'traget'", 'did you mean "target"?'),
    "unknown kind": ("at,kind,target\n1us,link_dwon,a-b\n", "{file}:2: kind", "'link_dwon'", '"link_down"'),
    "too few cells": ("at,kind,target\n1us,link_down\n", "{file}:2", "'1us,link_down'", "3 cells"),
    "no time": ("at,kind,target\nsoon,link_down,a-b\n", "{file}:2: at", "'soon'", "a duration"),
    "no target": ("at,kind,target\n1us,link_down,\n", "{file}:2: target", "(missing)", "a string"),
    "no such link": (
        "at,kind,target\n1us,link_down,leaf0-spine9\n",
        "{file}:2.link",
        "'leaf0-spine9'",
        "two ends of a link",
    ),
    "value where none belongs": (
        "at,kind,target,value\n\n1us,host_hang,host0,3\n",
        "{file}:3: value",
        "'3'",
        "nothing",
    ),
    "no rate": ("at,kind,target,value\n1us,slow_nic,host0,fast\n", "{file}:2: value", "'fast'", "a rate"),
    "no error rate": (
        "at,kind,target,value\n1us,corruption,leaf0-spine0,0.5\n",
        "{file}:2: value",
        "0.5",
        "at most 1e-6",
    ),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_bad_logs_give_one_error_with_the_line(name: str, tmp_path: Path) -> None:
    text, path, value, allowed = BAD_LOGS[name]
    log = tmp_path / "faults.csv"
    log.write_text(text)
    with pytest.raises(SpecError) as caught:
        lower(fabric_of(failures=[FailureLog(file=str(log))]))
    message = str(caught.value)
    assert path.format(file=log) in message
    assert value in message
    assert allowed in message


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"failures\[0\].file.*that can be read"):
        lower(fabric_of(failures=[FailureLog(file=str(tmp_path / "none.csv"))]))
    assert read_log.__doc__


BAD = {
    "link": (LinkDown(link="leaf0-spine7", at=0), r"failures\[0\].link: 'leaf0-spine7'"),
    "switch": (
        SwitchDown(switch="spnie0", at=0),
        r"failures\[0\].switch: 'spnie0' .*did you mean \"spine0\"",
    ),
    "host": (HostHang(host="host99", at=0), r"failures\[0\].host: 'host99'"),
    "class": (PfcStorm(host="host0", at=0, classes=("dta",)), r"failures\[0\].classes: 'dta' .*data"),
}


@pytest.mark.parametrize("name", BAD)
def test_parts_that_there_are_not(name: str) -> None:
    failure, message = BAD[name]
    with pytest.raises(SpecError, match=message):
        lower(fabric_of(failures=[failure]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinkDown(link="leaf0", at=0), r"LinkDown.link: 'leaf0'.*two ends"),
        (lambda: LinkDown(link="a-b", at=0, lasts=0), "LinkDown.lasts.*above 0"),
        (lambda: LinkFlap(link="a-b", at=0, period="1us", duty=1.0, lasts="1ms"), "duty.*below 1"),
        (lambda: LinkFlap(link="a-b", at=0, period="1us"), "lasts.*how long it goes on"),
        (lambda: LinkFlap(link="a-b", at=0, period=1, lasts="1us"), "period"),
        (lambda: DegradedLink(link="a-b", at=0, rate=1), "rate.*at least 1Kbps"),
        (lambda: Corruption(link="a-b", at=0, bit_error_rate=0.1), "bit_error_rate.*1e-6"),
        (lambda: SlowNic(host="host0", at=0, rate=0), "rate"),
        (lambda: FailureRates(link=-1.0), "link.*from 0"),
        (lambda: DrawnFailures(lasts=0), "lasts.*above 0"),
        (lambda: DrawnFailures(lasts="1ms", acceleration=0.0), "acceleration"),
        (lambda: Recovery(suspect="2us", isolate="1us"), "isolate.*at least suspect"),
        (lambda: Recovery(dead="1us"), "dead.*at least isolate"),
        (lambda: Recovery(buckets=0), "buckets"),
        (
            lambda: LeafSpine(leaves=2, spines=2, hosts_per_leaf=1, planes=2),
            "planes.*divisor of ports_per_host",
        ),
    ],
)
def test_bad_specs_give_one_error(make: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"run": Run()}, r"run.until.*never repaired \(leaf0-spine0\)"),
        ({"nic": {"queue_pairs": "in_turn"}}, "nic.queue_pairs.*earliest"),
        ({"recovery": {"reroute": "resilient"}, "routing": {"choice": "adaptive"}}, "routing.choice.*ecmp"),
        ({"recovery": {"reroute": "resilient"}, "routing": {"weights": "rate"}}, "routing.weights.*equal"),
    ],
)
def test_what_does_not_go_with_failures(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        lower(fabric_of(failures=[LinkDown(link="leaf0-spine0", at=0)], **parts))


def test_cut_through_wants_one_rate() -> None:
    scenario = fabric_of(failures=[SlowNic(host="host0", at=0, rate="1Gbps")], switch={"cut_through": True})
    with pytest.raises(SpecError, match=r"switch.cut_through.*another rate"):
        lower(scenario)
