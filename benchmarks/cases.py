"""What is measured: one scenario per row of the table of goals, and the goals.

All cases share one fabric: 400 Gbit/s links that take 1 us, switches of 64 MB without latency of their
own, ECN, PFC and DCQCN on with the defaults of `fabric.spec`, data frames of 4096 bytes payload, an ACK
for every one of them unless the name says otherwise. What differs is size and traffic: a permutation
congests where flows hash to one uplink, the ring congests nowhere, the incast pauses its senders.

Goals are packet-hops per second of process time on one core (`must` is the promise, `aim` the ambition)
and bytes of memory per host. `flow_bytes` scales a case: the shape of the traffic stays, messages become
shorter. The size at 8,192 hosts is smaller than the others' so that a run stays below two seconds.

`VARIANTS`, measured when asked for, are the permutation of 1,024 hosts under every congestion control and
path choice. `SEARCHES` tell what the search for deadlock costs: with nothing paused, and in an incast that
only PFC holds back. `COLLECTIVES` are measured when they are named; their `flow_bytes` is what each rank
has. The ring of 1,024 has two million messages whatever their size; that of 128 has messages as long with a
sixty-fourth of them, for counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fabric.spec import (
    Collective,
    Congestion,
    Dctcp,
    Ecn,
    FatTree,
    FixedWindow,
    Flow,
    Flows,
    Hpcc,
    Incast,
    LeafSpine,
    Link,
    NoCongestionControl,
    Permutation,
    Routing,
    Run,
    Scenario,
    SelectiveRepeat,
    Switch,
    Timely,
    Topology,
    Traffic,
    Transport,
    host_count,
)
from fabric.units import Duration, Rate, Size

__all__ = [
    *("ALL_CASES", "CASES", "COLLECTIVES", "IDLE_GOAL_BYTES", "LOADED_GOAL_BYTES", "VARIANTS"),
    *("SEARCHES", "VARIANT_GOAL", "Case", "case_named"),
]

LOADED_GOAL_BYTES = Size("16KB")
"""Memory per host under load."""
IDLE_GOAL_BYTES = Size("1KB")
"""Memory per host of a fabric in which next to nothing happens."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    name : str
        As on the command line.
    topology : Topology
    traffic : callable
        The traffic for a message size.
    flow_bytes, counted_flow_bytes : Size
        Message size when the case is timed, and when its instructions are counted, which is some fifty
        times slower. The incast's is still large enough for PAUSE.
    must, aim : float or None
        Packet-hops per second; None where there is no goal.
    transport : Transport
    switch : Switch
    routing : Routing
    run : Run
    beside : str or None
        The case whose time per hop this one's is compared with.
    """

    name: str
    topology: Topology
    traffic: Callable[[Size], Traffic]
    flow_bytes: Size
    counted_flow_bytes: Size
    must: float | None = None
    aim: float | None = None
    transport: Transport = field(default_factory=Transport)
    switch: Switch = field(default_factory=lambda: SWITCH)
    routing: Routing = field(default_factory=Routing)
    run: Run = field(default_factory=Run)
    beside: str | None = None

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        count = host_count(self.topology)
        assert count is not None
        return count

    def scenario(self, *, flow_bytes: Size | None = None) -> Scenario:
        """Return the scenario, with messages of another size if one is given."""
        return self._with(self.traffic(self.flow_bytes if flow_bytes is None else flow_bytes))

    def idle_scenario(self) -> Scenario:
        """Return the same fabric with one message of one frame, from the first host to the last."""
        flow = Flow(source=0, destination=self.hosts - 1, size=self.transport.payload)
        return self._with(Flows(flows=(flow,)))

    def _with(self, traffic: Traffic) -> Scenario:
        return Scenario(
            name=self.name,
            topology=self.topology,
            switch=self.switch,
            routing=self.routing,
            transport=self.transport,
            run=self.run,
            traffic=(traffic,),
        )


LINK = Link(rate=Rate("400Gbps"), delay=Duration("1us"))
SWITCH = Switch(latency=Duration(0))
LEAF_SPINE_128 = LeafSpine(leaves=8, spines=8, hosts_per_leaf=16, host_link=LINK, fabric_link=LINK)
LEAF_SPINE_1024 = LeafSpine(leaves=32, spines=32, hosts_per_leaf=32, host_link=LINK, fabric_link=LINK)
FAT_TREE_8192 = FatTree(k=32, link=LINK)
JITTER = Duration("2us")
"""Spread of the starts: no cluster starts in the same picosecond."""


def _permutation(size: Size) -> Permutation:
    return Permutation(size=size, jitter=JITTER)


def _ring(size: Size) -> Flows:
    """Every host of the 1,024 to the next: 31 of 32 flows stay below their leaf."""
    hosts = range(1024)
    return Flows(
        flows=tuple(Flow(source=h, destination=(h + 1) % len(hosts), size=size) for h in hosts), jitter=JITTER
    )


def _incast(size: Size) -> Incast:
    return Incast(receivers=8, senders=64, size=size, jitter=JITTER)


def _ring_all_reduce(size: Size) -> Collective:
    return Collective(collective="all_reduce", algorithm="ring", size=size)


def _shuffled_ring_all_reduce(size: Size) -> Collective:
    """Ranks on hosts in an order that is drawn: nearly every message crosses a spine."""
    return Collective(collective="all_reduce", algorithm="ring", size=size, order="shuffled")


def _zipf_all_to_all_v(size: Size) -> Collective:
    """What a rank sends goes to the others by Zipf's law."""
    return Collective(collective="all_to_all_v", algorithm="direct", size=size, skew=1.0, ranks=512)


