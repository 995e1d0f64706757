"""Whole scenarios by chance, for Hypothesis: everything that the public specs can say, made small.

Fabrics have a few switches, messages a few frames, buffers a few frames beyond what reserves and
headroom take, timers a few microseconds; most traffic meets at one receiver. So PAUSE, headroom use,
drops, marks, cuts, rewinds and time-outs happen within some thousand hops, and a case takes the
readable engine a fraction of a second. Choices are listed simplest first, towards which Hypothesis
shrinks. Every scenario drawn here is valid: an error while it is built or lowered is a defect.

Files that a scenario names (a graph, a distribution) go to a directory that lives as long as the
process.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fabric.lower import lower
from fabric.spec import (
    AllToAll,
    Clos3,
    Congestion,
    Dcqcn,
    Ecn,
    FatTree,
    FixedWindow,
    Flow,
    Flows,
    GoBackN,
    GraphFile,
    Incast,
    LeafSpine,
    Link,
    LinkOverride,
    Lossy,
    Nic,
    NoCongestionControl,
    PacketRecord,
    Permutation,
    Pfc,
    Poisson,
    QueueRecord,
    RailOptimized,
    Record,
    Run,
    Scenario,
    SingleSwitch,
    Switch,
    ThroughputRecord,
    Topology,
    Traffic,
    TrafficClass,
    Transport,
    Uniform,
    host_count,
)

__all__ = ["scenarios", "topologies", "transports", "with_pool"]

MOST_HOPS = 2_000
"""Arrivals that a case has if nothing is sent twice, about."""
ROOMY_BUFFER_BYTES = 10**12 - 1
MOST_POOL_FRAMES = 400
GRAPH_HOSTS_PER_SWITCH = 2
MANY_PORTS = 67
"""Of a switch: more than a machine word has bits."""

RATES = ("400Gbps", "100Gbps", "900Gbps", "1.6Tbps", "7Gbps", "33333333333bps")
DELAYS = ("500ns", "1us", "1ns", "333337ps", "2us", "20us")
LATENCIES = ("0ns", "500ns", "123456ps")
RESPONSES = ("0ns", "150ns", "1ps", "2us")
LOSSES = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.003, 1e-7), (0.02, 0.0), (0.0, 1e-6))
"""Probability of losing a frame, and of flipping a bit."""
GAPS = (20, 0, 13)
PAYLOADS = (4096, 1024, 1000, 9000, 100)
CONTROL_FRAMES = (64, 84, 300)
ALPHAS = (0.125, 0.5, 1.0, 4.0, 2.0**-6)

_FILES = tempfile.TemporaryDirectory(prefix="scenarios-")


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A small scenario, most likely congested."""
    alike = draw(st.booleans())
    topology = draw(topologies(alike=alike))
    classes = draw(st.lists(_traffic_classes(), min_size=1, max_size=8).map(_numbered))
    names = [each.name for each in classes]
    transport = draw(transports(names))
    frame_bytes = int(transport.frame)
    scenario = Scenario(
        topology=topology,
        switch=draw(_switches(classes, frame_bytes=frame_bytes, cut_through=alike)),
        nic=Nic(latency=_pick(draw, LATENCIES), pfc_response=_pick(draw, RESPONSES)),
        transport=transport,
        traffic=_traffic(draw, topology, names, transport),
        run=Run(
            seed=draw(st.integers(0, 2**63 - 1)),
            until=draw(st.none() | st.none() | st.integers(8_000_000, 200_000_000)),
            fingerprint=draw(st.integers(0, 9)) < 9,
        ),
        record=draw(_records(frame_bytes)),
    )
    return with_pool(scenario, pool_bytes=frame_bytes * _pick(draw, (8, 3, 1, 20, 40, MOST_POOL_FRAMES)))


def with_pool(scenario: Scenario, *, pool_bytes: int) -> Scenario:
    """Give the switches the buffer with which the smallest shared pool has `pool_bytes`."""

    def with_buffer(buffer_bytes: int) -> Scenario:
        return scenario.replace(switch=scenario.switch.replace(buffer=buffer_bytes))

    roomy = lower(with_buffer(ROOMY_BUFFER_BYTES))
    smallest_pool = int(roomy.node_shared_bytes[roomy.n_hosts :].min())
    return with_buffer(ROOMY_BUFFER_BYTES - smallest_pool + pool_bytes)


