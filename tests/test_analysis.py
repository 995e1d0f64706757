"""Ideal completion times and statistics of flows; examples in docstrings.

The ideal completion time is compared frame by frame with a direct evaluation of the FIFO recursion on random
paths. Tabulated values are exact unless a tolerance is given, which is then that of the table.
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
    PathTimes,
    empirical_cdf,
    goodput_bps,
    ideal_completion_ps,
    ideal_delivery_ps,
    jain_index,
    percentiles,
    serialisation_ps,
    slowdown,
    slowdown_by_size,
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
