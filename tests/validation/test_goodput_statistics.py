"""Goodput of go-back-N under loss, with tens of thousands of losses: the formula to within its own error.

With D = RTT/s + 1/(1-p) the share is (1-p) / (1-p + p D). Here the mean of several seeds is compared to three
standard errors, which is a tenth of the usual tolerance of 3 %.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_loss import SERVICE_PS, goodput_run, seeds_with_another_way_back
from support_random_traffic import within_standard_errors

from fabric.analysis import go_back_n_share

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("loss", "round_trip_frames", "frames"),
    [(1e-3, 100, 2_000_000), (1e-2, 50, 300_000), (0.05, 20, 100_000)],
)
def test_mean_share(loss: float, round_trip_frames: int, frames: int) -> None:
    shares = []
    for seed in seeds_with_another_way_back(12):
        outcome = goodput_run(loss, round_trip_frames=round_trip_frames, frames=frames, seed=seed)
        shares.append(frames * SERVICE_PS / int(outcome.columns["flow_delivered_ps"][0]))
    expected = go_back_n_share(loss, round_trip_frames=round_trip_frames)
    assert within_standard_errors(np.array(shares), expected)
    assert np.mean(shares) == pytest.approx(expected, rel=0.03)
