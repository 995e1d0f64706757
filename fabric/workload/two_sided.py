"""What one rank of a program does as single operations: computes, sends, receives, and their waits.

GOAL and Chakra describe every rank by itself. A collective becomes the transfers of its template, with a tag
of its own for every transfer of the program, between a computation at which the rank begins and one at which
it is done. A format that has collectives may take an operation as a whole instead.

`follows` of a template (a send after the acknowledgement of another) becomes a wait for that send; whether it
is done when it has left or when it is acknowledged is for the format to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.collectives.template import NOTHING
from fabric.workload.program import Program

__all__ = ["RankWriter", "tag_bases", "tasks_by_rank", "write_rank"]


class RankWriter(ABC):
    """Takes the operations of a rank; each method returns the number of what it has taken."""

    @abstractmethod
    def compute(self, picoseconds: int, *, name: str) -> int:
        """Take a computation."""

    @abstractmethod
    def send(self, size_bytes: int, peer: int, tag: int, *, name: str, eager: bool) -> int:
        """Take a send; `eager`: it is done when it has left."""

    @abstractmethod
    def receive(self, size_bytes: int, peer: int, tag: int, *, name: str) -> int:
        """Take a receive."""

    @abstractmethod
    def wait(self, later: int, earlier: int) -> None:
        """Let one wait for another."""

    def collective(self, operation: int) -> int | None:
        """Take an operation of the program as a whole; None: its transfers are wanted."""
        return None


def tasks_by_rank(program: Program) -> Iterator[Int64Array]:
    """Yield the tasks of every rank, ascending."""
    order = np.argsort(program.task_rank, kind="stable")
    firsts = np.searchsorted(program.task_rank[order], np.arange(program.n_ranks + 1))
    for first, last in pairwise(firsts.tolist()):
        yield order[first:last]


def tag_bases(program: Program) -> Int64Array:
    """Return the first tag of each operation: one for every row of its template."""
    rows = np.array([len(template) for template in program.templates], dtype=np.int64)
    return bases(rows[program.template])


def write_rank(program: Program, tasks: Int64Array, writer: RankWriter, *, tags: Int64Array) -> None:
    """Give a writer all that a rank does.

    Parameters
    ----------
    program : Program
    tasks : ndarray of int64
        Of the rank, ascending.
    writer : RankWriter
    tags : ndarray of int64
        As `tag_bases` has them.
    """
    begins: dict[int, list[int]] = {}
    ends: dict[int, int] = {}
    low = np.searchsorted(program.wait_task, tasks)
    high = np.searchsorted(program.wait_task, tasks, side="right")
    operations = program.operation_of(tasks)
    for task, operation in zip(tasks.tolist(), operations.tolist(), strict=True):
        begins[task], ends[task] = _write_task(program, writer, operation, task, int(tags[operation]))
    for task, first, last in zip(tasks.tolist(), low.tolist(), high.tolist(), strict=True):
        for earlier in program.wait_for[first:last].tolist():
            for begin in begins[task]:
                writer.wait(begin, ends[earlier])


def _write_task(
    program: Program, writer: RankWriter, operation: int, task: int, tag: int
) -> tuple[list[int], int]:
    """What of a task waits for what the task waits for, and what ends it."""
    name = f"op{operation}"
    template = program.templates[int(program.template[operation])]
    own = task - int(program.task_base[operation])
    start, compute = (int(each[operation]) for each in (program.start_ps, program.compute_ps))
    rows = np.flatnonzero((template.source == own) | (template.destination == own)).tolist()
    alone = writer.collective(operation) if rows else None
    begins: list[int] = []
    if compute or start or (alone is None and len(rows) != 1):
        begins.append(writer.compute(compute, name=name))
    if start:
        writer.wait(begins[0], writer.compute(start, name=f"{name}.start"))
    if alone is not None:
        for begin in begins:
            writer.wait(alone, begin)
        return begins or [alone], alone
    return _write_rows(program, writer, operation, own, rows, tag, begins)


def _write_rows(
    program: Program,
    writer: RankWriter,
    operation: int,
    own: int,
    rows: list[int],
    tag: int,
    begins: list[int],
) -> tuple[list[int], int]:
    """The transfers of a task, each by itself."""
    template = program.templates[int(program.template[operation])]
    ranks, sizes = program.ranks_of(operation), bases(program.piece_bytes(operation))
    follows = np.full(len(template), NOTHING) if template.follows is None else template.follows
    eager = bool(program.eager[operation])
    followed = {int(follows[row]) for row in rows if template.source[row] == own}
    placed: dict[int, int] = {}
    for row in rows:
        source, destination = int(template.source[row]), int(template.destination[row])
        first, name = int(template.piece[row]), f"op{operation}.{row}" if begins else f"op{operation}"
        size = int(sizes[first + int(template.count[row])] - sizes[first])
        before = template.after[template.after_base[row] : template.after_base[row + 1]].tolist()
        if source == destination:
            placed[row] = writer.compute(0, name=name)
        elif source == own:
            leaves = eager and row not in followed
            placed[row] = writer.send(size, int(ranks[destination]), tag + row, name=name, eager=leaves)
            before += [int(follows[row])] if follows[row] != NOTHING else []
        else:
            placed[row] = writer.receive(size, int(ranks[source]), tag + row, name=name)
            before = []
        for earlier in [*begins, *(placed[each] for each in before)]:
            writer.wait(placed[row], earlier)
    if len(rows) == 1 and not begins:
        return list(placed.values()), next(iter(placed.values()))
    if not placed:
        return begins, begins[0]
    end = writer.compute(0, name=f"op{operation}.end")
    for each in placed.values():
        writer.wait(end, each)
    return begins, end
