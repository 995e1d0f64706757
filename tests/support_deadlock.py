"""Networks on which PFC can deadlock, and the verdict on a run.

Model of the oracles: 40 Gbit/s, 1 us, frames of 1000 B and nothing else on the wire, no acknowledgements, no
congestion control, unlimited memory; a switch pauses an ingress at XOFF = 40,000 B and resumes it at
38,000 B. Every flow has hosts of its own at both ends; a rate below the line's is that of the sender's cable.
Sources run for 10 ms (100 ms where a rate is near a threshold), starts spread over 5 us.

Criterion: all sources have a finite message; when nothing is left to happen, bytes that still wait in
switches are a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from support_oracles import (
    GBPS,
    MS,
    SECOND,
    Outcome,
    graph,
    link,
    lossless_switch,
    message,
    messages,
    open_loop,
    run,
    transport,
)

from fabric._core import Engine
from fabric.lowered import DropReason, Lowered
from fabric.spec import Pin, Routing, Run, Scenario

LINE_GBPS = 40


@dataclass(frozen=True)
class Stream:
    """One flow: the switches that its two hosts hang on, its rate, and the way between."""

    name: str
    path: Sequence[str]
    rate_gbps: float = LINE_GBPS


@dataclass(frozen=True)
class Setting:
    """What all oracles share, and what their variations change."""

    line_gbps: int = LINE_GBPS
    delay: str = "1us"
    frame_bytes: int = 1_000
    xoff: int = 40_000
    xon: int = 38_000
    duration_ms: float = 10
    seed: int = 1


DEFAULT = Setting()


@dataclass(frozen=True, eq=False)
class Verdict:
    """What became of a run.

    Attributes
    ----------
    deadlock : bool
    goodput_gbps : numpy.ndarray
        By stream, what it sent while all sources were on.
    pauses_to_hosts : int
    pauses_between_switches : dict
        Pauses by who sent them towards whom.
    end_ps : int
        When the last frame arrived.
    formed_ps : int
        When the deadlock formed, -1 without one.
    links : tuple of str
        Those that wait for ever.
    channels, frames : list of tuple
        All rows of the deadlocks that were found.
    fingerprint : int
        Of everything that happened.
    """

    deadlock: bool
    goodput_gbps: np.ndarray
    pauses_to_hosts: int
    pauses_between_switches: dict[tuple[str, str], int]
    end_ps: int
    formed_ps: int
    links: tuple[str, ...]
    channels: list[tuple[int, ...]] = field(repr=False)
    frames: list[tuple[int, ...]] = field(repr=False)
    fingerprint: int

    def bits(self) -> dict[str, Any]:
        """What two engines have to agree on."""
        return {**vars(self), "goodput_gbps": self.goodput_gbps.tolist()}


def judge(
    cables: Sequence[tuple[str, str]],
    streams: Sequence[Stream],
    *,
    arbiter: str,
    setting: Setting = DEFAULT,
    by_shortest_path: bool = False,
    engine: Callable[[Lowered], Any] = Engine,
) -> Verdict:
    """Run the streams over the cables between switches, each along its own path.

    The online detection has to say what the drain says: no alarm without bytes that are left, none missed.
    """
    outcome = _run(cables, streams, arbiter, setting, by_shortest_path, engine)
    sent_bytes = outcome.columns["port_tx_bytes"][outcome.lowered.flow_port]
    done = outcome.until(100 * SECOND)
    assert done.columns["drops_by_reason"].sum() == 0
    assert done.status == ("STALLED" if done.bytes_left else "FINISHED")
    return _verdict(done, sent_bytes / (setting.duration_ms * MS))


def _verdict(done: Outcome, goodput_bytes_per_ps: np.ndarray) -> Verdict:
    """Of a run without an end."""
    deadlock = done.bytes_left > 0
    channels, frames = done.engine.deadlocks()
    assert (len(channels) > 0) == deadlock
    assert frames["size_bytes"].sum() == channels["bytes"].sum() <= done.bytes_left
    network, pauses = done.network, done.columns["pauses_sent"].sum(axis=1)
    to_hosts, between = 0, {}
    for port in np.flatnonzero(pauses).tolist():
        owner, peer = (network.names[network.port_node[end]] for end in (port, int(network.port_peer[port])))
        if peer.startswith("h"):
            to_hosts += int(pauses[port])
        else:
            between[owner, peer] = int(pauses[port])
    counters = done.columns["counters"]
    return Verdict(
        deadlock=deadlock,
        goodput_gbps=goodput_bytes_per_ps * 8.0 * SECOND / GBPS,
        pauses_to_hosts=to_hosts,
        pauses_between_switches=between,
        end_ps=int(counters["end_ps"]),
        formed_ps=int(channels["formed_ps"][0]) if deadlock else -1,
        links=tuple(network.port_arrow(port) for port in channels["port"].tolist()),
        channels=channels.tolist(),
        frames=frames.tolist(),
        fingerprint=int(counters["fingerprint"]),
    )


def _run(
    cables: Sequence[tuple[str, str]],
    streams: Sequence[Stream],
    arbiter: str,
    setting: Setting,
    by_shortest_path: bool,
    engine: Callable[[Lowered], Any],
) -> Outcome:
    """As far as the sources are all on."""
    next_hops: dict[tuple[str, str], str] = {}
    ends: list[tuple[str, str] | tuple[str, str, Mapping[str, Any]]] = []
    flows = []
    for stream in streams:
        source, sink = f"h-{stream.name}", f"h-{stream.name}-sink"
        rate_bps = round(stream.rate_gbps * GBPS)
        ends += [(source, stream.path[0], {"rate_bps": rate_bps}), (sink, stream.path[-1])]
        flows.append(message(rate_bps * setting.duration_ms // 8_000, source, sink))
        next_hops.update({(here, sink): there for here, there in pairwise(stream.path)})
    topology, network = graph(*cables, *ends, default=link(setting.line_gbps * GBPS, setting.delay))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(setting.xoff, xon=setting.xon, arbiter=arbiter),
        transport=transport(setting.frame_bytes),
        traffic=messages(*flows, jitter="5us"),
        run=Run(seed=setting.seed),
    )
    return run(
        scenario,
        network=network,
        next_hops=None if by_shortest_path else next_hops,
        until_ps=setting.duration_ms * MS,
        engine=engine,
    )


def at_rate(streams: Sequence[Stream], rate_gbps: float) -> list[Stream]:
    return [replace(stream, rate_gbps=rate_gbps) for stream in streams]


def ring(switches: int, hops: int, per_switch: int) -> tuple[list[tuple[str, str]], list[Stream]]:
    """Every switch sends `per_switch` streams to the one `hops` further, clockwise."""
    names = [f"s{number}" for number in range(switches)]
    streams = [
        Stream(f"{start}-{number}", [names[(start + hop) % switches] for hop in range(hops + 1)])
        for start in range(switches)
        for number in range(per_switch)
    ]
    return list(pairwise([*names, names[0]])), streams


def square(f3_gbps: float = 0) -> tuple[list[tuple[str, str]], list[Stream]]:
    """Switches A, B, C, D in a ring: f1 along A B C D, f2 along C D A B, f3 (if it has a rate) along B C."""
    streams = [Stream("f1", ("sA", "sB", "sC", "sD")), Stream("f2", ("sC", "sD", "sA", "sB"))]
    if f3_gbps:
        streams.append(Stream("f3", ("sB", "sC"), f3_gbps))
    return [("sA", "sB"), ("sB", "sC"), ("sC", "sD"), ("sD", "sA")], streams


def clos(*, bounced: bool) -> tuple[list[tuple[str, str]], list[Stream]]:
    """Two spines, four leaves, four top-of-rack switches, of which T1 and T4 have lost an uplink.

    Green and blue either bounce (down to a leaf and up again) or go up and down once.
    """
    cables = [(f"L{leaf}", f"S{spine}") for leaf in range(1, 5) for spine in (1, 2)]
    cables += [("T1", "L2"), ("T2", "L1"), ("T2", "L2"), ("T3", "L3"), ("T3", "L4"), ("T4", "L4")]
    green = "T3 L3 S1 L1 S2 L2 T1" if bounced else "T3 L3 S1 L2 T1"
    blue = "T2 L1 S2 L3 S1 L4 T4" if bounced else "T2 L1 S2 L4 T4"
    ways = {"green": green, "blue": blue, "f3": "T1 L2 S2 L3 T3", "f4": "T4 L4 S1 L1 T2"}
    return cables, [Stream(name, way.split()) for name, way in ways.items()]


def judge_loop(
    switches: int,
    ttl: int,
    rate_gbps: float,
    *,
    arbiter: str,
    setting: Setting = DEFAULT,
    engine: Callable[[Lowered], Any] = Engine,
) -> Verdict:
    """One host sends to another, and every switch of a ring sends its frames on to the next switch.

    Goodput is the rate at which frames expire.
    """
    names = [f"s{number}" for number in range(switches)]
    circle = list(pairwise([*names, names[0]]))
    rate_bps = round(rate_gbps * GBPS)
    cables: Sequence[Any] = [
        *dict.fromkeys(tuple(sorted(pair)) for pair in circle),
        ("h0", "s0", {"rate_bps": rate_bps}),
        ("h1", "s0"),
    ]
    topology, network = graph(*cables, default=link(setting.line_gbps * GBPS, setting.delay))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(setting.xoff, xon=setting.xon, arbiter=arbiter),
        transport=open_loop(setting.frame_bytes),
        traffic=messages(message(rate_bps * setting.duration_ms // 8_000)),
        routing=Routing(
            ttl=ttl, pins=tuple(Pin(at=here, next=there, destination="h1") for here, there in circle)
        ),
        run=Run(seed=setting.seed),
    )
    outcome = run(scenario, network=network, until_ps=setting.duration_ms * MS, engine=engine)
    expired = outcome.columns["drops_by_reason"][DropReason.TTL_EXPIRED : DropReason.TTL_EXPIRED + 1]
    done = outcome.until(100 * SECOND)
    drops = done.columns["drops_by_reason"]
    assert drops.sum() == drops[DropReason.TTL_EXPIRED]
    verdict = _verdict(done, expired * setting.frame_bytes / (setting.duration_ms * MS))
    if not verdict.deadlock:
        assert drops.sum() == done.columns["flow_sent"].sum()
    return verdict
