"""Whole scenarios by chance, for Hypothesis: everything that the public specs can say, made small.

Fabrics have a few switches, messages a few frames, buffers a few frames beyond what reserves and
headroom take, timers a few microseconds; most traffic meets at one receiver. So PAUSE, headroom use,
drops, marks, cuts, rewinds and time-outs happen within some thousand hops, and a case takes the
readable engine a fraction of a second. Choices are listed simplest first, towards which Hypothesis
shrinks. Every scenario drawn here is valid: an error while it is built or lowered is a defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from strategies_failures import with_failures
from strategies_paths import routings
from strategies_quanta import with_quanta
from strategies_topology import pick, topologies
from strategies_traffic import traffic_entries, transports

from fabric.lower import lower
from fabric.spec import (
    Ecn,
    Lossy,
    Nic,
    PacketRecord,
    Pfc,
    QueueRecord,
    Record,
    Run,
    Scenario,
    Switch,
    ThroughputRecord,
    TrafficClass,
    Watchdog,
)
from fabric.topology import Network, build_network
from fabric.workload.job import Job

__all__ = ["POOL_FRAMES", "scenarios", "watchdogs", "with_pool"]

ROOMY_BUFFER_BYTES = 10**12 - 1
POOL_FRAMES = (8, 3, 1, 20, 40, 400)
LATENCIES = ("0ns", "500ns", "123456ps")
RESPONSES = ("0ns", "150ns", "1ps", "2us")
ALPHAS = (0.125, 0.5, 1.0, 4.0, 2.0**-6)


@st.composite
def scenarios(draw: st.DrawFn, *, failing: bool | None = None) -> Scenario:
    """A small scenario, most likely congested; with failures if `failing`, by default every third."""
    alike = draw(st.booleans())
    topology = draw(topologies(alike=alike))
    classes = draw(st.lists(_traffic_classes(), min_size=1, max_size=8).map(_numbered))
    names = [each.name for each in classes]
    transport = draw(transports(names))
    frame_bytes = int(transport.frame)
    timing = pick(draw, ("exact", "exact", "ns3"))
    responses = RESPONSES if timing == "exact" else ("0ns",)
    scenario = Scenario(
        topology=topology,
        switch=draw(_switches(classes, frame_bytes=frame_bytes, cut_through=alike)).replace(
            pfc_response=pick(draw, responses)
        ),
        nic=Nic(
            latency=pick(draw, LATENCIES),
            pfc_response=pick(draw, responses),
            control_ignores_pause=draw(st.integers(0, 3)) == 0,
            queue_pairs=pick(draw, ("earliest", "earliest", "in_turn")),
        ),
        transport=transport,
        traffic=draw(traffic_entries(topology, names, transport)),
        run=Run(
            seed=draw(st.integers(0, 2**63 - 1)),
            until=draw(st.none() | st.none() | st.integers(8_000_000, 200_000_000)),
            fingerprint=draw(st.integers(0, 9)) < 9,
            timing=timing,
            waits=pick(draw, ("news", "news", "instant")),
            deadlock=pick(draw, ("report", "report", "stop", "off")),
        ),
        record=draw(_records(frame_bytes)),
        routing=draw(routings(topology)),
    )
    if timing == "ns3" and draw(st.integers(0, 2)) and _has_whole_delays(scenario):
        scenario = scenario.replace(run=scenario.run.replace(ties="transmission_start"))
    if failing is True or (failing is None and draw(st.integers(0, 2)) == 2):
        scenario = draw(with_failures(scenario))
    if timing == "exact" and draw(st.integers(0, 2)) == 2:
        scenario = draw(with_quanta(scenario))
    return with_pool(scenario, pool_bytes=frame_bytes * pick(draw, POOL_FRAMES))


def _has_whole_delays(scenario: Scenario) -> bool:
    """Whether all delays are whole nanoseconds, latencies included."""
    delays_ps = build_network(scenario.topology).link_delay_ps
    latencies_ps = (scenario.switch.latency, scenario.nic.latency)
    return not any(((delays_ps + latency_ps) % 1000).any() for latency_ps in latencies_ps)


def with_pool(
    scenario: Scenario, *, pool_bytes: int, jobs: Sequence[Job] = (), network: Network | None = None
) -> Scenario:
    """Give the switches the buffer with which the smallest shared pool has `pool_bytes`."""

    def with_buffer(buffer_bytes: int) -> Scenario:
        return scenario.replace(switch=scenario.switch.replace(buffer=buffer_bytes))

    roomy = lower(with_buffer(ROOMY_BUFFER_BYTES), jobs=jobs, network=network)
    smallest_pool = int(roomy.node_shared_bytes[roomy.n_hosts :].min())
    return with_buffer(ROOMY_BUFFER_BYTES - smallest_pool + pool_bytes)


def _traffic_classes() -> st.SearchStrategy[TrafficClass]:
    """A class without its name and without thresholds of its own."""
    return st.builds(
        TrafficClass,
        name=st.just("c"),
        priority=st.sampled_from((0, 0, 0, 3, 7)),
        weight=st.sampled_from((1, 1, 2, 5)),
        reserved=st.sampled_from((0, 0, 2_000, 9_000)),
        ecn=st.sampled_from((True, True, True, False)),
        pfc=st.sampled_from((True, True, True, False)),
    )


def _numbered(classes: list[TrafficClass]) -> list[TrafficClass]:
    return [each.replace(name=f"c{number}") for number, each in enumerate(classes)]


@st.composite
def _switches(draw: st.DrawFn, classes: list[TrafficClass], *, frame_bytes: int, cut_through: bool) -> Switch:
    own = draw(st.integers(0, 2 * len(classes)))
    if own < len(classes):
        classes = [_with_own(draw, each, frame_bytes) if n == own else each for n, each in enumerate(classes)]
    return Switch(
        buffer=ROOMY_BUFFER_BYTES,
        latency=pick(draw, LATENCIES),
        ecn=draw(_ecn(frame_bytes)),
        pfc=draw(_pfc(frame_bytes)),
        lossy=draw(_lossy(frame_bytes)),
        classes=tuple(classes),
        arbiter=pick(draw, ("fifo", "round_robin")),
        watchdog=draw(watchdogs()),
        cut_through=cut_through and draw(st.booleans()),
    )


def _with_own(draw: st.DrawFn, each: TrafficClass, frame_bytes: int) -> TrafficClass:
    """The class with thresholds that differ from the switch's."""
    if each.pfc is False:
        return each.replace(lossy=draw(_lossy(frame_bytes)))
    return each.replace(pfc=draw(_pfc(frame_bytes)), ecn=draw(_ecn(frame_bytes)))


