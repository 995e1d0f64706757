"""The verdict on a set of routes, why, and what would change it.

"Cannot deadlock" is a proof: no link waits, over however many others, for itself. "Can" says which links
wait for each other in the shortest circle, and for each step one route that makes it; they deadlock if all
of them are paused at once, which takes more traffic on them than the links carry.

Remedies, each of which is applied and checked again: up-down routes (no bounces, at the price of paths that
exist only with one); a lossless class for each bounce; lossy frames after the first bounce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.analysis.deadlock.causes import route_over
from fabric.analysis.deadlock.cycles import shortest_cycle, strong_components
from fabric.analysis.deadlock.graph import Arc, DependencyGraph, turns_of
from fabric.analysis.deadlock.routes import RouteSet
from fabric.analysis.deadlock.walks import Demand, demands_of, walk
from fabric.topology.heights import heights

__all__ = ["REMEDIES", "Remedy", "Step", "Verdict", "check_deadlock", "remedies", "remedy"]

REMEDIES = ("up-down", "classes", "lossy")


@dataclass(frozen=True)
class Step:
    """One link of a cycle, the link that it waits for, and a route over both."""

    link: str
    waits_for: str
    route: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether routes can deadlock.

    Attributes
    ----------
    can_deadlock : bool
    n_links, n_arcs : int
        Links that wait or are waited for, and arcs of the graph.
    cycle : tuple of Step
        The shortest cycle; empty if there is none.
    links_in_cycles : int
        Links that lie on any cycle.
    """

    can_deadlock: bool
    n_links: int
    n_arcs: int
    cycle: tuple[Step, ...] = ()
    links_in_cycles: int = 0

    @property
    def reason(self) -> str:
        """The verdict as a sentence."""
        if not self.can_deadlock:
            size = f"{self.n_arcs:,} dependencies between {self.n_links:,} links"
            return f"cannot deadlock: the buffer-dependency graph is acyclic ({size})"
        links = [step.link for step in self.cycle]
        return f"can deadlock, if {len(links)} links are paused at once: {' -> '.join([*links, links[0]])}"


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change that breaks cycles, and the verdict with it.

    Attributes
    ----------
    name : str
        One of `REMEDIES`.
    what : str
        What to do.
    price : str
        What it costs here.
    verdict : Verdict
    """

    name: str
    what: str
    price: str
    verdict: Verdict


def check_deadlock(
    routes: RouteSet, *, demands: Sequence[Demand] = (), lifetime: int | None = None
) -> Verdict:
    """Judge the buffer-dependency graph of routes.

    Parameters
    ----------
    routes : RouteSet
        Of one lossless class.
    demands : sequence of Demand
        Frames that are pinned somewhere, besides.
    lifetime : int, optional
        Of these, in switches.

    Returns
    -------
    Verdict

    Examples
    --------
    Two failures in a leaf-spine fabric leave leaf0 and leaf1 with a path that bounces:

    >>> from fabric.analysis.deadlock import find_route_set, without
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=4, spines=2, hosts_per_leaf=2))
    >>> cables = [int(network.find_links(name)[0]) for name in ("leaf0-spine0", "leaf1-spine1")]
    >>> verdict = check_deadlock(find_route_set(network, up=without(network, cables=cables)))
    >>> [step.link for step in verdict.cycle]
    ['leaf2->spine0', 'spine0->leaf3', 'leaf3->spine1', 'spine1->leaf2']
    >>> verdict.cycle[1].route
    'host2 -> leaf1 -> spine0 -> leaf3 -> spine1 -> leaf0 -> host0'
    """
    pinned = walk(routes, demands, lifetime=lifetime).arcs
    graph = turns_of(routes)
    return _judge(routes, graph.with_arcs(pinned) if pinned else graph, pinned)


def _judge(routes: RouteSet, graph: DependencyGraph, labels: Mapping[Arc, str]) -> Verdict:
    used = np.zeros(graph.n_vertices, dtype=bool)
    for turns in graph.turns:
        used[turns.inputs[turns.held.any(axis=1)]] = True
        used[turns.outputs[turns.held.any(axis=0)]] = True
    vertices = shortest_cycle(graph)
    arcs = zip(vertices, [*vertices[1:], *vertices[:1]], strict=True)
    return Verdict(
        can_deadlock=bool(vertices),
        n_links=int(used.sum()),
        n_arcs=graph.n_arcs,
        cycle=tuple(_step(routes, arc, labels) for arc in arcs),
        links_in_cycles=sum(map(len, strong_components(graph))) if vertices else 0,
    )


def _step(routes: RouteSet, arc: Arc, labels: Mapping[Arc, str]) -> Step:
    ports = [vertex % routes.network.n_ports for vertex in arc]
    route = " -> ".join(route_over(routes, *ports)) or labels.get(arc, "")
    first, second = (routes.network.port_arrow(port) for port in ports)
    return Step(first, second, route)


def remedies(
    routes: RouteSet, *, demands: Sequence[Demand] = (), lifetime: int | None = None
) -> list[Remedy]:
    """What breaks the cycles of some routes: each of `REMEDIES`, applied and checked again."""
    return [remedy(name, routes, demands=demands, lifetime=lifetime) for name in REMEDIES]


def remedy(
    name: str, routes: RouteSet, *, demands: Sequence[Demand] = (), lifetime: int | None = None
) -> Remedy:
    """Apply one remedy and check again.

    Parameters
    ----------
    name : {"up-down", "classes", "lossy"}
        Routes that never climb after a descent, pins taken away; one more lossless class for each bounce;
        frames that have bounced are lossy.
    routes, demands, lifetime
        As in :func:`check_deadlock`.

    Returns
    -------
    Remedy

    Raises
    ------
    ValueError
        The name is none of these.
    """
    if name not in REMEDIES:
        raise ValueError(f"{name!r} is no remedy; there are {', '.join(REMEDIES)}")
    order = heights(routes.network)
    if name == "up-down":
        changed = routes.up_down(order)
        cut = changed.unreached() - routes.unreached()
        price = f"{cut} pairs of switch and destination lose their path" if cut else "no path is lost"
        what = "up-down routes: never up again after down" + (", and no pins" if demands else "")
        return Remedy(name=name, what=what, price=price, verdict=check_deadlock(changed))
    return _with_classes(name, routes, [*demands_of(routes), *demands], lifetime, order)


def _with_classes(
    name: str,
    routes: RouteSet,
    demands: Sequence[Demand],
    lifetime: int | None,
    order: npt.NDArray[np.int64],
) -> Remedy:
    bounces = walk(routes, demands, lifetime=lifetime, heights=order).most_bounces if name == "classes" else 0
    classes = bounces + 1
    found = walk(routes, demands, lifetime=lifetime, heights=order, classes=classes)
    arcs = {arc: label for arc, label in found.arcs.items() if min(arc) >= 0}
    graph = DependencyGraph(routes.network.n_ports * classes).with_arcs(arcs)
    if name == "classes":
        what = f"{classes} lossless classes: a frame moves to the next at each bounce"
        price = f"headroom for {bounces} more classes" if bounces != 1 else "headroom for one more class"
    else:
        what, price = "lossy from the first bounce on", "frames on paths with a bounce can be dropped"
    return Remedy(name=name, what=what, price=price, verdict=_judge(routes, graph, arcs))
