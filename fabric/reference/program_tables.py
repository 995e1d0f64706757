"""The border to NumPy for programs: the arrays of a `LoweredProgram` as lists, and what they say.

Nothing here changes during a run.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, fields

import numpy as np

from fabric.lowered import LoweredProgram

__all__ = ["Program", "read_program"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program; the fields are those of `fabric.lowered.LoweredProgram`."""

    n_connections: int
    n_local: int
    local_rate_bps: int
    local_latency_ps: int
    local_tick_ps: int
    template_rank_base: list[int]
    template_pieces: list[int]
    rank_pattern: list[int]
    rank_piece: list[int]
    rank_lane_base: list[int]
    pattern_lane_base: list[int]
    pattern_receives: list[int]
    lane_transfer_base: list[int]
    lane_joins: list[int]
    transfer_lane: list[int]
    transfer_piece: list[int]
    transfer_count: list[int]
    transfer_waits: list[int]
    transfer_next_base: list[int]
    transfer_next: list[int]
    transfer_follower_base: list[int]
    transfer_follower: list[int]
    operation_template: list[int]
    operation_bytes: list[int]
    operation_pieces: list[int]
    operation_start_ps: list[int]
    operation_compute_ps: list[int]
    operation_eager: list[int]
    operation_lanes: list[int]
    operation_task_base: list[int]
    piece_offset_bytes: list[int]
    lane_connection: list[int]
    connection_source: list[int]
    connection_destination: list[int]
    task_rank: list[int]
    task_host: list[int]
    task_waits: list[int]
    task_next_base: list[int]
    task_next: list[int]
    slow_base: list[int]
    slow_begin_ps: list[int]
    slow_end_ps: list[int]
    slow_factor: list[float]

    @property
    def n_operations(self) -> int:
        """Number of operations."""
        return len(self.operation_template)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.task_host)

    def operation_of(self, task: int) -> int:
        """The operation that a task is a part of."""
        return bisect_right(self.operation_task_base, task) - 1

    def rank_of(self, task: int) -> int:
        """The row of the rank of the operation's template that a task is."""
        operation = self.operation_of(task)
        first = self.template_rank_base[self.operation_template[operation]]
        return first + task - self.operation_task_base[operation]

    def source_task(self, operation: int, connection: int) -> int:
        """The task of an operation that sends on a connection."""
        return self.operation_task_base[operation] + self.connection_source[connection]

    def destination_task(self, operation: int, connection: int) -> int:
        """The task of an operation that receives on a connection."""
        return self.operation_task_base[operation] + self.connection_destination[connection]

    def tasks_after(self, task: int) -> list[int]:
        """Tasks that wait for a task."""
        return self.task_next[self.task_next_base[task] : self.task_next_base[task + 1]]

    def compute_end_ps(self, task: int, now_ps: int, compute_ps: int) -> int:
        """When a task that begins to compute now is done, its rank being slow for a while or not."""
        if not self.slow_factor:
            return now_ps + compute_ps
        rank = self.task_rank[task]
        for k in range(self.slow_base[rank], self.slow_base[rank + 1]):
            begin_ps, end_ps, factor = self.slow_begin_ps[k], self.slow_end_ps[k], self.slow_factor[k]
            if end_ps <= now_ps:
                continue
            if begin_ps > now_ps:
                if compute_ps <= begin_ps - now_ps:
                    break
                compute_ps -= begin_ps - now_ps
                now_ps = begin_ps
            needed_ps = compute_ps * factor
            if needed_ps <= end_ps - now_ps:
                return now_ps + int(needed_ps)
            compute_ps -= int((end_ps - now_ps) / factor)
            now_ps = end_ps
        return now_ps + compute_ps

    def lanes_of(self, rank: int) -> range:
        """Lanes that a rank sends on: those of its pattern."""
        pattern = self.rank_pattern[rank]
        return range(self.pattern_lane_base[pattern], self.pattern_lane_base[pattern + 1])

    def transfers_of(self, lane: int) -> range:
        """Transfers of a lane, in the order in which they go."""
        return range(self.lane_transfer_base[lane], self.lane_transfer_base[lane + 1])

    def receives(self, rank: int) -> int:
        """Transfers of others to a rank."""
        return self.pattern_receives[self.rank_pattern[rank]]

    def transfers_after(self, transfer: int, rank: int) -> list[int]:
        """Transfers of a rank that wait for the arrival of a transfer there."""
        first = self.transfer_next_base[transfer]
        end = self.transfer_next_base[transfer + 1]
        return self._own(rank, self.transfer_next[first:end])

    def followers_of(self, transfer: int, rank: int) -> list[int]:
        """Transfers of a rank that wait for the acknowledgement of one of its own."""
        if not self.transfer_follower:
            return []
        first, end = self.transfer_follower_base[transfer : transfer + 2]
        return self._own(rank, self.transfer_follower[first:end])

    def lane_of(self, transfer: int, rank: int) -> int:
        """The lane of a transfer of a rank."""
        return self.lanes_of(rank).start + self.transfer_lane[transfer]

    def connection_of(self, operation: int, rank: int, transfer: int) -> int:
        """The connection that a transfer of a rank takes."""
        first_rank = self.template_rank_base[self.operation_template[operation]]
        before = self.rank_lane_base[rank] - self.rank_lane_base[first_rank]
        return self.lane_connection[self.operation_lanes[operation] + before + self.transfer_lane[transfer]]

    def transfer_bytes(self, operation: int, rank: int, transfer: int) -> int:
        """Bytes of a transfer of a rank."""
        pieces = self.template_pieces[self.operation_template[operation]]
        first = (self.transfer_piece[transfer] + self.rank_piece[rank]) % pieces
        end = first + self.transfer_count[transfer]
        return self._offset_bytes(operation, end) - self._offset_bytes(operation, first)

    def _own(self, rank: int, numbers: list[int]) -> list[int]:
        """Transfers of a rank's pattern, by their numbers in it."""
        first = self.lane_transfer_base[self.lanes_of(rank).start]
        return [first + number for number in numbers]

    def _offset_bytes(self, operation: int, piece: int) -> int:
        table = self.operation_pieces[operation]
        if table >= 0:
            return self.piece_offset_bytes[table + piece]
        pieces = self.template_pieces[self.operation_template[operation]]
        each, larger = divmod(self.operation_bytes[operation], pieces)
        return piece * each + min(piece, larger)


def read_program(lowered: LoweredProgram) -> Program:
    """The arrays of a program as lists."""
    values = {field.name: getattr(lowered, field.name) for field in fields(lowered)}
    return Program(**{name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()})