def _halving_doubling(size: Size) -> Collective:
    return Collective(collective="all_reduce", algorithm="halving_doubling", size=size)


CASES: tuple[Case, ...] = (
    Case(
        name="permutation-128",
        topology=LEAF_SPINE_128,
        traffic=_permutation,
        flow_bytes=Size("2MB"),
        counted_flow_bytes=Size("200KB"),
        must=20e6,
        aim=35e6,
    ),
    Case(
        name="permutation-1024",
        topology=LEAF_SPINE_1024,
        traffic=_permutation,
        flow_bytes=Size("2MB"),
        counted_flow_bytes=Size("200KB"),
        must=15e6,
        aim=25e6,
    ),
    Case(
        name="permutation-1024-ack16",
        topology=LEAF_SPINE_1024,
        traffic=_permutation,
        flow_bytes=Size("2MB"),
        counted_flow_bytes=Size("200KB"),
        transport=Transport(ack_every=16),
    ),
    Case(
        name="ring-1024",
        topology=LEAF_SPINE_1024,
        traffic=_ring,
        flow_bytes=Size("2MB"),
        counted_flow_bytes=Size("200KB"),
        must=30e6,
        aim=50e6,
    ),
    Case(
        name="incast-1024",
        topology=LEAF_SPINE_1024,
        traffic=_incast,
        flow_bytes=Size("2MB"),
        counted_flow_bytes=Size("1MB"),
        must=12e6,
        aim=20e6,
    ),
    Case(
        name="permutation-8192",
        topology=FAT_TREE_8192,
        traffic=_permutation,
        flow_bytes=Size("500KB"),
        counted_flow_bytes=Size("50KB"),
        must=8e6,
        aim=18e6,
    ),
)


