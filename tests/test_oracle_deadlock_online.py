"""Deadlocks as they are found while a run goes on: on both engines, at the same instant, and no others.

Every row of `support_deadlock_rows` runs on both engines with either arbiter. A row that ends in a deadlock
runs for the full time of its table, as nothing moves after it; the others for a time that the readable engine
can do, and for the full time by `-m exhaustive`. The engines have to agree on all there is to know: instant,
links, frames, pauses, goodput and fingerprint.

Frames that circle in a loop of routes until their lifetime is over (Hu et al., "Deadlocks in Datacenter
Networks: Why Do They Form, and How to Avoid Them", HotNets 2016): n switches, a lifetime of T hops,
k = ceil((T - 1) / n) passes over the first link, which can carry B / k of what a host injects, and not more.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support_deadlock import LINE_GBPS, Setting, Verdict, judge, judge_loop, ring
from support_deadlock_rows import ARBITERS, LONG_MS, ROWS
from support_oracles import US

from fabric._core import Engine
from fabric.reference import Simulator

TABLE = Path(__file__).resolve().parents[2] / "shared" / "reference" / "deadlock.md"
STATIC = {f"K{number}" for number in range(1, 7)}
"""Verdicts of the static check: `test_deadlock_check.py`."""
DEAD = [(name, arbiter) for name, row in ROWS.items() for arbiter in ARBITERS if row.expected(arbiter)]
FREE = [(name, arbiter) for name, row in ROWS.items() for arbiter in ARBITERS if not row.expected(arbiter)]


def on_both_engines(name: str, arbiter: str, duration_ms: float | None = None) -> Verdict:
    """The verdict of a row, which is that of its table and of both engines."""
    row = ROWS[name]
    native, readable = (row.run(arbiter, engine, duration_ms=duration_ms) for engine in (Engine, Simulator))
    assert native.bits() == readable.bits()
    assert row.expected(arbiter) in (None, native.deadlock)
    if native.deadlock:
        print(f"{name}, {arbiter}: {native.formed_ps / US:.3f} us, {len(native.links)} links")
    return native


class TestBothEngines:
    @pytest.mark.parametrize(("name", "arbiter"), DEAD)
    def test_deadlocks(self, name: str, arbiter: str) -> None:
        verdict = on_both_engines(name, arbiter)
        assert verdict.formed_ps <= verdict.end_ps + 2 * US

    @pytest.mark.parametrize(("name", "arbiter"), FREE)
    def test_no_false_alarm(self, name: str, arbiter: str) -> None:
        on_both_engines(name, arbiter, duration_ms=0.4)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(("name", "arbiter"), FREE)
    def test_no_false_alarm_for_as_long_as_the_table_says(self, name: str, arbiter: str) -> None:
        on_both_engines(name, arbiter)

    def test_every_row_of_the_table_is_here(self) -> None:
        if not TABLE.exists():
            pytest.skip("the table that the numbers come from lies beside the project, and is not here")
        numbers = set(re.findall(r"^\| (K\d+) \|", TABLE.read_text(), flags=re.MULTILINE))
        assert numbers == STATIC | {name.partition(",")[0].split()[0] for name in ROWS}


class TestInTime:
    def test_ten_times_the_buffer_only_delays_it(self) -> None:
        formed = [
            judge(*ring(3, 2, 1), arbiter="fifo", setting=Setting(xoff=xoff, xon=xoff - 2_000)).formed_ps
            for xoff in (40_000, 400_000)
        ]
        assert 3 * formed[0] < formed[1] < 20 * formed[0]

    @pytest.mark.parametrize(("name", "arbiter"), DEAD)
    def test_nothing_in_it_moves_again(self, name: str, arbiter: str) -> None:
        """Goodput stays zero: long after, the very same frames wait, and nothing has happened."""
        row = ROWS[name]
        usual_ms = row.setting.duration_ms
        short, long = (
            row.run(arbiter, Engine, duration_ms=duration) for duration in (usual_ms, 10 * usual_ms)
        )
        assert (short.frames, short.end_ps) == (long.frames, long.end_ps)

    def test_instants(self) -> None:
        """Of the order of the time to fill buffers; at a small excess, as much longer."""
        for name, arbiter in DEAD:
            row = ROWS[name]
            verdict = row.run(arbiter, Engine)
            assert len(verdict.links) >= 2, name
            latest_us = 4_000 if row.setting.duration_ms == LONG_MS else 900
            assert 5 * US < verdict.formed_ps < latest_us * US, name


class TestRoutingLoop:
    @pytest.mark.parametrize("arbiter", ARBITERS)
    @pytest.mark.parametrize(
        ("switches", "ttl", "rate_gbps"),
        [
            *((2, 16, rate) for rate in (4.90, 5.00)),
            *((2, 8, rate) for rate in (9.9, 10.0)),
            (3, 10, 13.3),
            (4, 16, 10.0),
            (5, 12, 13.3),
            (2, 4, 20.0),
            (3, 6, 20.0),
            (2, 3, 40),
            (3, 4, 40),
        ],
    )
    def test_what_the_loop_can_carry_is_never_paused(
        self, switches: int, ttl: int, rate_gbps: float, arbiter: str
    ) -> None:
        """Every frame expires, as fast as they are sent."""
        verdict = judge_loop(switches, ttl, rate_gbps, arbiter=arbiter)
        assert not verdict.deadlock
        assert verdict.pauses_to_hosts == 0
        assert verdict.pauses_between_switches == {}
        assert verdict.goodput_gbps == pytest.approx(np.array([rate_gbps]), rel=0.01)

    @pytest.mark.parametrize(("switches", "ttl"), [(2, 4), (3, 6)])
    @pytest.mark.parametrize("rate_gbps", [25, 40])
    def test_two_passes_over_a_link_with_round_robin(self, switches: int, ttl: int, rate_gbps: float) -> None:
        """The host is paused and half of the link's rate expires."""
        verdict = judge_loop(switches, ttl, rate_gbps, arbiter="round_robin")
        assert not verdict.deadlock
        assert verdict.pauses_to_hosts > 0
        assert verdict.goodput_gbps == pytest.approx(np.array([LINE_GBPS / 2]), rel=0.01)