def topologies(*, alike: bool) -> st.SearchStrategy[Topology]:
    """Every kind of topology; if `alike`, all links of one have the same rate and delay."""
    kinds = (_single_switch, _leaf_spine, _clos3, _fat_tree, _rails, _graph)
    return st.sampled_from((*kinds, _single_switch, _leaf_spine)).flatmap(lambda kind: kind(alike))


def _pick(draw: st.DrawFn, choices: Sequence[Any]) -> Any:
    return draw(st.sampled_from(choices))


def _some_links(draw: st.DrawFn, alike: bool, *names: str) -> dict[str, Link]:
    """A link for each name: the same one if alike. All lose the same, most often nothing."""
    loss, bit_error_rate = _pick(draw, LOSSES)

    def link() -> Link:
        return Link(
            rate=_pick(draw, RATES),
            delay=_pick(draw, DELAYS),
            loss=loss,
            bit_error_rate=bit_error_rate,
            gap=_pick(draw, GAPS),
        )

    first = link()
    return {name: first if alike else link() for name in names}


def _overrides(draw: st.DrawFn, alike: bool, match: str) -> tuple[LinkOverride, ...]:
    if alike or draw(st.booleans()):
        return ()
    return (LinkOverride(match=match, rate=_pick(draw, RATES), delay=_pick(draw, DELAYS)),)


@st.composite
def _single_switch(draw: st.DrawFn, alike: bool) -> SingleSwitch:
    return SingleSwitch(
        hosts=draw(st.integers(2, 9)) if draw(st.integers(0, 19)) else MANY_PORTS,
        ports_per_host=_pick(draw, (1, 1, 2)),
        overrides=_overrides(draw, alike, "host0-switch0"),
        **_some_links(draw, alike, "link"),
    )


@st.composite
def _leaf_spine(draw: st.DrawFn, alike: bool) -> LeafSpine:
    leaves = draw(st.integers(2, 3))
    links = _some_links(draw, alike, "host_link", "fabric_link")
    oversubscription = None if alike else _pick(draw, (None, 2.0, 3.7))
    if oversubscription is not None:
        links["fabric_link"] = links["fabric_link"].replace(rate=Link().rate)
    return LeafSpine(
        leaves=leaves,
        spines=draw(st.integers(1, 2)),
        hosts_per_leaf=draw(st.integers(2, 3)),
        links_per_pair=_pick(draw, (1, 1, 2)),
        ports_per_host=_pick(draw, (1, 1, leaves)),
        oversubscription=oversubscription,
        overrides=_overrides(draw, alike, "leaf*-spine0"),
        **links,
    )


@st.composite
def _clos3(draw: st.DrawFn, alike: bool) -> Clos3:
    spines = draw(st.integers(1, 2))
    return Clos3(
        pods=2,
        leaves_per_pod=draw(st.integers(1, 2)),
        spines_per_pod=spines,
        cores=spines * draw(st.integers(1, 2)),
        hosts_per_leaf=draw(st.integers(1, 2)),
        links_per_pair=_pick(draw, (1, 1, 2)),
        overrides=_overrides(draw, alike, "spine*-core0"),
        **_some_links(draw, alike, "host_link", "fabric_link", "core_link"),
    )


@st.composite
def _fat_tree(draw: st.DrawFn, alike: bool) -> FatTree:
    return FatTree(
        k=_pick(draw, (2, 4)),
        overrides=_overrides(draw, alike, "host0-leaf0"),
        **_some_links(draw, alike, "link"),
    )


@st.composite
def _rails(draw: st.DrawFn, alike: bool) -> RailOptimized:
    return RailOptimized(
        servers=draw(st.integers(2, 3)),
        accelerators_per_server=draw(st.integers(1, 3)),
        spines=draw(st.integers(1, 2)),
        scale_up_switches=_pick(draw, (1, 1, 2)),
        servers_per_rail_leaf=_pick(draw, (None, 1)),
        **_some_links(draw, alike, "host_link", "fabric_link", "scale_up_link"),
    )


@st.composite
def _graph(draw: st.DrawFn, alike: bool) -> GraphFile:
    """A ring of switches, where buffers can wait for each other in a circle."""
    switches = draw(st.integers(3, 5))
    ends = [(f"host{h}", f"switch{h // GRAPH_HOSTS_PER_SWITCH}") for h in range(2 * switches)]
    ends += [(f"switch{s}", f"switch{(s + 1) % switches}") for s in range(switches)]
    odd = {} if alike else {"rate": _pick(draw, RATES), "delay": _pick(draw, DELAYS)}
    edges: list[dict[str, Any]] = [{"source": one, "target": other} for one, other in ends]
    edges[draw(st.integers(0, len(edges) - 1))].update(odd)
    nodes = [{"id": name} for name in dict.fromkeys(name for pair in ends for name in pair)]
    text = json.dumps({"nodes": nodes, "edges": edges})
    return GraphFile(file=_file(text, suffix=".json"), **_some_links(draw, alike, "link"))


