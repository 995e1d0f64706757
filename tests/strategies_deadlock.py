"""Fabrics that may deadlock, for Hypothesis: any graph of switches, any way of a flow, low thresholds.

Flows go along random walks from switch to switch, given as pins, in rings, around corners and back;
some circle until their lifetime is over. Thresholds are static or dynamic, of a few frames; pools are small
enough to bind; memory beside them is the automatic headroom, some, or none, so that frames can be lost
too. Nobody sends a frame twice, so that all sources stop: what still waits in a switch when nothing is left
to happen is deadlocked.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import strategies as st
from strategies import watchdogs, with_pool
from strategies_quanta import with_quanta
from strategies_topology import pick
from support_oracles import graph, link

from fabric.spec import (
    Flow,
    Flows,
    GoBackN,
    Nic,
    NoCongestionControl,
    Pfc,
    Pin,
    Routing,
    Run,
    Scenario,
    Switch,
    TrafficClass,
    Transport,
)
from fabric.topology import Network
from fabric.units import Rate

__all__ = ["Cyclic", "cyclic"]

FRAME_BYTES = 1_000
RATES = ("40Gbps", "40Gbps", "100Gbps", "25Gbps", "7Gbps")
DELAYS = ("1us", "300ns", "2us", "12345ps")
NO_ACKS = 2**32 - 1


class Cyclic(NamedTuple):
    """A scenario and the network that it runs on."""

    scenario: Scenario
    network: Network


@st.composite
def cyclic(draw: st.DrawFn, *, with_watchdog: bool = False) -> Cyclic:
    """A scenario whose flows may wait for each other in a circle, and whose switches may know a way out."""
    deadlock = pick(draw, ("report", "stop"))
    is_ring = draw(st.booleans())
    switches = draw(st.integers(3, 6))
    beside = _graph(draw, switches, chords=0 if is_ring else draw(st.integers(0, 3)))
    cables: list[Any] = [(f"s{a}", f"s{b}") for a in beside for b in beside[a] if a < b]
    flows: dict[str, list[Flow]] = {"data": [], "other": []}
    pins = []
    ttl = pick(draw, (None, None, None, None, 3, 8, 16))
    rate = pick(draw, RATES)
    for number in range(switches * draw(st.integers(1, 2)) if is_ring else draw(st.integers(2, 8))):
        path = _around(draw, number, switches) if is_ring else _walk(draw, beside)
        name = f"f{number}"
        slower = {"rate_bps": int(Rate(pick(draw, RATES)))} if draw(st.integers(0, 4)) == 0 else {}
        cables += [(f"h{number}a", f"s{path[0]}", slower), (f"h{number}b", f"s{path[-1]}")]
        steps = list(pairwise(path))
        if ttl is not None and len(path) > 1 and draw(st.booleans()):
            steps.append((path[-1], path[0] if path[0] in beside[path[-1]] else path[-2]))
        pins += [Pin(at=f"s{here}", next=f"s{there}", flow=name) for here, there in steps]
        frames = pick(draw, (200, 60, 15, 500))
        flows[pick(draw, ("data", "data", "other"))].append(
            Flow(
                name=name,
                source=f"h{number}a",
                destination=f"h{number}b",
                size=frames * FRAME_BYTES,
                start=draw(st.integers(0, 5_000_000)),
            )
        )
    topology, network = graph(*cables, default=link(rate, pick(draw, DELAYS), gap=pick(draw, (0, 20))))
    switch = draw(_switches()).replace(watchdog=draw(watchdogs(often=True)) if with_watchdog else None)
    scenario = Scenario(
        topology=topology,
        switch=switch,
        nic=Nic(pfc_response=pick(draw, ("0ns", "0ns", "150ns", "3us"))),
        transport=Transport(
            payload=FRAME_BYTES,
            header=0,
            control_frame=64,
            ack_every=pick(draw, (NO_ACKS, NO_ACKS, 1, 4)),
            congestion=NoCongestionControl(),
            reliability=GoBackN(rto=None, nack=False),
            control_class=pick(draw, ("control", "control", "data")),
        ),
        traffic=tuple(Flows(flows=tuple(them), traffic_class=name) for name, them in flows.items() if them),
        routing=Routing(
            pins=tuple(pins), ttl=ttl, choice=pick(draw, ("ecmp", "ecmp", "adaptive", "spray_random"))
        ),
        run=Run(seed=draw(st.integers(1, 2**32)), deadlock=deadlock),
    )
    if draw(st.integers(0, 2)) == 2:
        scenario = draw(with_quanta(scenario, network=network))
    pool_bytes = FRAME_BYTES * pick(draw, (400, 60, 20, 5000))
    return Cyclic(with_pool(scenario, pool_bytes=pool_bytes, network=network), network)


def _graph(draw: st.DrawFn, switches: int, *, chords: int) -> dict[int, list[int]]:
    """A ring, with chords: neighbours by switch."""
    pairs = {(k, (k + 1) % switches) for k in range(switches)}
    for _ in range(chords):
        a, b = draw(st.integers(0, switches - 1)), draw(st.integers(0, switches - 1))
        if a != b:
            pairs.add((a, b))
    beside: dict[int, set[int]] = {k: set() for k in range(switches)}
    for a, b in pairs:
        beside[a].add(b)
        beside[b].add(a)
    return {k: sorted(them) for k, them in beside.items()}


def _around(draw: st.DrawFn, number: int, switches: int) -> list[int]:
    """Some hops clockwise, from each switch in turn."""
    return [(number + hop) % switches for hop in range(1 + min(pick(draw, (2, 2, 3, 1)), switches - 1))]


def _walk(draw: st.DrawFn, beside: dict[int, list[int]]) -> list[int]:
    """A way over switches that meets none twice; most often on around the ring, the same way as others."""
    path = [draw(st.integers(0, len(beside) - 1))]
    for _ in range(pick(draw, (2, 1, 3, 0, 4))):
        onward = (path[-1] + 1) % len(beside)
        others = [each for each in beside[path[-1]] if each not in path]
        if not others:
            break
        path.append(onward if onward in others and draw(st.integers(0, 3)) else draw(st.sampled_from(others)))
    return path


@st.composite
def _switches(draw: st.DrawFn) -> Switch:
    pfc = draw(_thresholds())
    classes = [
        TrafficClass(name="data", pfc=pfc, reserved=pick(draw, (0, 0, 3 * FRAME_BYTES))),
        TrafficClass(
            name="other",
            priority=pick(draw, (0, 1)),
            weight=pick(draw, (1, 3)),
            pfc=draw(_thresholds()).replace(frame=pfc.frame) if draw(st.booleans()) else pfc,
        ),
        TrafficClass(name="control", priority=7, pfc=False),
    ]
    return Switch(
        buffer=10**12 - 1,
        latency=pick(draw, ("0ns", "500ns")),
        pfc=pfc,
        ecn=None,
        classes=tuple(classes),
        arbiter=pick(draw, ("fifo", "round_robin")),
        pfc_response=pick(draw, ("0ns", "0ns", "150ns", "3us")),
    )


@st.composite
def _thresholds(draw: st.DrawFn) -> Pfc:
    headroom: Any = pick(draw, ("auto", "auto", 0, 3 * FRAME_BYTES))
    if draw(st.booleans()):
        alpha = pick(draw, (0.125, 0.5, 1.0, 2.0**-6))
        return Pfc(alpha=alpha, xon_offset=pick(draw, (None, 0, 5 * FRAME_BYTES)), headroom=headroom)
    xoff = FRAME_BYTES * pick(draw, (10, 40, 4, 2))
    return Pfc(xoff=xoff, xon=pick(draw, (None, 0, xoff // 2, xoff)), headroom=headroom)
