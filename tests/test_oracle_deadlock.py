"""Oracles of PFC deadlock: which traffic on a cycle of buffers stops for ever, and which does not.

A cyclic buffer dependency is necessary for a deadlock and not sufficient; the order in which an egress queue
is served decides many cases (Hu et al., "Deadlocks in Datacenter Networks: Why Do They Form, and How to Avoid
Them", HotNets 2016, for the square; Hu et al., "Tagger: Practical PFC Deadlock Prevention in Data Center
Networks", CoNEXT 2017, for paths that bounce). The verdicts are those of an independent event simulation,
over several seeds; the model is in `support_deadlock`.

In a ring of n switches with m streams from each to the h-th next, a link is asked for m h r: at most its
rate, and nothing is ever paused. Variations: `validation/test_deadlock_variations.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_deadlock import Setting, at_rate, clos, judge, ring, square
from support_oracles import US

BOTH = ("fifo", "round_robin")
DEADLOCK, FREE = True, False


class TestRings:
    @pytest.mark.parametrize("arbiter", BOTH)
    @pytest.mark.parametrize("switches", [3, 4, 5, 8])
    def test_one_hop_is_never_paused(self, switches: int, arbiter: str) -> None:
        verdict = judge(*ring(switches, 1, 1), arbiter=arbiter)
        assert not verdict.deadlock
        assert verdict.pauses_to_hosts == 0
        assert verdict.pauses_between_switches == {}
        assert verdict.goodput_gbps == pytest.approx(np.full(switches, 40), rel=0.01)

    @pytest.mark.parametrize("seed", [1, 2, 3])
    @pytest.mark.parametrize(
        ("switches", "hops", "per_switch", "fifo", "round_robin"),
        [
            (3, 2, 1, DEADLOCK, FREE),
            (4, 2, 1, DEADLOCK, FREE),
            (8, 2, 1, DEADLOCK, FREE),
            (4, 3, 1, DEADLOCK, DEADLOCK),
            (5, 3, 1, DEADLOCK, DEADLOCK),
            (3, 2, 2, DEADLOCK, DEADLOCK),
            (4, 2, 2, DEADLOCK, DEADLOCK),
            (4, 3, 2, DEADLOCK, DEADLOCK),
        ],
    )
    def test_saturating_sources(
        self, switches: int, hops: int, per_switch: int, fifo: bool, round_robin: bool, seed: int
    ) -> None:
        """Where nothing stops, every stream gets half a link and only hosts are paused."""
        for arbiter, expected in (("fifo", fifo), ("round_robin", round_robin)):
            verdict = judge(*ring(switches, hops, per_switch), arbiter=arbiter, setting=Setting(seed=seed))
            assert verdict.deadlock is expected, arbiter
            if not expected:
                assert verdict.goodput_gbps == pytest.approx(np.full(switches, 20.0), rel=0.01)
                assert verdict.pauses_between_switches == {}
                assert verdict.pauses_to_hosts > 0

    def test_it_forms_at_once(self) -> None:
        assert judge(*ring(3, 2, 1), arbiter="fifo").end_ps < 100 * US

    @pytest.mark.parametrize("arbiter", BOTH)
    @pytest.mark.parametrize(("per_switch", "rate_gbps"), [(1, 20.0), (2, 9.9)])
    def test_demand_below_the_rate_is_never_paused(
        self, per_switch: int, rate_gbps: float, arbiter: str
    ) -> None:
        cables, streams = ring(3, 2, per_switch)
        verdict = judge(
            cables, at_rate(streams, rate_gbps), arbiter=arbiter, setting=Setting(duration_ms=100)
        )
        assert not verdict.deadlock
        assert verdict.pauses_to_hosts == 0
        assert verdict.pauses_between_switches == {}

    @pytest.mark.parametrize(
        ("per_switch", "rate_gbps", "fifo", "round_robin"),
        [(1, 20.2, DEADLOCK, FREE), (2, 10.2, DEADLOCK, DEADLOCK)],
    )
    def test_demand_just_above_the_rate(
        self, per_switch: int, rate_gbps: float, fifo: bool, round_robin: bool
    ) -> None:
        cables, streams = ring(3, 2, per_switch)
        for arbiter, expected in (("fifo", fifo), ("round_robin", round_robin)):
            verdict = judge(
                cables, at_rate(streams, rate_gbps), arbiter=arbiter, setting=Setting(duration_ms=100)
            )
            assert verdict.deadlock is expected, arbiter

    @pytest.mark.parametrize("xoff", [20_000, 100_000, 400_000])
    def test_more_buffer_only_delays_it(self, xoff: int) -> None:
        setting = Setting(xoff=xoff, xon=xoff - 2_000)
        assert judge(*ring(3, 2, 1), arbiter="fifo", setting=setting).deadlock
        assert not judge(*ring(3, 2, 1), arbiter="round_robin", setting=setting).deadlock

    @pytest.mark.parametrize("arbiter", BOTH)
    def test_without_stated_routes(self, arbiter: str) -> None:
        """Two hops of eight are the shortest way: a graph and nothing else gives the same verdict."""
        stated = judge(*ring(8, 2, 1), arbiter=arbiter)
        found = judge(*ring(8, 2, 1), arbiter=arbiter, by_shortest_path=True)
        assert found.deadlock is stated.deadlock is (arbiter == "fifo")
        assert found.end_ps == stated.end_ps


class TestSquare:
    def test_two_streams_do_not_stop(self) -> None:
        """A cycle of buffers without a deadlock: with FIFO only B and D are paused, besides the hosts."""
        for arbiter in BOTH:
            verdict = judge(*square(), arbiter=arbiter)
            assert not verdict.deadlock
            assert verdict.goodput_gbps == pytest.approx(np.full(2, 20.0), rel=0.01)
            assert verdict.pauses_to_hosts > 0
            paused = {("sC", "sB"), ("sA", "sD")} if arbiter == "fifo" else set()
            assert set(verdict.pauses_between_switches) == paused

    @pytest.mark.parametrize("seed", [1, 2, 3])
    @pytest.mark.parametrize(("f3_gbps", "goodput"), [(40, (20.0, 20.0, 20.0)), (10, (20.0, 20.0, 10.0))])
    def test_a_third_stream_closes_the_cycle(
        self, f3_gbps: float, goodput: tuple[float, ...], seed: int
    ) -> None:
        setting = Setting(seed=seed)
        assert judge(*square(f3_gbps), arbiter="fifo", setting=setting).deadlock
        verdict = judge(*square(f3_gbps), arbiter="round_robin", setting=setting)
        assert not verdict.deadlock
        assert verdict.goodput_gbps == pytest.approx(np.array(goodput), rel=0.01)
        assert verdict.pauses_between_switches == {}

    @pytest.mark.parametrize("f3_gbps", [1, 2, 4])
    def test_a_slow_third_stream_gets_its_rate_round_robin(self, f3_gbps: float) -> None:
        verdict = judge(*square(f3_gbps), arbiter="round_robin")
        assert not verdict.deadlock
        assert verdict.goodput_gbps[2] == pytest.approx(f3_gbps, rel=0.01)


class TestClosAfterAFailure:
    @pytest.mark.parametrize("seed", [1, 2, 3, 4])
    def test_bounced_paths(self, seed: int) -> None:
        setting = Setting(seed=seed)
        assert judge(*clos(bounced=True), arbiter="fifo", setting=setting).deadlock
        verdict = judge(*clos(bounced=True), arbiter="round_robin", setting=setting)
        assert not verdict.deadlock
        assert verdict.goodput_gbps == pytest.approx(np.full(4, 20.1), rel=0.01)

    @pytest.mark.parametrize("arbiter", BOTH)
    def test_up_and_down_once(self, arbiter: str) -> None:
        verdict = judge(*clos(bounced=False), arbiter=arbiter)
        assert not verdict.deadlock
        assert verdict.pauses_to_hosts == 0
        assert verdict.pauses_between_switches == {}
        assert verdict.goodput_gbps == pytest.approx(np.full(4, 40), rel=0.01)
