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
    template_rank_base: list[int]
    template_pieces: list[int]
    rank_lane_base: list[int]
    rank_receives: list[int]
    lane_transfer_base: list[int]
    lane_destination: list[int]
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

    def task_at(self, operation: int, rank: int) -> int:
        """The task that a rank (a row) has in an operation."""
        first = self.template_rank_base[self.operation_template[operation]]
        return self.operation_task_base[operation] + rank - first

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
        """Lanes that a rank sends on."""
        return range(self.rank_lane_base[rank], self.rank_lane_base[rank + 1])

    def transfers_of(self, lane: int) -> range:
        """Transfers of a lane, in the order in which they go."""
        return range(self.lane_transfer_base[lane], self.lane_transfer_base[lane + 1])

    def transfers_after(self, transfer: int) -> list[int]:
        """Transfers that wait for the arrival of a transfer."""
        return self.transfer_next[self.transfer_next_base[transfer] : self.transfer_next_base[transfer + 1]]

    def followers_of(self, transfer: int) -> list[int]:
        """Transfers that wait for the acknowledgement of a transfer."""
        if not self.transfer_follower:
            return []
        first, end = self.transfer_follower_base[transfer : transfer + 2]
        return self.transfer_follower[first:end]

    def source_of(self, transfer: int) -> int:
        """The rank (a row) that sends a transfer."""
        return bisect_right(self.rank_lane_base, self.transfer_lane[transfer]) - 1

    def destination_of(self, transfer: int) -> int:
        """The rank (a row) that a transfer goes to."""
        return self.lane_destination[self.transfer_lane[transfer]]

    def is_join(self, transfer: int) -> bool:
        """Whether a transfer is of a rank to itself."""
        return self.destination_of(transfer) == self.source_of(transfer)

    def connection_of(self, operation: int, transfer: int) -> int:
        """The connection that a transfer of an operation takes."""
        first_rank = self.template_rank_base[self.operation_template[operation]]
        lane = self.transfer_lane[transfer] - self.rank_lane_base[first_rank]
        return self.lane_connection[self.operation_lanes[operation] + lane]

    def transfer_bytes(self, operation: int, transfer: int) -> int:
        """Bytes of a transfer of an operation."""
        first = self.transfer_piece[transfer]
        end = first + self.transfer_count[transfer]
        return self._offset_bytes(operation, end) - self._offset_bytes(operation, first)

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
