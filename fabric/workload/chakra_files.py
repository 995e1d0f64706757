"""The Chakra traces of all ranks together: which files, which groups, in which order nodes are issued.

`PREFIX.0.et` is rank 0; the files of the other ranks stand beside it, a file for each. Groups of ranks are a
JSON file: the one that is named, or `PREFIX.comm_groups.json`, `comm_groups.json` or `comm_group.json` beside
the traces. A node without a group, or of "" or "0", is of all ranks.

Nodes are issued as Chakra's feeder does: those whose waits are over, the smallest number first. That order
says which send meets which receive where tags do not, and which collectives of a group belong together.
"""

from __future__ import annotations

import glob
import re
from heapq import heapify, heappop, heappush
from pathlib import Path

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats.chakra import ChakraTrace, read_chakra, read_chakra_groups
from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.waits import find_cycle

__all__ = ["ChakraFiles", "group_file", "rank_files"]

GROUP_FILES = ("comm_groups.json", "comm_group.json")
ALL = ("", "0")
"""Names of the group of all ranks."""

_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,6})\.et")


def rank_files(file: str | Path) -> list[Path]:
    """Return the traces of all ranks, by rank.

    Parameters
    ----------
    file : str or Path
        That of any rank.

    Raises
    ------
    SpecError
        If its name says no rank, or a rank has none.
    """
    path = Path(file)
    found = _NAME.fullmatch(path.name)
    if not found:
        raise SpecError(str(file), Said(f"the name {path.name}"), "a trace of one rank, such as w.0.et")
    beside = path.parent.glob(f"{glob.escape(found[1])}.*.et")
    names = ((_NAME.fullmatch(each.name), each) for each in beside)
    by_rank = {int(name[2]): each for name, each in names if name and name[1] == found[1]}
    by_rank.setdefault(int(found[2]), path)
    missing = next((rank for rank in range(len(by_rank)) if rank not in by_rank), None)
    if missing is not None:
        name = path.with_name(f"{found[1]}.{missing}.et")
        raise SpecError(str(name), Said("nothing"), f"a trace of each rank from 0 to {max(by_rank)}")
    return [by_rank[rank] for rank in range(len(by_rank))]


def group_file(file: str | Path) -> Path | None:
    """Return the file of groups beside a trace; None if there is none."""
    path = Path(file)
    found = _NAME.fullmatch(path.name)
    own = [f"{found[1]}.{GROUP_FILES[0]}"] if found else []
    named = (path.with_name(name) for name in (*own, *GROUP_FILES))
    return next((each for each in named if each.is_file()), None)


class ChakraFiles:
    """All nodes of all ranks, rank after rank.

    Parameters
    ----------
    file : str or Path
        That of any rank.
    groups : str or Path, optional
        File of groups; the one beside the traces unless given.

    Attributes
    ----------
    traces : list of ChakraTrace
    base : ndarray of int64 [ranks + 1]
        Number of each rank's first node.
    rank : ndarray of int64 [nodes]
    place : ndarray of int64 [nodes]
        In its trace.
    issued : ndarray of int64 [nodes]
        Nodes in the order in which they are issued, rank after rank.
    wait_node, wait_for : ndarray of int64 [waits]

    Raises
    ------
    SpecError
        Naming file, offset and cause.
    """

    def __init__(self, file: str | Path, *, groups: str | Path | None = None) -> None:
        self.traces: list[ChakraTrace] = [read_chakra(each) for each in rank_files(file)]
        self.base = bases(np.array([len(trace) for trace in self.traces], dtype=np.int64))
        self.rank = np.repeat(np.arange(len(self.traces)), np.diff(self.base))
        self.place = np.arange(self.base[-1]) - self.base[self.rank]
        if not len(self.rank):
            raise SpecError(str(file), Said("traces without a node"), "at least one node")
        pairs = zip(self.traces, self.base.tolist(), strict=False)
        self.wait_node, self.wait_for = (
            np.concatenate(each)
            for each in zip(
                *((trace.wait_node + first, trace.wait_for + first) for trace, first in pairs), strict=True
            )
        )
        self.issued = np.concatenate(
            [_issued(trace) + first for trace, first in zip(self.traces, self.base.tolist(), strict=False)]
        )
        self._group_file = group_file(file) if groups is None else Path(groups)
        self._groups = {} if self._group_file is None else read_chakra_groups(self._group_file)
        for name, ranks in self._groups.items():
            self._check_group(name, ranks)

    @property
    def n_ranks(self) -> int:
        """One for each trace."""
        return len(self.traces)

    def column(self, name: str) -> Int64Array:
        """Return a column of all traces."""
        whole: Int64Array = np.concatenate([getattr(trace, name) for trace in self.traces])
        return whole

    def text(self, name: str, node: int) -> str:
        """Return the text of a node in a column of texts."""
        column: tuple[str, ...] = getattr(self.traces[int(self.rank[node])], name)
        return column[int(self.place[node])]

    def where(self, node: int, what: str = "") -> str:
        """Return how errors name a node."""
        return f"{self.traces[int(self.rank[node])].where(int(self.place[node]))} {what}".rstrip()

    def group(self, node: int) -> tuple[str, tuple[int, ...]]:
        """Return the name and ranks of a node's group.

        Raises
        ------
        SpecError
            If there is no such group, or the node's rank is not in it.
        """
        name = self.text("group", node)
        if name in ALL:
            return ALL[0], tuple(range(self.n_ranks))
        if name not in self._groups:
            known = f"a group of {self._group_file}" if self._group_file else "a file of groups that has it"
            raise SpecError(self.where(node, "pg_name"), name, known)
        ranks = self._groups[name]
        if int(self.rank[node]) not in ranks:
            raise SpecError(self.where(node, "pg_name"), name, f"a group with rank {self.rank[node]} in it")
        return name, ranks

    def _check_group(self, name: str, ranks: tuple[int, ...]) -> None:
        where = f"{self._group_file}: group {name!r}"
        if max(ranks) >= self.n_ranks:
            raise SpecError(where, max(ranks), f"ranks from 0 to {self.n_ranks - 1}, which have traces")
        if name in ALL and sorted(ranks) != list(range(self.n_ranks)):
            raise SpecError(where, ranks, "all ranks, which this name means")


def _issued(trace: ChakraTrace) -> Int64Array:
    """Places of nodes in the order in which they are issued."""
    nodes = len(trace)
    order = np.argsort(trace.wait_for, kind="stable")
    successors = trace.wait_node[order].tolist()
    first = np.searchsorted(trace.wait_for[order], np.arange(nodes + 1)).tolist()
    waiting = np.bincount(trace.wait_node, minlength=nodes).tolist()
    number = trace.number.tolist()
    ready = [(number[node], node) for node in range(nodes) if not waiting[node]]
    heapify(ready)
    issued: list[int] = []
    while ready:
        _, node = heappop(ready)
        issued.append(node)
        for later in successors[first[node] : first[node + 1]]:
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, (number[later], later))
    if len(issued) < nodes:
        cycle = find_cycle(trace.wait_node, predecessor=trace.wait_for, n_flows=nodes)
        shown = " after ".join(str(trace.number[node]) for node in [*cycle, cycle[0]])
        raise SpecError(trace.where(cycle[0]), Said(f"node {shown}"), "nodes that do not wait for themselves")
    return np.array(issued, dtype=np.int64)
