"""Flow-size distributions: built-in tables, sampling, and what is refused.

Means and percentiles of the built-in ones are those that follow from the published points. Samplers are
held to 3 standard errors of the mean and to the Kolmogorov-Smirnov distance at 1 %.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import SpecError
from fabric.spec import DISTRIBUTIONS
from fabric.workload import SizeDistribution, load_distribution, read_distribution
from fabric.workload.draws import EntryDraws, Stream, exponential_of_bits, integers_of_bits
from fabric.workload.poisson import mean_gap_ps

G = 10**9


class TestBuiltIn:
    @pytest.mark.parametrize(
        ("name", "mean", "percentiles"),
        [
            ("websearch", 1_711_250, {0.5: 73_077, 0.9: 5_000_000, 0.99: 23_333_333}),
            ("fb_hadoop", 120_420.75, {0.5: 700, 0.9: 120_000, 0.99: 2_000_000}),
            ("ali_storage", 40_869.8, {0.9: 31_237}),
        ],
    )
    def test_mean_and_percentiles(self, name, mean, percentiles):
        sizes = load_distribution(name)
        assert sizes.name == name
        assert round(sizes.mean_bytes, 2) == mean
        for share, expected in percentiles.items():
            assert round(float(sizes.quantile(share))) == expected

    def test_spread_of_websearch(self):
        assert load_distribution("websearch").squared_cv == pytest.approx(5.372, abs=5e-4)

    @pytest.mark.parametrize(
        ("name", "load", "gap_us"), [("websearch", 0.3, 456.333), ("fb_hadoop", 0.5, 19.26732)]
    )
    def test_mean_gap_at_100g(self, name, load, gap_us):
        gap = mean_gap_ps(load_distribution(name).mean_bytes, load=load, rate_bps=100 * G)
        assert float(gap) / 1e6 == pytest.approx(gap_us, abs=5e-4)

    @pytest.mark.parametrize("name", DISTRIBUTIONS)
    def test_samples_follow_the_table(self, name):
        sizes = load_distribution(name)
        draws = EntryDraws.of_entry(11, kind="test", occurrence=0)
        count = 100_000
        sample = np.sort(sizes.sizes(draws.uniform(Stream.SIZE, np.arange(count))))
        error = abs(sample.mean() / sizes.mean_bytes - 1)
        assert error < 3 * math.sqrt(sizes.squared_cv / count)
        wide = sizes.bytes_at[1:] > sizes.bytes_at[:-1]
        assert wide.all(), "the distance below needs a continuous cdf"
        expected = np.interp(sample, sizes.bytes_at, sizes.cdf_at)
        steps = np.arange(count + 1) / count
        distance = max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max())
        granularity = 0.5 * float(np.max(np.diff(sizes.cdf_at) / np.diff(sizes.bytes_at)))
        assert distance < 1.63 / math.sqrt(count) + granularity
        assert sample.min() >= 1

    def test_tables_are_read_once(self):
        assert load_distribution("websearch") is load_distribution("websearch")


class TestSampling:
    def test_ends(self):
        sizes = load_distribution("websearch")
        assert sizes.quantile([0, 1]).tolist() == [0, 30_000_000]
        assert sizes.sizes([0.0]).tolist() == [1]
        with pytest.raises(ValueError, match="shares"):
            sizes.quantile(1.5)

    def test_a_fixed_size(self):
        sizes = SizeDistribution("fixed", np.array([4096.0, 4096.0]), np.array([0.0, 1.0]))
        assert sizes.mean_bytes == 4096
        assert sizes.squared_cv == 0
        assert sizes.sizes([0, 0.3, 0.999]).tolist() == [4096] * 3

    def test_two_sizes_and_nothing_between(self):
        sizes = SizeDistribution(
            "mix", np.array([100.0, 100.0, 9000.0, 9000.0]), np.array([0, 0.75, 0.75, 1.0])
        )
        assert sizes.mean_bytes == 2325
        assert sizes.sizes([0, 0.7499, 0.75, 0.99]).tolist() == [100, 100, 9000, 9000]

    @given(
        st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 100)), min_size=2, max_size=12),
        st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
    )
    def test_the_quantile_inverts_the_cdf(self, steps, shares):
        bytes_at = np.cumsum([step for step, _ in steps]).astype(float) + 1
        weights = np.array([0.0] + [weight for _, weight in steps[1:]])
        cdf = np.cumsum(weights) / weights.sum()
        sizes = SizeDistribution("any", bytes_at, cdf)
        values = sizes.quantile(shares)
        assert np.all((values >= bytes_at[0]) & (values <= bytes_at[-1]))
        order = np.argsort(shares)
        assert np.all(np.diff(values[order]) >= -1e-6)
        if np.all(np.diff(bytes_at) > 0):
            assert np.interp(values, bytes_at, cdf) == pytest.approx(np.array(shares), abs=1e-9)


class TestFiles:
    def write(self, tmp_path, text):
        file = tmp_path / "sizes.csv"
        file.write_text(text, encoding="utf-8")
        return str(file)

    def test_a_file_of_the_users(self, tmp_path):
        file = self.write(tmp_path, "\ufeff# ours\n\nbytes, cdf\n1000, 0\n\n3000,0.5\n# tail\n3000,1.0\n")
        sizes = load_distribution(file)
        assert sizes.mean_bytes == 0.5 * 2000 + 0.5 * 3000
        assert sizes.name == file

    def test_columns_in_any_order(self, tmp_path):
        assert read_distribution(self.write(tmp_path, "cdf,bytes\n0,10\n1,30\n")).mean_bytes == 20

    @pytest.mark.parametrize(
        ("text", "line", "about"),
        [
            ("size,cdf\n1,0\n2,1\n", 1, "header bytes,cdf"),
            ("", 1, "header bytes,cdf"),
            ("bytes,cdf\n1,0\n2,1,3\n", 3, "2 values"),
            ("bytes,cdf\n1,0\nmany,1\n", 3, "a number"),
            ("bytes,cdf\n1,0\n5,0.5\n4,1\n", 4, "at least the line before"),
            ("bytes,cdf\n1,0\n5,0.5\n6,0.4\n7,1\n", 4, "never falling"),
            ("bytes,cdf\n1,0\n5,50\n6,100\n", 3, "100 % is 1"),
            ("bytes,cdf\n# why\n1,0.1\n5,1\n", 3, "0 on the first line"),
            ("bytes,cdf\n1,0\n5,0.9\n", 3, "1 on the last line"),
            ("bytes,cdf\n1,0\n1,0\n5,1\n", 3, "differs"),
            ("bytes,cdf\n1,0\n5,1\n6,1\n", 3, "below 1 before the last"),
            ("bytes,cdf\n1,0\nnan,1\n", 3, "finite"),
            ("bytes,cdf\n1,0\ninf,1\n", 3, "finite"),
            ("bytes,cdf\n0,0\n0.5,1\n", 3, "at least 1 byte"),
        ],
    )
    def test_errors_name_file_and_line(self, tmp_path, text, line, about):
        file = self.write(tmp_path, text)
        with pytest.raises(SpecError, match=about) as caught:
            read_distribution(file)
        assert caught.value.path.startswith(f"{file}:{line}")

    def test_errors_about_the_file_name_the_scenario(self, tmp_path):
        with pytest.raises(SpecError, match="websearch") as caught:
            load_distribution("web_search", path="traffic[0].distribution")
        assert caught.value.path == "traffic[0].distribution"
        with pytest.raises(SpecError, match="can be read"):
            read_distribution(tmp_path)
        with pytest.raises(SpecError, match="two points"):
            read_distribution(self.write(tmp_path, "bytes,cdf\n"))
        binary = tmp_path / "binary.csv"
        binary.write_bytes(b"bytes,cdf\n\xff\xfe,0\n")
        with pytest.raises(SpecError, match="UTF-8"):
            read_distribution(binary)

    def test_arrays_are_checked_too(self):
        with pytest.raises(SpecError, match=r"mine\[1\] cdf"):
            SizeDistribution("mine", np.array([1.0, 2.0]), np.array([0.0, 2.0]))
        with pytest.raises(SpecError, match="as many sizes"):
            SizeDistribution("mine", np.array([1.0, 2.0]), np.array([0.0]))


class TestDraws:
    def test_the_logarithm_is_that_of_the_standard_library(self):
        bits = np.array([0, 2**11, 2**40, 2**63, 2**64 - 2**13, 2**64 - 1], dtype=np.uint64)
        bits = np.concatenate([bits, EntryDraws(5).bits(Stream.GAP, np.arange(2000))])
        expected = [-math.log(((int(b) >> 11) + 1) * 2.0**-53) for b in bits]
        assert exponential_of_bits(bits) == pytest.approx(expected, rel=1e-14, abs=1e-16)

    def test_exponential_moments(self):
        gaps = exponential_of_bits(EntryDraws(6).bits(Stream.GAP, np.arange(200_000)))
        assert gaps.mean() == pytest.approx(1, abs=3 / math.sqrt(200_000))
        assert gaps.var() == pytest.approx(1, abs=3 * math.sqrt(8 / 200_000))
        assert gaps.min() >= 0

    def test_integers_are_uniform(self):
        values = integers_of_bits(EntryDraws(7).bits(Stream.DESTINATION, np.arange(70_000)), bound=7)
        counts = np.bincount(values, minlength=7)
        assert len(counts) == 7
        assert ((counts - 10_000) ** 2 / 10_000).sum() < 22.46, "chi-squared, 6 degrees, 0.1 %"
        with pytest.raises(ValueError, match="bound"):
            integers_of_bits(np.array([1], dtype=np.uint64), bound=0)

    def test_streams_entities_and_entries_are_independent(self):
        entries = [
            EntryDraws.of_entry(seed, kind=kind, occurrence=occurrence)
            for seed in (1, 2)
            for kind in ("poisson", "uniform")
            for occurrence in (0, 1)
        ]
        values = np.stack([e.uniform(s, np.arange(500), 3) for e in entries for s in Stream])
        correlation = np.corrcoef(values) - np.eye(len(values))
        assert np.abs(correlation).max() < 4.5 / math.sqrt(500)
