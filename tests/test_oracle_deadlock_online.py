"""Deadlocks as they are found while a run goes on: on both engines, at the same instant, and no others.

The table is that of `test_oracle_deadlock`; every verdict there is compared with the drain as well. Here its
rows run on both engines with either arbiter, for a time that the readable one can do; and frames that
circle in a loop of routes until their lifetime is over (Hu et al., "Deadlocks in Datacenter Networks: Why
Do They Form, and How to Avoid Them", HotNets 2016): n switches, a lifetime of T hops,
k = ceil((T - 1) / n) passes over the first link, which can carry B / k of what a host injects, and not more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support_deadlock import LINE_GBPS, Setting, Verdict, at_rate, clos, judge, ring, square
from support_oracles import (
    GBPS,
    MS,
    SECOND,
    US,
    graph,
    link,
    lossless_switch,
    message,
    messages,
    open_loop,
    run,
)

from fabric._core import Engine
from fabric.lowered import DropReason
from fabric.reference import Simulator
from fabric.spec import Pin, Routing, Run, Scenario

BOTH = ("fifo", "round_robin")
ENGINES = {"native": Engine, "reference": Simulator}
DEADLOCK, FREE = True, False

ROWS = {
    "K20": (ring(4, 1, 1), FREE, FREE),
    "K21": (ring(3, 2, 1), DEADLOCK, FREE),
    "K22 quiet": ((ring(3, 2, 1)[0], at_rate(ring(3, 2, 1)[1], 20.0)), FREE, FREE),
    "K23": (ring(4, 2, 1), DEADLOCK, FREE),
    "K24": (ring(4, 3, 1), DEADLOCK, DEADLOCK),
    "K25": (ring(5, 3, 1), DEADLOCK, DEADLOCK),
    "K26": (ring(8, 2, 1), DEADLOCK, FREE),
    "K27": (ring(3, 2, 2), DEADLOCK, DEADLOCK),
    "K28 quiet": ((ring(3, 2, 2)[0], at_rate(ring(3, 2, 2)[1], 9.9)), FREE, FREE),
    "K29": (ring(4, 3, 2), DEADLOCK, DEADLOCK),
    "K50": (square(), FREE, FREE),
    "K51": (square(40), DEADLOCK, FREE),
    "K52": (square(10), DEADLOCK, FREE),
    "K60": (clos(bounced=True), DEADLOCK, FREE),
    "K70": (clos(bounced=False), FREE, FREE),
}
"""Cables and streams, and the verdicts with FIFO and with round robin."""


class TestBothEngines:
    @pytest.mark.parametrize("arbiter", BOTH)
    @pytest.mark.parametrize("row", ROWS)
    def test_same_verdict_at_the_same_instant(self, row: str, arbiter: str) -> None:
        (cables, streams), *verdicts = ROWS[row]
        expected = verdicts[BOTH.index(arbiter)]
        setting = Setting(duration_ms=1)
        native, readable = (
            judge(cables, streams, arbiter=arbiter, setting=setting, engine=engine)
            for engine in ENGINES.values()
        )
        assert native.deadlock is expected
        assert (native.formed_ps, native.links) == (readable.formed_ps, readable.links)
        assert native.formed_ps <= native.end_ps + 2 * US

    def test_ten_times_the_buffer_only_delays_it(self) -> None:
        formed = [
            judge(*ring(3, 2, 1), arbiter="fifo", setting=Setting(xoff=xoff, xon=xoff - 2_000)).formed_ps
            for xoff in (40_000, 400_000)
        ]
        assert 3 * formed[0] < formed[1] < 20 * formed[0]

    @pytest.mark.parametrize("row", [name for name, (_, fifo, _) in ROWS.items() if fifo])
    def test_nothing_in_it_moves_again(self, row: str) -> None:
        """Goodput stays zero: long after, the very same frames wait."""
        (cables, streams), _, _ = ROWS[row]
        short, long = (
            judge(cables, streams, arbiter="fifo", setting=Setting(duration_ms=duration))
            for duration in (1, 20)
        )
        assert (short.formed_ps, short.links, short.end_ps) == (long.formed_ps, long.links, long.end_ps)


@dataclass(frozen=True)
class Loop:
    """What became of frames in a loop."""

    deadlock: bool
    pauses: int
    expired_gbps: float


def loop(
    switches: int,
    ttl: int,
    rate_gbps: float,
    *,
    arbiter: str,
    duration_ms: int = 10,
    xoff: int = 40_000,
    engine: Callable[[Any], Any] = Engine,
) -> Loop:
    """One host sends to another, and every switch of a ring sends its frames on to the next switch."""
    names = [f"s{number}" for number in range(switches)]
    rate_bps = round(rate_gbps * GBPS)
    cables: Sequence[Any] = [
        *dict.fromkeys(tuple(sorted(pair)) for pair in pairwise([*names, names[0]])),
        ("h0", "s0", {"rate_bps": rate_bps}),
        ("h1", "s0"),
    ]
    topology, network = graph(*cables, default=link(LINE_GBPS * GBPS, "1us"))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(xoff, xon=xoff - 2_000, arbiter=arbiter),
        transport=open_loop(1_000),
        traffic=messages(message(rate_bps * duration_ms // 8_000)),
        routing=Routing(
            ttl=ttl,
            pins=tuple(
                Pin(at=here, next=there, destination="h1") for here, there in pairwise([*names, names[0]])
            ),
        ),
        run=Run(fingerprint=False),
    )
    outcome = run(scenario, network=network, until_ps=duration_ms * MS, engine=engine)
    expired = int(outcome.columns["drops_by_reason"][DropReason.TTL_EXPIRED])
    done = outcome.until(100 * SECOND)
    deadlock = done.bytes_left > 0
    assert (len(done.engine.deadlocks()[0]) > 0) == deadlock
    assert done.columns["drops_by_reason"].sum() == done.columns["drops_by_reason"][DropReason.TTL_EXPIRED]
    if not deadlock:
        assert done.columns["drops_by_reason"].sum() == done.columns["flow_sent"].sum()
    return Loop(
        deadlock=deadlock,
        pauses=int(done.columns["pauses_sent"].sum()),
        expired_gbps=expired * 8_000 * 1_000 / duration_ms / GBPS,
    )


class TestRoutingLoop:
    @pytest.mark.parametrize("arbiter", BOTH)
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
        outcome = loop(switches, ttl, rate_gbps, arbiter=arbiter)
        assert not outcome.deadlock
        assert outcome.pauses == 0
        assert outcome.expired_gbps == pytest.approx(rate_gbps, rel=0.01)

    @pytest.mark.parametrize("arbiter", BOTH)
    @pytest.mark.parametrize(
        ("switches", "ttl", "rate_gbps"),
        [
            *((2, 16, rate) for rate in (5.10, 6, 10, 20, 40)),
            *((2, 8, rate) for rate in (10.2, 12)),
            *((3, 10, rate) for rate in (13.6, 20, 40)),
            (4, 16, 10.2),
            *((5, 12, rate) for rate in (14, 40)),
        ],
    )
    def test_two_per_cent_more_is_a_deadlock(
        self, switches: int, ttl: int, rate_gbps: float, arbiter: str
    ) -> None:
        assert loop(switches, ttl, rate_gbps, arbiter=arbiter, duration_ms=100).deadlock

    @pytest.mark.parametrize("arbiter", BOTH)
    @pytest.mark.parametrize("xoff", [20_000, 100_000, 400_000])
    def test_with_more_or_less_buffer(self, xoff: int, arbiter: str) -> None:
        assert loop(2, 16, 10, arbiter=arbiter, duration_ms=100, xoff=xoff).deadlock
        assert not loop(2, 16, 5.0, arbiter=arbiter, xoff=xoff).deadlock

    @pytest.mark.parametrize(("switches", "ttl"), [(2, 4), (3, 6)])
    @pytest.mark.parametrize("rate_gbps", [25, 40])
    def test_two_passes_over_a_link_with_round_robin(self, switches: int, ttl: int, rate_gbps: float) -> None:
        """The host is paused and half of the link's rate expires."""
        outcome = loop(switches, ttl, rate_gbps, arbiter="round_robin")
        assert not outcome.deadlock
        assert outcome.pauses > 0
        assert outcome.expired_gbps == pytest.approx(20, rel=0.01)

    @pytest.mark.parametrize("arbiter", BOTH)
    @pytest.mark.parametrize(("rate_gbps", "deadlock"), [(5.0, False), (10, True), (40, True)])
    def test_on_the_readable_engine(self, rate_gbps: float, deadlock: bool, arbiter: str) -> None:
        assert loop(2, 16, rate_gbps, arbiter=arbiter, duration_ms=2, engine=Simulator).deadlock is deadlock


def test_instants_are_reported() -> None:
    """Detection times of the rows with a deadlock, with FIFO: of the order of the time to fill buffers."""
    formed: dict[str, Verdict] = {
        name: judge(*case, arbiter="fifo", setting=Setting(duration_ms=1))
        for name, (case, fifo, _) in ROWS.items()
        if fifo
    }
    for name, verdict in formed.items():
        print(f"{name}: {verdict.formed_ps / US:.3f} us, {len(verdict.links)} links")
    assert all(10 * US < verdict.formed_ps < 700 * US for verdict in formed.values())
    assert np.array([len(verdict.links) for verdict in formed.values()]).min() >= 3
