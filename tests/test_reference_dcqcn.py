"""The readable engine's DCQCN, as published and as NICs ship it, against published traces and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from support_lowered import TRANSPORT_DEFAULTS, US
from support_reference import finished, incast

from fabric.reference import Simulator
from fabric.reference.clock import InsertionClock, TimerKind
from fabric.reference.dcqcn_paper import DcqcnPaper
from fabric.reference.dcqcn_vendor import DcqcnVendor
from fabric.reference.dcqcn_vendor_timers import DcqcnVendorTimers
from fabric.reference.tables import Transport


class TestPaperDcqcn:
    """Sender traces at 40 Gbit/s, marks at given times, no bytes counted."""

    def make(self, **overrides: float) -> tuple[DcqcnPaper, list[tuple[int, float]]]:
        changes: list[tuple[int, float]] = []
        transport = Transport(**{**TRANSPORT_DEFAULTS, **overrides})
        control = DcqcnPaper(transport, line_bps=40e9, on_change=lambda t, rate: changes.append((t, rate)))
        return control, changes

    def test_one_mark(self) -> None:
        control, changes = self.make()
        assert control.on_send(0, wire_bytes=0) == 40e9
        control.on_mark(0)
        assert (control.current_bps, control.target_bps, control.alpha) == (20e9, 40e9, 1.0)
        control.catch_up(7 * 55 * US + 1)
        expected = [20, 30, 35, 37.5, 38.75, 39.375, 39.6875, 39.84375]
        assert [rate for _, rate in changes] == pytest.approx([g * 1e9 for g in expected], rel=1e-12)
        assert [t for t, _ in changes] == [k * 55 * US for k in range(8)]
        assert control.target_bps == 40e9

    def test_two_marks(self) -> None:
        control, changes = self.make()
        control.on_mark(0)
        control.on_mark(50 * US)
        assert (control.current_bps, control.target_bps) == (10e9, 20e9)
        control.catch_up(435 * US + 1)
        expected = [20, 10, 15, 17.5, 18.75, 19.375, 19.7075, 19.89375, 20.006875]
        assert [rate for _, rate in changes] == pytest.approx([g * 1e9 for g in expected], rel=1e-12)
        assert changes[-1][0] == 435 * US
        assert control.target_bps == pytest.approx(20.12e9, rel=1e-12)

    @pytest.mark.parametrize(("periods", "alpha"), [(1, 0.996094), (4, 0.984466), (8, 0.969174)])
    def test_alpha_decays_without_marks(self, periods: int, alpha: float) -> None:
        control, _ = self.make()
        control.on_mark(0)
        control.on_mark(periods * 55 * US + 1)
        assert 2 * (1 - control.current_bps / control.target_bps) == pytest.approx(alpha, abs=1e-6)

    def test_timers_that_expire_at_the_instant_of_a_mark_come_too_late(self) -> None:
        control, _ = self.make()
        control.on_mark(0)
        control.on_mark(55 * US)
        assert (control.current_bps, control.target_bps) == (10e9, 20e9)

    def test_byte_counter_acts_after_the_rate_was_taken(self) -> None:
        control, changes = self.make(byte_counter=10_000)
        control.on_mark(0)
        assert [control.on_send(t, wire_bytes=4000) for t in (1, 2, 3, 4)] == [20e9, 20e9, 20e9, 30e9]
        assert changes[-1] == (3, 30e9)

    def test_hyper_increase_grows(self) -> None:
        control, _ = self.make(byte_counter=0, fast_recovery=1, ai_bps=1e6, hai_bps=1e7, min_rate_bps=1.0)
        control.on_mark(0)
        control.on_mark(1)
        control.catch_up(3 * 55 * US + 2)
        # T = 1: additive; T = 2: 2 steps; T = 3: 3 steps.
        assert control.target_bps == 20e9 + 1e6 + 2e7 + 3e7

    def test_marks_of_one_instant_do_not_decay_alpha(self) -> None:
        control, _ = self.make()
        for _ in range(3):
            control.on_mark(10)
        assert control.current_bps == 5e9
        assert control.alpha == 1.0


HPCC_CONSTANTS = {
    "alpha_period_ps": US,
    "cut_period_ps": 4 * US,
    "increase_period_ps": 300 * US,
    "fast_recovery": 1,
    "ai_bps": 20e6,
    "hai_bps": 200e6,
    "min_rate_bps": 1e9,
    "byte_counter": 0,
}
HPCC_ONE_MARK = [(4.001, 50.77668), (304.001, 75.38834), (604.001, 87.69417)]


class TestVendorDcqcn:
    """Sender traces at 100 Gbit/s with the HPCC simulator's constants."""

    def trace(self, marks_us: list[float], until_us: float) -> tuple[DcqcnVendor, list[tuple[float, float]]]:
        changes: list[tuple[float, float]] = []
        control = DcqcnVendor(
            Transport(**{**TRANSPORT_DEFAULTS, **HPCC_CONSTANTS}),
            line_bps=100e9,
            on_change=lambda t, rate: changes.append((t / US, rate / 1e9)),
        )
        for mark_us in marks_us:
            control.on_mark(round(mark_us * US))
        control.catch_up(round(until_us * US) + 1)
        return control, changes

    def test_one_mark(self) -> None:
        control, changes = self.trace([0], 904.001)
        expected = [*HPCC_ONE_MARK, (904.001, 93.84709)]
        assert [t for t, _ in changes] == [t for t, _ in expected]
        assert [rate for _, rate in changes] == pytest.approx([rate for _, rate in expected], rel=1e-6)
        assert control.target_bps == 100e9

    def test_mark_after_an_increase_takes_the_target_over(self) -> None:
        control, changes = self.trace([0, 650.5], 652.001)
        assert control.alpha == pytest.approx(0.081827, rel=1e-5)
        assert control.target_bps / 1e9 == pytest.approx(87.69417, rel=1e-6)
        control.catch_up(1852 * US + 1001)
        expected = [
            *HPCC_ONE_MARK,
            (652.001, 84.10628),
            (952.001, 85.90023),
            (1252.001, 86.80720),
            (1552.001, 87.36068),
            (1852.001, 87.73743),
        ]
        assert [t for t, _ in changes] == [t for t, _ in expected]
        assert [rate for _, rate in changes] == pytest.approx([rate for _, rate in expected], rel=1e-6)
        assert control.target_bps / 1e9 == pytest.approx(88.11417, rel=1e-6)

    def test_two_cuts_in_a_row_keep_the_target(self) -> None:
        control, changes = self.trace([0, 5], 9)
        assert [t for t, _ in changes] == [4.001, 8.001]
        assert control.target_bps == 100e9

    def test_catching_up_in_steps_is_the_same(self) -> None:
        whole, _ = self.trace([0, 650.5, 651.2, 700], 2000)
        stepped, _ = self.trace([0], 0)
        for mark_us in (650.5, 651.2, 700.0):
            for t in range(0, round(mark_us * US), 3_333_333):
                stepped.catch_up(t)
            stepped.on_mark(round(mark_us * US))
        for t in range(700 * US, 2000 * US, 777_777):
            stepped.catch_up(t)
        stepped.catch_up(2000 * US + 1)
        assert (stepped.current_bps, stepped.target_bps) == (whole.current_bps, whole.target_bps)


