"""The readable engine against closed forms: idle paths, incast, PFC headroom, marks, DCQCN, recovery."""

from __future__ import annotations

import numpy as np
import pytest
from support_lowered import PLENTY, TRANSPORT_DEFAULTS, US, busy_lowered, port_to, small_lowered

from fabric.lowered import STREAMS, DropReason, Lowered
from fabric.reference import Simulator
from fabric.reference.clock import InsertionClock, TimerKind, arrival_tie
from fabric.reference.dcqcn_paper import DcqcnPaper
from fabric.reference.dcqcn_vendor import DcqcnVendor
from fabric.reference.dcqcn_vendor_timers import DcqcnVendorTimers
from fabric.reference.ecn import mark_probability
from fabric.reference.link import loss_probability
from fabric.reference.rng import fmix32, mix64, pow_int
from fabric.reference.tables import Transport

GBPS = 10**9
FRAME_PS = 83_200
"""4160 bytes at 400 Gbit/s."""


def finished(lowered: Lowered) -> Simulator:
    simulator = Simulator(lowered)
    assert simulator.run() == "FINISHED"
    simulator.check_invariants()
    return simulator


def chain(n_links: int, frames: int, **overrides: object) -> Lowered:
    """Two hosts at the ends of a chain with so many links, and one flow along it."""
    return small_lowered(
        switches=n_links - 1,
        attach=[0, n_links - 2],
        flows=[dict(source=0, destination=1, frames=frames, **overrides.pop("flow", {}))],
        **overrides,
    )


def incast(senders: int, frames: int, **overrides: object) -> Lowered:
    """Hosts 1 .. senders to host 0, over one switch, all starting at 0."""
    return small_lowered(
        hosts=senders + 1,
        flows=[{"source": i, "destination": 0, "frames": frames} for i in range(1, senders + 1)],
        **overrides,
    )


