"""Programs of collectives: when ranks enter, what they send, when they leave; on the readable engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support_lowered import US, small_lowered
from support_programs import Table, ring, with_program

from fabric.reference import Simulator
from fabric.workload.program import Operation, Program

FRAME_PS = 83_200
"""4160 bytes at 400 Gbit/s."""
ACK_PS = 1_280
ALPHA_PS = 2 * US
"""Two links."""
PAYLOAD = 4096


def run(
    program: Program, *, hosts: int, reason: str = "FINISHED", **fields: Any
) -> tuple[Simulator, dict[str, Any]]:
    simulator = Simulator(small_lowered(**with_program(program, hosts=hosts), **fields))
    assert simulator.run() == reason
    simulator.check_invariants()
    return simulator, simulator.columns()


def one(table: Table, size: Any, **fields: Any) -> Program:
    ranks = tuple(range(table.n_ranks))
    return Program(hosts=ranks, operations=(Operation(ranks=ranks, template=table, size=size, **fields),))


class TestTimes:
    def test_one_message(self) -> None:
        table = Table(2, 1, [(0, 1, 0, 1, 0, [])])
        _, columns = run(one(table, PAYLOAD), hosts=2)
        arrival_ps = 2 * FRAME_PS + ALPHA_PS
        assert columns["task_entered_ps"].tolist() == [0, 0]
        assert columns["task_left_ps"].tolist() == [arrival_ps + 2 * ACK_PS + ALPHA_PS, arrival_ps]
        assert columns["operation_sent_bytes"].tolist() == [PAYLOAD]

    def test_an_eager_sender_leaves_at_once(self) -> None:
        table = Table(2, 1, [(0, 1, 0, 1, 0, [])])
        _, columns = run(one(table, PAYLOAD, eager=True), hosts=2)
        assert columns["task_left_ps"].tolist() == [0, 2 * FRAME_PS + ALPHA_PS]

    @pytest.mark.parametrize("n_ranks", [2, 3, 8])
    def test_a_ring_takes_its_steps(self, n_ranks: int) -> None:
        """All ranks in step: each of the 2 (n - 1) steps takes one frame over two links."""
        _, columns = run(one(ring(n_ranks), n_ranks * PAYLOAD, eager=True), hosts=n_ranks)
        steps = 2 * (n_ranks - 1)
        # the ACK of one step is in the way of the frame of the next
        least_ps = steps * (2 * FRAME_PS + ALPHA_PS)
        assert np.ptp(columns["task_left_ps"]) == 0
        assert least_ps <= columns["task_left_ps"][0] <= least_ps + 2 * steps * ACK_PS
        assert columns["operation_sent_bytes"].tolist() == [steps * n_ranks * PAYLOAD]
