"""`Program`: what every rank does, as a table: collectives, messages and compute, and what waits for what.

An **operation** is a template with a size. What one rank does in it is a **task**. A rank *enters* a task
when the tasks that it waits for, all its own, are left, and not before the operation's start; computes for
the operation's time; sends what the template says; and *leaves* when its own sends and receives are done.
A message is an operation of two ranks, compute one of a single rank whose template moves nothing. So a
slow rank delays exactly those who wait for it.

Operations are rows of arrays; templates are shared. A thousand-rank ring that a program uses a thousand times
is one template, a thousand rows and a million tasks of a few bytes.

Invariants, checked when a program is made: ranks that exist, none twice in an operation; sizes for every
piece; waits between tasks of one rank that form no cycle. Operations that ranks enter in different orders are
legal; whether they ever end shows when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.traffic import LARGEST_START_PS
from fabric.workload.collectives import Collective, Template, build_template
from fabric.workload.collectives.arrays import Int64Array, bases, distinct_pairs, expand_ranges, lengths
from fabric.workload.waits import find_cycle

__all__ = ["Program", "ProgramBuilder", "compute_template", "message_template"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """Operations on ranks, with what their tasks wait for.

    Tasks are numbered operation by operation, in each by the template's ranks (reducers last).

    Attributes
    ----------
    n_ranks : int
        Of the program; from here on, reducers.
    templates : tuple of Template
    template : ndarray of int64 [operations]
        Index into `templates`.
    size_bytes : ndarray of int64 [operations]
        Bytes of the full logical vector (of an all-to-all-v: its nccl-tests size).
    pieces : ndarray of int64 [operations]
        -1: the vector is cut evenly; else where the operation's offsets begin in `piece_offset_bytes`.
    piece_offset_bytes : ndarray of int64
        `n_pieces + 1` offsets, from 0, for each operation that has them.
    start_ps, compute_ps : ndarray of int64 [operations]
        Earliest entry; time that each rank computes before it sends.
    eager : ndarray of bool [operations]
        A sender is done when it has handed its messages to the network, not when they have arrived.
    task_base : ndarray of int64 [operations + 1]
    task_rank : ndarray of int64 [tasks]
        Rank of the program.
    wait_task, wait_for : ndarray of int64 [waits]
        Task `wait_task[k]` is entered when task `wait_for[k]` is left; ascending, no pair twice.
    """

    n_ranks: int
    templates: tuple[Template, ...]
    template: Int64Array
    size_bytes: Int64Array
    pieces: Int64Array
    piece_offset_bytes: Int64Array
    start_ps: Int64Array
    compute_ps: Int64Array
    eager: npt.NDArray[np.bool_]
    task_base: Int64Array
    task_rank: Int64Array
    wait_task: Int64Array
    wait_for: Int64Array

    def __len__(self) -> int:
        return len(self.template)

    @property
    def n_tasks(self) -> int:
        """What all ranks do in all operations."""
        return len(self.task_rank)

    @property
    def n_messages(self) -> int:
        """Messages of all operations."""
        each = np.array([one.n_messages for one in self.templates], dtype=np.int64)
        return int(each[self.template].sum())

    def piece_bytes(self, operation: int) -> Int64Array:
        """Size of every piece of an operation."""
        template = self.templates[int(self.template[operation])]
        first = int(self.pieces[operation])
        if first < 0:
            return template.piece_bytes(int(self.size_bytes[operation]))
        return lengths(self.piece_offset_bytes[first : first + template.n_pieces + 1])

    def ranks_of(self, operation: int) -> Int64Array:
        """Ranks of an operation, in the order of its template's."""
        first, last = self.task_base[operation : operation + 2]
        ranks: Int64Array = self.task_rank[first:last]
        return ranks

    def operation_of(self, tasks: npt.ArrayLike) -> Int64Array:
        """Operations that tasks belong to."""
        place: Int64Array = np.searchsorted(self.task_base, np.asarray(tasks, dtype=np.int64), side="right")
        return place - 1

    def verify(self, *, path: str = "program") -> Program:
        """Return itself, having checked what the class says.

        Raises
        ------
        SpecError
            Naming the first operation or task that is wrong.
        """
        places = np.array([one.n_ranks + one.n_reducers for one in self.templates], dtype=np.int64)
        wrong = np.flatnonzero((self.template < 0) | (self.template >= len(self.templates)))
        if wrong.size:
            raise SpecError(
                f"{path}[{wrong[0]}].template", int(self.template[wrong[0]]), "a template's index"
            )
        wrong = np.flatnonzero(lengths(self.task_base) != places[self.template])
        if wrong.size:
            one = int(wrong[0])
            found = int(lengths(self.task_base)[one])
            raise SpecError(f"{path}[{one}].ranks", found, f"{places[self.template[one]]} ranks")
        for name, most in (
            ("size_bytes", 2**62),
            ("start_ps", LARGEST_START_PS),
            ("compute_ps", LARGEST_START_PS),
        ):
            values = getattr(self, name)
            wrong = np.flatnonzero((values < 0) | (values > most))
            if wrong.size:
                raise SpecError(f"{path}[{wrong[0]}].{name}", int(values[wrong[0]]), f"0 to {most}")
        self._verify_ranks(path)
        self._verify_waits(path)
        return self

    def _verify_ranks(self, path: str) -> None:
        operation = np.repeat(np.arange(len(self)), lengths(self.task_base))
        place = np.arange(self.n_tasks) - self.task_base[operation]
        ranks = np.array([one.n_ranks for one in self.templates], dtype=np.int64)
        reducer = place >= ranks[self.template[operation]] if len(self) else np.zeros(0, dtype=np.bool_)
        wrong = np.flatnonzero((self.task_rank < 0) | (~reducer & (self.task_rank >= self.n_ranks)))
        if wrong.size:
            where = f"{path}[{operation[wrong[0]]}].ranks"
            raise SpecError(where, int(self.task_rank[wrong[0]]), f"ranks from 0 to {self.n_ranks - 1}")
        order = np.lexsort((self.task_rank, operation))
        same = (operation[order][1:] == operation[order][:-1]) & (
            self.task_rank[order][1:] == self.task_rank[order][:-1]
        )
        if same.any():
            task = int(order[1:][same][0])
            raise SpecError(f"{path}[{operation[task]}].ranks", int(self.task_rank[task]), "every rank once")

    def _verify_waits(self, path: str) -> None:
        tasks = self.n_tasks
        for each in (self.wait_task, self.wait_for):
            wrong = np.flatnonzero((each < 0) | (each >= tasks))
            if wrong.size:
                raise SpecError(
                    f"{path}.waits[{wrong[0]}]", int(each[wrong[0]]), f"tasks from 0 to {tasks - 1}"
                )
        wrong = np.flatnonzero(self.task_rank[self.wait_task] != self.task_rank[self.wait_for])
        if wrong.size:
            ranks = tuple(int(self.task_rank[each[wrong[0]]]) for each in (self.wait_task, self.wait_for))
            raise SpecError(f"{path}.waits[{wrong[0]}]", ranks, "two tasks of one rank")
        cycle = find_cycle(self.wait_task, predecessor=self.wait_for, n_flows=tasks)
        if cycle:
            rank = int(self.task_rank[cycle[0]])
            shown = " after ".join(str(each) for each in self.operation_of([*cycle, cycle[0]]).tolist())
            raise SpecError(
                f"{path}: waits of rank {rank}", shown, "operations that do not wait for themselves"
            )