def watchdogs(*, often: bool = False) -> st.SearchStrategy[Watchdog | None]:
    """None, or one that polls every few microseconds."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Watchdog:
        poll_ps = pick(draw, (5_000_000, 1_234_567, 32_000_000))
        action = pick(draw, ("drop", "forward", "alert"))
        return Watchdog(
            poll=poll_ps,
            detection=poll_ps * draw(st.integers(1, 3)),
            restoration=poll_ps * draw(st.integers(1, 3)) + 1,
            action=action,
            drop_ingress=action == "drop" and draw(st.booleans()),
            restore=pick(draw, ("quiet", "time")),
        )

    return st.none() | drawn() if often else st.none() | st.none() | drawn()


def _ecn(frame_bytes: int) -> st.SearchStrategy[Ecn]:
    @st.composite
    def drawn(draw: st.DrawFn) -> Ecn:
        kmin = frame_bytes * pick(draw, (0, 1, 3))
        return Ecn(
            kmin=kmin,
            kmax=kmin + frame_bytes * pick(draw, (2, 0, 10)),
            pmax=pick(draw, (0.2, 0.8, 1.0)),
            mark=pick(draw, ("dequeue", "enqueue")),
            scale_from=pick(draw, (None, "400Gbps", "7Gbps")),
        )

    return drawn()


def _pfc(frame_bytes: int) -> st.SearchStrategy[Pfc]:
    @st.composite
    def drawn(draw: st.DrawFn) -> Pfc:
        headroom: Any = pick(draw, ("auto", "auto", "auto", 0, 3 * frame_bytes, 30 * frame_bytes))
        if draw(st.booleans()):
            offset = pick(draw, (None, 0, frame_bytes, 5 * frame_bytes))
            return Pfc(
                alpha=pick(draw, ALPHAS),
                xon_offset=offset,
                frame=pick(draw, (64, 64, 43, 1)),
                alpha_scale_from=pick(draw, (None, None, "7Gbps", "400Gbps")),
                **({"headroom_delays": 3.0} if draw(st.integers(0, 4)) == 0 else {"headroom": headroom}),
            )
        xoff = draw(st.integers(1, 12)) * frame_bytes - pick(draw, (0, 1))
        return Pfc(xoff=xoff, xon=pick(draw, (None, 0, xoff // 2, xoff)), headroom=headroom)

    return drawn()


def _lossy(frame_bytes: int) -> st.SearchStrategy[Lossy]:
    limits = st.integers(1, 60).map(lambda frames: frames * frame_bytes)
    beyond_the_pool = st.just(Lossy(limit=1000 * frame_bytes))
    return st.builds(Lossy, alpha=st.sampled_from(ALPHAS)) | st.builds(Lossy, limit=limits) | beyond_the_pool


@st.composite
def _records(draw: st.DrawFn, frame_bytes: int) -> Record:
    """All streams, most often; or some; in either mode of the queue stream."""
    wanted = pick(draw, ("all", "all", "all", "some", "none"))

    def wants() -> bool:
        return wanted == "all" or (wanted == "some" and draw(st.booleans()))

    by_time = QueueRecord(interval=pick(draw, ("50ns", "1us", "77777ps")))
    by_size = QueueRecord(delta=pick(draw, (1, 3 * frame_bytes)))
    interval = pick(draw, ("1us", "100ns", "3333333ps"))
    return Record(
        queues=pick(draw, (by_size, by_time)) if wants() else None,
        throughput=ThroughputRecord(interval=interval) if wants() else None,
        packets=PacketRecord(**pick(draw, ({"ports": ("*",)}, {"flows": ("*",)}))) if wants() else None,
        rates=("*",) if wants() else (),
        pauses=wants(),
        marks=wants(),
        drops=wants(),
    )
