"""Cycles of a dependency graph: a numbering that proves there is none, or the shortest one.

Links that wait for nothing are taken away, round by round (Kahn, CACM 1962). If all go, the round of each
link is a proof: every arc leads to a later round. What remains is trimmed from the other side as well, and
its strongly connected components are searched for the shortest cycle, breadth first from each of their
links.
"""

from __future__ import annotations

from collections import deque

import networkx as nx
import numpy as np
import numpy.typing as npt

from fabric.analysis.deadlock.graph import DependencyGraph

__all__ = ["CYCLIC", "rounds", "shortest_cycle", "strong_components"]

CYCLIC = -1
"""Round of a vertex on a cycle or behind one."""


def rounds(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Round in which each vertex goes, -1 for those that never do: int64 [vertices].

    Examples
    --------
    >>> from fabric.analysis.deadlock.graph import DependencyGraph
    >>> rounds(DependencyGraph(4).with_arcs([(0, 1), (1, 2), (2, 1)])).tolist()
    [0, -1, -1, 0]
    """
    waiting = np.zeros(graph.n_vertices, dtype=np.int64)
    place = np.full(graph.n_vertices, -1, dtype=np.int64)
    row = np.zeros(graph.n_vertices, dtype=np.int64)
    for number, turns in enumerate(graph.turns):
        waiting[turns.outputs] += turns.held.sum(axis=0)
        place[turns.inputs] = number
        row[turns.inputs] = np.arange(len(turns.inputs))
    gone_in = np.full(graph.n_vertices, CYCLIC, dtype=np.int64)
    free = np.flatnonzero(waiting == 0)
    number = 0
    while len(free):
        gone_in[free] = number
        number += 1
        free = free[place[free] >= 0]
        free = free[np.argsort(place[free], kind="stable")]
        bounds = np.flatnonzero(np.diff(place[free], prepend=-1))
        touched = []
        for vertices in np.split(free, bounds[1:]) if len(free) else []:
            turns = graph.turns[place[vertices[0]]]
            fewer = turns.held[row[vertices]].sum(axis=0)
            waiting[turns.outputs] -= fewer
            touched.append(turns.outputs[fewer > 0])
        after = np.unique(np.concatenate(touched)) if touched else np.empty(0, dtype=np.int64)
        free = after[waiting[after] == 0]
    return gone_in


def strong_components(graph: DependencyGraph) -> list[list[int]]:
    """Vertices of every strongly connected component that has a cycle, largest first."""
    cyclic = rounds(graph) == CYCLIC
    arcs = nx.DiGraph()
    for turns in graph.turns:
        first, second = np.nonzero(turns.held & cyclic[turns.inputs][:, None] & cyclic[turns.outputs])
        ends = turns.inputs[first].tolist(), turns.outputs[second].tolist()
        arcs.add_edges_from(zip(*ends, strict=True))
    found = [sorted(part) for part in nx.strongly_connected_components(arcs) if len(part) > 1]
    loops = [[vertex] for vertex in nx.nodes_with_selfloops(arcs)]
    return sorted(found + loops, key=lambda part: (-len(part), part))


def shortest_cycle(graph: DependencyGraph) -> list[int]:
    """Vertices of a shortest cycle in order, beginning with the lowest; empty if there is none.

    Examples
    --------
    >>> from fabric.analysis.deadlock.graph import DependencyGraph
    >>> shortest_cycle(DependencyGraph(5).with_arcs([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)]))
    [0, 1, 2]
    """
    best: list[int] = []
    for part in strong_components(graph):
        after = _arcs_within(graph, part)
        for start in part:
            cycle = _cycle_through(start, after, limit=len(best) - 1 if best else len(part))
            if cycle:
                best = cycle
            del after[start]
    first = best.index(min(best)) if best else 0
    return best[first:] + best[:first]


def _arcs_within(graph: DependencyGraph, part: list[int]) -> dict[int, list[int]]:
    inside = np.zeros(graph.n_vertices, dtype=bool)
    inside[part] = True
    after: dict[int, list[int]] = {vertex: [] for vertex in part}
    for turns in graph.turns:
        for k in np.flatnonzero(inside[turns.inputs]).tolist():
            chosen = turns.outputs[turns.held[k]]
            after[int(turns.inputs[k])] += chosen[inside[chosen]].tolist()
    return after


def _cycle_through(start: int, after: dict[int, list[int]], *, limit: int) -> list[int]:
    """A shortest cycle through a vertex, of at most `limit` vertices."""
    before = {start: start}
    depth = {start: 1}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if depth[here] > limit:
            return []
        for there in after[here]:
            if there == start:
                cycle = [here]
                while cycle[-1] != start:
                    cycle.append(before[cycle[-1]])
                return cycle[::-1]
            if there in after and there not in before:
                before[there], depth[there] = here, depth[here] + 1
                queue.append(there)
    return []
