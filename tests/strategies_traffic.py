"""Small traffic and quick transports by chance, for Hypothesis: see `strategies.py`.

Entries share a budget of frames, messages have a few of them and seldom fill the last one, and most go
to one receiver. Timers of retransmission and of congestion control act within microseconds. Choices
are listed simplest first, towards which Hypothesis shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from strategies_paths import path_spreads, reliabilities
from strategies_topology import hosts_of, links_of_path, pick, written_file

from fabric.spec import (
    AllToAll,
    Congestion,
    Dcqcn,
    Dctcp,
    FixedWindow,
    Flow,
    Flows,
    GoBackN,
    Hpcc,
    Incast,
    LeafSpine,
    NoCongestionControl,
    Permutation,
    Poisson,
    SingleSwitch,
    Timely,
    Topology,
    Traffic,
    Transport,
    Uniform,
)

__all__ = ["traffic_entries", "transports"]

MOST_HOPS = 2_000
"""Arrivals that a case has if nothing is sent twice, about."""
PAYLOADS = (4096, 1024, 1000, 9000, 100)
CONTROL_FRAMES = (64, 84, 300)


@st.composite
def transports(draw: st.DrawFn, class_names: Sequence[str]) -> Transport:
    """A transport whose timers act within microseconds."""
    payload = pick(draw, PAYLOADS)
    ack_every = pick(draw, (1, 1, 2, 4))
    reliability = draw(reliabilities())
    window = payload * pick(draw, (8, ack_every, 16, 40)) - pick(draw, (0, payload // 2))
    return Transport(
        payload=payload,
        header=pick(draw, (62, 0)),
        control_frame=pick(draw, CONTROL_FRAMES),
        data_class=pick(draw, class_names),
        control_class=pick(draw, class_names),
        ack_every=ack_every,
        ack_delay=pick(draw, (None, None, None, "1us", "10us", "1ps")),
        reliability=reliability,
        paths=draw(path_spreads()),
        congestion=draw(_congestion(window, has_rtts=isinstance(reliability, GoBackN))),
    )


def _congestion(window_bytes: int, *, has_rtts: bool) -> st.SearchStrategy[Congestion]:
    presets = st.sampled_from(("connectx_scaled", "hpcc", "paper_2015", "simai"))
    vendor, paper = _dcqcn("vendor", window_bytes), _dcqcn("paper", window_bytes)
    by_rtt = (_hpcc(), _hpcc(), _timely(window_bytes)) if has_rtts else ()
    return st.sampled_from(
        (
            st.just(NoCongestionControl()),
            st.just(FixedWindow(window=window_bytes)),
            *(vendor, vendor, vendor, paper, paper),
            _dctcp(window_bytes),
            *by_rtt,
            st.builds(Dcqcn, preset=presets),
        )
    ).flatmap(lambda chosen: chosen)


def _dcqcn(form: str, window_bytes: int) -> st.SearchStrategy[Dcqcn]:
    return st.builds(
        Dcqcn,
        form=st.just(form),
        feedback=st.sampled_from(("cnp", "echo")),
        cnp_interval=st.sampled_from(("4us", "0ns", "1us", "50us")),
        alpha_period=st.sampled_from(("1us", "300ns", "55us")),
        cut_period=st.sampled_from(("4us", "1us", "700ns")),
        increase_period=st.sampled_from(("3us", "1us", "55us")),
        byte_counter=st.sampled_from((None, 20_000, 150_000)) if form == "paper" else st.none(),
        fast_recovery=st.sampled_from((1, 5, 0)),
        g=st.sampled_from((1 / 256, 1 / 16, 0.7, 1.0)),
        ai=st.sampled_from(("1Gbps", "40Mbps")),
        hai=st.sampled_from(("5Gbps", "100Mbps")),
        scale_from=st.sampled_from((None, "25Gbps")),
        min_rate=st.sampled_from(("1Gbps", "100Mbps", "20Gbps")),
        first_cut=st.sampled_from((1.0, 0.5)),
        clamp_target=st.booleans(),
        window=st.sampled_from((None, None, window_bytes)),
        variable_window=st.booleans(),
    )


def _hpcc() -> st.SearchStrategy[Hpcc]:
    return st.builds(
        Hpcc,
        base_rtt=st.sampled_from(("10us", "3us", "60us")),
        eta=st.sampled_from((0.95, 0.5, 1.0)),
        max_stage=st.sampled_from((5, 0, 1)),
        fast_reaction=st.booleans(),
        ai=st.sampled_from(("40Mbps", "5Gbps")),
        scale_from=st.sampled_from((None, "25Gbps")),
        min_rate=st.sampled_from(("1Gbps", "100Mbps", "20Gbps")),
        telemetry_header=st.sampled_from((0, 42)),
    )


def _dctcp(window_bytes: int) -> st.SearchStrategy[Dctcp]:
    return st.builds(
        Dctcp,
        g=st.sampled_from((1 / 16, 0.7, 1.0)),
        ai=st.sampled_from(("615Mbps", "10Gbps")),
        min_rate=st.sampled_from(("1Gbps", "100Mbps")),
        window=st.sampled_from((None, window_bytes, window_bytes)),
        variable_window=st.booleans(),
    )


def _timely(window_bytes: int) -> st.SearchStrategy[Timely]:
    return st.builds(
        Timely,
        gain=st.sampled_from((0.875, 0.3)),
        beta=st.sampled_from((0.8, 0.2)),
        min_rtt=st.sampled_from(("2us", "20us")),
        rtt_low=st.sampled_from(("3us", "10us", "0ns")),
        rtt_high=st.sampled_from(("20us", "60us", "500us")),
        hyper_after=st.sampled_from((1, 5, 0)),
        ai=st.sampled_from(("100Mbps", "5Gbps")),
        hai=st.sampled_from(("500Mbps", "20Gbps")),
        scale_from=st.sampled_from((None, "25Gbps")),
        min_rate=st.sampled_from(("1Gbps", "100Mbps")),
        window=st.sampled_from((None, window_bytes)),
        variable_window=st.booleans(),
        telemetry_header=st.sampled_from((0, 8)),
    )


@st.composite
def traffic_entries(
    draw: st.DrawFn, topology: Topology, class_names: Sequence[str], transport: Transport
) -> tuple[Traffic, ...]:
    """One to three entries that share the budget of hops."""
    links, hosts = links_of_path(topology), hosts_of(topology)
    entries: list[Traffic] = []
    count = pick(draw, (1, 2, 3))
    for number in range(count):
        own = draw(st.none() | st.none() | transports(class_names))
        payload = int((own or transport).payload)
        common = {
            "name": f"entry{number}",
            "transport": own,
            "traffic_class": draw(st.none() | st.sampled_from(class_names)),
            "start": pick(draw, ("0ns", "0ns", "1us", "7777777ps")),
            "jitter": pick(draw, ("0ns", "0ns", "100ns", "20us")),
        }
        kinds = (_incast, _flows, _incast, _flows, _incast, _uniform, _permutation, _all_to_all, _poisson)
        frames = MOST_HOPS // (2 * links * count)
        entries.append(pick(draw, kinds)(draw, topology, hosts, frames, payload, common))
    return tuple(entries)


def _size(draw: st.DrawFn, flows: int, frames: int, payload: int) -> int:
    """Of each of so many flows that share so many frames; the last frame is seldom full."""
    most = max(1, min(60, frames // max(1, flows)))
    of_flow = draw(st.integers(max(1, most // 2), most))
    return of_flow * payload - draw(st.integers(0, payload - 1))


def _incast(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> Incast:
    senders = draw(st.integers(max(1, hosts // 2), hosts - 1))
    receivers = pick(draw, (1, 1, min(2, hosts)))
    spare = isinstance(topology, SingleSwitch | LeafSpine) and receivers == 1 and hosts - senders >= 3
    victims = pick(draw, (0, 1)) if spare else 0
    size = _size(draw, senders * receivers + victims, frames, payload)
    return Incast(senders=senders, receivers=receivers, size=size, victims=victims, **common)


def _flows(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> Flows:
    """Explicit flows, most of them to one host, some of which wait for earlier ones."""
    count = draw(st.integers(1, 8))
    flows: list[Flow] = []
    for number in range(count):
        destination = draw(st.sampled_from((0, 0, 0, 1)) | st.integers(0, hosts - 1))
        distance = draw(st.integers(1, hosts - 1))
        earlier = [flow.name for flow in flows]
        after = draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if earlier else []
        flows.append(
            Flow(
                source=(destination + distance) % hosts,
                destination=destination,
                size=_size(draw, count, frames, payload),
                start=pick(draw, ("0ns", "0ns", "2us")),
                name=f"{common['name']}-{number}",
                after=tuple(after) if pick(draw, (False, False, True)) else (),
            )
        )
    return Flows(flows=tuple(flows), **common)


def _uniform(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> Uniform:
    flows = draw(st.integers(1, 3))
    return Uniform(flows=flows, size=_size(draw, flows * hosts, frames, payload), **common)


def _permutation(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> Permutation:
    count = draw(st.integers(1, 2))
    even = isinstance(topology, LeafSpine) and topology.ports_per_host == 1
    return Permutation(
        count=count,
        size=_size(draw, count * hosts, frames, payload),
        cross_leaf=even and draw(st.booleans()),
        **common,
    )


def _all_to_all(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> AllToAll:
    chosen = pick(draw, ("host[0-3]", "*") if hosts < 10 else ("host[0-3]",))
    pairs = min(hosts, 4) * (min(hosts, 4) - 1) if chosen != "*" else hosts * (hosts - 1)
    return AllToAll(hosts=chosen, size=_size(draw, pairs, frames, payload), **common)


def _poisson(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> Poisson:
    flows = draw(st.integers(1, 12))
    largest = _size(draw, flows, frames, payload)
    distribution = written_file(f"bytes,cdf\n1,0\n{max(1, largest // 2)},0.5\n{largest},1\n", suffix=".csv")
    return Poisson(load=pick(draw, (0.5, 1.0, 2.0)), distribution=distribution, flows=flows, **common)