COLLECTIVES: tuple[Case, ...] = (
    Case(
        name="all-reduce-128",
        topology=LEAF_SPINE_128,
        traffic=_ring_all_reduce,
        flow_bytes=Size("8MB"),
        counted_flow_bytes=Size("8MB"),
    ),
    Case(
        name="all-reduce-1024",
        topology=LEAF_SPINE_1024,
        traffic=_ring_all_reduce,
        flow_bytes=Size("64MB"),
        counted_flow_bytes=Size("1MB"),
        must=30e6,
    ),
    Case(
        name="all-reduce-1024-shuffled",
        topology=LEAF_SPINE_1024,
        traffic=_shuffled_ring_all_reduce,
        flow_bytes=Size("64MB"),
        counted_flow_bytes=Size("1MB"),
    ),
    Case(
        name="all-to-all-v-512",
        topology=LEAF_SPINE_1024,
        traffic=_zipf_all_to_all_v,
        flow_bytes=Size("64MB"),
        counted_flow_bytes=Size("1MB"),
    ),
    Case(
        name="all-reduce-8192",
        topology=FAT_TREE_8192,
        traffic=_halving_doubling,
        flow_bytes=Size("8MB"),
        counted_flow_bytes=Size("50KB"),
    ),
)


VARIANT_GOAL = 1.25
"""Times the nanoseconds per hop of the case beside which a variant stands."""
BASE_RTT = Duration("9us")
"""Eight links of 1 us, four frames there and four ACKs back: 8.4 us and a little more."""
WINDOW = Size("450KB")
"""What the line carries in that time."""
DCTCP_ECN = Ecn(kmin=Size("1200KB"), kmax=Size("1200KB"), pmax=1.0)
"""One threshold, and no chance."""
CONTROLS: dict[str, tuple[Congestion, Switch]] = {
    "none": (NoCongestionControl(), SWITCH),
    "window": (FixedWindow(window=WINDOW), SWITCH),
    "dctcp": (Dctcp(window=WINDOW), SWITCH.replace(ecn=DCTCP_ECN)),
    "timely": (Timely(), SWITCH),
    "hpcc": (Hpcc(base_rtt=BASE_RTT), SWITCH),
}
CHOICES = ("spray_random", "spray_round_robin", "adaptive", "flowlet")
SPRAYED = Transport(reliability=SelectiveRepeat(reorder=1024))


def _permutation_1024(name: str, **other: Any) -> Case:
    """The permutation of 1,024 hosts with something else than its defaults."""
    return Case(
        name=f"permutation-1024-{name}",
        topology=LEAF_SPINE_1024,
        traffic=_permutation,
        flow_bytes=Size("2MB"),
        counted_flow_bytes=Size("200KB"),
        **other,
    )


VARIANTS: tuple[Case, ...] = (
    *(
        _permutation_1024(
            name, transport=Transport(congestion=congestion), switch=switch, beside="permutation-1024"
        )
        for name, (congestion, switch) in CONTROLS.items()
    ),
    _permutation_1024("selective-repeat", transport=SPRAYED),
    *(
        _permutation_1024(
            name.replace("_", "-"),
            transport=SPRAYED,
            routing=Routing(choice=name),
            beside="permutation-1024-selective-repeat",
        )
        for name in CHOICES
    ),
)
"""Other congestion controls and path choices than the permutation of 1,024 hosts has by default."""


NO_SEARCH = Run(deadlock="off")
PFC_INCAST = Case(
    name="incast-1024-pfc",
    topology=LEAF_SPINE_1024,
    traffic=_incast,
    flow_bytes=Size("2MB"),
    counted_flow_bytes=Size("1MB"),
    transport=Transport(congestion=NoCongestionControl()),
)
SEARCHES: tuple[Case, ...] = (
    CASES[1],
    _permutation_1024("no-search", run=NO_SEARCH, beside="permutation-1024"),
    PFC_INCAST,
    replace(PFC_INCAST, name="incast-1024-pfc-no-search", run=NO_SEARCH, beside="incast-1024-pfc"),
)
"""With the search for deadlock, as always, and without."""


ALL_CASES = (*CASES, *COLLECTIVES, *VARIANTS, *SEARCHES[1:])


def case_named(name: str) -> Case:
    """Return the case called `name`.

    Raises
    ------
    ValueError
        If there is none; the message lists all.
    """
    for case in ALL_CASES:
        if case.name == name:
            return case
    raise ValueError(f"no case is called {name!r}; there are " + ", ".join(each.name for each in ALL_CASES))
