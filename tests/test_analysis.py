"""Closed forms against published or independently computed values, and against brute force.

The ideal completion time is compared frame by frame with a direct evaluation of the FIFO recursion on
random paths. Tabulated values are exact unless a tolerance is given, which is then that of the table.
"""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fabric.analysis
import fabric.workload
from fabric.analysis import (
    DcqcnFluid,
    PathTimes,
    crossing_share,
    dynamic_threshold_bytes,
    ecmp_fullest_link,
    ecmp_permutation_share,
    ecn_before_pfc_bytes,
    empirical_cdf,
    fixed_point,
    frame_loss_probability,
    go_back_n_share,
    goodput_bps,
    header_efficiency,
    headroom_bound_bytes,
    ideal_completion_ps,
    ideal_delivery_ps,
    incast_drain_ps,
    incast_peak_frames,
    jain_index,
    lindley_waits,
    marking_probability,
    mg1_wait,
    most_flows_at_rest,
    oversubscribed_share,
    peak_ingress_bytes,
    percentiles,
    quanta_ps,
    queue_at_probability,
    response_time_ps,
    serialisation_ps,
    slowdown,
    slowdown_by_size,
    sonic_mellanox_xoff_bytes,
    static_threshold_bytes,
)

G = 10**9
US = 10**6


def modules_of(package):
    return [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]


@pytest.mark.parametrize("name", modules_of(fabric.analysis) + modules_of(fabric.workload))
def test_the_examples_in_the_docstrings_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


