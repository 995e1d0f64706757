"""Programs of Chakra traces: sends and receives that meet are messages, nodes of a group collectives.

The k-th send of a rank to another with a tag meets the k-th receive there of that source and tag. Collectives
of a group belong together by name and how manieth of that name; where its ranks call them by different names,
by their order alone. What belongs together must be of one type and size.

Every other node is computation of its recorded duration, one at a time on a rank (`chakra_order`). A node
without a duration that says how many operations it has takes these divided by a rate, if one is given. What
a trace says of durations of communication is left out: the network decides. So is `involved_dim`, which
means dimensions of another simulator's network.

Sizes: `comm_size` of an all-gather is one rank's part; STAGE counts elements (`element_bytes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fabric.errors import MISSING, Said, SpecError
from fabric.formats import Remark
from fabric.formats.chakra import ABSENT, COLLECTIVE, COMM_TYPES, COMPUTE, RECEIVE, SEND
from fabric.spec.traffic import LARGEST_START_PS
from fabric.workload.chakra_files import ChakraFiles
from fabric.workload.chakra_order import loose_ranks, processor_waits
from fabric.workload.choice import check_algorithms, choose_collective
from fabric.workload.collectives.arrays import Int64Array, distinct_pairs
from fabric.workload.collectives.kinds import full_bytes, kind_of
from fabric.workload.matching import matched
from fabric.workload.program import Program, ProgramBuilder

__all__ = ["import_chakra"]

PS_PER_US = 10**6
PS_PER_S = 10**12
LARGEST_BYTES = 2**62

KINDS = {**dict(zip(COMM_TYPES, COMM_TYPES, strict=True)), "reduce_scatter_block": "reduce_scatter"}


def import_chakra(
    file: str | Path,
    *,
    groups: str | Path | None = None,
    element_bytes: int = 1,
    flops: float | None = None,
    algorithms: Mapping[str, str] | None = None,
    eager: bool = True,
) -> tuple[Program, list[Remark]]:
    """Make a program of the Chakra traces of all ranks.

    Parameters
    ----------
    file : str or Path
        The trace of any rank; those of the others stand beside it.
    groups : str or Path, optional
        File of groups of ranks; the one beside the traces unless given.
    element_bytes : int
        What `comm_size` counts: bytes, or elements of so many bytes.
    flops : float, optional
        Operations a second of nodes that say how many, but no time. None (default): they take none.
    algorithms : mapping of str to str, optional
        By collective ("all_reduce"). Else the one that `fabric` wrote into a trace, else as NCCL would.
    eager : bool
        Sends are done when they have left, where the trace does not say so itself.

    Returns
    -------
    Program
        Messages, then computation, then collectives, each rank after rank in the order of issue.
    list of Remark
        What was not taken as it stands.

    Raises
    ------
    SpecError
        Naming file, offset, node and cause.

    Examples
    --------
    >>> import tempfile
    >>> from fabric.workload.chakra_export import export_chakra
    >>> work = ProgramBuilder(n_ranks=2)
    >>> message = work.message(0, 1, size_bytes=100)
    >>> last = work.compute(1, picoseconds=7, after=[message])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for rank, trace in enumerate(export_chakra(work.build()).traces):
    ...         bytes_written = Path(folder, f"w.{rank}.et").write_bytes(trace)
    ...     program, remarks = import_chakra(Path(folder, "w.0.et"))
    >>> program.size_bytes.tolist(), program.compute_ps.tolist(), program.wait_for.tolist()
    ([100, 0], [0, 7], [1])
    """
    if element_bytes < 1:
        raise SpecError("element_bytes", element_bytes, "at least 1")
    if flops is not None and not 0 < flops < float("inf"):
        raise SpecError("flops", flops, "operations a second, above 0")
    check_algorithms(algorithms or {})
    return _Importer(
        ChakraFiles(file, groups=groups), element_bytes, flops, algorithms or {}, eager
    ).program()


class _Importer:
    def __init__(
        self,
        files: ChakraFiles,
        element_bytes: int,
        flops: float | None,
        algorithms: Mapping[str, str],
        eager: bool,
    ) -> None:
        self.files, self.element_bytes, self.flops = files, element_bytes, flops
        self.algorithms, self.default_eager = algorithms, eager
        self.kind, self.size, self.sender, self.target, self.tag, self.said_eager = (
            files.column(name) for name in ("kind", "comm_size", "comm_src", "comm_dst", "comm_tag", "eager")
        )
        self.comm_type = files.column("comm_type")
        self.turn = np.empty(len(self.kind), dtype=np.int64)
        self.turn[files.issued] = np.arange(len(self.kind))
        self.tag = np.where(self.tag == ABSENT, 0, self.tag)
        self.spent = np.zeros(len(self.kind), dtype=np.int64)
        """Time to compute, by node."""
        self.builder = ProgramBuilder(files.n_ranks)
        self.taken: list[tuple[int, ...]] = []
        """By operation: the node of each of its ranks."""
        self.remarks: list[Remark] = []

    def program(self) -> tuple[Program, list[Remark]]:
        """Return the program, and what was not taken as it stands."""
        issued, kind = self.files.issued, self.kind[self.files.issued]
        self._messages(issued[kind == SEND], issued[kind == RECEIVE])
        self._computation(issued[~np.isin(kind, (SEND, RECEIVE, COLLECTIVE))])
        self._collectives(issued[kind == COLLECTIVE])
        program = self.builder.build(path=self.files.traces[0].file)
        task = np.empty(len(self.kind), dtype=np.int64)
        task[[node for nodes in self.taken for node in nodes]] = np.arange(program.n_tasks)
        later, earlier = self._one_at_a_time()
        waits = distinct_pairs(
            task[np.append(self.files.wait_node, later)], task[np.append(self.files.wait_for, earlier)]
        )
        return replace(program, wait_task=waits[0], wait_for=waits[1]), self.remarks

    def _refuse(self, node: int, what: str, found: object, allowed: str) -> SpecError:
        return SpecError(self.files.where(node, what), found, allowed)

    def _refuse_first(self, nodes: Int64Array, wrong: Int64Array, what: str, allowed: str) -> None:
        """Refuse the first of the nodes whose value, `wrong`, is one: not ABSENT - 1."""
        bad = np.flatnonzero(wrong != ABSENT - 1)
        if bad.size:
            value = int(wrong[bad[0]])
            shown = MISSING if value == ABSENT else value
            raise self._refuse(int(nodes[bad[0]]), what, shown, allowed)

    def _messages(self, sends: Int64Array, receives: Int64Array) -> None:
        for nodes, own, other, names in (
            (sends, self.sender, self.target, ("comm_src", "comm_dst")),
            (receives, self.target, self.sender, ("comm_dst", "comm_src")),
        ):
            rank, mine, peer = self.files.rank[nodes], own[nodes], other[nodes]
            fine = ABSENT - 1
            wrong = np.where((mine != ABSENT) & (mine != rank), mine, fine)
            self._refuse_first(nodes, wrong, names[0], "the rank of the trace")
            wrong = np.where((peer < 0) | (peer >= self.files.n_ranks) | (peer == rank), peer, fine)
            self._refuse_first(nodes, wrong, names[1], f"another rank, below {self.files.n_ranks}")
            wrong = np.where(self.size[nodes] == ABSENT, ABSENT, fine)
            self._refuse_first(nodes, wrong, "comm_size", "the size of a message")
        sent = np.stack([self.files.rank[sends], self.target[sends], self.tag[sends]])
        expected = np.stack([self.sender[receives], self.files.rank[receives], self.tag[receives]])
        meets = matched(sent, expected)
        for nodes, unmet, what in (
            (receives, np.setdiff1d(np.arange(len(receives)), meets), "a send that it meets"),
            (sends, np.flatnonzero(meets < 0), "a receive that it meets"),
        ):
            if unmet.size:
                node = int(nodes[unmet[0]])
                peer = self.target[node] if self.kind[node] == SEND else self.sender[node]
                way = "to" if self.kind[node] == SEND else "from"
                raise self._refuse(node, f"message {way} {peer}, tag {self.tag[node]}", Said("alone"), what)
        for send, receive in zip(sends.tolist(), receives[meets].tolist(), strict=True):
            size = int(self.size[send])
            if self.size[receive] != size:
                allowed = f"{size}, as node {self._number(send)} of rank {self.files.rank[send]} sends"
                raise self._refuse(receive, "comm_size", int(self.size[receive]), allowed)
            self.builder.message(
                int(self.files.rank[send]),
                int(self.target[send]),
                size_bytes=self._in_range(send, size * self.element_bytes),
                eager=self._eager(send),
            )
            self.taken.append((send, receive))

    def _computation(self, nodes: Int64Array) -> None:
        duration = self.files.column("duration_us")
        exact, operations = self.files.column("duration_ps"), self.files.column("num_ops")
        untimed: list[int] = []
        for node in nodes.tolist():
            spent = int(exact[node]) if exact[node] != ABSENT else int(duration[node]) * PS_PER_US
            if not spent and operations[node] > 0:
                untimed.append(node)
                spent = 0 if self.flops is None else round(int(operations[node]) * PS_PER_S / self.flops)
            if spent > LARGEST_START_PS:
                raise self._refuse(node, "duration", f"{spent} ps", f"at most {LARGEST_START_PS} ps")
            self.spent[node] = spent
            self.builder.compute(int(self.files.rank[node]), picoseconds=spent)
            self.taken.append((node,))
        if untimed and self.flops is None:
            reason = "say how many operations, but no time: they take none (flops gives them one)"
            self._remark(untimed[0], f"{len(untimed)} nodes of computation", reason)
        kinds = self.kind[nodes]
        if (kinds != COMPUTE).any():
            first = int(nodes[np.flatnonzero(kinds != COMPUTE)[0]])
            self._remark(
                first, "accesses to memory and storage, metadata", "take the time that they say, or none"
            )

    def _one_at_a_time(self) -> tuple[Int64Array, Int64Array]:
        """Waits that order the computation of ranks where nothing else does."""
        needs = (self.kind == COMPUTE) & (self.spent > 0) & (self.files.column("concurrent") < 1)
        loose = loose_ranks(self.files, np.flatnonzero(needs))
        if not loose.size:
            none = np.zeros(0, dtype=np.int64)
            return none, none
        first = int(np.flatnonzero(needs & (self.files.rank == loose[0]))[0])
        reason = "one at a time, in the order that it would have on an ideal network"
        self._remark(first, f"computation of {len(loose)} ranks that nothing orders", reason)
        needs &= np.isin(self.files.rank, loose)
        sent = [nodes for nodes in self.taken if self.kind[nodes[0]] == SEND]
        joint = [nodes for nodes in self.taken if self.kind[nodes[0]] == COLLECTIVE]
        messages = np.array(sent, dtype=np.int64).reshape(-1, 2)
        return processor_waits(
            self.files, spent_ps=self.spent, needs=needs, messages=messages, collectives=joint
        )

    def _collectives(self, nodes: Int64Array) -> None:
        members: dict[str, dict[int, list[int]]] = {}
        ranks_of: dict[str, tuple[int, ...]] = {}
        for node in nodes.tolist():
            name, ranks = self.files.group(node)
            ranks_of[name] = ranks
            members.setdefault(name, {each: [] for each in ranks})[int(self.files.rank[node])].append(node)
        for name, by_rank in members.items():
            for together in self._paired(name, by_rank):
                self._collective(together, ranks_of[name])

    def _paired(self, group: str, by_rank: dict[int, list[int]]) -> list[tuple[int, ...]]:
        """Nodes that are one collective, in the order of the group's ranks."""
        named = {
            rank: Counter(self.files.text("name", node) for node in own) for rank, own in by_rank.items()
        }
        first = next(iter(by_rank))
        for rank, own in by_rank.items():
            if len(own) != len(by_rank[first]):
                more = rank if len(own) > len(by_rank[first]) else first
                alone = named[more] - named[first if more == rank else rank]
                extra = next((each for each in by_rank[more] if alone[self.files.text("name", each)]), None)
                node = extra if extra is not None else by_rank[more][-1]
                counts = f"{len(own)} collectives on rank {rank}, {len(by_rank[first])} on rank {first}"
                raise self._refuse(
                    node,
                    f"group {group!r}" if group else "all ranks",
                    Said(counts),
                    "as many on each of its ranks",
                )
        if all(each == named[first] for each in named.values()):
            for own in by_rank.values():
                own.sort(key=lambda node: self.files.text("name", node))
        together = list(zip(*by_rank.values(), strict=True))
        return sorted(together, key=lambda nodes: self.turn[nodes[0]])

    def _collective(self, nodes: tuple[int, ...], ranks: tuple[int, ...]) -> None:
        first = nodes[0]
        types = self.comm_type[list(nodes)].tolist()
        for node, type_ in zip(nodes, types, strict=True):
            if type_ == ABSENT:
                raise self._refuse(node, "comm_type", MISSING, "a collective: only a written 0 is one")
            if type_ != types[0] or self.size[node] != self.size[first]:
                found = f"{COMM_TYPES[type_]} of {self.size[node]}"
                same = f"{COMM_TYPES[types[0]]} of {self.size[first]}, as node {self._number(first)} of rank "
                raise self._refuse(node, "collective", Said(found), f"{same}{self.files.rank[first]}")
        kind = KINDS[COMM_TYPES[types[0]]]
        size = int(self.size[first])
        if size == ABSENT and kind != "barrier":
            raise self._refuse(first, "comm_size", MISSING, f"the size of an {kind}")
        whole = 0
        if kind != "barrier":
            whole = full_bytes(
                size,
                collective=kind,
                n_ranks=len(ranks),
                convention="chakra",
                element_bytes=self.element_bytes,
            )
        wanted = choose_collective(
            kind,
            n_ranks=len(ranks),
            size_bytes=self._in_range(first, whole),
            algorithms=self.algorithms,
            said=self.files.text("algorithm", first),
            path=self.files.where(first),
        )
        turn = ranks.index(self._root(first, ranks)) if kind_of(kind).rooted else 0
        self.builder.collective(wanted, ranks=ranks[turn:] + ranks[:turn], eager=self._eager(first))
        self.taken.append(nodes[turn:] + nodes[:turn])

    def _root(self, node: int, ranks: tuple[int, ...]) -> int:
        """The rank that has the data of a rooted collective, or gets it; the first where nothing says so."""
        said = [int(each[node]) for each in (self.sender, self.target) if each[node] != ABSENT]
        if said and said[0] not in ranks:
            raise self._refuse(node, "root", said[0], "a rank of the group")
        return said[0] if said else ranks[0]

    def _eager(self, node: int) -> bool:
        return self.default_eager if self.said_eager[node] == ABSENT else bool(self.said_eager[node])

    def _in_range(self, node: int, size: int) -> int:
        if size > LARGEST_BYTES:
            raise self._refuse(node, "size", size, f"at most {LARGEST_BYTES} bytes")
        return size

    def _number(self, node: int) -> int:
        return int(self.files.traces[int(self.files.rank[node])].number[self.files.place[node]])

    def _remark(self, node: int, what: str, reason: str) -> None:
        file = self.files.traces[int(self.files.rank[node])].file
        self.remarks.append(Remark(file=file, line=0, what=what, reason=reason))
