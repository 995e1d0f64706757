"""Programs of GOAL schedules, and GOAL schedules of programs.

A send and the receive that it meets are a message; computation is compute. The k-th send of a rank to another
with a tag meets the k-th receive there of that source and tag; a receive with a wildcard meets what is left,
if only one source and tag is. "a starts when b has started" becomes: a waits for what b waits for.

The other way, every rank of a collective becomes the sends and receives of its template, between a `calc` at
which it begins and one at which it is done, with a tag of its own for every transfer of the program.

What GOAL has and programs have not: the operations of a cpu run one at a time there; a send is done when it
has left (here: `eager`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats import Remark
from fabric.formats.goal import ANY, CALC, RECV, SEND, GoalRank, goal_text, read_goal
from fabric.formats.words import place
from fabric.workload.collectives.arrays import Int64Array, bases, distinct_pairs, lengths
from fabric.workload.matching import matched
from fabric.workload.program import Program, compute_template, message_template
from fabric.workload.two_sided import RankWriter, tag_bases, tasks_by_rank, write_rank

__all__ = ["export_goal", "import_goal"]

PS_PER_NS = 1000
MESSAGE, COMPUTE = 0, 1


def import_goal(file: str | Path, *, eager: bool = True) -> tuple[Program, list[Remark]]:
    """Make a program of a GOAL file.

    Parameters
    ----------
    file : str or Path
        Its ranks are ranks of the program; where they are is for the scenario to say.
    eager : bool
        Sends are done when they have left.

    Returns
    -------
    Program
        Messages in the order of their sends, then computation in the order of the file.
    list of Remark

    Raises
    ------
    SpecError
        Naming file, line and cause.
    """
    schedule = _Schedule(str(file))
    sends, receives = _matched(schedule)
    kind, rank = schedule.kind, schedule.rank
    calc = np.flatnonzero(kind == CALC)
    messages, computes = len(sends), len(calc)
    task = np.empty(len(kind), dtype=np.int64)
    task[sends] = 2 * np.arange(messages)
    task[receives] = 2 * np.arange(messages) + 1
    task[calc] = 2 * messages + np.arange(computes)
    later, earlier = _finished_waits(schedule)
    wait_task, wait_for = distinct_pairs(task[later], task[earlier])
    zeros = np.zeros(computes, dtype=np.int64)
    program = Program(
        n_ranks=schedule.n_ranks,
        templates=(message_template(), compute_template()),
        template=np.concatenate([np.full(messages, MESSAGE), np.full(computes, COMPUTE)]).astype(np.int64),
        size_bytes=np.concatenate([schedule.size[sends], zeros]),
        pieces=np.full(messages + computes, -1, dtype=np.int64),
        piece_offset_bytes=np.empty(0, dtype=np.int64),
        start_ps=np.zeros(messages + computes, dtype=np.int64),
        compute_ps=np.concatenate([np.zeros(messages, dtype=np.int64), schedule.size[calc] * PS_PER_NS]),
        eager=np.full(messages + computes, eager, dtype=np.bool_),
        task_base=np.concatenate([2 * np.arange(messages), 2 * messages + np.arange(computes + 1)]),
        task_rank=np.concatenate([np.stack([rank[sends], rank[receives]], axis=1).ravel(), rank[calc]]),
        wait_task=wait_task,
        wait_for=wait_for,
    )
    return program.verify(path=str(file)), _remarks(schedule)


def export_goal(program: Program) -> Iterator[str]:
    """Write a program as GOAL, piece by piece.

    Parameters
    ----------
    program : Program
        Without reducers; times in whole nanoseconds.

    Yields
    ------
    str

    Raises
    ------
    SpecError
        If it has what GOAL has not.
    """
    if any(template.n_reducers for template in program.templates):
        raise SpecError("program", Said("reducers in switches"), "operations between ranks, for GOAL")
    for name in ("start_ps", "compute_ps"):
        wrong = np.flatnonzero(getattr(program, name) % PS_PER_NS)
        if wrong.size:
            value = int(getattr(program, name)[wrong[0]])
            raise SpecError(f"program[{wrong[0]}].{name}", value, "whole nanoseconds, for GOAL")
    tags = tag_bases(program)
    blocks = (
        _block(program, rank, tasks, tags) for rank, tasks in enumerate(tasks_by_rank(program)) if len(tasks)
    )
    return goal_text(program.n_ranks, blocks)


class _Schedule:
    """All operations of a file, rank after rank."""

    def __init__(self, file: str) -> None:
        self.file = file
        blocks = []
        self.n_ranks = 0
        for block in read_goal(file):
            self.n_ranks = block.n_ranks
            blocks.append(block)
        if not blocks:
            raise SpecError(file, Said("no rank"), "a block of at least one rank")
        base = bases(np.array([len(block.kind) for block in blocks]))
        self.kind, self.size, self.peer, self.tag, self.cpu, self.line = (
            np.concatenate([getattr(block, name) for block in blocks])
            for name in ("kind", "size", "peer", "tag", "cpu", "operation_line")
        )
        self.rank = np.repeat([block.rank for block in blocks], lengths(base))
        shift = np.stack([base[:-1], base[:-1], 0 * base[:-1]], axis=1)
        waits = [block.waits + own for block, own in zip(blocks, shift, strict=True)]
        self.waits = np.concatenate(waits)

    def where(self, operation: int, what: str) -> str:
        return place(self.file, int(self.line[operation]), what)


def _matched(schedule: _Schedule) -> tuple[Int64Array, Int64Array]:
    """Sends in order, and the receive that each meets."""
    sends, receives = (np.flatnonzero(schedule.kind == kind) for kind in (SEND, RECV))
    wild = (schedule.peer[receives] == ANY) | (schedule.tag[receives] == ANY)
    exact = receives[~wild]
    sent = np.stack([schedule.rank[sends], schedule.peer[sends], schedule.tag[sends]])
    expected = np.stack([schedule.peer[exact], schedule.rank[exact], schedule.tag[exact]])
    found = matched(sent, expected)
    meets = np.full(len(sends), -1, dtype=np.int64)
    meets[found >= 0] = exact[found[found >= 0]]
    unmet = np.setdiff1d(exact, meets)
    if unmet.size:
        one = int(unmet[0])
        what = f"recv from {schedule.peer[one]} tag {schedule.tag[one]} of rank {schedule.rank[one]}"
        raise SpecError(schedule.where(one, "recv"), Said(what), "a send that it meets")
    _match_wildcards(schedule, sends, meets, receives[wild])
    lost = np.flatnonzero(meets < 0)
    if lost.size:
        one = int(sends[lost[0]])
        what = f"send to {schedule.peer[one]} tag {schedule.tag[one]} of rank {schedule.rank[one]}"
        raise SpecError(schedule.where(one, "send"), Said(what), "a recv that it meets")
    differ = np.flatnonzero(schedule.size[sends] != schedule.size[meets])
    if differ.size:
        one, other = int(sends[differ[0]]), int(meets[differ[0]])
        sent_bytes = int(schedule.size[one])
        allowed = f"{sent_bytes} bytes, as the send on line {schedule.line[one]} has"
        raise SpecError(schedule.where(other, "recv"), int(schedule.size[other]), allowed)
    return sends, meets


def _match_wildcards(schedule: _Schedule, sends: Int64Array, meets: Int64Array, wild: Int64Array) -> None:
    """Let receives with wildcards, in order, meet the sends that are left."""
    for receive in wild.tolist():
        source, tag = int(schedule.peer[receive]), int(schedule.tag[receive])
        fits = (meets < 0) & (schedule.peer[sends] == schedule.rank[receive])
        fits &= (source == ANY) | (schedule.rank[sends] == source)
        fits &= (tag == ANY) | (schedule.tag[sends] == tag)
        left = np.flatnonzero(fits)
        kinds = {(int(schedule.rank[sends[each]]), int(schedule.tag[sends[each]])) for each in left.tolist()}
        if len(kinds) != 1:
            what = (
                "a wildcard that nothing meets" if not kinds else "a wildcard that several sends could meet"
            )
            raise SpecError(schedule.where(receive, "recv"), Said(what), "sends of one source and tag")
        meets[left[0]] = receive


def _finished_waits(schedule: _Schedule) -> tuple[Int64Array, Int64Array]:
    """Waits for ends alone: who waits for a start waits for what that waits for."""
    later, earlier, started = schedule.waits.T
    plain = started == 0
    if plain.all():
        return later, earlier
    before: dict[int, set[int]] = {}
    for one, other in zip(later[plain].tolist(), earlier[plain].tolist(), strict=True):
        before.setdefault(one, set()).add(other)
    begins: dict[int, list[int]] = {}
    for one, other in zip(later[~plain].tolist(), earlier[~plain].tolist(), strict=True):
        begins.setdefault(one, []).append(other)
    done: set[int] = set()
    for one in begins:
        path = [one]
        while path:
            at = path[-1]
            next_one = next((each for each in begins.get(at, ()) if each not in done), None)
            if next_one is None:
                for each in begins.get(at, ()):
                    before.setdefault(at, set()).update(before.get(each, ()))
                done.add(path.pop())
            elif next_one in path:
                where = schedule.where(one, "irequires")
                raise SpecError(where, Said("a circle"), "operations that do not wait for themselves")
            else:
                path.append(next_one)
    pairs = np.array([(one, each) for one, waits in before.items() for each in waits], dtype=np.int64)
    return pairs.reshape(-1, 2)[:, 0], pairs.reshape(-1, 2)[:, 1]


def _remarks(schedule: _Schedule) -> list[Remark]:
    remarks = []
    calc = np.flatnonzero(schedule.kind == CALC)
    cpus, counts = np.unique(np.stack([schedule.rank[calc], schedule.cpu[calc]]), axis=1, return_counts=True)
    if (counts > 1).any():
        which = cpus[:, np.flatnonzero(counts > 1)[0]]
        first = calc[((schedule.rank[calc] == which[0]) & (schedule.cpu[calc] == which[1]))][0]
        reason = (
            "computation of one cpu that nothing orders runs at the same time; there, one after the other"
        )
        remarks.append(Remark(file=schedule.file, line=int(schedule.line[first]), what="calc", reason=reason))
    return remarks


def _block(program: Program, rank: int, tasks: Int64Array, tags: Int64Array) -> GoalRank:
    """Sends, receives and calcs of one rank, with what they wait for."""
    writer = _Writer()
    write_rank(program, tasks, writer, tags=tags)
    return writer.block(n_ranks=program.n_ranks, rank=rank)


class _Writer(RankWriter):
    """Operations of a rank that is written."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self.waits: list[tuple[int, int]] = []

    def compute(self, picoseconds: int, *, name: str) -> int:
        return self._take(CALC, picoseconds // PS_PER_NS, 0, 0)

    def send(self, size_bytes: int, peer: int, tag: int, *, name: str, eager: bool) -> int:
        return self._take(SEND, size_bytes, peer, tag)

    def receive(self, size_bytes: int, peer: int, tag: int, *, name: str) -> int:
        return self._take(RECV, size_bytes, peer, tag)

    def wait(self, later: int, earlier: int) -> None:
        self.waits.append((later, earlier))

    def _take(self, kind: int, size: int, peer: int, tag: int) -> int:
        self.rows.append((kind, size, peer, tag))
        return len(self.rows) - 1

    def block(self, *, n_ranks: int, rank: int) -> GoalRank:
        columns = np.array(self.rows, dtype=np.int64).reshape(-1, 4).T
        zeros = np.zeros(len(self.rows), dtype=np.int64)
        waits = np.array([(*wait, 0) for wait in self.waits], dtype=np.int64).reshape(-1, 3)
        return GoalRank(
            n_ranks=n_ranks,
            rank=rank,
            line=0,
            kind=columns[0],
            size=columns[1],
            peer=columns[2],
            tag=columns[3],
            cpu=zeros,
            nic=zeros,
            operation_line=zeros,
            waits=waits,
        )
