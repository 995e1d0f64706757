"""Routes walked link by link: next hops that are given, lifetimes, and classes that change on the way.

What `fabric.analysis.deadlock.graph` multiplies as matrices holds for shortest paths. Here one destination
at a time is walked from every switch at which its frames enter, so that a pin may send it anywhere, also in
circles: a frame of lifetime n is queued at n - 1 switches. A link to a switch that drops the frame on
arrival waits for nothing.

A *bounce* is a turn from a link that goes down to one that goes up. With k lossless classes a frame moves to
the next class at each bounce and is lossy after the last (Hu et al., "Tagger: Practical PFC Deadlock
Prevention in Data Center Networks", CoNEXT 2017): within one class links then only climb and descend, and
classes only rise, so there is no cycle. With k = 1 bounced frames are lossy at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fabric.analysis.deadlock.graph import Arc
from fabric.analysis.deadlock.routes import RouteSet

__all__ = ["Demand", "Walk", "demands_of", "walk"]

ENTERED = -1
"""Instead of a link: the frame has come from a host."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Frames to one host.

    Attributes
    ----------
    label : str
        What they are, for explanations: "green" or "frames to host3".
    destination : int
        A host.
    entries : tuple of int
        Switches (rows) at which they enter.
    pinned : mapping of int to int
        By switch (row) the port that they leave by; elsewhere they follow shortest paths.
    """

    label: str
    destination: int
    entries: tuple[int, ...]
    pinned: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Walk:
    """What walks found: arcs with the demand that makes each, and the most bounces of any frame."""

    arcs: dict[Arc, str]
    most_bounces: int


def demands_of(routes: RouteSet) -> list[Demand]:
    """One demand for each destination edge of a set of routes."""
    first_host = {edge: host for host, edge in reversed(list(enumerate(routes.host_edge.tolist())))}
    return [
        Demand(
            label=f"frames to {routes.network.names[host]}",
            destination=host,
            entries=tuple(np.flatnonzero(routes.sources[:, edge]).tolist()),
        )
        for edge, host in sorted(first_host.items())
    ]


def walk(
    routes: RouteSet,
    demands: Iterable[Demand],
    *,
    lifetime: int | None = None,
    heights: npt.NDArray[np.int64] | None = None,
    classes: int | None = None,
) -> Walk:
    """Follow demands over all next hops that switches may choose.

    Parameters
    ----------
    routes : RouteSet
        Where no pin says otherwise. A pin to a port that is down makes a black hole.
    demands : iterable of Demand
    lifetime : int, optional
        Of frames, in switches; default no limit.
    heights : numpy.ndarray of int64 [switches], optional
        Order of the switches, by which bounces are counted.
    classes : int, optional
        Lossless classes of a frame on its way; default: it keeps its class whatever it does.

    Returns
    -------
    Walk
    """
    arcs: dict[Arc, str] = {}
    bounces = 0
    for demand in demands:
        for arc, tag in _steps(routes, demand, lifetime, heights, classes):
            arcs.setdefault(arc, demand.label)
            bounces = max(bounces, tag)
    return Walk(arcs, bounces)


def _steps(
    routes: RouteSet,
    demand: Demand,
    lifetime: int | None,
    heights: npt.NDArray[np.int64] | None,
    classes: int | None,
) -> Iterable[tuple[Arc, int]]:
    """Arcs of one demand, each with the bounces that frames on it have made at least."""
    n_ports = routes.network.n_ports
    layer = {(ENTERED, row, 0) for row in demand.entries}
    seen = set(layer)
    passed = 1
    while layer and (lifetime is None or passed < lifetime):
        following = set()
        for port, row, bounced in sorted(layer):
            for leaving, peer in _leaving(routes, demand, row):
                turned = (
                    heights is not None and port != ENTERED and _bounces(routes, heights, port, row, peer)
                )
                count = bounced + turned
                if classes is not None and count >= classes:
                    yield (ENTERED, ENTERED), count
                    continue
                tag, next_tag = (bounced, count) if classes is not None else (0, 0)
                if port != ENTERED:
                    yield (tag * n_ports + port, next_tag * n_ports + leaving), count
                state = (leaving, peer, count if classes is not None else min(count, len(routes.links)))
                if state not in seen:
                    seen.add(state)
                    following.add(state)
        layer = following
        passed += 1


def _bounces(routes: RouteSet, heights: npt.NDArray[np.int64], port: int, row: int, peer: int) -> bool:
    before = int(routes.network.port_node[port]) - routes.network.n_hosts
    return bool(heights[before] > heights[row] < heights[peer])


def _leaving(routes: RouteSet, demand: Demand, row: int) -> list[tuple[int, int]]:
    """Ports to other switches that the demand's frames leave a switch by, and whom they lead to."""
    edge = int(routes.host_edge[demand.destination])
    ports = routes.switch_ports[row]
    if row in demand.pinned:
        pinned = demand.pinned[row]
        chosen = ports[ports == pinned]
    elif routes.links[row, edge] <= 0:
        return []
    else:
        chosen = ports[routes.next_hops_to(row, edge)]
    return list(zip(chosen.tolist(), routes.peers(chosen).tolist(), strict=True))