def _file(text: str, *, suffix: str) -> str:
    path = Path(_FILES.name) / (sha256(text.encode()).hexdigest()[:16] + suffix)
    path.write_text(text)
    return str(path)


def _traffic_classes() -> st.SearchStrategy[TrafficClass]:
    """A class without its name and without thresholds of its own."""
    return st.builds(
        TrafficClass,
        name=st.just("c"),
        priority=st.sampled_from((0, 0, 0, 3, 7)),
        weight=st.sampled_from((1, 1, 2, 5)),
        reserved=st.sampled_from((0, 0, 2_000, 9_000)),
        ecn=st.sampled_from((True, True, True, False)),
        pfc=st.sampled_from((True, True, True, True, False)),
    )


def _numbered(classes: list[TrafficClass]) -> list[TrafficClass]:
    return [each.replace(name=f"c{number}") for number, each in enumerate(classes)]


@st.composite
def _switches(
    draw: st.DrawFn, classes: list[TrafficClass], *, frame_bytes: int, cut_through: bool
) -> Switch:
    own = draw(st.integers(0, 2 * len(classes)))
    if own < len(classes):
        classes = [_with_own(draw, each, frame_bytes) if n == own else each for n, each in enumerate(classes)]
    return Switch(
        buffer=ROOMY_BUFFER_BYTES,
        latency=_pick(draw, LATENCIES),
        pfc_response=_pick(draw, RESPONSES),
        ecn=draw(_ecn(frame_bytes)),
        pfc=draw(_pfc(frame_bytes)),
        lossy=draw(_lossy(frame_bytes)),
        classes=tuple(classes),
        arbiter=_pick(draw, ("fifo", "round_robin")),
        cut_through=cut_through and draw(st.booleans()),
    )


def _with_own(draw: st.DrawFn, each: TrafficClass, frame_bytes: int) -> TrafficClass:
    """The class with thresholds that differ from the switch's."""
    if each.pfc is False:
        return each.replace(lossy=draw(_lossy(frame_bytes)))
    return each.replace(pfc=draw(_pfc(frame_bytes)), ecn=draw(_ecn(frame_bytes)))


def _ecn(frame_bytes: int) -> st.SearchStrategy[Ecn]:
    @st.composite
    def drawn(draw: st.DrawFn) -> Ecn:
        kmin = frame_bytes * _pick(draw, (0, 1, 3))
        return Ecn(
            kmin=kmin,
            kmax=kmin + frame_bytes * _pick(draw, (2, 0, 10)),
            pmax=_pick(draw, (0.2, 0.8, 1.0)),
            mark=_pick(draw, ("dequeue", "enqueue")),
            scale_from=_pick(draw, (None, "400Gbps", "7Gbps")),
        )

    return drawn()


