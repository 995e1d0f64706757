"""Oracles of HPCC, DCTCP and TIMELY: single steps by their equations, and where several flows settle.

HPCC (Li et al., SIGCOMM 2019) with N equal flows and an empty queue: R = R eta/U + R_AI with N R = U B gives
U = eta + N R_AI/B, as long as that is at most 1. DCTCP (Alizadeh et al., SIGCOMM 2010, section 3.3) with N
synchronised flows: W = (C RTT + K)/N, alpha = sqrt(2/W), the queue between K + N and
sqrt(2 N (C RTT + K))/2 less. TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1). Steps are exact; what has
settled is within the tolerance that stands there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support_dcqcn import marking_switch
from support_lowered import TRANSPORT_DEFAULTS
from support_oracles import (
    GBPS,
    MS,
    SECOND,
    US,
    Outcome,
    chain,
    link,
    lossy_switch,
    message,
    messages,
    run,
    transport,
)

from fabric.analysis import jain_index
from fabric.lower import lower
from fabric.reference import Simulator
from fabric.reference.control import Acknowledgement
from fabric.reference.dctcp import Dctcp as DctcpRate
from fabric.reference.hpcc import Hpcc as HpccRate
from fabric.reference.hpcc import most_used
from fabric.reference.tables import Transport
from fabric.reference.telemetry import Hop
from fabric.reference.timely import Timely as TimelyRate
from fabric.spec import Dcqcn, Dctcp, Ecn, Hpcc, Record, Scenario, SingleSwitch, Timely

FRAME_BYTES = 1_000


def ignore(time_ps: int, rate_bps: float) -> None:
    """Nobody listens."""


def parameters(**overrides: float) -> Transport:
    return Transport(**{**TRANSPORT_DEFAULTS, **overrides})


def incast(
    senders: int,
    congestion: Any,
    *,
    rate: str,
    delay: str,
    until_ps: int,
    switch: Any = None,
    frame_bytes: int = FRAME_BYTES,
) -> Outcome:
    """Endless messages to host 0 from so many others."""
    scenario = Scenario(
        topology=SingleSwitch(hosts=senders + 1, link=link(rate, delay)),
        switch=switch or lossy_switch(),
        transport=transport(frame_bytes, congestion=congestion, acks=True),
        traffic=messages(*(message(10**10, sender, 0) for sender in range(1, senders + 1))),
        record=Record(rates=("*",)),
    )
    return run(scenario, until_ps=until_ps)


def second_half(first: Outcome, both: Outcome, half_ps: int) -> tuple[np.ndarray, float, float]:
    """Rates of the senders in bit/s, and use and mean queue of the link to host 0."""
    port = both.port("switch0->host0")
    rates = (both.columns["port_tx_bytes"] - first.columns["port_tx_bytes"]) * (8.0 * SECOND / half_ps)
    waited = both.columns["queue_wait_integral"] - first.columns["queue_wait_integral"]
    use = float(rates[port]) / int(both.lowered.port_rate_bps[port])
    return rates[both.lowered.flow_port], use, float(waited[port, 0]) / half_ps


class TestHpcc:
    def make(self, **overrides: float) -> HpccRate:
        transport = parameters(eta=0.95, ai_bps=1e9, base_rtt_ps=8 * US, **overrides)
        return HpccRate(transport, line_bps=400e9, on_change=ignore)

    def test_a_multiplicative_step(self) -> None:
        """A window of 100 KB at U 1.2 and a step of 1 KB: 80.167 KB; here as rates, a KB being a Gbit/s."""
        control = self.make()
        control.reference_bps, control.utilisation = 100e9, 1.2
        control.update(full=False)
        assert control.rate_bps == pytest.approx(80.166667e9, rel=1e-8)
        assert control.reference_bps == 100e9

    def test_an_additive_step(self) -> None:
        control = self.make()
        control.reference_bps, control.utilisation = 100e9, 0.5
        control.update(full=True)
        assert (control.rate_bps, control.reference_bps, control.stage) == (101e9, 101e9, 1)

    def test_a_multiplicative_step_after_additive_ones(self) -> None:
        control = self.make(max_stage=1)
        control.reference_bps, control.utilisation = 100e9, 0.5
        for _ in range(2):
            control.update(full=True)
        assert control.rate_bps == pytest.approx(101e9 * 1.9 + 1e9)
        assert control.stage == 0

    def test_the_average(self) -> None:
        control = self.make()
        control.utilisation = 0.8
        control.average(1.6, 2 * US)
        assert control.utilisation == pytest.approx(1.0, rel=1e-15)
        control.average(0.3, 100 * US)
        assert control.utilisation == 0.3

    def test_counters_do_not_wrap(self) -> None:
        """Days at 7.3 Tbit/s: 2^62 bytes and picoseconds."""
        rate_bps = 7_300 * GBPS
        then = Hop(2**62, 2**62, 10**15, 3, rate_bps)
        now = Hop(2**62 + 8 * US, 2**62 + 7_300_000, 0, 3, rate_bps)
        use, elapsed_ps = most_used([then], [now], base_rtt_ps=8 * US)
        assert (use, elapsed_ps) == (pytest.approx(1.0), 8 * US)

    @pytest.mark.parametrize(("senders", "use", "rate_bps"), [(16, 0.9564, 5.9775e9), (2, 0.9508, 47.54e9)])
    def test_where_it_settles(self, senders: int, use: float, rate_bps: float) -> None:
        """R_AI 40 Mbit/s at 100 Gbit/s; the queue is next to empty."""
        congestion = Hpcc(base_rtt="50us")
        first = incast(senders, congestion, rate="100Gbps", delay="12us", until_ps=15 * MS)
        rates, found, queue_bytes = second_half(first, first.until(20 * MS), 5 * MS)
        assert found == pytest.approx(use, rel=0.005)
        assert rates.mean() == pytest.approx(rate_bps, rel=0.005)
        assert jain_index(rates) > 0.99
        assert queue_bytes < 3 * FRAME_BYTES

    @pytest.mark.parametrize("rate", ["40Gbps", "7Gbps", "333Gbps"])
    def test_any_rate(self, rate: str) -> None:
        congestion = Hpcc(base_rtt="5us", min_rate="1Mbps")
        first = incast(2, congestion, rate=rate, delay="1us", until_ps=2 * MS)
        _, use, _ = second_half(first, first.until(3 * MS), 1 * MS)
        assert use == pytest.approx(0.9508, rel=0.02)

    @pytest.mark.parametrize("hops", [2, 6, 9])
    def test_any_number_of_hops(self, hops: int) -> None:
        """A lone flow settles on the target, however long its path: U = eta + R_AI / B."""
        topology, network = chain(hops, link("100Gbps", "200ns"))
        scenario = Scenario(
            topology=topology,
            switch=lossy_switch(),
            transport=transport(FRAME_BYTES, congestion=Hpcc(base_rtt="6us"), acks=True),
            traffic=messages(message(10**10)),
        )
        first = run(scenario, network=network, until_ps=1 * MS)
        sent_bytes = first.until(2 * MS).columns["port_tx_bytes"] - first.columns["port_tx_bytes"]
        assert sent_bytes.max() * 8e12 / MS / 100e9 == pytest.approx(0.9504, rel=0.001)


class TestDctcp:
    """10 Gbit/s, round trip 100 us, frames of 1500 bytes, two senders, marked beyond 40 frames."""

    FRAME_BYTES = 1_500
    K_FRAMES = 40

    def scenario(self, **record: Any) -> Scenario:
        threshold = self.K_FRAMES * self.FRAME_BYTES
        ecn = Ecn(kmin=threshold - 1, kmax=threshold - 1, pmax=1, mark="enqueue")
        congestion = Dctcp(window=125_000, ai="120Mbps", min_rate="1Mbps")
        return Scenario(
            topology=SingleSwitch(hosts=3, link=link("10Gbps", "24.4us")),
            switch=marking_switch(ecn),
            transport=transport(self.FRAME_BYTES, congestion=congestion, acks=True),
            traffic=messages(message(10**10, 1, 0), message(10**10, 2, 0)),
            record=Record(**record),
        )

    def test_where_the_queue_swings(self) -> None:
        first = run(self.scenario(queues={"interval": "20us", "ports": ["switch0->host0"]}), until_ps=50 * MS)
        both = first.until(100 * MS)
        rates, use, _ = second_half(first, both, 50 * MS)
        rows = both.rows("queue")
        depth = rows["value"][(rows["time_ps"] > 50 * MS) & (rows["class"] == 0)] / self.FRAME_BYTES
        assert use > 0.99
        assert jain_index(rates) > 0.99
        assert depth.max() == pytest.approx(42, abs=3)
        assert depth.min() == pytest.approx(30.9, abs=3)

    def test_alpha(self) -> None:
        """The square root of 2/W: 0.180."""
        simulator = Simulator(lower(self.scenario()))
        controls = [sender.control for sender in simulator._senders]
        alphas = []
        for sample in range(80):
            simulator.run(until_ps=10 * MS + 100 * US * sample)
            alphas += [control.alpha for control in controls if isinstance(control, DctcpRate)]
        assert np.mean(alphas) == pytest.approx(0.180, rel=0.15)

    def test_one_cut_a_window(self) -> None:
        control = DctcpRate(
            parameters(g=1 / 16, ai_bps=1e9, min_rate_bps=1e6), line_bps=100e9, on_change=ignore
        )

        def hear(sequence: int, mark: int, *, next_frame: int) -> float:
            control.on_acknowledgement(
                Acknowledgement(
                    0, sequence=sequence, acknowledged=1, next_frame=next_frame, mark=mark, memory=None
                )
            )
            return control.rate_bps

        assert hear(1, 0, next_frame=10) == 100e9
        assert hear(2, 1, next_frame=11) == 50e9
        assert [hear(number, 1, next_frame=20) for number in range(3, 11)] == [50e9] * 8
        assert control.alpha == 1.0
        assert hear(11, 0, next_frame=21) == 50e9
        assert control.alpha == 15 / 16 + 9 / 11 / 16
        assert hear(12, 0, next_frame=22) == 50e9
        assert [hear(number, 0, next_frame=30) for number in range(13, 23)] == [50e9] * 9 + [51e9]
        assert control.alpha == pytest.approx((15 / 16 + 9 / 11 / 16) * 15 / 16)


class TestTimely:
    """From 10 Gbit/s; the smallest round-trip time is 20 us, the thresholds 50 and 500 us."""

    def make(self) -> TimelyRate:
        transport = parameters(
            g=0.875,
            beta=0.8,
            base_rtt_ps=20 * US,
            rtt_low_ps=50 * US,
            rtt_high_ps=500 * US,
            max_stage=5,
            ai_bps=10e6,
            hai_bps=50e6,
        )
        control = TimelyRate(transport, line_bps=40e9, on_change=ignore)
        control.rate_bps = 10e9
        return control

    @pytest.mark.parametrize(("rtt_us", "rate_bps"), [(1000, 6.0e9), (625, 8.4e9)])
    def test_above_the_high_threshold(self, rtt_us: int, rate_bps: float) -> None:
        control = self.make()
        control.update(rtt_us * US, before_ps=rtt_us * US)
        assert control.rate_bps == pytest.approx(rate_bps, rel=1e-15)

    def test_by_the_gradient(self) -> None:
        control = self.make()
        control.update(100 * US, before_ps=98 * US)
        assert control.difference_ps == 1.75 * US
        assert control.rate_bps == pytest.approx(9.3e9, rel=1e-15)

    def test_steps_grow_after_five(self) -> None:
        control = self.make()
        rates = []
        for _ in range(7):
            control.update(49 * US, before_ps=49 * US)
            rates.append(control.rate_bps)
        assert np.diff([10e9, *rates]).tolist() == [10e6] * 5 + [50e6] * 2
        control.update(600 * US, before_ps=600 * US)
        before_bps = control.rate_bps
        control.update(49 * US, before_ps=49 * US)
        assert control.rate_bps - before_bps == 10e6

    def test_a_lone_flow_keeps_the_line_busy(self) -> None:
        first = incast(1, Timely(), rate="100Gbps", delay="1us", until_ps=1 * MS)
        _, use, queue_bytes = second_half(first, first.until(2 * MS), 1 * MS)
        assert use > 0.999
        assert queue_bytes == 0

    def test_the_queue_stays_below_the_high_threshold(self) -> None:
        """At 10 Gbit/s 500 us are 625 KB; without congestion control the queue would have no bound.

        Where it settles has no unique answer (Zhu et al., "ECN or Delay", CoNEXT 2016).
        """
        outcome = incast(4, Timely(min_rate="10Mbps"), rate="10Gbps", delay="1us", until_ps=60 * MS)
        first, both = outcome, outcome.until(120 * MS)
        _, use, queue_bytes = second_half(first, both, 60 * MS)
        assert use > 0.8
        assert queue_bytes < 625_000


class TestVariableWindow:
    """DCQCN with a window of one bandwidth-delay product at line rate."""

    def test_follows_the_rate(self) -> None:
        congestion = Dcqcn(preset="hpcc", window="52KB", variable_window=True)
        switch = marking_switch(Ecn(kmin="20KB", kmax="80KB", pmax=1, mark="dequeue"))
        outcome = incast(4, congestion, rate="100Gbps", delay="1us", until_ps=1 * MS, switch=switch)
        rows = outcome.rows("rate")
        expected = np.ceil(np.floor(52_000 * rows["aux"] / 100e9) / FRAME_BYTES)
        assert len(rows) > 20
        assert rows["value"].tolist() == np.maximum(expected, 1).astype(int).tolist()

    def test_keeps_the_queue_short(self) -> None:
        """Two windows of 52 KB, less what is on the links."""
        peaks = []
        for variable in (False, True):
            congestion = Dcqcn(preset="hpcc", window="52KB", variable_window=variable)
            outcome = incast(2, congestion, rate="100Gbps", delay="1us", until_ps=1 * MS)
            peaks.append(outcome.columns["queue_peak_bytes"][outcome.port("switch0->host0"), 0])
        assert peaks == [peaks[0]] * 2
        assert 50_000 < peaks[0] < 58_000
