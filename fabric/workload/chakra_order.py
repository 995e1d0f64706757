"""One computation at a time: the order in which a rank of Chakra traces takes what its trace leaves open.

Traces say what a node needs, not that a processor does one thing at a time; Chakra's feeder then takes, of
the nodes that are ready, the one with the smallest number. The same is done here on an ideal network, on
which all that is sent arrives at once. Its order becomes waits of the program. Since it is the order of an
execution, it never waits in a circle, whatever the real network does to times.

Operations of a CPU (`is_cpu_op`) and of the accelerator have a processor each. What takes no time needs none.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from fabric.workload.chakra_files import ChakraFiles
from fabric.workload.collectives.arrays import Int64Array

__all__ = ["loose_ranks", "processor_waits"]


def loose_ranks(files: ChakraFiles, nodes: Int64Array) -> Int64Array:
    """Return the ranks on which some of the nodes are ordered by nothing: no chain holds all of them."""
    own = np.zeros(len(files.rank), dtype=np.int64)
    own[nodes] = 1
    order = np.argsort(files.wait_node, kind="stable")
    earlier = files.wait_for[order].tolist()
    first = np.searchsorted(files.wait_node[order], np.arange(len(own) + 1)).tolist()
    longest, one = [0] * len(own), own.tolist()
    for node in files.issued.tolist():
        before = [longest[each] for each in earlier[first[node] : first[node + 1]]]
        longest[node] = one[node] + max(before, default=0)
    held = np.zeros(files.n_ranks, dtype=np.int64)
    np.maximum.at(held, files.rank, np.array(longest, dtype=np.int64))
    return np.flatnonzero(np.bincount(files.rank[nodes], minlength=files.n_ranks) > held)


def processor_waits(
    files: ChakraFiles,
    *,
    spent_ps: Int64Array,
    needs: npt.NDArray[np.bool_],
    messages: Int64Array,
    collectives: Iterable[tuple[int, ...]],
) -> tuple[Int64Array, Int64Array]:
    """Return what waits for what so that each processor does one thing at a time.

    Parameters
    ----------
    files : ChakraFiles
    spent_ps : ndarray of int64 [nodes]
        Time to compute.
    needs : ndarray of bool [nodes]
        What needs a processor, besides its time.
    messages : ndarray of int64 [messages, 2]
        A send, and the receive that is not over before it.
    collectives : iterable of tuple of int
        Nodes that are over at once, when the last of them is ready.

    Returns
    -------
    ndarray of int64, ndarray of int64
        Nodes, and the node that each waits for, of the same rank.
    """
    run = _Execution(files, spent_ps, needs, messages, collectives)
    run.finish()
    later = [one for order in run.orders.values() for one in order[1:]]
    earlier = [one for order in run.orders.values() for one in order[:-1]]
    return np.array(later, dtype=np.int64), np.array(earlier, dtype=np.int64)


class _Execution:
    """Time passes; nodes become ready, begin and are over."""

    def __init__(
        self,
        files: ChakraFiles,
        spent_ps: Int64Array,
        needs: npt.NDArray[np.bool_],
        messages: Int64Array,
        collectives: Iterable[tuple[int, ...]],
    ) -> None:
        nodes = len(files.rank)
        later = np.append(files.wait_node, messages[:, 1])
        earlier = np.append(files.wait_for, messages[:, 0])
        order = np.argsort(earlier, kind="stable")
        self.later = later[order].tolist()
        self.first = np.searchsorted(earlier[order], np.arange(nodes + 1)).tolist()
        self.waiting = np.bincount(later, minlength=nodes).tolist()
        self.spent, self.number = spent_ps.tolist(), files.column("number").tolist()
        processor = 2 * files.rank + files.column("on_cpu")
        self.processor = np.where(needs & (spent_ps > 0), processor, -1).tolist()
        self.members = {node: group for group in collectives for node in group}
        self.missing = {group: len(group) for group in set(self.members.values())}
        self.over: list[tuple[int, int]] = []
        """Times and nodes."""
        self.ready: dict[int, list[tuple[int, int]]] = {}
        """By processor: numbers and nodes."""
        self.busy: set[int] = set()
        self.orders: dict[int, list[int]] = {}

    def finish(self) -> None:
        """Let all happen that can."""
        for node, count in enumerate(self.waiting):
            if not count:
                self._begin(node, 0)
        self._dispatch(0)
        while self.over:
            now = self.over[0][0]
            while self.over and self.over[0][0] == now:
                self._end(heappop(self.over)[1], now)
            self._dispatch(now)

    def _begin(self, node: int, now: int) -> None:
        """A node is ready."""
        group = self.members.get(node)
        if group is not None:
            self.missing[group] -= 1
            for each in group if not self.missing[group] else ():
                heappush(self.over, (now, each))
        elif self.processor[node] < 0:
            heappush(self.over, (now + self.spent[node], node))
        else:
            heappush(self.ready.setdefault(self.processor[node], []), (self.number[node], node))

    def _end(self, node: int, now: int) -> None:
        self.busy.discard(self.processor[node])
        for each in self.later[self.first[node] : self.first[node + 1]]:
            self.waiting[each] -= 1
            if not self.waiting[each]:
                self._begin(each, now)

    def _dispatch(self, now: int) -> None:
        """Let every processor that is free begin what is ready."""
        for processor in [each for each in self.ready if each not in self.busy]:
            _, node = heappop(self.ready[processor])
            if not self.ready[processor]:
                del self.ready[processor]
            self.busy.add(processor)
            self.orders.setdefault(processor, []).append(node)
            heappush(self.over, (now + self.spent[node], node))
