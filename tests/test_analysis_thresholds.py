"""Closed forms of ECN and PFC against published or independently computed values.

Tabulated values are exact unless a tolerance is given, which is then that of the table.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis import (
    dynamic_threshold_bytes,
    ecn_before_pfc_bytes,
    headroom_bound_bytes,
    marking_probability,
    peak_ingress_bytes,
    quanta_ps,
    queue_at_probability,
    response_time_ps,
    sonic_mellanox_xoff_bytes,
    static_threshold_bytes,
)

G = 10**9
US = 10**6


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
