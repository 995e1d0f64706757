"""Oracles of DCQCN: the rates of one sender after given notifications, and where several settle.

Traces follow from the rules of the paper (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
SIGCOMM 2015: cut by alpha/2 with the alpha from before the notification; five events of fast recovery) and of
the form that github.com/alibaba-edu/High-Precision-Congestion-Control calls "Mellanox" (`rdma-hw.cc`: the
first notification only starts the clocks, cuts are looked for every 4 us and 1 ns late, alpha every 1 us).
Tolerance 1e-6. A sender alone on its path is notified by letting it meet a few frames of somebody else;
what it sends between is far below the byte counter.

The packet-level values are those of an independent event simulation over several seeds and small changes
of pacing. Only what was the same in all of them is asserted. More seeds:
`validation/test_dcqcn_settling.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_dcqcn import D40, D41, D42, D44, PAPER, marking_switch, measure
from support_oracles import GBPS, US, Outcome, link, message, messages, run, transport

from fabric.spec import Dcqcn, Ecn, Record, Scenario, SingleSwitch

FRAME_BYTES = 1_000
CNP = 3
"""Kind of a notification frame."""
HPCC = Dcqcn(preset="hpcc", feedback="cnp", cnp_interval="100us")
"""The vendor form; one notification for all marks of a burst."""


def notified(rate: str, congestion: Dcqcn, *, bursts_us: tuple[float, ...], until_us: int) -> Outcome:
    """A message alone on its path but for bursts of four frames.

    Every frame that leaves others behind is marked.
    """
    bursts = (message(4 * FRAME_BYTES, 2, 0, start=round(at * US)) for at in bursts_us)
    scenario = Scenario(
        topology=SingleSwitch(hosts=3, link=link(rate, "100ns")),
        switch=marking_switch(Ecn(kmin=0, kmax=FRAME_BYTES - 1, pmax=1, mark="dequeue")),
        transport=transport(FRAME_BYTES, congestion=congestion),
        traffic=(
            *messages(message(10**9, 1, 0), name="probe"),
            *messages(*bursts, name="bursts", transport=transport(FRAME_BYTES)),
        ),
        record=Record(rates=("probe",), packets={"ports": ["switch0->host1"]}),
    )
    outcome = run(scenario, until_ps=until_us * US)
    assert outcome.columns["flow_cnps"][0] == len(bursts_us)
    return outcome


def notifications_ps(outcome: Outcome) -> np.ndarray:
    """When notifications arrived at the sender."""
    rows = outcome.rows("packet")
    port = outcome.port("switch0->host1")
    rate_bps = int(outcome.lowered.port_rate_bps[port])
    frame_ps = 64 * 8 * 10**12 // rate_bps
    return rows["time_ps"][rows["kind"] == CNP] + frame_ps + outcome.lowered.port_delay_ps[port]


def trace(outcome: Outcome, *, since_ps: int) -> tuple[np.ndarray, np.ndarray]:
    """Times in microseconds and rates in Gbit/s of all changes since an instant."""
    rows = outcome.rows("rate")
    rows = rows[rows["time_ps"] >= since_ps]
    return (rows["time_ps"] - since_ps) / US, rows["aux"] / GBPS


def assert_trace(outcome: Outcome, *, since_ps: int, expected: list[tuple[float, float]]) -> None:
    times, rates = trace(outcome, since_ps=since_ps)
    assert times[: len(expected)] == pytest.approx([time for time, _ in expected], abs=1e-6)
    assert rates[: len(expected)] == pytest.approx([rate for _, rate in expected], rel=1e-6)


class TestPaperForm:
    """40 Gbit/s, both periods 55 us."""

    def test_one_notification(self) -> None:
        outcome = notified("40Gbps", PAPER, bursts_us=(10,), until_us=460)
        (first_ps,) = notifications_ps(outcome)
        rates = [20, 30, 35, 37.5, 38.75, 39.375, 39.6875, 39.84375]
        expected = [(55.0 * number, rate) for number, rate in enumerate(rates)]
        assert_trace(outcome, since_ps=first_ps, expected=expected)

    def test_a_second_one_50_us_later(self) -> None:
        """Target 20; the additive steps of 40 Mbit/s begin with the fifth event."""
        outcome = notified("40Gbps", PAPER, bursts_us=(10, 62), until_us=570)
        first_ps, second_ps = notifications_ps(outcome)
        assert 50 * US <= second_ps - first_ps < 55 * US
        rates = [10, 15, 17.5, 18.75, 19.375, 19.7075, 19.89375, 20.006875]
        expected = [(55.0 * number, rate) for number, rate in enumerate(rates)]
        assert_trace(outcome, since_ps=second_ps, expected=expected)

    @pytest.mark.parametrize(("periods", "alpha"), [(1, 0.996094), (4, 0.984466), (8, 0.969174)])
    def test_alpha_after_silent_periods(self, periods: int, alpha: float) -> None:
        """The second cut shows alpha: it is by alpha/2."""
        outcome = notified(
            "40Gbps", PAPER, bursts_us=(10, 10 + 55 * periods + 25), until_us=60 + 55 * (periods + 1)
        )
        first_ps, second_ps = notifications_ps(outcome)
        assert 55 * periods * US < second_ps - first_ps < 55 * (periods + 1) * US
        rows = outcome.rows("rate")
        before = rows["aux"][rows["time_ps"] < second_ps][-1]
        (after,) = rows["aux"][rows["time_ps"] == second_ps]
        assert 2 * (1 - after / before) == pytest.approx((255 / 256) ** periods, rel=1e-9)
        assert 2 * (1 - after / before) == pytest.approx(alpha, abs=5e-7)


class TestVendorForm:
    """100 Gbit/s: R_AI 20 Mbit/s, R_HAI 200 Mbit/s; the increase timer 300 us."""

    FIRST_CUT = ((4.001, 50.77668), (304.001, 75.38834), (604.001, 87.69417))

    def test_one_notification(self) -> None:
        """No change at once; after the cut fast recovery, one additive and then hyper-additive steps."""
        outcome = notified("100Gbps", HPCC, bursts_us=(10,), until_us=1_000)
        (first_ps,) = notifications_ps(outcome)
        assert_trace(outcome, since_ps=first_ps, expected=[*self.FIRST_CUT, (904.001, 93.84709)])

    def test_a_second_one_takes_the_target_over(self) -> None:
        """At 650.5 us: alpha is .081827, and the target the rate, as an increase came between."""
        outcome = notified("100Gbps", HPCC, bursts_us=(10, 660.4), until_us=1_900)
        first_ps, second_ps = notifications_ps(outcome)
        assert 650 * US < second_ps - first_ps < 651 * US
        expected = [
            *self.FIRST_CUT,
            (652.001, 84.10628),
            (952.001, 85.90023),
            (1252.001, 86.80720),
            (1552.001, 87.36068),
            (1852.001, 87.73743),
        ]
        assert_trace(outcome, since_ps=first_ps, expected=expected)


@pytest.mark.parametrize("mark", ["enqueue", "dequeue"])
class TestSettling:
    def test_two_senders_at_40g(self, mark: str) -> None:
        found = measure(D40, mark=mark, seed=1)
        assert found.queue_bytes == pytest.approx(24_600, rel=0.10)
        assert found.utilisation > 0.995
        assert found.fairness > 0.99

    def test_four_senders_at_40g(self, mark: str) -> None:
        found = measure(D41, mark=mark, seed=1)
        assert found.queue_bytes == pytest.approx(54_500, rel=0.08)
        assert found.utilisation > 0.995
        assert found.fairness > 0.99

    def test_marking_on_arrival_oscillates_at_eight(self, mark: str) -> None:
        """What marking on arrival loses of the link, as the mark is late by the queueing delay."""
        utilisation = measure(D42, mark=mark, seed=1).utilisation
        assert utilisation > 0.999 if mark == "dequeue" else utilisation < 0.992

    def test_32_senders_at_400g(self, mark: str) -> None:
        """At many flows and high speed the mean queue is that of the fluid fixed point, 817.0 KB."""
        found = measure(D44, mark=mark, seed=1)
        assert found.queue_bytes == pytest.approx(817_000, rel=0.03)
        assert found.fairness > 0.99
