"""The readable engine's switches: marks, headroom, scheduling, routes."""

from __future__ import annotations

import numpy as np
import pytest
from support_lowered import PLENTY, US, port_to, small_lowered
from support_reference import FRAME_PS, GBPS, chain, finished, incast

from fabric.lowered import DropReason
from fabric.reference import Simulator
from fabric.reference.clock import arrival_tie
from fabric.reference.ecn import mark_probability
from fabric.reference.rng import fmix32, mix64


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
