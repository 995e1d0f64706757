"""What the oracle tests have in common: bare frames, plain switches, and a run on the native engine.

An oracle is a number that was worked out without this code: a closed form, a published value, or the
result of an independent simulator. Every test states a public `Scenario`, lowers it and runs it on the
compiled engine. The settings that closed forms assume are the defaults here and not those of the
package: no header and no gap on the wire, no latency in a switch, memory without a bound, no marks, no
congestion control, and acknowledgements only where a test is about them.

A scenario routes along shortest paths. Where an oracle needs another way (rings that are walked the long
way round, a path that bounces), `with_next_hops` replaces the next hops of the lowered tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import networkx
import numpy as np

from fabric._core import Engine
from fabric.lower import lower
from fabric.lowered import ROUTE_DIRECT, Lowered
from fabric.spec import (
    Dcqcn,
    FixedWindow,
    Flow,
    Flows,
    GoBackN,
    GraphFile,
    Link,
    Lossy,
    NoCongestionControl,
    Pfc,
    Scenario,
    Switch,
    TrafficClass,
    Transport,
)
from fabric.topology import Network, build_network, from_networkx
from fabric.workload import FlowTable

GBPS = 10**9
NS = 1_000
US = 1_000_000
MS = 1_000_000_000
SECOND = 10**12

PLENTY = "100GB"
"""Memory that is never used up."""
NO_ACKS = 2**32 - 1
"""`ack_every` with which only the last frame of a flow is acknowledged."""


def link(rate: str | int, delay: str | int, **fields: Any) -> Link:
    """A cable on which a frame takes no more than its own bytes."""
    return Link(rate=rate, delay=delay, **{"gap": 0, **fields})


def transport(
    payload: int,
    *,
    acks: bool = False,
    congestion: NoCongestionControl | FixedWindow | Dcqcn | None = None,
    reliability: GoBackN | None = None,
    **fields: Any,
) -> Transport:
    """Frames of `payload` bytes without a header; go-back-N without a time-out."""
    defaults: dict[str, Any] = {"header": 0, "control_frame": 64, "ack_every": 1 if acks else NO_ACKS}
    return Transport(
        payload=payload,
        congestion=congestion or NoCongestionControl(),
        reliability=reliability or GoBackN(rto=None),
        **(defaults | fields),
    )


def open_loop(payload: int, **fields: Any) -> Transport:
    """A sender that sends every frame once and never hears of a loss."""
    return transport(payload, reliability=GoBackN(rto=None, nack=False), **fields)


CONTROL = TrafficClass(name="control", priority=7, ecn=False, pfc=False, lossy=Lossy(limit="1GB"))
"""Acknowledgements and notifications go first and are never short of memory."""


def lossless_switch(
    xoff: str | int = "10GB", *, xon: str | int | None = None, headroom: str | int = "100MB", **fields: Any
) -> Switch:
    """A switch whose data class pauses at a static threshold; by default it never does."""
    defaults: dict[str, Any] = {"buffer": PLENTY, "latency": 0, "ecn": None}
    data = TrafficClass(name="data", pfc=Pfc(xoff=xoff, xon=xon, headroom=headroom))
    return Switch(classes=(data, CONTROL), **(defaults | fields))


def lossy_switch(lossy: Lossy | None = None, **fields: Any) -> Switch:
    """A switch whose data class drops at the egress; by default at no length that is ever reached."""
    defaults: dict[str, Any] = {"buffer": PLENTY, "latency": 0, "ecn": None}
    data = TrafficClass(name="data", pfc=False, lossy=lossy or Lossy(limit="10GB"))
    return Switch(classes=(data, CONTROL), **(defaults | fields))


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run that has stopped."""

    engine: Any
    network: Network
    lowered: Lowered
    status: str
    columns: dict[str, Any]

    def port(self, name: str) -> int:
        """The one port that is called so ("switch0->host3")."""
        (port,) = self.network.find_ports([name])
        return int(port)

    def rows(self, stream: str) -> np.ndarray:
        return self.engine.rows(stream)

    def until(self, until_ps: int) -> Outcome:
        """The same run, continued."""
        status = self.engine.run(until_ps=until_ps)
        return replace(self, status=status, columns=self.engine.columns())

    @property
    def bytes_left(self) -> int:
        """Bytes that wait in switches."""
        return int(self.columns["queue_bytes"].sum())


def run(
    scenario: Scenario,
    *,
    network: Network | None = None,
    flows: FlowTable | None = None,
    next_hops: Mapping[tuple[str, str], str] | None = None,
    until_ps: int | None = None,
    engine: Callable[[Lowered], Any] = Engine,
) -> Outcome:
    """Lower a scenario and run it, by default on the native engine."""
    if network is None:
        network = build_network(scenario.topology)
    lowered = lower(scenario, network=network, flows=flows)
    if next_hops is not None:
        lowered = with_next_hops(lowered, network, next_hops)
    started = engine(lowered)
    status = started.run(until_ps=until_ps)
    return Outcome(started, network, lowered, status, started.columns())


def graph(
    *cables: tuple[str, str] | tuple[str, str, Mapping[str, Any]], default: Link
) -> tuple[GraphFile, Network]:
    """A network of one's own from its cables, and the spec that stands for it in a scenario."""
    multigraph = networkx.MultiGraph()
    names = dict.fromkeys(name for cable in cables for name in cable[:2])
    multigraph.add_nodes_from((name, {"kind": "host" if name[0] == "h" else "switch"}) for name in names)
    for number, (one, other, *attributes) in enumerate(cables):
        multigraph.add_edge(one, other, link=number, **(attributes[0] if attributes else {}))
    return GraphFile(file="graph.json", link=default), from_networkx(multigraph, link=default)


def chain(hops: int, default: Link) -> tuple[GraphFile, Network]:
    """Two hosts with `hops` cables between them; one hop is a cable from host to host."""
    nodes = ["h0", *(f"s{number}" for number in range(hops - 1)), "h1"]
    return graph(*pairwise(nodes), default=default)


def message(size: int, source: str | int = "h0", destination: str | int = "h1", **fields: Any) -> Flow:
    return Flow(source=source, destination=destination, size=size, **fields)


def messages(*flows: Flow, **fields: Any) -> tuple[Flows, ...]:
    return (Flows(flows=flows, **fields),)


def with_next_hops(lowered: Lowered, network: Network, hops: Mapping[tuple[str, str], str]) -> Lowered:
    """The same arrays with other routes: ``{(switch, destination host): next switch}``."""
    entries = lowered.route_entry.copy()
    first_switch = lowered.n_hosts
    degrees = np.diff(lowered.node_port_base.astype(np.int64))[first_switch:]
    groups = np.split(lowered.route_ports, lowered.route_ports_base[first_switch + 1 :])
    pools = [np.append(group, np.arange(degree)) for group, degree in zip(groups, degrees, strict=True)]
    for (switch, destination), following in hops.items():
        node = network.node_numbers[switch]
        entry = lowered.route_base[node] + lowered.host_edge[network.node_numbers[destination]]
        assert entries[entry] != ROUTE_DIRECT, f"{destination} hangs on {switch}"
        (port,) = network.find_ports([f"{switch}->{following}"])
        local = int(port) - int(lowered.node_port_base[node])
        entries[entry] = 1 << 16 | (len(groups[node - first_switch]) + local)
    starts = np.cumsum([0, *map(len, pools)])[:-1]
    return replace(
        lowered,
        route_entry=entries,
        route_ports=np.concatenate(pools).astype(np.uint16),
        route_ports_base=np.concatenate([lowered.route_ports_base[:first_switch], starts]),
    )
