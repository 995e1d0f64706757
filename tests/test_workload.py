"""Traffic patterns as flows: who sends what to whom, and that adding an entry changes no other.

Networks are small leaf-spine fabrics, where every property is checked flow by flow; statistical ones
(Poisson, uniform) are held to 3 standard errors, or a stated quantile of chi-squared.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import SpecError
from fabric.spec import (
    AllToAll,
    Flow,
    Flows,
    Incast,
    LeafSpine,
    Permutation,
    Poisson,
    RailOptimized,
    Scenario,
    SingleSwitch,
    Transport,
    Uniform,
)
from fabric.topology import build_network
from fabric.workload import FlowTable, build_flows, load_distribution
from fabric.workload.draws import EntryDraws
from fabric.workload.permutation import random_derangement
from fabric.workload.placement import host_leaves, host_rates_bps, spread_over_leaves
from fabric.workload.waits import find_cycle

US = 10**6
LEAVES, HOSTS_PER_LEAF = 4, 4
HOSTS = LEAVES * HOSTS_PER_LEAF
FABRIC = LeafSpine(leaves=LEAVES, spines=2, hosts_per_leaf=HOSTS_PER_LEAF)


def flows_of(*traffic, topology=FABRIC, seed=1):
    scenario = Scenario(topology=topology, traffic=traffic, run={"seed": seed})
    return build_flows(scenario, build_network(topology))


def leaf_of(hosts):
    return np.asarray(hosts).astype(int) // HOSTS_PER_LEAF


def rows(table, label=None):
    keep = slice(None) if label is None else table.pattern == table.patterns.index(label)
    return list(
        zip(
            table.source[keep].tolist(),
            table.destination[keep].tolist(),
            table.size_bytes[keep].tolist(),
            table.start_ps[keep].tolist(),
            strict=True,
        )
    )


class TestFlowTable:
    def test_columns_have_the_types_of_the_contract(self):
        table = FlowTable.from_arrays([0, 1], [1, 0], size_bytes=5_000_000_000, start_ps=[0, 7])
        assert (table.source.dtype, table.destination.dtype, table.pattern.dtype) == (np.uint32,) * 3
        assert (table.size_bytes.dtype, table.start_ps.dtype) == (np.int64, np.int64)
        assert table.size_bytes.tolist() == [5_000_000_000] * 2
        assert table.n_flows == len(table) == 2
        assert table.names is None
        assert table.after_flow.dtype == table.after_predecessor.dtype == np.uint32

    def test_an_empty_table(self):
        table = FlowTable.from_arrays([], [], size_bytes=[])
        assert len(table) == 0
        assert len(FlowTable.concatenate([])) == 0
        assert len(FlowTable.concatenate([table, table])) == 0

    @pytest.mark.parametrize(
        ("arguments", "path"),
        [
            ({"source": [0, 9]}, "flows[1].source"),
            ({"destination": [1, -1]}, "flows[1].destination"),
            ({"destination": [1, 1]}, "flows[1].destination"),
            ({"size_bytes": [1, 0]}, "flows[1].size"),
            ({"size_bytes": [2**63, 1]}, "flows.size"),
            ({"start_ps": [-1, 0]}, "flows[0].start"),
            ({"start_ps": [2**62 + 1, 0]}, "flows[0].start"),
            ({"size_bytes": [1.5, 2]}, "flows.size"),
            ({"size_bytes": [1, 2, 3]}, "flows"),
            ({"names": ["a"]}, "flows.names"),
            ({"names": ["a", "a"]}, "flows[1].name"),
            ({"after": [(0, 2)]}, "flows.after[0]"),
            ({"after": [0, 1]}, "flows.after"),
            ({"after": [(0, 1), (1, 0)]}, "flows[0].after"),
            ({"after": [(1, 1)]}, "flows[1].after"),
        ],
    )
    def test_wrong_values_are_named_with_their_flow(self, arguments, path):
        given = {"source": [0, 1], "destination": [1, 2], "size_bytes": [1, 1]} | arguments
        with pytest.raises(SpecError) as caught:
            FlowTable.from_arrays(**given, n_hosts=3)
        assert caught.value.path == path

    def test_concatenation_renumbers(self):
        a = FlowTable.from_arrays([0, 1], 2, size_bytes=1, names=["x", ""], after=[(1, 0)], label="a")
        b = FlowTable.from_arrays([3, 4], 5, size_bytes=2, after=[(0, 1)], label="b", traffic_class="c")
        table = FlowTable.concatenate([a, b])
        assert table.names == ("x", "", "", "")
        assert list(zip(table.after_flow, table.after_predecessor, strict=True)) == [(1, 0), (2, 3)]
        assert table.pattern.tolist() == [0, 0, 1, 1]
        assert table.traffic_class == (None, "c")
        with pytest.raises(SpecError, match="x"):
            FlowTable.concatenate([a, a])

    def test_waits_are_sorted_and_unique(self):
        table = FlowTable.from_arrays([0, 1, 2], 3, size_bytes=1, after=[(2, 1), (1, 0), (2, 1)])
        assert table.after_flow.tolist() == [1, 2]
        assert table.with_waits([]).after_flow.size == 0

    @given(st.integers(2, 12), st.data())
    def test_cycles_are_found_exactly(self, flows, data):
        edge = st.tuples(st.integers(0, flows - 1), st.integers(0, flows - 1))
        edges = sorted(data.draw(st.sets(edge, min_size=1, max_size=20)))
        waits = np.array(edges, dtype=np.int64)
        cycle = find_cycle(waits[:, 0], predecessor=waits[:, 1], n_flows=flows)
        reach = np.zeros((flows, flows), dtype=bool)
        reach[waits[:, 0], waits[:, 1]] = True
        for middle in range(flows):
            reach |= np.outer(reach[:, middle], reach[middle])
        assert bool(cycle) == bool(np.diag(reach).any())
        assert all((one, other) in edges for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True))


class TestBuild:
    def test_entries_in_order_with_their_labels_classes_and_transports(self):
        transport = Transport(payload=1024)
        table = flows_of(
            Permutation(size="1KB", transport=transport),
            Permutation(size="2KB", name="second"),
            Permutation(size="3KB", traffic_class="control"),
            Flows(flows=[{"source": 0, "destination": "host5", "size": "1MB"}]),
        )
        assert table.patterns == ("permutation", "second", "permutation-2", "flows")
        assert table.pattern.tolist() == [0] * HOSTS + [1] * HOSTS + [2] * HOSTS + [3]
        assert table.transport == (transport, None, None, None)
        assert table.traffic_class == (None, None, "control", None)
        assert rows(table, "flows") == [(0, 5, 1_000_000, 0)]

    def test_a_name_that_equals_a_kind_keeps_it(self):
        table = flows_of(Permutation(size=1), Uniform(size=1, flows=1, name="permutation"))
        assert table.patterns == ("permutation-2", "permutation")

    def test_start_and_jitter(self):
        table = flows_of(Permutation(size=1, start="5us", jitter="2us", count=50))
        offset = table.start_ps - 5 * US
        assert offset.min() >= 0
        assert offset.max() < 2 * US
        n = len(table)
        assert offset.mean() == pytest.approx(US, abs=3 * 2 * US / math.sqrt(12 * n))
        assert len(np.unique(offset)) > 0.99 * n

    @pytest.mark.parametrize(
        "entry",
        [
            Flows(flows=[Flow(source=0, destination=1, size=1, start=2**60)], start="1us"),
            Permutation(size=1, start=2**60, jitter=2**60),
            Poisson(load=0.5, distribution="websearch", flows=9, start=2**60),
        ],
    )
    def test_no_flow_starts_after_the_clock(self, entry):
        with pytest.raises(SpecError, match="about 13 days") as caught:
            flows_of(Incast(senders=1, size=1), entry)
        assert caught.value.path == "traffic[1].start"

    def test_starts_of_a_file_have_the_same_bound(self, tmp_path):
        file = tmp_path / "flows.csv"
        file.write_text(f"source,destination,size,start\n0,1,1,{2**62}\n")
        with pytest.raises(SpecError, match="about 13 days") as caught:
            flows_of(Flows(file=str(file), start="1s"))
        assert caught.value.path == "traffic[0].start"

    def test_patterns_know_their_entry(self):
        table = flows_of(Permutation(size=1), Incast(senders=2, size=1, victims=1))
        assert [table.pattern_path(pattern) for pattern in range(3)] == [
            "traffic[0]",
            "traffic[1]",
            "traffic[1]",
        ]
        assert table.flow_path(len(table) - 1) == "traffic[1]"
        assert FlowTable.from_arrays(0, 1, size_bytes=1, label="x").flow_path(0) == 'traffic "x"'

    def test_the_seed_decides(self):
        entry = Poisson(load=0.5, distribution="fb_hadoop", flows=200)
        assert rows(flows_of(entry)) == rows(flows_of(entry))
        assert rows(flows_of(entry)) != rows(flows_of(entry, seed=2))

    def test_another_entry_changes_no_draw(self):
        kinds = [
            Permutation(size=7, jitter="1us"),
            Uniform(size=8, flows=3, jitter="1us"),
            Incast(size=9, senders=5, victims=2, jitter="1us"),
            Poisson(load=0.3, distribution="websearch", duration="200us"),
            AllToAll(size=3, jitter="1us"),
        ]
        together = flows_of(*kinds, Permutation(size=70), Incast(size=90, senders=3))
        for entry in kinds:
            alone = flows_of(entry)
            for label in alone.patterns:
                assert rows(together, label) == rows(alone, label)

    def test_two_entries_of_a_kind_differ(self):
        table = flows_of(Permutation(size=1, name="a"), Permutation(size=1, name="b"))
        assert rows(table, "a") != rows(table, "b")


class TestExplicit:
    def write(self, tmp_path, text):
        file = tmp_path / "flows.csv"
        file.write_text(text, encoding="utf-8")
        return str(file)

    def test_scenario_and_file(self, tmp_path):
        file = self.write(
            tmp_path,
            "# a comment\nsource,destination,size,start,name,after\n"
            "host1,2,4MB,1.5us,first,\n3,host4,100,,second,first; inline\n",
        )
        table = flows_of(
            Flows(
                flows=[Flow(source="host9", destination=0, size=10, start="2us", name="inline")],
                file=file,
                start="1us",
            )
        )
        assert rows(table) == [
            (9, 0, 10, 3 * US),
            (1, 2, 4_000_000, 2_500_000),
            (3, 4, 100, US),
        ]
        assert table.names == ("inline", "first", "second")
        assert list(zip(table.after_flow, table.after_predecessor, strict=True)) == [(2, 0), (2, 1)]

    def test_waits_across_entries(self):
        first = Flow(source=0, destination=1, size=1, name="a", after=["b"])
        table = flows_of(
            Permutation(size=1),
            Flows(flows=[first]),
            Flows(flows=[Flow(source=1, destination=2, size=1, name="b")]),
        )
        assert table.after_flow.tolist() == [HOSTS]
        assert table.after_predecessor.tolist() == [HOSTS + 1]
        assert table.names is not None
        assert table.names[HOSTS:] == ("a", "b")

    @pytest.mark.parametrize(
        ("line", "place", "about"),
        [
            ("host99,1,1,0,,", "source", "host0"),
            ("leaf0,1,1,0,,", "source", "host0"),
            ("16,1,1,0,,", "source", "0 to 15"),
            ("1,host01,1,0,,", "destination", "did you mean"),
            ("1,1,1,0,,", "destination", "other than the source"),
            ("1,2,0,0,,", "size", "above 0"),
            ("1,2,12Mb,0,,", "size", "MB"),
            ("1,2,,0,,", "size", "a size"),
            ("1,2,1,-3,,", "start", "not negative"),
            ("1,2,1,0,,nobody", "after", "nobody"),
            ("1,2,1,0", "", "6 values"),
        ],
    )
    def test_errors_name_file_and_line(self, tmp_path, line, place, about):
        file = self.write(tmp_path, f"source,destination,size,start,name,after\n0,1,1,0,x,\n{line}\n")
        with pytest.raises(SpecError, match=about) as caught:
            flows_of(Flows(file=file))
        assert caught.value.path == f"{file}:3 {place}".strip()

    def test_a_missing_file_and_a_wrong_header(self, tmp_path):
        with pytest.raises(SpecError) as caught:
            flows_of(Flows(file=str(tmp_path / "none.csv")))
        assert caught.value.path == "traffic[0].file"
        file = self.write(tmp_path, "src,dst,size,start\n0,1,1,0\n")
        with pytest.raises(SpecError, match="header source,destination,size,start"):
            flows_of(Flows(file=file))

    def test_a_cycle_through_a_file(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start,name,after\n0,1,1,0,a,b\n1,2,1,0,b,a\n")
        with pytest.raises(SpecError, match="wait for themselves") as caught:
            flows_of(Flows(file=file))
        assert caught.value.path == f"{file}:2 after"
        assert caught.value.value == '"a" after "b" after "a"'

    def test_a_file_with_only_its_header(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start\n")
        for flows in ([], [Flow(source=0, destination=1, size=1)]):
            with pytest.raises(SpecError, match="at least one flow") as caught:
                flows_of(Flows(file=file, flows=flows))
            assert caught.value.path == "traffic[0].file"

    def test_one_name_twice_across_entries(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start,name\n0,1,1,0,a\n")
        with pytest.raises(SpecError, match=f"a name that {file}:2 does not have") as caught:
            flows_of(Flows(file=file), Flows(flows=[Flow(source=0, destination=1, size=1, name="a")]))
        assert caught.value.path == "traffic[1].flows[0].name"

    def test_one_name_twice_in_a_file(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start,name\n0,1,1,0,a\n\n0,1,1,0,a\n")
        with pytest.raises(SpecError, match=f"a name that {file}:2 does not have") as caught:
            flows_of(Flows(file=file))
        assert caught.value.path == f"{file}:4 name"


class TestIncast:
    def test_senders_sit_on_other_leaves_evenly(self):
        table = flows_of(Incast(receivers=("host5",), senders=6, size="1MB"))
        assert set(table.destination.tolist()) == {5}
        assert len(set(table.source.tolist())) == 6
        assert sorted(Counter(leaf_of(table.source).tolist()).items()) == [(0, 2), (2, 2), (3, 2)]

    def test_the_own_leaf_comes_last(self):
        table = flows_of(Incast(receivers=("host5",), senders=14, size=1))
        assert set(leaf_of(table.source[:12]).tolist()) == {0, 2, 3}
        assert set(leaf_of(table.source[12:]).tolist()) == {1}
        assert 5 not in table.source

    def test_several_receivers_have_distinct_senders_while_there_are_enough(self):
        table = flows_of(Incast(receivers=3, senders=4, size=1))
        receivers = set(table.destination.tolist())
        assert len(receivers) == 3
        assert len(set(leaf_of(list(receivers)).tolist())) == 3
        assert len(set(table.source.tolist())) == 12
        assert not receivers & set(table.source.tolist())
        assert (leaf_of(table.source) != leaf_of(table.destination)).all()

    def test_every_host_may_receive(self):
        table = flows_of(Incast(receivers=HOSTS, senders=HOSTS - 1, size=1))
        pairs = set(zip(table.source.tolist(), table.destination.tolist(), strict=True))
        assert len(pairs) == len(table) == HOSTS * (HOSTS - 1)

    def test_order_of_flows_and_names_of_receivers(self):
        table = flows_of(Incast(receivers=("host9", "host2"), senders=2, size=1))
        assert table.destination.tolist() == [9, 9, 2, 2]

    def test_seeds_choose_differently(self):
        chosen = {tuple(flows_of(Incast(senders=5, size=1), seed=seed).source) for seed in range(20)}
        assert len(chosen) > 15

    def test_on_one_switch(self):
        table = flows_of(Incast(senders=8, size=1), topology=SingleSwitch(hosts=9))
        assert len(set(table.source.tolist()) | set(table.destination.tolist())) == 9

    def test_victims_share_leaves_and_nothing_else(self):
        entry = Incast(receivers=("host0",), senders=6, size="1MB", victims=3, victim_size="64KB")
        table = flows_of(entry)
        assert table.patterns == ("incast", "incast-victims")
        incast, victims = rows(table, "incast"), rows(table, "incast-victims")
        busy = {0} | {source for source, *_ in incast}
        assert len(victims) == 3
        sources, destinations = [v[0] for v in victims], [v[1] for v in victims]
        assert not busy & set(sources + destinations)
        assert len(set(sources + destinations)) == 6
        assert set(leaf_of(sources)) <= set(leaf_of([source for source, *_ in incast]))
        assert (leaf_of(sources) != leaf_of(destinations)).all()
        assert set(leaf_of(destinations).tolist()) == {0}
        assert {size for _, _, size, _ in victims} == {64_000}

    def test_more_victims_than_idle_hosts(self):
        table = flows_of(Incast(receivers=("host0",), senders=13, size=5, victims=10))
        victims = rows(table, "incast-victims")
        assert len({v[:2] for v in victims}) == 2
        assert {v[2] for v in victims} == {5}
        assert all(v[0] != v[1] for v in victims)

    def test_victims_keep_away_from_leaves_without_the_incast(self):
        topology = LeafSpine(leaves=4, spines=2, hosts_per_leaf=2)
        table = flows_of(
            Incast(receivers=("host0",), senders=1, size=1, victims=1, name="x"), topology=topology
        )
        assert table.patterns == ("x", "x-victims")
        (source, destination, *_), sender = rows(table, "x-victims")[0], rows(table, "x")[0][0]
        assert source // 2 == sender // 2
        assert destination == 1

    def test_what_is_refused(self):
        with pytest.raises(SpecError) as caught:
            flows_of(Incast(receivers=("host0",), senders=14, size=1, victims=1))
        assert caught.value.path == "traffic[0].victims"
        network = build_network(FABRIC)
        small = Scenario(topology=SingleSwitch(hosts=99), traffic=[Incast(senders=20, size=1)])
        with pytest.raises(SpecError, match="at most 15"):
            build_flows(small, network)
        many = Scenario(topology=SingleSwitch(hosts=99), traffic=[Incast(receivers=20, senders=2, size=1)])
        with pytest.raises(SpecError, match="number of hosts"):
            build_flows(many, network)


class TestPermutation:
    @pytest.mark.parametrize("cross_leaf", [False, True])
    def test_everyone_sends_and_receives_once(self, cross_leaf):
        table = flows_of(Permutation(size="3KB", cross_leaf=cross_leaf, count=5))
        assert table.source.tolist() == list(range(HOSTS)) * 5
        for turn in range(5):
            part = table.destination[turn * HOSTS : (turn + 1) * HOSTS]
            assert sorted(part.tolist()) == list(range(HOSTS))
        assert (table.source != table.destination).all()
        if cross_leaf:
            assert (leaf_of(table.source) != leaf_of(table.destination)).all()

    def test_two_leaves_exchange(self):
        topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=3)
        table = flows_of(Permutation(size=1, cross_leaf=True), topology=topology)
        assert ((table.source < 3) == (table.destination >= 3)).all()

    def test_a_leaf_with_too_many_hosts_is_refused(self):
        with pytest.raises(SpecError, match="more than half") as caught:
            flows_of(Permutation(size=1, cross_leaf=True), topology=SingleSwitch(hosts=4))
        assert caught.value.path == "traffic[0].cross_leaf"

    @settings(max_examples=60)
    @given(st.lists(st.integers(0, 4), min_size=2, max_size=24), st.integers(0, 5))
    def test_repair_succeeds_whenever_it_can(self, groups, turn):
        group = np.array(groups, dtype=np.int64)
        draws = EntryDraws.of_entry(3, kind="permutation", occurrence=0)
        if 2 * np.bincount(group).max() > len(group):
            return
        to = random_derangement(group, draws=draws, turn=turn)
        assert sorted(to.tolist()) == list(range(len(group)))
        assert (group[to] != group).all()

    def test_all_derangements_of_four_occur_about_equally(self):
        draws = EntryDraws.of_entry(4, kind="permutation", occurrence=0)
        group = np.arange(4, dtype=np.int64)
        seen = Counter(tuple(random_derangement(group, draws=draws, turn=t).tolist()) for t in range(1800))
        assert len(seen) == 9
        assert max(seen.values()) < 1.5 * min(seen.values())


class TestUniform:
    def test_destinations_are_uniform_over_the_others(self):
        table = flows_of(Uniform(flows=1000, size=10))
        assert (table.source != table.destination).all()
        assert Counter(table.source.tolist()) == dict.fromkeys(range(HOSTS), 1000)
        distance = (table.destination.astype(int) - table.source.astype(int)) % HOSTS
        counts = np.bincount(distance, minlength=HOSTS)[1:]
        expected = len(table) / (HOSTS - 1)
        assert ((counts - expected) ** 2 / expected).sum() < 36.1, "chi-squared, 14 degrees, 0.1 %"

    def test_more_flows_keep_the_first(self):
        few, many = flows_of(Uniform(flows=2, size=1)), flows_of(Uniform(flows=5, size=1))
        assert rows(many)[: len(few)] == rows(few)

    def test_crossing_share(self):
        table = flows_of(Uniform(flows=500, size=1))
        crossing = (leaf_of(table.source) != leaf_of(table.destination)).mean()
        expected = (HOSTS - HOSTS_PER_LEAF) / (HOSTS - 1)
        assert crossing == pytest.approx(expected, abs=3 * math.sqrt(expected * 0.25 / len(table)))


class TestAllToAll:
    def test_every_pair_once_and_every_step_a_permutation(self):
        table = flows_of(AllToAll(size="2KB"))
        pairs = set(zip(table.source.tolist(), table.destination.tolist(), strict=True))
        assert len(pairs) == len(table) == HOSTS * (HOSTS - 1)
        for step in range(HOSTS - 1):
            part = slice(step * HOSTS, (step + 1) * HOSTS)
            assert sorted(table.destination[part].tolist()) == list(range(HOSTS))
            assert sorted(table.source[part].tolist()) == list(range(HOSTS))

    def test_a_selection(self):
        table = flows_of(AllToAll(size=1, hosts="host1?"))
        assert set(table.source.tolist()) == set(range(10, 16))
        assert len(table) == 30
        assert rows(table)[0][:2] == (10, 11)
        with pytest.raises(SpecError, match="two hosts"):
            flows_of(AllToAll(size=1, hosts="host3"))
        with pytest.raises(SpecError) as caught:
            flows_of(AllToAll(size=1, hosts="gpu*"))
        assert caught.value.path == "traffic[0].hosts"


class TestPoisson:
    def test_load_sizes_and_gaps(self):
        duration_ps = 20_000 * US
        table = flows_of(Poisson(load=0.4, distribution="fb_hadoop", duration="20ms"))
        sizes = load_distribution("fb_hadoop")
        mean_gap = 8e12 * sizes.mean_bytes / (0.4 * 400e9)
        expected = HOSTS * duration_ps / mean_gap
        assert len(table) == pytest.approx(expected, abs=3 * math.sqrt(expected))
        assert table.start_ps.max() < duration_ps
        assert (np.diff(table.start_ps) >= 0).all()
        mean_error = 3 * math.sqrt(sizes.squared_cv / len(table))
        assert table.size_bytes.mean() == pytest.approx(sizes.mean_bytes, rel=mean_error)
        assert (table.source != table.destination).all()
        per_host = np.bincount(table.source, minlength=HOSTS)
        assert ((per_host - expected / HOSTS) ** 2 / (expected / HOSTS)).sum() < 39.3, "16 degrees, 0.1 %"
        per_destination = np.bincount(table.destination, minlength=HOSTS)
        assert ((per_destination - expected / HOSTS) ** 2 / (expected / HOSTS)).sum() < 39.3

    def test_gaps_of_a_host_are_exponential(self):
        table = flows_of(Poisson(load=1.0, distribution="ali_storage", duration="10ms"))
        gaps = np.concatenate([np.diff(table.start_ps[table.source == host]) for host in range(HOSTS)])
        assert gaps.std() / gaps.mean() == pytest.approx(1, abs=4 / math.sqrt(len(gaps)))
        below = (gaps < gaps.mean()).mean()
        assert below == pytest.approx(1 - math.exp(-1), abs=3 * math.sqrt(0.2325 / len(gaps)))

    def test_so_many_flows_are_the_first_of_a_longer_run(self):
        by_count = flows_of(Poisson(load=0.5, distribution="fb_hadoop", flows=300))
        by_time = flows_of(Poisson(load=0.5, distribution="fb_hadoop", duration="5ms"))
        assert len(by_count) == 300
        assert rows(by_time)[:300] == rows(by_count)
        one = flows_of(Poisson(load=0.5, distribution="fb_hadoop", flows=1))
        assert rows(one) == rows(by_count)[:1]

    def test_blocks_are_not_observable(self, monkeypatch):
        entry = Poisson(load=0.8, distribution="ali_storage", duration="1ms")
        expected = rows(flows_of(entry))
        monkeypatch.setattr("fabric.workload.poisson.BLOCK_DRAWS", 16)
        assert rows(flows_of(entry)) == expected

    def test_the_rate_of_each_host_counts(self):
        topology = LeafSpine(
            leaves=2,
            spines=1,
            hosts_per_leaf=2,
            overrides=[{"match": "host0-leaf0", "rate": "100Gbps"}],
        )
        table = flows_of(Poisson(load=0.5, distribution="ali_storage", duration="20ms"), topology=topology)
        counts = np.bincount(table.source, minlength=4)
        assert counts[0] / counts[1:].mean() == pytest.approx(0.25, rel=0.1)

    def test_a_file_as_distribution(self, tmp_path):
        file = tmp_path / "fixed.csv"
        file.write_text("bytes,cdf\n4096,0\n4096,1\n")
        table = flows_of(Poisson(load=0.5, distribution=str(file), flows=50))
        assert set(table.size_bytes.tolist()) == {4096}

    @pytest.mark.parametrize("load", [1e-300, 5e-324, 1e-12])
    def test_loads_at_which_nothing_arrives(self, load):
        with pytest.raises(SpecError, match=r"2\^60 ps") as caught:
            flows_of(Poisson(load=load, distribution="websearch", flows=1))
        assert caught.value.path == "traffic[0].load"

    def test_flows_that_arrive_after_the_clock(self):
        with pytest.raises(SpecError, match=r"2\^60 ps") as caught:
            flows_of(Poisson(load=2e-10, distribution="websearch", flows=3000))
        assert caught.value.path == "traffic[0].flows"

    def test_what_is_refused(self):
        with pytest.raises(SpecError, match="mean gap") as caught:
            flows_of(Poisson(load=0.01, distribution="websearch", duration="1ns"))
        assert caught.value.path == "traffic[0].duration"
        with pytest.raises(SpecError, match="flows in all"):
            flows_of(Poisson(load=1, distribution="ali_storage", duration="1000000s"))
        with pytest.raises(SpecError) as caught:
            flows_of(Poisson(load=1, distribution="none.csv", flows=1))
        assert caught.value.path == "traffic[0].distribution"


class TestPlacement:
    def test_accelerators_belong_to_their_rail(self):
        topology = RailOptimized(servers=3, accelerators_per_server=4, spines=2)
        network = build_network(topology)
        leaves = [network.names[leaf] for leaf in host_leaves(network)]
        assert leaves == [f"leaf{host % 4}" for host in range(12)]
        nic = int(topology.host_link.rate)
        assert host_rates_bps(network).tolist() == [nic] * 12

    def test_a_host_with_two_ports_belongs_to_the_first_leaf(self):
        network = build_network(LeafSpine(leaves=4, spines=1, hosts_per_leaf=2, ports_per_host=2))
        assert [network.names[leaf] for leaf in host_leaves(network)] == ["leaf0"] * 2 + ["leaf2"] * 2

    def test_spreading_takes_leaves_in_turn(self):
        draws = EntryDraws.of_entry(9, kind="incast", occurrence=0)
        leaf = np.array([0, 0, 0, 1, 1, 2])
        order = spread_over_leaves(np.arange(6), leaf=leaf, draws=draws, turn=0)
        assert sorted(order.tolist()) == list(range(6))
        assert sorted(leaf[order[:3]].tolist()) == [0, 1, 2]
        assert sorted(leaf[order[3:5]].tolist()) == [0, 1]
        assert leaf[order[5]] == 0
