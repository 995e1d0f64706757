"""Reliability: arithmetic that was worked out by hand, optima, and Monte Carlo against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fabric.reliability import (
    DEVICES,
    HOURS_PER_YEAR,
    Checkpointing,
    cluster_rate_per_hour,
    draw_failures,
    failure_probability,
    mean_down,
    rate_of_annual_share,
    simulate_goodput,
)

LARGE = Checkpointing(mtbf_s=11_250, checkpoint_s=60, restart_s=300)
"""160,000 cards at 500,000 h each."""


class TestRates:
    def test_160_000_cards_fail_every_three_hours(self) -> None:
        rate = cluster_rate_per_hour({"accelerator": 160_000})
        assert rate == pytest.approx(0.32, rel=1e-12)
        assert 1 / rate == pytest.approx(3.125)
        assert 24 * rate == pytest.approx(7.68)
        assert failure_probability(rate, hours=1) == pytest.approx(0.2739, abs=5e-5)

    @pytest.mark.parametrize(("share", "per_hour"), [(0.01, 0.1826), (0.02, 0.3653)])
    def test_annual_shares(self, share: float, per_hour: float) -> None:
        """Small shares are rates; the exact rate of a share is higher by half of it."""
        linear = cluster_rate_per_hour({"card": 160_000}, rates={"card": share / HOURS_PER_YEAR})
        assert linear == pytest.approx(per_hour, abs=5e-5)
        assert 160_000 * rate_of_annual_share(share) == pytest.approx(linear * (1 + share / 2), rel=2e-4)

    def test_rates_add(self) -> None:
        counts = {"nic": 1000, "leaf": 20, "spine": 8, "core": 3, "link": 2000}
        assert cluster_rate_per_hour(counts) == pytest.approx(
            sum(cluster_rate_per_hour({name: count}) for name, count in counts.items())
        )

    def test_published_rates(self) -> None:
        per_year = {name: device.rate_per_hour * HOURS_PER_YEAR for name, device in DEVICES.items()}
        assert per_year["accelerator"] == pytest.approx(0.01752)
        assert per_year["nic"] == pytest.approx(0.0029, rel=0.01)
        assert per_year["link"] == pytest.approx(0.0144, rel=0.01)
        assert per_year["leaf"] == pytest.approx(12 * 5.1e-4)
        assert all(device.source for device in DEVICES.values())

    def test_the_observed_job_is_interrupted_every_three_hours(self) -> None:
        rate = cluster_rate_per_hour({"any": 16_384}, rates={"any": 419 / (16_384 * 54 * 24)})
        assert 1 / rate == pytest.approx(3.09, abs=0.005)

    def test_first_of_100_000_links_with_five_years(self) -> None:
        rate = cluster_rate_per_hour({"link": 100_000}, rates={"link": 1 / (5 * HOURS_PER_YEAR)})
        assert 60 / rate == pytest.approx(26.28)

    def test_what_is_wrong_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no rate for 'fan'"):
            cluster_rate_per_hour({"fan": 1})
        with pytest.raises(ValueError, match="negative"):
            cluster_rate_per_hour({"nic": -1})
        with pytest.raises(ValueError, match="share"):
            rate_of_annual_share(1.0)
        with pytest.raises(ValueError, match="must not be negative"):
            mean_down(-1, repair_hours=1)


class TestCheckpoints:
    def test_best_young_and_daly(self) -> None:
        assert LARGE.best_interval_s() == pytest.approx(1122.24, rel=1e-5)
        assert LARGE.young_s() == pytest.approx(1161.90, rel=1e-5)
        assert LARGE.daly_s() == pytest.approx(1122.24, rel=1e-4)
        assert LARGE.goodput(LARGE.best_interval_s()) == pytest.approx(0.87656, abs=5e-6)

    def test_a_segment(self) -> None:
        job = Checkpointing(mtbf_s=3600, checkpoint_s=30, restart_s=300)
        assert job.segment_s(600) == pytest.approx(748.3, abs=0.05)
        assert job.goodput(600) == pytest.approx(0.8018, abs=5e-5)
        assert job.lost_s(6000, interval_s=600) == pytest.approx(10 * (job.segment_s(600) - 600))

    @pytest.mark.parametrize(("mtbf_s", "checkpoint_s"), [(1e6, 1), (11_250, 60), (300, 60), (10, 1000)])
    def test_nothing_is_better_than_the_best(self, mtbf_s: float, checkpoint_s: float) -> None:
        job = Checkpointing(mtbf_s=mtbf_s, checkpoint_s=checkpoint_s, restart_s=100)
        best = job.best_interval_s()
        others = best * np.exp(np.linspace(-2, 2, 401))
        others = others[np.abs(others / best - 1) > 1e-9]
        assert all(job.goodput(float(other)) < job.goodput(best) for other in others)

    def test_goodput_falls_with_the_number_of_parts(self) -> None:
        def best(parts: int) -> float:
            job = Checkpointing.of_parts(parts, part_mtbf_s=1.8e9, checkpoint_s=60, restart_s=300)
            return job.goodput(job.best_interval_s())

        goodput = [best(parts) for parts in (1, 1000, 16_000, 160_000)]
        assert goodput == sorted(goodput, reverse=True)
        assert goodput[-1] == pytest.approx(0.87656, abs=5e-6)

    def test_a_hopeless_job_takes_for_ever(self) -> None:
        assert Checkpointing(mtbf_s=1, checkpoint_s=1, restart_s=0).segment_s(1e6) == math.inf

    @pytest.mark.parametrize(("interval_s", "seed"), [(300, 1), (1122.24, 2), (4000, 3)])
    def test_monte_carlo_agrees(self, interval_s: float, seed: int) -> None:
        goodput, error = simulate_goodput(LARGE, interval_s=interval_s, segments=400_000, seed=seed)
        assert error < 0.002 * goodput
        assert abs(goodput - LARGE.goodput(interval_s)) < 3.5 * error

    def test_a_failure_during_restart_restarts(self) -> None:
        """Restarts that take longer than the mean time between failures are where this shows."""
        job = Checkpointing(mtbf_s=100, checkpoint_s=10, restart_s=150)
        goodput, error = simulate_goodput(job, interval_s=50, segments=400_000, seed=4)
        assert abs(goodput - job.goodput(50)) < 3.5 * error

    def test_seeds_decide(self) -> None:
        one, again, other = (
            simulate_goodput(LARGE, interval_s=1000, segments=1000, seed=seed) for seed in (1, 1, 2)
        )
        assert one == again != other

    @pytest.mark.parametrize("wrong", [{"mtbf_s": 0}, {"checkpoint_s": 0}, {"restart_s": -1}])
    def test_what_is_wrong_is_refused(self, wrong: dict[str, float]) -> None:
        with pytest.raises(ValueError, match="must be positive"):
            Checkpointing(**{"mtbf_s": 1, "checkpoint_s": 1, "restart_s": 0} | wrong)
        with pytest.raises(ValueError, match="interval_s"):
            LARGE.segment_s(0)


class TestDraws:
    def test_counts_have_mean_and_variance_of_poisson(self) -> None:
        expected = cluster_rate_per_hour({"accelerator": 160_000}) * 100
        counts = np.array(
            [len(draw_failures({"accelerator": 160_000}, hours=100, seed=seed).kind) for seed in range(2000)]
        )
        assert abs(counts.mean() - expected) < 3 * math.sqrt(expected / 2000)
        spread = expected * math.sqrt((2 + 1 / expected) / 2000)
        assert abs(counts.var(ddof=1) - expected) < 3 * spread

    def test_failures_are_in_order_and_of_devices_that_exist(self) -> None:
        counts = {"nic": 50_000, "leaf": 10_000, "none": 0}
        drawn = draw_failures(counts, hours=10_000, seed=1, rates={"none": 1.0})
        assert (np.diff(drawn.time_hours) >= 0).all()
        assert set(drawn.kind.tolist()) == {0, 1}
        assert (drawn.device < np.array(list(counts.values()))[drawn.kind]).all()
        assert drawn.time_hours.max() <= 10_000

    def test_kinds_fail_by_their_rates(self) -> None:
        drawn = draw_failures({"nic": 50_000, "leaf": 10_000}, hours=10_000, seed=2)
        expected = np.array([cluster_rate_per_hour({"nic": 50_000}), cluster_rate_per_hour({"leaf": 10_000})])
        expected *= 10_000
        found = np.bincount(drawn.kind, minlength=2)
        assert (np.abs(found - expected) < 4 * np.sqrt(expected)).all()
