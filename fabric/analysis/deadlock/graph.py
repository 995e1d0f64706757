"""The buffer-dependency graph: which link can be held up by which.

A vertex is a link between switches (the port that sends on it) in one lossless class: what it fills is the
ingress buffer at its far end. An arc from one link to the next says that some frame comes over the first and
leaves over the second: while the second is paused, the buffer behind the first does not drain, and the
first is paused in turn. Links from hosts wait for others but none waits for them in a circle; links to hosts
always drain. Only a cycle can deadlock (Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor
Interconnection Networks", IEEE ToC 1987; for PFC: Hu et al., HotNets 2016).

The arcs at one switch are a matrix, ports in by ports out, which is one Boolean product of what comes in and
where it goes, over all destination edges. Where frames change their class on the way, vertices are
(tag, link), numbered `tag * ports + port`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fabric.analysis.deadlock.routes import RouteSet

__all__ = ["Arc", "DependencyGraph", "Turns", "turns_of"]

Int64Array = npt.NDArray[np.int64]
Arc = tuple[int, int]
"""Two vertices, the second of which holds up the first."""


@dataclass(frozen=True, eq=False)
class Turns:
    """Arcs at one switch: `held[k, j]` is the arc from `inputs[k]` to `outputs[j]`."""

    inputs: Int64Array
    outputs: Int64Array
    held: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DependencyGraph:
    """Arcs by switch; a vertex is an input of at most one of its `turns`."""

    n_vertices: int
    turns: list[Turns] = field(default_factory=list)

    @property
    def n_arcs(self) -> int:
        """Arcs in all."""
        return sum(int(turns.held.sum()) for turns in self.turns)

    def with_arcs(self, arcs: Iterable[Arc]) -> DependencyGraph:
        """The graph with some more arcs."""
        added: dict[int, set[int]] = {}
        for first, second in arcs:
            added.setdefault(first, set()).add(second)
        turns = []
        for old in self.turns:
            chosen = [(k, vertex) for k, vertex in enumerate(old.inputs.tolist()) if vertex in added]
            extra = sorted(set().union(*(added[vertex] for _, vertex in chosen)) - set(old.outputs.tolist()))
            outputs = np.concatenate([old.outputs, np.array(extra, dtype=np.int64)])
            place = {vertex: k for k, vertex in enumerate(outputs.tolist())}
            held = np.pad(old.held, ((0, 0), (0, len(extra))))
            for k, vertex in chosen:
                held[k, [place[each] for each in added.pop(vertex)]] = True
            turns.append(Turns(old.inputs, outputs, held))
        for first, seconds in sorted(added.items()):
            outputs = np.array(sorted(seconds), dtype=np.int64)
            turns.append(Turns(np.array([first]), outputs, np.ones((1, len(outputs)), dtype=bool)))
        return DependencyGraph(self.n_vertices, turns)


def turns_of(routes: RouteSet, edges: npt.NDArray[np.intp] | None = None) -> DependencyGraph:
    """The graph of all routes of a set, or of those to some edges.

    Examples
    --------
    >>> from fabric.analysis.deadlock.routes import find_route_set
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> routes = find_route_set(build_network(LeafSpine(leaves=3, spines=2, hosts_per_leaf=1)))
    >>> turns_of(routes).n_arcs
    12
    """
    routes = routes.towards(_unlike(routes, np.arange(routes.n_edges) if edges is None else edges))
    graph = DependencyGraph(routes.network.n_ports)
    for row, ports in enumerate(routes.switch_ports):
        if len(ports) == 0:
            continue
        comes, goes = routes.comes_from(row), routes.next_hops(row)
        held = (comes.astype(np.float32) @ goes.T.astype(np.float32)) > 0
        if held.any():
            inputs = routes.network.port_peer[ports].astype(np.int64)
            graph.turns.append(Turns(inputs, ports, held))
    return graph


def _unlike(routes: RouteSet, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The edges without those that have the routes of an earlier one at every switch that leads to others.

    Hosts of one rail are edges of their own, for each is on the scale-up switch of its server too; to all of
    them go the same routes.
    """
    rows = [row for row, ports in enumerate(routes.switch_ports) if len(ports)]
    parts = [routes.links, routes.forwarding] + ([] if routes.descends is None else [routes.descends])
    columns = [np.ascontiguousarray(part[rows][:, edges].T) for part in parts]
    first: dict[bytes, int] = {}
    for place in range(len(edges)):
        first.setdefault(b"".join(column[place].tobytes() for column in columns), place)
    return edges[np.fromiter(first.values(), dtype=np.intp, count=len(first))]
