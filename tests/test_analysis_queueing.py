"""Closed forms of queues, collisions and DCQCN's fixed point against published values and brute force.

Tabulated values are exact unless a tolerance is given, which is then that of the table.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis import (
    DcqcnFluid,
    crossing_share,
    ecmp_fullest_link,
    ecmp_permutation_share,
    fixed_point,
    frame_loss_probability,
    go_back_n_share,
    header_efficiency,
    incast_drain_ps,
    incast_peak_frames,
    lindley_waits,
    mg1_wait,
    most_flows_at_rest,
    oversubscribed_share,
)

G = 10**9
US = 10**6


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