class TestIdlePaths:
    """Sum of delays and serialisation times, to the picosecond."""

    def test_two_links_data_only(self) -> None:
        assert finished(chain(2, 245)).columns()["flow_delivered_ps"] == [22_467_200]

    @pytest.mark.parametrize(("n_links", "expected_ps"), [(6, 53_108_480), (2, 44_770_560)])
    def test_with_the_acknowledgement(self, n_links: int, expected_ps: int) -> None:
        assert finished(chain(n_links, 489)).columns()["flow_completed_ps"] == [expected_ps]

    def test_unequal_links(self) -> None:
        rates = [400 * GBPS, 200 * GBPS, 100 * GBPS]  # by cable: the two hosts', then the switches'
        delays = [1 * US, 2 * US, 3 * US]
        lowered = chain(3, 10, rate_bps=rates, delay_ps=delays)
        service = [4160 * 8 * 10**12 // rate for rate in rates]
        expected_ps = sum(service) + sum(delays) + 9 * max(service)
        assert finished(lowered).columns()["flow_delivered_ps"] == [expected_ps]

    def test_shorter_last_frame_waits_behind_full_ones(self) -> None:
        lowered = chain(4, 6, flow={"last_frame_bytes": 1040})
        expected_ps = 4 * US + (6 - 1) * FRAME_PS + (4 - 1) * FRAME_PS + FRAME_PS // 4
        assert finished(lowered).columns()["flow_delivered_ps"] == [expected_ps]

    def test_cut_through(self) -> None:
        lowered = chain(4, 7)
        header_bytes = 64
        towards_switch = lowered.port_node[lowered.port_peer] >= lowered.n_hosts
        lowered.port_cut_bytes[towards_switch] = header_bytes
        expected_ps = 4 * US + 3 * (header_bytes * 20) + FRAME_PS + 6 * FRAME_PS
        assert finished(lowered).columns()["flow_delivered_ps"] == [expected_ps]

    def test_frame_time_is_rounded_up_for_each_frame(self) -> None:
        lowered = chain(2, 100, rate_bps=900 * GBPS)
        frame_ps = -(-4160 * 8 * 10**12 // (900 * GBPS))
        delivered_ps = finished(lowered).columns()["flow_delivered_ps"]
        assert frame_ps == 36_978
        assert delivered_ps == [101 * frame_ps + 2 * US]
        assert delivered_ps >= 100 * 4160 * 8 / 900e9 * 1e12

    def test_gap_is_on_the_wire_and_not_in_the_buffer(self) -> None:
        simulator = finished(chain(2, 50, port_gap_bytes=20))
        columns = simulator.columns()
        assert columns["flow_delivered_ps"] == [51 * 4180 * 20 + 2 * US]
        assert columns["port_tx_bytes"][0] == 50 * 4180

    def test_window_opens_with_every_acknowledgement(self) -> None:
        """One frame in flight: every frame takes a round trip."""
        lowered = chain(2, 9, transport={"window_frames": 1})
        round_trip_ps = 2 * (FRAME_PS + US) + 2 * (1280 + US)
        assert finished(lowered).columns()["flow_completed_ps"] == [9 * round_trip_ps]


@pytest.fixture(scope="module")
def incast_columns() -> dict[str, np.ndarray]:
    return finished(incast(TestIncast.N, TestIncast.P)).columns()


class TestIncast:
    N, P = 8, 489

    def test_time_to_drain(self, incast_columns: dict[str, np.ndarray]) -> None:
        assert incast_columns["flow_delivered_ps"].max() == (self.N * self.P + 1) * FRAME_PS + 2 * US

    def test_peak_queue_with_the_frame_in_service(self, incast_columns: dict[str, np.ndarray]) -> None:
        assert incast_columns["queue_peak_bytes"].max() // 4160 + 1 == (self.N - 1) * self.P + 1 == 3424

    def test_by_the_kth_completion_k_flows_have_left(self, incast_columns: dict[str, np.ndarray]) -> None:
        order = np.sort(incast_columns["flow_delivered_ps"])
        least = (np.arange(1, self.N + 1) * self.P + 1) * FRAME_PS + 2 * US
        assert (order >= least).all()

    def test_wait_integral_is_the_area_under_the_queue(self) -> None:
        """Sum of the waits of all frames = integral of the depth, from idle to idle."""
        simulator = finished(
            incast(3, 20, port_record=1, record_queue_interval_ps=FRAME_PS // 2, transport={"ack_every": 20})
        )
        rows = simulator.rows("queue")
        port = port_to_host(simulator, 0)
        ends = np.append(rows["time_ps"][1:], rows["time_ps"][-1])
        area = float(np.sum(rows["value"].astype(float) * (ends - rows["time_ps"])))
        integral = simulator.columns()["queue_wait_integral"][port, 0]
        assert rows["value"][-1] == 0
        assert area == pytest.approx(integral, rel=1e-12)


def port_to_host(simulator: Simulator, host: int) -> int:
    """The switch port of a one-switch scenario that leads to a host."""
    return next(p.peer for p in simulator._ports if p.node == host)


class TestMarking:
    @pytest.mark.parametrize(
        ("kmin", "kmax", "pmax", "queue", "expected"),
        [
            (5_000, 200_000, 0.01, 5_000, 0.0),
            (5_000, 200_000, 0.01, 102_500, 0.005),
            (5_000, 200_000, 0.01, 200_000, 0.01),
            (5_000, 200_000, 0.01, 200_001, 1.0),
            (400_000, 1_600_000, 0.2, 1_000_000, 0.1),
            (400_000, 1_600_000, 0.2, 1_600_000, 0.2),
            (1_048_576, 2_097_152, 0.05, 1_310_720, 0.0125),
            (1_048_576, 2_097_152, 0.05, 1_572_864, 0.025),
        ],
    )
    def test_probability(self, kmin: int, kmax: int, pmax: float, queue: int, expected: float) -> None:
        assert mark_probability(queue, kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax) == expected

    @pytest.mark.parametrize(("mode", "included"), [(1, 1), (2, 0)])
    def test_where_the_mark_is_made(self, mode: int, included: int) -> None:
        """Above a hard threshold every frame is marked; at enqueue the frame counts itself."""
        red = {"ecn_mode": mode, "ecn_kmin_bytes": 2 * 4160, "ecn_kmax_bytes": 2 * 4160}
        simulator = finished(incast(2, 30, profile=red, record=2))
        depths = simulator.rows("mark")["value"]
        assert depths.min() == 3 * 4160
        assert len(depths) == simulator.columns()["queue_marks"].sum()
        assert simulator.columns()["flow_marked"].sum() == len(depths)
        # A hard threshold of 2: at enqueue the third frame in the queue is marked, at dequeue one that
        # leaves three behind it.
        assert depths.max() == (30 if included else 29) * 4160

    def test_share_of_marks_inside_the_band(self) -> None:
        """As many marks as the depths that frames met make likely."""
        every_frame = {"ecn_mode": 1, "ecn_kmin_bytes": 0, "ecn_kmax_bytes": 0}
        depths = finished(incast(8, 400, profile=every_frame, record=2)).rows("mark")["value"]
        band = {"ecn_mode": 1, "ecn_kmin_bytes": 100_000, "ecn_kmax_bytes": 12_000_000, "ecn_pmax": 0.4}
        columns = finished(incast(8, 400, profile=band)).columns()
        likely = ((depths - 100_000) / 11_900_000 * 0.4).clip(0)
        assert len(depths) == 8 * 400
        deviation = columns["flow_marked"].sum() - likely.sum()
        assert abs(deviation) < 3 * np.sqrt(np.sum(likely * (1 - likely)))


def paused_incast(
    senders: int,
    *,
    rate_bps: int,
    delay_ps: int,
    frame_bytes: int,
    xoff: int,
    headroom: int = PLENTY,
    response_ps: int = 0,
    frames: int = 0,
) -> Simulator:
    """Incast under static PFC, without overhead and reverse data."""
    frames = frames or 3 * xoff // frame_bytes
    lowered = incast(
        senders,
        frames,
        rate_bps=rate_bps,
        delay_ps=delay_ps,
        transport={"frame_bytes": frame_bytes, "ack_every": frames},
        profile={"limit_bytes": xoff, "xon_offset_bytes": 2 * frame_bytes, "headroom_bytes": headroom},
        pfc_response_ps=response_ps,
        record=1 | 4,
    )
    return finished(lowered)


def ingress_peak(simulator: Simulator, frame_bytes: int, xoff: int) -> int:
    """Most bytes of one ingress: what fits under XOFF, then headroom."""
    headroom_peak = int(simulator.columns()["headroom_peak_bytes"].max())
    return xoff // frame_bytes * frame_bytes + headroom_peak


HEADROOM_CASES = {
    "E10": (40 * GBPS, 1 * US, 1000, 40_000, 51_000),
    "E11": (400 * GBPS, 3 * US // 2, 4096, 200_000, 352_256),
    "E12": (400 * GBPS, 3 * US // 2, 4096, 333_000, 487_424),
    "E13": (100 * GBPS, 1 * US, 4096, 100_000, 131_072),
    "E14": (100 * GBPS, 1 * US, 1500, 200_000, 226_500),
}


class TestHeadroom:
    """`peak = L (ceil(XOFF/L) + floor(C (2d + t_p + t_r) / L) + 1)` while the ingress gets no service.

    Ties are permuted by chance, so with n senders two frames of one ingress are served up to 2n - 1
    frame times apart; with 32 senders that is longer than every window here.
    """

    @pytest.mark.parametrize("case", HEADROOM_CASES)
    def test_exact_peak(self, case: str) -> None:
        rate_bps, delay_ps, frame_bytes, xoff, peak = HEADROOM_CASES[case]
        simulator = paused_incast(
            32,
            rate_bps=rate_bps,
            delay_ps=delay_ps,
            frame_bytes=frame_bytes,
            xoff=xoff,
            frames=peak // frame_bytes + 10,
        )
        assert ingress_peak(simulator, frame_bytes, xoff) == peak

    @pytest.mark.parametrize("senders", [8, 16, 64])
    def test_peak_does_not_depend_on_the_fan_in(self, senders: int) -> None:
        """With few senders an ingress without service for so long takes some cycles to come up."""
        frames = 160 if senders < 16 else 60
        simulator = paused_incast(
            senders, rate_bps=40 * GBPS, delay_ps=US, frame_bytes=1000, xoff=40_000, frames=frames
        )
        assert ingress_peak(simulator, 1000, 40_000) == 51_000

    def test_response_time_counts(self) -> None:
        simulator = paused_incast(
            16, rate_bps=40 * GBPS, delay_ps=US, frame_bytes=1000, xoff=40_000, response_ps=US, frames=70
        )
        assert ingress_peak(simulator, 1000, 40_000) == 1000 * (40 + (5000 * 3 + 64) // 1000 + 1)

    def test_two_senders_keep_draining(self) -> None:
        """At the first PAUSE each ingress is served at half rate; later ones fall out of step."""
        simulator = paused_incast(
            2, rate_bps=40 * GBPS, delay_ps=US, frame_bytes=1000, xoff=40_000, frames=100
        )
        assert ingress_peak(simulator, 1000, 40_000) == 45_000

    @pytest.mark.parametrize(("headroom", "loses"), [(11_000, False), (10_000, True)])
    def test_the_exact_overshoot_is_enough_and_one_frame_less_is_not(
        self, headroom: int, loses: bool
    ) -> None:
        simulator = paused_incast(
            16, rate_bps=40 * GBPS, delay_ps=US, frame_bytes=1000, xoff=40_000, headroom=headroom, frames=80
        )
        drops = simulator.columns()["drops_by_reason"]
        assert bool(drops[DropReason.HEADROOM]) is loses

    @pytest.mark.parametrize("senders", [2, 3, 5, 8, 16, 32])
    def test_the_bound_loses_nothing(self, senders: int) -> None:
        simulator = paused_incast(
            senders,
            rate_bps=40 * GBPS,
            delay_ps=US,
            frame_bytes=1000,
            xoff=40_000,
            headroom=12_064,
            frames=90,
        )
        assert simulator.columns()["drops_by_reason"].sum() == 0

    def test_every_pause_has_its_resume(self) -> None:
        simulator = paused_incast(
            16, rate_bps=40 * GBPS, delay_ps=US, frame_bytes=1000, xoff=40_000, frames=90
        )
        columns, rows = simulator.columns(), simulator.rows("pause")
        assert len(rows) == columns["pauses_sent"].sum() > 0
        assert (rows["value"] > rows["time_ps"]).all()
        spans = np.bincount(
            rows["port"], rows["value"] - rows["time_ps"], minlength=len(columns["paused_ps"])
        )
        assert (spans == columns["paused_ps"][:, 0]).all()

    def test_pause_takes_effect_after_way_and_response(self) -> None:
        response_ps = 123_456
        simulator = paused_incast(
            2, rate_bps=40 * GBPS, delay_ps=US, frame_bytes=1000, xoff=10_000, response_ps=response_ps
        )
        # Two senders: an ingress reaches 10 waiting frames when 20 have arrived and 10 have left or begun.
        first = simulator.rows("pause")["time_ps"].min()
        pause_sent_ps = first - response_ps - US - 64 * 200
        assert (pause_sent_ps - US) % 200_000 == 0


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


MARK, LATE_MARK = TimerKind.FLOW_START, TimerKind.DELAYED_ACK
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


class TestScheduling:
    def two_classes(self, **overrides: object) -> list[int]:
        lowered = small_lowered(
            classes=2,
            flows=[{"frames": 12, "traffic_class": 0}, {"frames": 12, "traffic_class": 1}],
            transport={"ack_every": 12},
            ports={0: {"record": 4}},
            **overrides,
        )
        packets = finished(lowered).rows("packet")
        return [int(c) for c in packets["class"][np.argsort(packets["time_ps"])]]

    def test_strict_priority(self) -> None:
        assert self.two_classes() == [0] + [1] * 12 + [0] * 11

    def test_deficit_round_robin_by_weight(self) -> None:
        order = self.two_classes(levels=[[0, 1]], quantum=[4160, 3 * 4160])
        assert order[:16] == [0, 1, 1, 1] * 4

    @pytest.mark.parametrize("round_robin", [True, False])
    def test_arbiter(self, round_robin: bool) -> None:
        """A late ingress waits behind everything in a FIFO, but for one frame only with round robin."""
        lowered = small_lowered(
            hosts=4,
            flows=[
                {"source": 1, "destination": 0, "frames": 20},
                {"source": 2, "destination": 0, "frames": 20},
                {"source": 3, "destination": 0, "frames": 1, "start_ps": 10 * FRAME_PS},
            ],
            round_robin=round_robin,
        )
        wait_ps = finished(lowered).columns()["flow_delivered_ps"][2] - 10 * FRAME_PS - 2 * US - 2 * FRAME_PS
        assert (wait_ps <= 2 * FRAME_PS) == round_robin
        assert (wait_ps >= 9 * FRAME_PS) == (not round_robin)

    def test_no_port_always_wins_a_tie(self) -> None:
        key = mix64(7)
        wins = sum(arrival_tie(t, key, 0) < arrival_tie(t, key, 1) for t in range(0, 4000, 4))
        assert 420 < wins < 580


class TestRouting:
    def test_equal_cost_paths_by_hash(self) -> None:
        lowered = small_lowered(
            switches=2, parallel=4, attach=[0, 1], flows=[{"frames": f + 1} for f in range(16)]
        )
        expected = np.zeros(4, int)
        for flow in range(16):
            chosen = fmix32(int(lowered.flow_hash[flow]) ^ int(lowered.node_salt[2])) * 4 >> 32
            expected[chosen] += 4160 * (flow + 1)
        ports = [port_to(lowered, 2, 3, nth=i) for i in range(4)]
        assert (finished(lowered).columns()["port_tx_bytes"][ports] == expected).all()
        assert np.count_nonzero(expected) > 1

    def test_host_with_two_ports(self) -> None:
        lowered = small_lowered(attach=[(0,), (0, 0)], flows=[{"frames": 1} for _ in range(32)])
        sent = finished(lowered).columns()["port_tx_bytes"]
        assert all(sent[port_to(lowered, 2, 1, nth=i)] > 0 for i in range(2))

    def test_no_route(self) -> None:
        lowered = chain(3, 5)
        lowered.route_entry[lowered.route_base[2] + lowered.host_edge[1]] = 0
        simulator = Simulator(lowered)
        assert simulator.run() == "STALLED"
        simulator.check_invariants()
        columns = simulator.columns()
        assert columns["drops_by_reason"].tolist() == [0, 5, 0, 0, 0, 0, 0, 0]
        assert columns["queue_drops"][port_to(lowered, 2, 0), 0] == 5


class TestRecovery:
    def test_loss_probability_of_bit_errors(self) -> None:
        rate = -np.log1p(-1e-6)
        assert loss_probability(4160, loss=0.0, ber_rate=rate) == pytest.approx(
            1 - (1 - 1e-6) ** 33_280, rel=1e-6
        )
        assert loss_probability(4160, loss=0.1, ber_rate=0.0) == 0.1

    def test_random_loss(self) -> None:
        lowered = chain(2, 2000, transport={"rto_ps": 100 * US}, port_loss=0.01)
        columns = finished(lowered).columns()
        lost = int(columns["drops_by_reason"][DropReason.LINK_LOSS])
        hops = columns["counters"]["hops"]
        assert abs(lost - 0.01 * hops) < 4 * (0.01 * hops) ** 0.5
        assert columns["flow_retransmitted"][0] == columns["flow_sent"][0] - 2000 > 0
        assert columns["flow_nacks"][0] > 0

    def test_timeouts_alone(self) -> None:
        lowered = chain(2, 1, transport={"rto_ps": 100 * US}, port_loss=1.0, until_ps=1000 * US)
        simulator = Simulator(lowered)
        assert simulator.run() == "UNTIL"
        simulator.check_invariants()
        columns = simulator.columns()
        assert columns["flow_timeouts"] == [9]
        assert columns["flow_sent"] == [10]
        assert columns["flow_retransmitted"] == [9]
        assert simulator.now_ps == 1000 * US

    def test_nothing_recovers_without_a_timer(self) -> None:
        simulator = Simulator(chain(2, 3, port_loss=1.0))
        assert simulator.run() == "STALLED"
        assert simulator.columns()["flow_completed_ps"] == [-1]

    @pytest.mark.parametrize(
        ("limits", "reason"),
        [
            ({"egress_limit_bytes": 10 * 4160}, DropReason.EGRESS_THRESHOLD),
            ({"egress_alpha_q16": 1 << 15}, DropReason.EGRESS_THRESHOLD),
            ({}, DropReason.POOL),
        ],
    )
    def test_lossy_class_drops_and_recovers(self, limits: dict[str, int], reason: int) -> None:
        lowered = incast(
            4,
            100,
            shared_bytes=40 * 4160,
            profile=dict(lossless=0, **limits),
            transport={"rto_ps": 100 * US},
            record=4,
        )
        simulator = finished(lowered)
        columns, rows = simulator.columns(), simulator.rows("drop")
        assert columns["drops_by_reason"][reason] == len(rows) > 0
        assert (rows["value"] == reason).all()
        most = 40 * 4160 if reason == DropReason.POOL else 20 * 4160
        assert columns["queue_peak_bytes"].max() <= most

    def test_one_nack_for_one_gap(self) -> None:
        """Pool drops in one burst: the receiver asks once, and again only when the resent frame is late."""
        lowered = incast(
            2,
            30,
            shared_bytes=8 * 4160,
            profile={"lossless": 0},
            transport={"rto_ps": 100 * US, "nack_on_rewind": 0},
        )
        columns = finished(lowered).columns()
        drops = columns["queue_drops"].sum()
        assert 0 < columns["flow_nacks"].sum() < drops


class TestDependencies:
    @pytest.mark.parametrize("kind", ["delivered", "complete"])
    def test_start_after_a_predecessor(self, kind: str) -> None:
        lowered = small_lowered(
            hosts=3,
            flows=[
                {"source": 0, "destination": 1, "frames": 20},
                {"source": 1, "destination": 2, "frames": 5, "after": [(0, kind, 3 * US)]},
            ],
        )
        columns = finished(lowered).columns()
        end_ps = columns[f"flow_{kind if kind == 'delivered' else 'completed'}_ps"][0]
        assert columns["flow_started_ps"].tolist() == [0, end_ps + 3 * US]

    def test_own_start_time_and_the_last_predecessor_count(self) -> None:
        after = [(0, "delivered", US), (1, "delivered", US)]
        flows = [
            {"frames": 10},
            {"source": 2, "frames": 200},
            {"source": 1, "destination": 0, "after": after},
            {"source": 1, "destination": 0, "after": after, "start_ps": 500 * US},
        ]
        columns = finished(small_lowered(hosts=3, flows=flows)).columns()
        delivered = columns["flow_delivered_ps"]
        last_ps = max(delivered[:2]) + US
        assert columns["flow_started_ps"].tolist() == [0, 0, last_ps, 500 * US]


class TestRows:
    def test_queue_at_an_interval(self) -> None:
        """Two senders, four frames each: the queue by hand, sampled every 100 ns."""
        simulator = finished(incast(2, 4, port_record=1, record_queue_interval_ps=100_000))
        rows = simulator.rows("queue")
        assert rows["time_ps"].tolist() == [k * 100_000 for k in range(11, 18)]
        assert (rows["value"] // 4160).tolist() == [1, 2, 3, 4, 2, 1, 0]

    def test_queue_by_change(self) -> None:
        simulator = finished(incast(2, 4, port_record=1, record_queue_delta=2 * 4160))
        rows = simulator.rows("queue")
        t0 = FRAME_PS + US
        assert (rows["value"] // 4160).tolist() == [2, 4, 2, 0]
        assert ((rows["time_ps"] - t0) // FRAME_PS).tolist() == [1, 3, 5, 7]

    def test_throughput_adds_up(self) -> None:
        lowered = chain(2, 100, port_record=2, record_throughput_interval_ps=10 * FRAME_PS)
        simulator = finished(lowered)
        rows = simulator.rows("throughput")
        mine = rows[rows["port"] == 0]
        assert mine["value"].tolist() == [10 * 4160] * 10
        sent = np.bincount(rows["port"], rows["value"], minlength=4)
        assert (sent == simulator.columns()["port_tx_bytes"]).all()

    def test_packets_of_a_flow_on_every_port(self) -> None:
        rows = finished(chain(3, 4, flow_record=2)).rows("packet")
        assert len(rows) == 3 * 4 * 2
        assert sorted(set(rows["kind"].tolist())) == [0, 1]

    def test_open_pause_at_the_end(self) -> None:
        lowered = incast(4, 50, transport={"ack_every": 50}, profile={"limit_bytes": 5 * 4160}, record=1)
        simulator = Simulator(lowered)
        assert simulator.run(until_ps=3 * US + FRAME_PS * 8) == "UNTIL"
        rows = simulator.rows("pause")
        columns = simulator.columns()
        assert (rows["value"] == -1).sum() > 0
        end_ps = columns["counters"]["end_ps"]
        spans = np.where(rows["value"] == -1, end_ps, rows["value"]) - rows["time_ps"]
        assert spans.clip(0).sum() == columns["paused_ps"].sum()
        assert simulator.run() == "FINISHED"
        assert (simulator.rows("pause")["value"] > 0).all()


def everything(simulator: Simulator) -> dict[str, object]:
    columns = simulator.columns()
    return {
        **{name: column if isinstance(column, dict) else column.tolist() for name, column in columns.items()},
        **{stream: simulator.rows(stream).tolist() for stream in STREAMS},
    }


class TestRuns:
    @pytest.mark.parametrize("seed", range(12))
    def test_invariants_and_chunks(self, seed: int) -> None:
        """Whatever the scenario, all adds up, and stopping anywhere on the way leaves no trace."""
        lowered = busy_lowered(seed)
        whole, chunked, sliced = Simulator(lowered), Simulator(lowered), Simulator(lowered)
        end = whole.run()
        whole.check_invariants()
        while (state := chunked.run(max_hops=97)) == "BUDGET":
            chunked.check_invariants()
        assert state == end
        for until_ps in range(0, 300 * US, 7_654_321):
            sliced.run(until_ps=until_ps)
            sliced.check_invariants()
        assert sliced.run() == end
        assert everything(chunked) == everything(whole)
        assert everything(sliced) == everything(whole)

    def test_budget_counts_arrivals(self) -> None:
        simulator = Simulator(chain(2, 50))
        assert simulator.run(max_hops=10) == "BUDGET"
        assert simulator.columns()["counters"]["hops"] == 10

    def test_until_is_exclusive(self) -> None:
        simulator = Simulator(chain(2, 1))
        assert simulator.run(until_ps=FRAME_PS + US) == "UNTIL"
        assert simulator.columns()["counters"]["hops"] == 0
        assert simulator.run(until_ps=FRAME_PS + US + 1) == "UNTIL"
        assert simulator.columns()["counters"]["hops"] == 1

    def test_stale_timers_do_not_keep_a_run_going(self) -> None:
        lowered = chain(2, 3, transport={"rto_ps": 4000 * US}, until_ps=1000 * US)
        simulator = finished(lowered)
        assert simulator.now_ps == simulator.columns()["counters"]["end_ps"]

    def test_fingerprint_sees_one_byte(self) -> None:
        prints = {
            finished(chain(2, 20, flow={"last_frame_bytes": size})).columns()["counters"]["fingerprint"]
            for size in (4160, 4159)
        }
        assert len(prints) == 2

    def test_broken_accounting_is_found(self) -> None:
        simulator = Simulator(chain(2, 20))
        simulator.run(max_hops=10)
        simulator._tally.started += 1
        with pytest.raises(AssertionError, match="frames started"):
            simulator.check_invariants()


def test_integer_powers() -> None:
    assert pow_int(0.5, 0) == 1.0
    assert pow_int(0.5, 10) == 0.5**10
    assert pow_int(255 / 256, 1000) == pytest.approx((255 / 256) ** 1000, rel=1e-12)


def test_mixing_is_that_of_splitmix64() -> None:
    """First output of SplitMix64 from state 0."""
    assert mix64(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    assert fmix32(1) == 0x514E28B7
