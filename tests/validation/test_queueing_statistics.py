"""Queues under Poisson arrivals, a million frames each, against M/D/1 and M/M/1.

Mean waits in frame times, and mean numbers in the system (Kleinrock, "Queueing Systems", volume 1, 1975):

    M/D/1   load .5: .5, .75    .7: 1.1667    .8: 2, 2.4    .9: 4.5, 4.95    tolerance 2 %, at .9 5 %
    M/M/1   load .5: 1    .8: 4                                              tolerance 3 %

What Poisson sources on K hosts wait at the switch alone is less than the wait of one queue: some of it
has been waited at the hosts.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_random_traffic import FRAME_BYTES, FRAME_PS, md1_run, mm1_run, waits_ps

pytestmark = pytest.mark.slow

FRAMES = 1_000_000


@pytest.mark.parametrize(
    ("load", "wait", "tolerance"), [(0.5, 0.5, 0.02), (0.7, 1.1667, 0.02), (0.8, 2, 0.02), (0.9, 4.5, 0.05)]
)
def test_equal_frames(load: float, wait: float, tolerance: float) -> None:
    found = md1_run(load, frames=FRAMES, sources=16, seed=1)
    assert (np.sort(found.outcome.columns["flow_delivered_ps"]) == found.expected_delivery_ps).all()
    assert waits_ps(found).mean() / FRAME_PS == pytest.approx(wait, rel=tolerance)
    number = (waits_ps(found) + FRAME_PS).sum() / found.outcome.columns["counters"]["end_ps"]
    assert number == pytest.approx(load * (1 + wait), rel=tolerance)


@pytest.mark.parametrize(("load", "wait"), [(0.5, 1), (0.8, 4)])
def test_exponential_sizes(load: float, wait: float) -> None:
    found = mm1_run(load, frames=FRAMES, seed=1)
    service_ps = (found.path_ps - 1_000_000).mean()
    assert (found.outcome.columns["flow_delivered_ps"] == found.expected_delivery_ps).all()
    assert waits_ps(found).mean() / service_ps == pytest.approx(wait, rel=0.03)


@pytest.mark.parametrize(("sources", "share"), [(4, 0.94), (16, 0.985)])
def test_part_of_the_wait_is_at_the_hosts(sources: int, share: float) -> None:
    """At load .8 the switch's part is about 6 % less with 4 sources and 1.5 % less with 16."""
    found = md1_run(0.8, frames=FRAMES, sources=sources, seed=1)
    port = found.outcome.port("switch0->host0")
    at_switch = found.outcome.columns["queue_wait_integral"][port, 0] / FRAME_BYTES
    assert at_switch / waits_ps(found).sum() == pytest.approx(share, abs=0.01)