def _pfc(frame_bytes: int) -> st.SearchStrategy[Pfc]:
    @st.composite
    def drawn(draw: st.DrawFn) -> Pfc:
        headroom: Any = _pick(draw, ("auto", "auto", "auto", 0, 3 * frame_bytes, 30 * frame_bytes))
        if draw(st.booleans()):
            offset = _pick(draw, (None, 0, frame_bytes, 5 * frame_bytes))
            return Pfc(alpha=_pick(draw, ALPHAS), xon_offset=offset, headroom=headroom)
        xoff = draw(st.integers(1, 12)) * frame_bytes - _pick(draw, (0, 1))
        return Pfc(xoff=xoff, xon=_pick(draw, (None, 0, xoff // 2, xoff)), headroom=headroom)

    return drawn()


def _lossy(frame_bytes: int) -> st.SearchStrategy[Lossy]:
    limits = st.integers(1, 20).map(lambda frames: frames * frame_bytes)
    return st.builds(Lossy, alpha=st.sampled_from(ALPHAS)) | st.builds(Lossy, limit=limits)


@st.composite
def transports(draw: st.DrawFn, class_names: Sequence[str]) -> Transport:
    """A transport whose timers act within microseconds."""
    payload = _pick(draw, PAYLOADS)
    ack_every = _pick(draw, (1, 1, 2, 4))
    window = payload * _pick(draw, (8, ack_every, 16, 40)) - _pick(draw, (0, payload // 2))
    return Transport(
        payload=payload,
        header=_pick(draw, (62, 0)),
        control_frame=_pick(draw, CONTROL_FRAMES),
        data_class=_pick(draw, class_names),
        control_class=_pick(draw, class_names),
        ack_every=ack_every,
        reliability=GoBackN(
            rto=_pick(draw, ("60us", "20us", "200us", "5us", "4ms", None)),
            nack=_pick(draw, (True, True, True, False)),
            nack_on_rewind=draw(st.booleans()),
            nack_interval=_pick(draw, (None, None, "3us", "1ns")),
        ),
        congestion=draw(_congestion(window)),
    )


def _congestion(window_bytes: int) -> st.SearchStrategy[Congestion]:
    presets = st.sampled_from(("connectx_scaled", "hpcc", "paper_2015", "simai"))
    vendor, paper = _dcqcn("vendor", window_bytes), _dcqcn("paper", window_bytes)
    return st.sampled_from(
        (
            st.just(NoCongestionControl()),
            st.just(FixedWindow(window=window_bytes)),
            *(vendor, vendor, vendor, paper, paper),
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
    )


def _traffic(
    draw: st.DrawFn, topology: Topology, class_names: Sequence[str], transport: Transport
) -> tuple[Traffic, ...]:
    """One to three entries that share the budget of hops."""
    links = {SingleSwitch: 2, Clos3: 6, FatTree: 6}.get(type(topology), 4)
    hosts = host_count(topology) or len(json.loads(Path(topology.file).read_text())["nodes"]) * 2 // 3
    entries: list[Traffic] = []
    count = _pick(draw, (1, 2, 3))
    for number in range(count):
        own = draw(st.none() | st.none() | transports(class_names))
        payload = int((own or transport).payload)
        common = {
            "name": f"entry{number}",
            "transport": own,
            "traffic_class": draw(st.none() | st.sampled_from(class_names)),
            "start": _pick(draw, ("0ns", "0ns", "1us", "7777777ps")),
            "jitter": _pick(draw, ("0ns", "0ns", "100ns", "20us")),
        }
        kinds = (_incast, _flows, _incast, _flows, _incast, _uniform, _permutation, _all_to_all, _poisson)
        frames = MOST_HOPS // (2 * links * count)
        entries.append(_pick(draw, kinds)(draw, topology, hosts, frames, payload, common))
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
    receivers = _pick(draw, (1, 1, min(2, hosts)))
    spare = isinstance(topology, SingleSwitch | LeafSpine) and receivers == 1 and hosts - senders >= 3
    victims = _pick(draw, (0, 1)) if spare else 0
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
                start=_pick(draw, ("0ns", "0ns", "2us")),
                name=f"{common['name']}-{number}",
                after=tuple(after) if _pick(draw, (False, False, True)) else (),
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
    chosen = _pick(draw, ("host[0-3]", "*"))
    pairs = min(hosts, 4) * (min(hosts, 4) - 1) if chosen != "*" else hosts * (hosts - 1)
    return AllToAll(hosts=chosen, size=_size(draw, pairs, frames, payload), **common)


def _poisson(
    draw: st.DrawFn, topology: Topology, hosts: int, frames: int, payload: int, common: dict[str, Any]
) -> Poisson:
    flows = draw(st.integers(1, 12))
    largest = _size(draw, flows, frames, payload)
    distribution = _file(f"bytes,cdf\n1,0\n{max(1, largest // 2)},0.5\n{largest},1\n", suffix=".csv")
    return Poisson(load=_pick(draw, (0.5, 1.0, 2.0)), distribution=distribution, flows=flows, **common)


@st.composite
def _records(draw: st.DrawFn, frame_bytes: int) -> Record:
    """All streams, most often; or some; in either mode of the queue stream."""
    wanted = _pick(draw, ("all", "all", "all", "some", "none"))

    def wants() -> bool:
        return wanted == "all" or (wanted == "some" and draw(st.booleans()))

    by_time = QueueRecord(interval=_pick(draw, ("50ns", "1us", "77777ps")))
    by_size = QueueRecord(delta=_pick(draw, (1, 3 * frame_bytes)))
    interval = _pick(draw, ("1us", "100ns", "3333333ps"))
    return Record(
        queues=_pick(draw, (by_size, by_time)) if wants() else None,
        throughput=ThroughputRecord(interval=interval) if wants() else None,
        packets=PacketRecord(**_pick(draw, ({"ports": ("*",)}, {"flows": ("*",)}))) if wants() else None,
        rates=("*",) if wants() else (),
        pauses=wants(),
        marks=wants(),
        drops=wants(),
    )
