"""The readable engine: idle paths, incast, recovery, dependencies, records, runs in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from support_lowered import US, busy_lowered, small_lowered
from support_reference import FRAME_PS, GBPS, chain, finished, incast, port_to_host

from fabric.lowered import STREAMS, DropReason
from fabric.reference import Simulator
from fabric.reference.link import loss_probability
from fabric.reference.rng import fmix32, mix64, pow_int


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
