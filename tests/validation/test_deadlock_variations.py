"""Verdicts on PFC deadlock that do not depend on the numbers: delay, frame size, hysteresis, rate, seed.

Thresholds stay above what a pause loop lets through, twice 2 C d, as the verdicts need. One row does depend
on the numbers: with FIFO and wide hysteresis the three streams of the square can fall into a cycle of pauses
that never closes, depending on which of two frames that arrive at one instant is first.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support_deadlock import Setting, at_rate, clos, judge, ring, square

pytestmark = pytest.mark.slow

DEADLOCK, FREE = True, False

VARIATIONS = {
    "short links": Setting(delay="100ns"),
    "long links": Setting(delay="3us", xoff=120_000, xon=118_000),
    "small frames": Setting(frame_bytes=256, xon=40_000 - 512),
    "large frames": Setting(frame_bytes=4_096, xoff=81_920, xon=81_920 - 8_192),
    "wide hysteresis": Setting(xon=20_000),
}
FASTER = {
    "100 Gbit/s": Setting(line_gbps=100, xoff=100_000, xon=98_000),
    "400 Gbit/s": Setting(line_gbps=400, xoff=400_000, xon=398_000, duration_ms=2),
}
SCENARIOS = {
    "ring 3, 2 hops": (ring(3, 2, 1), DEADLOCK, FREE),
    "ring 4, 3 hops": (ring(4, 3, 1), DEADLOCK, DEADLOCK),
    "ring 5, 3 hops": (ring(5, 3, 1), DEADLOCK, DEADLOCK),
    "ring 3, 2 hops, 2 hosts": (ring(3, 2, 2), DEADLOCK, DEADLOCK),
    "ring 4, 2 hops, 2 hosts": (ring(4, 2, 2), DEADLOCK, DEADLOCK),
    "square, three streams": (square(40), DEADLOCK, FREE),
    "Clos, bounced": (clos(bounced=True), DEADLOCK, FREE),
    "Clos, up and down": (clos(bounced=False), FREE, FREE),
    "ring 3, 1 hop": (ring(3, 1, 1), FREE, FREE),
}


TIMING_DEPENDENT_WITH_FIFO = ("wide hysteresis", "square, three streams")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("variation", [*VARIATIONS, *FASTER])
def test_verdict(variation: str, scenario: str, seed: int) -> None:
    (cables, streams), fifo, round_robin = SCENARIOS[scenario]
    setting = replace((VARIATIONS | FASTER)[variation], seed=seed)
    streams = at_rate(streams, setting.line_gbps)
    if (variation, scenario) != TIMING_DEPENDENT_WITH_FIFO:
        assert judge(cables, streams, arbiter="fifo", setting=setting).deadlock is fifo
    assert judge(cables, streams, arbiter="round_robin", setting=setting).deadlock is round_robin


@pytest.mark.parametrize("variation", VARIATIONS)
@pytest.mark.parametrize("f3_gbps", [0, 10])
def test_round_robin_keeps_the_square_going(f3_gbps: float, variation: str) -> None:
    verdict = judge(*square(f3_gbps), arbiter="round_robin", setting=VARIATIONS[variation])
    assert not verdict.deadlock


@pytest.mark.parametrize("variation", VARIATIONS)
@pytest.mark.parametrize(("rate_gbps", "expected"), [(9.9, FREE), (10.2, DEADLOCK)])
def test_threshold_of_the_rate(rate_gbps: float, expected: bool, variation: str) -> None:
    """Three switches, two hops, two hosts each: a link is asked for four times the rate of a host."""
    cables, streams = ring(3, 2, 2)
    setting = replace(VARIATIONS[variation], duration_ms=100)
    for arbiter in ("fifo", "round_robin"):
        verdict = judge(cables, at_rate(streams, rate_gbps), arbiter=arbiter, setting=setting)
        assert verdict.deadlock is expected, arbiter