MARK = TimerKind.FLOW_START
LATE_MARK = TimerKind.DELAYED_ACK
"""Events that stand for what brings a mark: scheduled from the beginning, or 0.5 us ahead."""


class TestVendorDcqcnWithTimersAsEvents:
    """What was scheduled first acts first: cuts are scheduled 4 us ahead, alpha updates 1 us."""

    def trace(
        self, marks_us: list[float], until_us: float, *, late: bool = False
    ) -> tuple[DcqcnVendorTimers, list[tuple[float, float]]]:
        clock, changes = InsertionClock([0]), []
        control = DcqcnVendorTimers(
            Transport(**{**TRANSPORT_DEFAULTS, **HPCC_CONSTANTS}),
            line_bps=100e9,
            on_change=lambda t, rate: changes.append((t / US, rate / 1e9)),
            set_timer=lambda timer, t: clock.schedule_timer(t, 0, TimerKind.CONGESTION, timer),
        )
        for mark_us in marks_us:
            at_ps = round(mark_us * US)
            clock.schedule_timer(at_ps - late * US // 2, 0, LATE_MARK if late else MARK, 0)
        clock.schedule_timer(round(until_us * US) + 1, 0, TimerKind.PFC_EFFECT, 0)
        while clock.peek_ps() is not None:
            event = clock.pop()
            if event.major == LATE_MARK:
                clock.schedule_timer(event.time_ps + US // 2, 0, MARK, 0)
            elif event.major == MARK:
                control.on_mark(event.time_ps)
            elif event.major == TimerKind.CONGESTION:
                control.on_timer(event.minor, number=event.scheduled, now_ps=event.time_ps)
        return control, changes

    def test_without_ties_it_is_the_same(self) -> None:
        marks_us = [0, 5, 650.5, 651.2, 700]
        events, changes = self.trace(marks_us, 2000)
        lazy, expected = TestVendorDcqcn().trace(marks_us, 2000)
        assert [t for t, _ in changes] == [t for t, _ in expected]
        assert [rate for _, rate in changes] == pytest.approx([rate for _, rate in expected], rel=1e-12)
        assert events.target_bps == pytest.approx(lazy.target_bps, rel=1e-12)

    @pytest.mark.parametrize(("late", "cuts_us"), [(False, [5.001, 9.001]), (True, [5.001, 13.001])])
    def test_a_mark_at_the_instant_of_a_cut(self, late: bool, cuts_us: list[float]) -> None:
        _, changes = self.trace([1, 9.001], 14, late=late)
        assert [t for t, _ in changes] == cuts_us

    @pytest.mark.parametrize(("late", "alpha"), [(False, 1.0), (True, 255 / 256)])
    def test_a_mark_at_the_instant_of_an_alpha_update(self, late: bool, alpha: float) -> None:
        control, _ = self.trace([1, 2], 2.5, late=late)
        assert control.alpha == alpha
        assert control.mark_for_alpha == late

    def test_a_cut_starts_the_increase_clock_anew(self) -> None:
        _, changes = self.trace([0, 302], 605)
        assert [t for t, _ in changes] == [4.001, 304.001, 304.001, 604.001]

    def test_clocks_alone_do_not_keep_a_run_going(self) -> None:
        lowered = incast(
            4,
            200,
            profile=SHALLOW_RED,
            transport={"congestion": 2, "feedback": 2, "rto_ps": 0},
            port_loss=0.1,
            flow_record=1,
        )
        simulator = Simulator(lowered, order="insertion")
        assert simulator.run() == "STALLED"
        assert (simulator.rows("rate")["aux"] < 400e9).any()

    def test_a_run_may_be_stopped_anywhere(self) -> None:
        transport = {"congestion": 2, "feedback": 2}
        lowered = incast(4, 200, profile=SHALLOW_RED, transport=transport)
        whole = Simulator(lowered, order="insertion")
        assert whole.run() == "FINISHED"
        whole.check_invariants()
        stepped = Simulator(lowered, order="insertion")
        while stepped.run(max_hops=7) == "BUDGET":
            pass
        assert stepped.columns()["counters"] == whole.columns()["counters"]


SHALLOW_RED = {"ecn_mode": 2, "ecn_kmin_bytes": 0, "ecn_kmax_bytes": 8_320}


class TestCongestionInTheFabric:
    @pytest.mark.parametrize("congestion", [1, 2])
    @pytest.mark.parametrize("feedback", [1, 2])
    def test_marks_slow_the_senders_down(self, congestion: int, feedback: int) -> None:
        transport = {"congestion": congestion, "feedback": feedback, "cnp_interval_ps": 4 * US}
        lowered = incast(4, 200, profile=SHALLOW_RED, transport=transport, flow_record=1)
        simulator = finished(lowered)
        columns, rates = simulator.columns(), simulator.rows("rate")
        unpaced = finished(incast(4, 200)).columns()["queue_peak_bytes"].max()
        assert columns["queue_peak_bytes"].max() < unpaced
        assert (columns["flow_marked"] > 0).all()
        assert (columns["flow_cnps"] > 0).all() == (feedback == 1)
        for flow in range(4):
            mine = rates[rates["flow"] == flow]
            assert (mine["time_ps"][0], mine["aux"][0]) == (0, 400e9)
            assert mine["aux"].min() < 200e9

    def test_cnps_keep_their_distance(self) -> None:
        transport = {"feedback": 1, "cnp_interval_ps": 4 * US}
        simulator = finished(incast(4, 200, profile=SHALLOW_RED, transport=transport, port_record=4))
        packets = simulator.rows("packet")
        host_port = 0
        cnps = packets[(packets["kind"] == 3) & (packets["port"] == host_port)]
        assert len(cnps) == simulator.columns()["flow_cnps"].sum()
        for flow in range(4):
            gaps = np.diff(cnps["time_ps"][cnps["flow"] == flow])
            assert (gaps > 3 * US).all()

    def test_pace_follows_the_rate(self) -> None:
        """After the only mark at line rate, frames of 20 Gbit/s are 1.664 us apart."""
        transport = Transport(**{**TRANSPORT_DEFAULTS, "congestion": 1})
        control = DcqcnPaper(transport, line_bps=40e9, on_change=lambda t, rate: None)
        control.on_mark(0)
        assert int(4160 * 8e12 / control.on_send(1, wire_bytes=4160)) == 1_664_000
