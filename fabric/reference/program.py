"""Programs of collectives: who enters what when, and which transfers that sets off.

A *task* is what one rank does of one operation. It enters when all tasks that it waits for have been
left, begins when it has computed for as long as the operation says, and is left when all that it sends
and receives is done. A *transfer* is posted when its task has begun, all that it comes after has arrived
at its source, and the transfers before it on its *lane* (to the same rank on the same channel) have been
posted. It may also follow another of its own source, which must have been acknowledged. So whatever
happens follows from what happened at one host, in the order in which it did.

A *join* is a transfer of a rank to itself: it sends nothing, and arrives when it waits for nothing more.
Messages between ranks of one host are copied, one after the other on a connection of their own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fabric.lowered import ON_ITS_WAY, POSTED, LoweredProgram

from .clock import Clock, TimerKind
from .program_tables import Program, read_program

__all__ = ["Walker"]

BYTE_PS_AT_1_BPS = 8e12


class Poster(Protocol):
    """How a message gets on its way from a host."""

    def __call__(
        self, host: int, flow: int, size_bytes: int, *, operation: int, transfer: int, now_ps: int
    ) -> None: ...


class _Task:
    """What one rank still has to do of an operation that has begun to concern it."""

    __slots__ = ("has_begun", "joins", "posted", "rank", "remaining", "waits")

    def __init__(self, program: Program, rank: int) -> None:
        lanes = program.lanes_of(rank)
        transfers = [t for lane in lanes for t in program.transfers_of(lane)]
        self.rank = rank
        self.has_begun = False
        self.joins: list[int] = []
        self.remaining = program.receives(rank) + len(transfers)
        self.waits = {t: program.transfer_waits[t] for t in transfers}
        self.posted = dict.fromkeys(lanes, 0)


class _LocalConnection:
    """Copies between two ranks of one host."""

    __slots__ = ("busy_ps", "under_way")

    def __init__(self) -> None:
        self.busy_ps = 0
        self.under_way: deque[tuple[int, int]] = deque()


class Walker:
    """Walks a program.

    Parameters
    ----------
    lowered : LoweredProgram
    first_connection : int
        Number of the flow that is its first connection.
    clock : Clock
    post : Poster
        Posts a message on a connection.
    """

    def __init__(self, lowered: LoweredProgram, *, first_connection: int, clock: Clock, post: Poster) -> None:
        self.program = read_program(lowered)
        self._first_connection = first_connection
        self._clock = clock
        self._post = post
        self._waits = list(self.program.task_waits)
        self._tasks: dict[int, _Task] = {}
        self._local: defaultdict[int, _LocalConnection] = defaultdict(_LocalConnection)
        self.entered_ps = [-1] * self.program.n_tasks
        self.left_ps = [-1] * self.program.n_tasks
        self.sent_bytes = [0] * self.program.n_operations

    @property
    def is_finished(self) -> bool:
        """Every rank has done everything."""
        return all(left_ps >= 0 for left_ps in self.left_ps)

    def connection_number(self, flow: int) -> int:
        """Which connection a flow is."""
        return flow - self._first_connection

    def schedule_first(self) -> None:
        """Schedule the tasks that wait for no other."""
        for task, waits in enumerate(self._waits):
            if waits == 0:
                self._schedule_entry(task, 0)

    def on_enter(self, task: int, now_ps: int) -> None:
        """A rank enters an operation."""
        self.entered_ps[task] = now_ps
        operation = self.program.operation_of(task)
        compute_ps = self.program.operation_compute_ps[operation]
        if compute_ps:
            host = self.program.task_host[task]
            end_ps = self.program.compute_end_ps(task, now_ps, compute_ps)
            self._clock.schedule_timer(end_ps, host, TimerKind.BEGIN, task)
        else:
            self.on_begin(task, now_ps)

    def on_begin(self, task: int, now_ps: int) -> None:
        """A rank has computed what an operation has to begin with."""
        state = self._state(task)
        state.has_begun = True
        for lane in state.posted:
            self._advance(task, state, lane, now_ps)
        self._take_joins(task, state, now_ps)
        self._leave_if_done(task, state, now_ps)

    def on_arrival(self, connection: int, operation: int, transfer: int, now_ps: int) -> None:
        """A transfer has arrived at its destination."""
        task = self.program.destination_task(operation, connection)
        state = self._state(task)
        self._take(task, state, transfer, now_ps)
        self._take_joins(task, state, now_ps)
        self._leave_if_done(task, state, now_ps)

    def on_acknowledged(self, connection: int, operation: int, transfer: int, now_ps: int) -> None:
        """The source of a transfer knows that it has arrived."""
        task = self.program.source_task(operation, connection)
        followers = self.program.followers_of(transfer, self.program.rank_of(task))
        is_eager = self.program.operation_eager[operation]
        if is_eager and not followers:
            return
        state = self._tasks[task]
        if not is_eager:
            state.remaining -= 1
        self._release(task, state, followers, now_ps)
        self._take_joins(task, state, now_ps)
        self._leave_if_done(task, state, now_ps)

    def on_copied(self, connection: int, now_ps: int) -> None:
        """The first of the messages under way between two ranks of one host is there."""
        operation, transfer = self._local[connection].under_way.popleft()
        self.on_arrival(connection, operation, transfer, now_ps)
        self.on_acknowledged(connection, operation, transfer, now_ps)

    def posted(self) -> npt.NDArray[np.void]:
        """Lanes of active tasks, and how many of their transfers have been posted."""
        rows = [
            (task, lane, posted)
            for task, state in sorted(self._tasks.items())
            for lane, posted in enumerate(state.posted.values(), self.program.rank_lane_base[state.rank])
        ]
        return np.array(rows, dtype=POSTED)

    def copies_on_their_way(self) -> npt.NDArray[np.void]:
        """Messages between ranks of one host that have not arrived."""
        rows = [
            (number, operation, transfer)
            for number, connection in sorted(self._local.items())
            for operation, transfer in connection.under_way
        ]
        return np.array(rows, dtype=ON_ITS_WAY)

    def _state(self, task: int) -> _Task:
        if task not in self._tasks:
            self._tasks[task] = _Task(self.program, self.program.rank_of(task))
        return self._tasks[task]

    def _take(self, task: int, state: _Task, transfer: int, now_ps: int) -> None:
        """Let a transfer have arrived; what comes after it waits for one less."""
        state.remaining -= 1
        self._release(task, state, self.program.transfers_after(transfer, state.rank), now_ps)

    def _release(self, task: int, state: _Task, transfers: list[int], now_ps: int) -> None:
        for waiting in transfers:
            state.waits[waiting] -= 1
            if state.waits[waiting] == 0 and state.has_begun:
                self._advance(task, state, self.program.lane_of(waiting, state.rank), now_ps)

    def _take_joins(self, task: int, state: _Task, now_ps: int) -> None:
        while state.joins:
            self._take(task, state, state.joins.pop(), now_ps)

    def _advance(self, task: int, state: _Task, lane: int, now_ps: int) -> None:
        """Post what can be posted of a lane."""
        transfers = self.program.transfers_of(lane)
        while state.posted[lane] < len(transfers):
            transfer = transfers[state.posted[lane]]
            if state.waits[transfer]:
                break
            state.posted[lane] += 1
            if self.program.lane_joins[lane]:
                state.joins.append(transfer)
                continue
            self._send(task, state.rank, transfer, now_ps)
            if self.program.operation_eager[self.program.operation_of(task)]:
                state.remaining -= 1

    def _send(self, task: int, rank: int, transfer: int, now_ps: int) -> None:
        program = self.program
        operation = program.operation_of(task)
        size_bytes = program.transfer_bytes(operation, rank, transfer)
        self.sent_bytes[operation] += size_bytes
        connection = program.connection_of(operation, rank, transfer)
        host = program.task_host[task]
        if connection < program.n_connections:
            flow = self._first_connection + connection
            self._post(host, flow, size_bytes, operation=operation, transfer=transfer, now_ps=now_ps)
        else:
            self._copy(connection, host, operation, transfer, size_bytes, now_ps)

    def _copy(
        self, number: int, host: int, operation: int, transfer: int, size_bytes: int, now_ps: int
    ) -> None:
        connection, rate_bps = self._local[number], self.program.local_rate_bps
        copy_ps = int(float(size_bytes) * BYTE_PS_AT_1_BPS / float(rate_bps)) if rate_bps else 0
        copy_ps += -copy_ps % self.program.local_tick_ps
        connection.busy_ps = max(connection.busy_ps, now_ps) + copy_ps
        connection.under_way.append((operation, transfer))
        arrival_ps = connection.busy_ps + self.program.local_latency_ps
        self._clock.schedule_timer(arrival_ps, host, TimerKind.COPIED, number)

    def _leave_if_done(self, task: int, state: _Task, now_ps: int) -> None:
        if not state.has_begun or state.remaining:
            return
        del self._tasks[task]
        self.left_ps[task] = now_ps
        for waiting in self.program.tasks_after(task):
            self._waits[waiting] -= 1
            if self._waits[waiting] == 0:
                self._schedule_entry(waiting, now_ps)

    def _schedule_entry(self, task: int, now_ps: int) -> None:
        start_ps = self.program.operation_start_ps[self.program.operation_of(task)]
        host = self.program.task_host[task]
        self._clock.schedule_timer(max(now_ps, start_ps), host, TimerKind.ENTER, task)
