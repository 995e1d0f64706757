"""Flows that wait for other flows: finding a cycle, which would never start.

Flows that can start are removed level by level (Kahn, "Topological sorting of large networks",
Communications of the ACM 5, 1962), each level with arrays. What is left waits for a cycle or is in one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["find_cycle"]


def find_cycle(flow: npt.NDArray[np.int64], *, predecessor: npt.NDArray[np.int64], n_flows: int) -> list[int]:
    """Flows of one cycle of waits, each waiting for the next and the last for the first.

    Parameters
    ----------
    flow, predecessor : ndarray of int64, shape [waits]
        Flow `flow[k]` waits for `predecessor[k]`; no pair twice.
    n_flows : int
        Number of flows.

    Returns
    -------
    list of int
        Empty when there is no cycle.

    Examples
    --------
    >>> find_cycle(np.array([0, 1, 2, 3]), predecessor=np.array([1, 2, 0, 0]), n_flows=4)
    [0, 1, 2]
    """
    if np.all(predecessor < flow):
        return []
    stuck = _flows_that_never_start(flow, predecessor, n_flows)
    if not stuck.any():
        return []
    among_stuck = stuck[flow] & stuck[predecessor]
    waits_for = dict(zip(flow[among_stuck].tolist(), predecessor[among_stuck].tolist(), strict=True))
    walk: list[int] = []
    place: dict[int, int] = {}
    at = int(np.flatnonzero(stuck)[0])
    while at not in place:
        place[at] = len(walk)
        walk.append(at)
        at = waits_for[at]
    cycle = walk[place[at] :]
    smallest = cycle.index(min(cycle))
    return cycle[smallest:] + cycle[:smallest]


def _flows_that_never_start(
    flow: npt.NDArray[np.int64], predecessor: npt.NDArray[np.int64], n_flows: int
) -> npt.NDArray[np.bool_]:
    order = np.argsort(predecessor, kind="stable")
    successors = flow[order]
    first = np.searchsorted(predecessor[order], np.arange(n_flows + 1))
    waiting = np.bincount(flow, minlength=n_flows)
    ready = np.flatnonzero(waiting == 0)
    started = np.zeros(n_flows, dtype=np.bool_)
    while ready.size:
        started[ready] = True
        counts = first[ready + 1] - first[ready]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        reached, released = np.unique(
            successors[np.repeat(first[ready], counts) + within], return_counts=True
        )
        waiting[reached] -= released
        ready = reached[waiting[reached] == 0]
    return ~started