class TestIdealTimes:
    def path(self, hops, *, rate=400 * G, delay=US, frame=4160, last=None):
        return PathTimes.from_links([rate] * hops, delay_ps=[delay] * hops, full_bytes=frame, last_bytes=last)

    def test_one_megabyte_over_two_links(self):
        assert ideal_delivery_ps([245], path=self.path(2)).tolist() == [22_467_200]

    @pytest.mark.parametrize(("hops", "expected"), [(6, 53_108_480), (2, 44_770_560)])
    def test_two_megabytes_with_acknowledgement(self, hops, expected):
        done = ideal_completion_ps([489], path=self.path(hops), ack_path=self.path(hops, frame=64))
        assert done.tolist() == [expected]

    def test_a_frame_is_rounded_up_once(self):
        assert serialisation_ps(4160, rate_bps=900 * G) == 36_978
        assert serialisation_ps(65_535, rate_bps=7000 * G) == -(-65_535 * 8 * 10**12 // (7000 * G))
        with pytest.raises(ValueError, match="65535"):
            serialisation_ps(65_536, rate_bps=G)

    def test_equal_links_short_last_frame(self):
        s, last, hops, frames = 83_200, 24_000, 4, 7
        path = self.path(hops, last=1200)
        assert ideal_delivery_ps([frames], path=path).tolist() == [
            hops * US + (frames - 1) * s + (hops - 1) * s + last
        ]

    def test_unequal_links(self):
        rates = [400 * G, 100 * G, 200 * G]
        path = PathTimes.from_links(rates, delay_ps=[US, 2 * US, 0], full_bytes=1000)
        expected = sum(8000 * 1000 // (rate // G) for rate in rates) + 3 * US + 9 * 80_000
        assert ideal_delivery_ps([10], path=path).tolist() == [expected]

    def test_cut_through(self):
        hops, frames = 5, 3
        path = PathTimes.from_links(
            [100 * G] * hops, delay_ps=[US] * hops, full_bytes=1000, cut_bytes=[64] * (hops - 1) + [0]
        )
        expected = hops * US + 80_000 + (hops - 1) * 5_120 + (frames - 1) * 80_000
        assert ideal_delivery_ps([frames], path=path).tolist() == [expected]

    def test_padding_changes_nothing(self):
        short = self.path(2, last=500)
        padded = PathTimes.from_links(
            [400 * G, 400 * G, 0, 0], delay_ps=[US, US, 7, 7], full_bytes=4160, last_bytes=500
        )
        assert ideal_delivery_ps([9], path=padded) == ideal_delivery_ps([9], path=short)

    def test_wrong_arguments_are_refused(self):
        path = self.path(2)
        with pytest.raises(ValueError, match="at least one frame"):
            ideal_delivery_ps([0], path=path)
        with pytest.raises(ValueError, match="shape"):
            ideal_delivery_ps([1, 2], path=path)
        with pytest.raises(ValueError, match="ack_every"):
            ideal_completion_ps([1], path=path, ack_path=path, ack_every=0)
        with pytest.raises(ValueError, match="positive"):
            serialisation_ps(64, rate_bps=0)
        with pytest.raises(ValueError, match="wire_bytes"):
            serialisation_ps(2_000_000, rate_bps=1)

    times = st.integers(min_value=1, max_value=50)
    hop = st.tuples(times, times, times, times, st.integers(min_value=0, max_value=100))

    @settings(max_examples=300, deadline=None)
    @given(
        there=st.lists(hop, min_size=1, max_size=5),
        back=st.lists(st.tuples(times, st.integers(min_value=0, max_value=100)), min_size=1, max_size=5),
        frames=st.integers(min_value=1, max_value=12),
        ack_every=st.integers(min_value=1, max_value=5),
        cut_through=st.booleans(),
    )
    def test_against_the_recursion_frame_by_frame(self, there, back, frames, ack_every, cut_through):
        full = [max(a, b) for a, b, *_ in there]
        last = [min(a, b) for a, b, *_ in there]
        delay = [h[4] for h in there]
        full_forward = [min(f, h[2]) if cut_through else f for f, h in zip(full, there, strict=True)]
        last_forward = [min(v, h[2]) if cut_through else v for v, h in zip(last, there, strict=True)]
        full_forward[-1], last_forward[-1] = full[-1], last[-1]
        ack, ack_delay = (list(column) for column in zip(*back, strict=True))

        def through(arrivals, service, forward, delays):
            """Deliveries of frames with per-frame service and forwarding times."""
            for hop in range(len(delays)):
                busy, left = 0, []
                for frame, at in enumerate(arrivals):
                    start = max(busy, at)
                    busy = start + service[frame][hop]
                    left.append(start + forward[frame][hop] + delays[hop])
                arrivals = left
            return arrivals

        delivered = through(
            [0] * frames,
            [full] * (frames - 1) + [last],
            [full_forward] * (frames - 1) + [last_forward],
            delay,
        )
        acked = [at for number, at in enumerate(delivered, 1) if number % ack_every == 0 or number == frames]
        completed = through(acked, [ack] * len(acked), [ack] * len(acked), ack_delay)

        def rows(values):
            return np.array([values], dtype=np.int64)

        path = PathTimes(rows(full), rows(last), rows(delay), rows(full_forward), rows(last_forward))
        way_back = PathTimes(rows(ack), rows(ack), rows(ack_delay), rows(ack), rows(ack))
        assert ideal_delivery_ps([frames], path=path).tolist() == [delivered[-1]]
        done = ideal_completion_ps([frames], path=path, ack_path=way_back, ack_every=ack_every)
        assert done.tolist() == [completed[-1]]

    def test_many_flows_are_independent_rows(self):
        frames = [1, 2, 30]
        path = PathTimes.from_links(
            [[400 * G, 100 * G]] * 3, delay_ps=[US, US], full_bytes=[4160] * 3, last_bytes=[90, 4160, 800]
        )
        together = ideal_delivery_ps(frames, path=path)
        for row, count in enumerate(frames):
            alone = PathTimes(*(values[row : row + 1] for values in vars(path).values()))
            assert ideal_delivery_ps([count], path=alone)[0] == together[row]


class TestStatistics:
    def test_percentiles_are_order_statistics(self):
        values = np.random.default_rng(1).permutation(np.arange(1, 1001))
        assert percentiles(values).tolist() == [500, 900, 950, 990, 999]
        assert percentiles(values, q=[0, 100, 0.1]).tolist() == [1, 1000, 1]
        assert percentiles([7.0], q=[1, 99]).tolist() == [7, 7]
        assert np.isnan(percentiles([])).all()
        with pytest.raises(ValueError, match="percentages"):
            percentiles([1], q=101)

    @given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.integers(1, 100))
    def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(self, values, q):
        value = percentiles(values, q=q)[0]
        assert value in values
        assert 100 * sum(v <= value for v in values) >= q * len(values)
        assert 100 * sum(v < value for v in values) < q * len(values)

    def test_empirical_cdf(self):
        x, share = empirical_cdf([5, 1, 5, 2])
        assert x.tolist() == [1, 2, 5]
        assert share.tolist() == [0.25, 0.5, 1]
        assert empirical_cdf([])[0].size == 0

    def test_slowdown(self):
        assert slowdown([10, -1], ideal_ps=[5, 5]).tolist()[0] == 2
        assert math.isnan(slowdown([10, -1], ideal_ps=[5, 5])[1])
        with pytest.raises(ValueError, match="positive"):
            slowdown([1], ideal_ps=[0])
        with pytest.raises(ValueError, match="shape"):
            slowdown([1], ideal_ps=[1, 2])

    def test_slowdown_by_size_leaves_out_the_unfinished_and_keeps_empty_bins(self):
        table = slowdown_by_size(
            [1.0, 3.0, np.nan, 9.0], size_bytes=[10, 20, 20, 5000], edges_bytes=[0, 20, 1000, 5000]
        )
        assert table.count.tolist() == [2, 0, 1]
        assert table.mean.tolist()[::2] == [2, 9]
        assert np.isnan(table.p99[1])
        assert table.p50.tolist()[::2] == [1, 9]
        assert table.lower_bytes.tolist() == [0, 20, 1000]

    def test_default_bins_hold_every_flow_and_are_about_equal(self):
        size = np.random.default_rng(2).integers(1, 10**7, 1000)
        table = slowdown_by_size(np.ones(1000), size_bytes=size)
        assert table.count.tolist() == [100] * 10
        assert slowdown_by_size([], size_bytes=[]).count.size == 0
        assert slowdown_by_size([2.0, 2.0], size_bytes=[7, 7]).count.tolist() == [2]
        with pytest.raises(ValueError, match="ascend"):
            slowdown_by_size([1.0], size_bytes=[1], edges_bytes=[1, 1])

    def test_jain(self):
        assert jain_index([3, 3, 3]) == 1
        assert jain_index([1, 0, 0, 0, 0]) == pytest.approx(0.2)
        assert math.isnan(jain_index([0, 0]))
        with pytest.raises(ValueError, match="negative"):
            jain_index([-1, 2])

    def test_goodput(self):
        assert goodput_bps([4096], duration_ps=[81_920])[0] == pytest.approx(400 * G)
        assert math.isnan(goodput_bps([1], duration_ps=[-1])[0])


class TestEcn:
    @pytest.mark.parametrize(
        ("red", "queue", "expected"),
        [
            ((5_000, 200_000, 0.01), 5_000, 0),
            ((5_000, 200_000, 0.01), 102_500, 0.005),
            ((5_000, 200_000, 0.01), 200_000, 0.01),
            ((5_000, 200_000, 0.01), 200_001, 1),
            ((400_000, 1_600_000, 0.2), 1_000_000, 0.1),
            ((400_000, 1_600_000, 0.2), 1_600_000, 0.2),
            ((1_048_576, 2_097_152, 0.05), 1_310_720, 0.0125),
            ((1_048_576, 2_097_152, 0.05), 1_572_864, 0.025),
            ((300_000, 300_000, 1.0), 300_000, 0),
            ((300_000, 300_000, 1.0), 300_001, 1),
        ],
    )
    def test_marking(self, red, queue, expected):
        kmin, kmax, pmax = red
        assert marking_probability(queue, kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax) == expected
        in_array = marking_probability(np.array([queue]), kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax)
        assert in_array.tolist() == [expected]

    def test_inverse(self):
        red = {"kmin_bytes": 5_000, "kmax_bytes": 200_000, "pmax": 0.01}
        assert queue_at_probability(0.005, **red) == 102_500
        assert math.isnan(queue_at_probability(0.02, **red))
        with pytest.raises(ValueError, match="probability"):
            queue_at_probability(1.5, **red)
        with pytest.raises(ValueError, match="kmin"):
            marking_probability(0, kmin_bytes=2, kmax_bytes=1, pmax=0.5)
        with pytest.raises(ValueError, match="pmax"):
            marking_probability(0, kmin_bytes=1, kmax_bytes=2, pmax=0)


class TestPfc:
    @pytest.mark.parametrize(
        ("rate", "delay", "frame", "xoff", "peak", "bound"),
        [
            (40, 1_000_000, 1000, 40_000, 51_000, 12_064),
            (400, 1_500_000, 4096, 200_000, 352_256, 158_256),
            (400, 1_500_000, 4096, 333_000, 487_424, 158_256),
            (100, 1_000_000, 4096, 100_000, 131_072, 33_256),
            (100, 1_000_000, 1500, 200_000, 226_500, 28_064),
        ],
    )
    def test_peak_and_bound(self, rate, delay, frame, xoff, peak, bound):
        found = peak_ingress_bytes(rate * G, delay_ps=delay, frame_bytes=frame, xoff_bytes=xoff)
        assert found == peak
        assert headroom_bound_bytes(rate * G, delay_ps=delay, frame_bytes=frame) == bound
        assert peak - xoff <= bound

    @given(
        rate=st.sampled_from([10, 40, 100, 400, 900, 1600]),
        delay=st.integers(0, 5 * US),
        frame=st.integers(64, 9216),
        xoff=st.integers(0, 10**6),
        response=st.integers(0, US),
    )
    def test_the_bound_covers_the_exact_overshoot(self, rate, delay, frame, xoff, response):
        about = {"delay_ps": delay, "frame_bytes": frame, "response_ps": response}
        peak = peak_ingress_bytes(rate * G, xoff_bytes=xoff, **about)
        assert peak - xoff <= headroom_bound_bytes(rate * G, **about)

    def test_one_frame_in_the_bound_would_be_too_little(self):
        one_frame = headroom_bound_bytes(100 * G, delay_ps=US, frame_bytes=4096) - 4096
        peak = peak_ingress_bytes(100 * G, delay_ps=US, frame_bytes=4096, xoff_bytes=100_000)
        assert one_frame == 29_160 < peak - 100_000

    @pytest.mark.parametrize(
        ("rate", "pause_ps", "response"),
        [
            (10, 3_355_392_000, 3_430_400),
            (40, 838_848_000, 1_510_400),
            (100, 335_539_200, 2_017_280),
            (400, 83_884_800, 1_158_400),
        ],
    )
    def test_quanta(self, rate, pause_ps, response):
        assert quanta_ps(65535, rate_bps=rate * G) == pause_ps
        assert response_time_ps(rate * G) == response

    @pytest.mark.parametrize(
        ("rate", "metres", "xoff"),
        [
            (100, 5, 81_920),
            (100, 40, 92_160),
            (200, 5, 92_160),
            (200, 300, 256_000),
            (400, 5, 159_744),
            (400, 40, 198_656),
            (800, 40, 242_688),
            (800, 300, 820_224),
        ],
    )
    def test_sonic_on_mellanox(self, rate, metres, xoff):
        found = sonic_mellanox_xoff_bytes(
            rate * G, cable_m=metres, lossless_mtu_bytes=1024, port_mtu_bytes=9100, cell_bytes=144
        )
        assert found == xoff

    @pytest.mark.parametrize(
        ("alpha", "queues", "buffer", "each", "free"),
        [
            (1 / 8, 1, 9_000_000, 1_000_000, 8_000_000),
            (1, 2, 12_000_000, 4_000_000, 4_000_000),
            (1 / 64, 16, 9_000_000, 112_500, 7_200_000),
        ],
    )
    def test_dynamic_threshold(self, alpha, queues, buffer, each, free):
        assert dynamic_threshold_bytes(alpha, queues=queues, buffer_bytes=buffer) == (each, free)

    def test_thresholds_of_the_dcqcn_paper(self):
        switch = {"ports": 32, "headroom_bytes": 22_400}
        assert static_threshold_bytes(12_000_000, **switch) == 24_475
        assert math.floor(ecn_before_pfc_bytes(12_000_000, beta=8, **switch)) == 21_755
        assert ecn_before_pfc_bytes(12_000_000, beta=8, **switch) == pytest.approx(21_755.56, abs=0.01)

    def test_wrong_arguments_are_refused(self):
        with pytest.raises(ValueError, match="rate_bps"):
            headroom_bound_bytes(0, delay_ps=1, frame_bytes=1)
        with pytest.raises(ValueError, match="negative"):
            headroom_bound_bytes(1, delay_ps=-1, frame_bytes=1)
        with pytest.raises(ValueError, match="on the wire"):
            peak_ingress_bytes(G, delay_ps=1, frame_bytes=100, xoff_bytes=1, wire_bytes=99)
        with pytest.raises(ValueError, match="16 bits"):
            quanta_ps(65536, rate_bps=G)
        with pytest.raises(ValueError, match="response time"):
            response_time_ps(123 * G)
        with pytest.raises(ValueError, match="alpha"):
            dynamic_threshold_bytes(0, queues=1, buffer_bytes=1)


class TestQueueing:
    @pytest.mark.parametrize(("load", "wait"), [(0.5, 0.5), (0.7, 1.1667), (0.8, 2), (0.9, 4.5)])
    def test_equal_frames(self, load, wait):
        assert mg1_wait(load, squared_cv=0) == pytest.approx(wait, abs=5e-5)

    @pytest.mark.parametrize(("load", "number"), [(0.5, 0.75), (0.8, 2.4), (0.9, 4.95)])
    def test_number_in_system_by_little(self, load, number):
        assert load * (1 + mg1_wait(load, squared_cv=0)) == pytest.approx(number)

    @pytest.mark.parametrize(("load", "wait"), [(0.5, 1), (0.8, 4)])
    def test_exponential_sizes(self, load, wait):
        assert mg1_wait(load, squared_cv=1) == pytest.approx(wait)

    @given(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=40),
    )
    def test_lindley_is_the_recursion(self, steps):
        arrival = np.cumsum([gap for gap, _ in steps])
        service = np.array([length for _, length in steps])
        expected, busy = [], 0
        for at, length in zip(arrival.tolist(), service.tolist(), strict=True):
            start = max(at, busy)
            expected.append(start - at)
            busy = start + length
        assert lindley_waits(arrival, service_ps=service).tolist() == expected

    def test_lindley_with_poisson_arrivals_waits_as_m_d_1(self):
        rng = np.random.default_rng(5)
        arrival = np.cumsum(rng.exponential(1000 / 0.7, 400_000)).astype(np.int64)
        mean = lindley_waits(arrival, service_ps=1000).mean() / 1000
        assert mean == pytest.approx(mg1_wait(0.7, squared_cv=0), rel=0.03)

    def test_periodic_sources_queue_at_most_one_frame_each(self):
        arrival = np.sort(np.add.outer(np.arange(200) * 80, [3, 5, 6, 40, 41, 42, 43, 79]).ravel())
        assert lindley_waits(arrival, service_ps=10).max() <= 7 * 10
        with pytest.raises(ValueError, match="ascend"):
            lindley_waits(np.array([2, 1]), service_ps=1)

    def test_incast(self):
        assert incast_peak_frames(8, frames=489) == 3424
        assert incast_drain_ps(2, frames=3, frame_ps=100, path_ps=7) == 607

    @pytest.mark.parametrize(
        ("loss", "frames", "share"), [(1e-3, 100, 0.908), (1e-2, 50, 0.660), (0, 100, 1)]
    )
    def test_go_back_n(self, loss, frames, share):
        assert go_back_n_share(loss, round_trip_frames=frames) == pytest.approx(share, abs=5e-4)

    def test_bit_errors(self):
        assert frame_loss_probability(1e-12, wire_bytes=4160) == pytest.approx(3.328e-8, rel=1e-6)
        assert frame_loss_probability(0.5, wire_bytes=1) == pytest.approx(1 - 2**-8)

    @pytest.mark.parametrize(("links", "share"), [(2, 0.75), (4, 0.6836), (8, 0.6564), (16, 0.6439)])
    def test_ecmp_permutation(self, links, share):
        assert ecmp_permutation_share(links) == pytest.approx(share, abs=5e-5)

    def test_ecmp_permutation_limit(self):
        assert ecmp_permutation_share(10**6) == pytest.approx(1 - math.exp(-1), abs=1e-6)

    @pytest.mark.parametrize(
        ("flows", "links", "fullest"),
        [
            (2, 2, 1.5),
            (4, 4, 2.125),
            (8, 8, 2.5972),
            (16, 16, 3.0782),
            (16, 8, 4.2014),
            (32, 8, 7.0478),
            (64, 8, 12.2353),
            (64, 16, 7.8804),
        ],
    )
    def test_fullest_link(self, flows, links, fullest):
        assert ecmp_fullest_link(flows, links=links) == pytest.approx(fullest, abs=5e-5)

    def test_capacity(self):
        assert [oversubscribed_share(x) for x in (1, 2, 4)] == [1, 0.5, 0.25]
        assert crossing_share(128, hosts_per_leaf=8) == pytest.approx(0.94488, abs=5e-6)
        assert 400 / 8 * header_efficiency(1024) == pytest.approx(46.29, abs=0.005)
        assert 400 / 8 * header_efficiency(4096) == pytest.approx(49.02, abs=0.005)

    def test_wrong_arguments_are_refused(self):
        for wrong in (-0.1, 1.0):
            with pytest.raises(ValueError, match="load"):
                mg1_wait(wrong, squared_cv=0)
            with pytest.raises(ValueError, match="loss"):
                go_back_n_share(wrong, round_trip_frames=1)
        with pytest.raises(ValueError, match="squared_cv"):
            mg1_wait(0.5, squared_cv=-1)
        with pytest.raises(ValueError, match="at least one"):
            ecmp_fullest_link(0, links=1)
        with pytest.raises(ValueError, match="oversubscription"):
            oversubscribed_share(0)
        with pytest.raises(ValueError, match="two hosts"):
            crossing_share(1, hosts_per_leaf=1)


