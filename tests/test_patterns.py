"""Patterns of traffic: who sends to whom, when, and that adding an entry changes no other.

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
from support_traffic import FABRIC, HOSTS, HOSTS_PER_LEAF, US, flows_of, leaf_of, rows

from fabric.errors import SpecError
from fabric.spec import AllToAll, Incast, LeafSpine, Permutation, Poisson, Scenario, SingleSwitch, Uniform
from fabric.topology import build_network
from fabric.workload import build_flows, load_distribution
from fabric.workload.draws import EntryDraws
from fabric.workload.permutation import random_derangement


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