@cache
def message_template() -> Template:
    """Rank 0 sends its vector to rank 1."""
    return build_template("broadcast", algorithm="chain", n_ranks=2)


@cache
def compute_template() -> Template:
    """One rank, which sends nothing."""
    return build_template("send_recv", algorithm="shift", n_ranks=1)


class ProgramBuilder:
    """A program that is put together operation by operation.

    Parameters
    ----------
    n_ranks : int

    Examples
    --------
    >>> from fabric.workload.collectives import Collective
    >>> job = ProgramBuilder(n_ranks=4)
    >>> work = [job.compute(rank, picoseconds=10**6 * rank) for rank in range(4)]
    >>> ring = Collective(kind="all_reduce", n_ranks=4, size_bytes=4096, algorithm="ring")
    >>> both = job.collective(ring, ranks=range(4), after=work)
    >>> last = job.message(0, 3, size_bytes=100, after=[both])
    >>> program = job.build()
    >>> len(program), program.n_tasks, program.n_messages, program.wait_for.tolist()
    (6, 10, 25, [0, 1, 2, 3, 4, 7])
    """

    def __init__(self, n_ranks: int) -> None:
        if n_ranks < 1:
            raise SpecError("program.n_ranks", n_ranks, "at least one rank")
        self.n_ranks = n_ranks
        self._templates: list[Template] = []
        self._index: dict[int, int] = {}
        self._rows: list[tuple[int, int, int, int, int, bool]] = []
        self._ranks: list[Int64Array] = []
        self._offsets: list[Int64Array] = []
        self._offset_of: dict[tuple[int, int], int] = {}
        self._n_offsets = 0
        self._waits: list[tuple[int, int]] = []

    def collective(
        self,
        collective: Collective,
        *,
        ranks: Sequence[int],
        after: Iterable[int] = (),
        start_ps: int = 0,
        compute_ps: int = 0,
        eager: bool = False,
    ) -> int:
        """Add a collective.

        Parameters
        ----------
        collective : Collective
        ranks : sequence of int
            Ranks of the program, in the order of the collective's (and its reducers, from `n_ranks` on).
        after : iterable of int
            Operations; each rank waits for its own task in them.
        start_ps, compute_ps, eager
            As of `Program`.

        Returns
        -------
        int
            Number of the operation.
        """
        return self.operation(
            collective.template(),
            collective.sizes,
            ranks=ranks,
            after=after,
            size_bytes=collective.size_bytes,
            start_ps=start_ps,
            compute_ps=compute_ps,
            eager=eager,
        )

    def message(
        self,
        source: int,
        destination: int,
        *,
        size_bytes: int,
        after: Iterable[int] = (),
        start_ps: int = 0,
        eager: bool = False,
    ) -> int:
        """Add a message; the receiver waits for `after`, too, where it takes part in it."""
        ranks = (source, destination)
        how = {"start_ps": start_ps, "eager": eager}
        return self.operation(message_template(), size_bytes, ranks=ranks, after=after, **how)

    def compute(self, rank: int, *, picoseconds: int, after: Iterable[int] = ()) -> int:
        """Add work of one rank."""
        return self.operation(compute_template(), 0, ranks=(rank,), after=after, compute_ps=picoseconds)

    def operation(
        self,
        template: Template,
        size: int | npt.ArrayLike,
        *,
        ranks: Sequence[int],
        after: Iterable[int] = (),
        **how: Any,
    ) -> int:
        """Add any template with a size, or sizes as of `Template.piece_bytes`; the rest as above."""
        number = len(self._rows)
        index = self._index.setdefault(id(template), len(self._templates))
        if index == len(self._templates):
            self._templates.append(template)
        size_bytes = how.get("size_bytes", size)
        self._rows.append(
            (
                index,
                int(size_bytes),
                self._pieces(index, template, size),
                int(how.get("start_ps", 0)),
                int(how.get("compute_ps", 0)),
                bool(how.get("eager", False)),
            )
        )
        self._ranks.append(np.asarray(ranks, dtype=np.int64))
        for earlier in after:
            self.wait(number, earlier)
        return number

    def wait(self, operation: int, earlier: int) -> None:
        """Let ranks that take part in both operations wait in one for their task in the other."""
        for each in (operation, earlier):
            if not 0 <= each < len(self._rows):
                raise SpecError(
                    f"program[{operation}].after", each, f"operations from 0 to {len(self._rows) - 1}"
                )
        self._waits.append((operation, earlier))

    def build(self, *, path: str = "program") -> Program:
        """Return the program.

        Parameters
        ----------
        path : str
            How errors call it.

        Raises
        ------
        SpecError
            If it is none.
        """
        columns = np.array(self._rows, dtype=np.int64).reshape(-1, 6).T
        task_base = bases(np.array([len(each) for each in self._ranks], dtype=np.int64))
        wait_task, wait_for = self._task_waits(task_base)
        return Program(
            n_ranks=self.n_ranks,
            templates=tuple(self._templates),
            template=columns[0],
            size_bytes=columns[1],
            pieces=columns[2],
            piece_offset_bytes=np.concatenate([np.empty(0, dtype=np.int64), *self._offsets]),
            start_ps=columns[3],
            compute_ps=columns[4],
            eager=columns[5].astype(np.bool_),
            task_base=task_base,
            task_rank=np.concatenate([np.empty(0, dtype=np.int64), *self._ranks]),
            wait_task=wait_task,
            wait_for=wait_for,
        ).verify(path=path)

    def _pieces(self, index: int, template: Template, size: int | npt.ArrayLike) -> int:
        whole = isinstance(size, int | np.integer)
        if whole and template.block is None:
            return -1
        key = (index, int(size) if isinstance(size, int | np.integer) else -1 - len(self._rows))
        if key not in self._offset_of:
            offsets = bases(template.piece_bytes(size))
            self._offset_of[key] = self._n_offsets
            self._offsets.append(offsets)
            self._n_offsets += len(offsets)
        return self._offset_of[key]

    def _task_waits(self, task_base: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Waits of operations as waits of the tasks of ranks that take part in both."""
        pairs = np.array(self._waits, dtype=np.int64).reshape(-1, 2)
        later, earlier = pairs[:, 0], pairs[:, 1]
        task_rank = np.concatenate([np.empty(0, dtype=np.int64), *self._ranks])
        operation = np.repeat(np.arange(len(self._ranks)), lengths(task_base))
        most = int(task_rank.max(initial=0)) + 1
        key = operation * most + task_rank
        order = np.argsort(key, kind="stable")
        count = task_base[earlier + 1] - task_base[earlier]
        before = expand_ranges(task_base[earlier], count)
        wanted = np.repeat(later, count) * most + task_rank[before]
        place = np.minimum(np.searchsorted(key, wanted, sorter=order), max(len(key) - 1, 0))
        both = key[order[place]] == wanted if len(key) else np.zeros(0, dtype=np.bool_)
        return distinct_pairs(order[place[both]], before[both])