PAPER = DcqcnFluid()
VENDOR_100G = DcqcnFluid(
    cnp_interval_s=4e-6,
    alpha_period_s=1e-6,
    increase_period_s=300e-6,
    byte_counter_bytes=None,
    fast_recovery=1,
    additive_bps=5 * 100 / 25 * 1e6,
)


class TestDcqcnFixedPoint:
    @pytest.mark.parametrize(
        ("rate", "p", "alpha", "gap_mbps"),
        [
            (200, 4.073e-5, 0.05447, 548.9),
            (100, 9.798e-5, 0.06515, 422.7),
            (20, 7.770e-4, 0.10136, 218.0),
            (12.5, 1.4195e-3, 0.11492, 176.7),
            (10, 1.8877e-3, 0.12182, 159.5),
            (5, 4.552e-3, 0.14516, 115.1),
            (4, 6.032e-3, 0.15328, 103.3),
            (2.5, 1.0873e-2, 0.17130, 81.8),
        ],
    )
    def test_paper_parameters(self, rate, p, alpha, gap_mbps):
        point = fixed_point(PAPER, rate_bps=rate * 1e9)
        assert point.probability == pytest.approx(p, rel=1e-3)
        assert point.alpha == pytest.approx(alpha, rel=1e-3)
        assert point.target_gap_bps == pytest.approx(gap_mbps * 1e6, rel=1e-3)

    @pytest.mark.parametrize(
        ("link", "red", "queues_kb"),
        [
            (40, (5_000, 200_000, 0.01), {2: 20.15, 4: 41.81, 8: 93.77, 14: 184.44}),
            (40, (5_000, 200_000, 0.10), {2: 6.52, 10: 16.76, 16: 26.20}),
            (100, (400_000, 1_600_000, 0.20), {2: 401.43, 8: 408.52}),
            (400, (800_000, 3_200_000, 0.20), {2: 800.49, 32: 817.03}),
        ],
    )
    def test_queue(self, link, red, queues_kb):
        kmin, kmax, pmax = red
        for flows, expected in queues_kb.items():
            point = fixed_point(PAPER, rate_bps=link * 1e9 / flows)
            queue = point.queue_bytes(kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax)
            assert queue == pytest.approx(expected * 1000, rel=1e-3)

    def test_fifteen_flows_at_40g_have_none(self):
        point = fixed_point(PAPER, rate_bps=40e9 / 15)
        assert point.probability == pytest.approx(0.01003, rel=1e-3)
        assert math.isnan(point.queue_bytes(kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01))
        assert most_flows_at_rest(PAPER, link_bps=40e9, pmax=0.01) == 14
        assert most_flows_at_rest(PAPER, link_bps=40e9, pmax=0.01, limit=10) == 10
        assert most_flows_at_rest(PAPER, link_bps=40e9, pmax=1e-9) == 0

    @pytest.mark.parametrize(("flows", "p", "alpha"), [(2, 2.035e-4, 0.001271), (8, 1.156e-3, 0.001806)])
    def test_vendor_parameters(self, flows, p, alpha):
        point = fixed_point(VENDOR_100G, rate_bps=100e9 / flows)
        assert point.probability == pytest.approx(p, rel=1e-3)
        assert point.alpha == pytest.approx(alpha, rel=1e-3)

    def test_the_derivatives_of_the_fluid_model_vanish_there(self):
        rate_bps, packet_bits = 5e9, 8000
        point = fixed_point(PAPER, rate_bps=rate_bps)
        p, rate, gap = point.probability, rate_bps / packet_bits, point.target_gap_bps / packet_bits
        tau, timer, counter, recovery = 50e-6, 55e-6, 10_000, 5
        a = 1 - (1 - p) ** (tau * rate)
        b = p / ((1 - p) ** -counter - 1)
        d = p / ((1 - p) ** (-timer * rate) - 1)
        c, e = b * (1 - p) ** (recovery * counter), d * (1 - p) ** (recovery * timer * rate)
        step = 40e6 / packet_bits
        assert gap * a / tau == pytest.approx(step * rate * (c + e), rel=1e-9)
        assert rate * point.alpha * a / (2 * tau) == pytest.approx(gap * rate * (b + d) / 2, rel=1e-9)

    def test_wrong_arguments_are_refused(self):
        with pytest.raises(ValueError, match="rate_bps"):
            fixed_point(PAPER, rate_bps=0)
        with pytest.raises(ValueError, match="positive"):
            DcqcnFluid(cnp_interval_s=0)
        with pytest.raises(ValueError, match="byte_counter_bytes"):
            DcqcnFluid(byte_counter_bytes=0)
        with pytest.raises(ValueError, match="balances"):
            fixed_point(PAPER, rate_bps=1e3)
