"""Programs of collectives: when ranks enter, what they send, when they leave; both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support_lowered import US, small_lowered
from support_programs import with_jobs

from fabric._core import Engine
from fabric.lowered import Lowered
from fabric.reference import Simulator
from fabric.workload.collectives import Rows, build_template
from fabric.workload.job import Job
from fabric.workload.program import ProgramBuilder, compute_template, message_template

FRAME_PS, ACK_PS = 83_200, 1_280
"""4160 and 64 bytes at 400 Gbit/s."""
ALPHA_PS = 2 * US
"""Two links."""
ARRIVAL_PS = 2 * FRAME_PS + ALPHA_PS
"""From posting a message of one frame to its arrival."""
PAYLOAD = 4096


def job_of(n_ranks: int, *operations: dict[str, Any], hosts: Any = None) -> Job:
    """A job from keywords of `ProgramBuilder.operation`; by default of all ranks, and a frame large."""
    builder = ProgramBuilder(n_ranks)
    for each in operations:
        given = {"ranks": range(n_ranks), **each}
        builder.operation(given.pop("template"), given.pop("size", PAYLOAD), **given)
    return Job(program=builder.build(), hosts=range(n_ranks) if hosts is None else hosts)


def lowered_of(*jobs: Job, hosts: int, local: dict[str, int] | None = None, **fields: Any) -> Lowered:
    return small_lowered(**with_jobs(*jobs, hosts=hosts, **(local or {})), **fields)


def run(lowered: Lowered, reason: str = "FINISHED") -> dict[str, Any]:
    """Columns of the readable engine, after the native one has given the same."""
    simulator, engine = Simulator(lowered), Engine(lowered)
    assert (simulator.run(), engine.run()) == (reason, reason)
    simulator.check_invariants()
    columns, native = simulator.columns(), engine.columns()
    for name in ("task_entered_ps", "task_left_ps", "operation_sent_bytes"):
        np.testing.assert_array_equal(native[name], columns[name], name)
    assert native["counters"] == columns["counters"]
    return columns


MESSAGE = {"template": message_template()}


class TestTimes:
    def test_one_message(self) -> None:
        columns = run(lowered_of(job_of(2, MESSAGE), hosts=2))
        assert columns["task_entered_ps"].tolist() == [0, 0]
        assert columns["task_left_ps"].tolist() == [ARRIVAL_PS + 2 * ACK_PS + ALPHA_PS, ARRIVAL_PS]
        assert columns["operation_sent_bytes"].tolist() == [PAYLOAD]

    def test_an_eager_sender_leaves_at_once(self) -> None:
        columns = run(lowered_of(job_of(2, {**MESSAGE, "eager": True}), hosts=2))
        assert columns["task_left_ps"].tolist() == [0, ARRIVAL_PS]

    @pytest.mark.parametrize("n_ranks", [2, 3, 8])
    def test_a_ring_takes_its_steps(self, n_ranks: int) -> None:
        """All ranks in step: each of the 2 (n - 1) steps takes one frame over two links."""
        ring = build_template("all_reduce", algorithm="ring", n_ranks=n_ranks)
        job = job_of(n_ranks, {"template": ring, "size": n_ranks * PAYLOAD, "eager": True})
        columns = run(lowered_of(job, hosts=n_ranks))
        steps = 2 * (n_ranks - 1)
        # the ACK of one step is in the way of the frame of the next
        least_ps = steps * ARRIVAL_PS
        assert np.ptp(columns["task_left_ps"]) == 0
        assert least_ps <= columns["task_left_ps"][0] <= least_ps + 2 * steps * ACK_PS
        assert columns["operation_sent_bytes"].tolist() == [steps * n_ranks * PAYLOAD]

    def test_a_late_rank_delays_those_who_wait_for_it(self) -> None:
        """Rank 0 computes first; rank 2 sends to rank 3 meanwhile, rank 1 receives when rank 0 has sent."""
        late = {"template": compute_template(), "size": 0, "ranks": [0], "compute_ps": 50 * US}
        first = {**MESSAGE, "ranks": [0, 1], "after": [0], "eager": True}
        second = {**MESSAGE, "ranks": [2, 3], "eager": True}
        columns = run(lowered_of(job_of(4, late, first, second), hosts=4))
        assert columns["task_entered_ps"].tolist() == [0, 50 * US, 0, 0, 0]
        assert columns["task_left_ps"].tolist() == [50 * US, 50 * US, 50 * US + ARRIVAL_PS, 0, ARRIVAL_PS]

    def test_an_operation_starts_when_it_says(self) -> None:
        job = job_of(1, {"template": compute_template(), "size": 0, "start_ps": 7})
        columns = run(lowered_of(job, hosts=2))
        assert (columns["task_entered_ps"].tolist(), columns["task_left_ps"].tolist()) == ([7], [7])


class TestMessages:
    @pytest.mark.parametrize(
        ("size", "frames", "last"), [(0, 1, 64), (1, 1, 65), (4097, 2, 65), (8192, 2, 4160)]
    )
    def test_frames_of_a_message(self, size: int, frames: int, last: int) -> None:
        job = job_of(2, {**MESSAGE, "size": size})
        simulator = Simulator(lowered_of(job, hosts=2, flow_record=2))
        assert simulator.run() == "FINISHED"
        rows = simulator.rows("packet")
        data = rows[(rows["kind"] == 0) & (rows["port"] == 0)]
        assert data["value"].tolist() == [4160] * (frames - 1) + [last]

    def test_frame_numbers_run_on(self) -> None:
        """Two operations of one group share a connection."""
        send = {**MESSAGE, "size": 2 * PAYLOAD}
        lowered = lowered_of(job_of(2, send, {**send, "after": [0]}), hosts=2)
        columns = run(lowered)
        assert (lowered.n_flows, columns["flow_sent"].tolist()) == (1, [4])
        assert columns["flow_delivered_ps"][0] == columns["task_left_ps"][3]

    def test_a_message_may_come_before_its_receiver(self) -> None:
        late = {"template": compute_template(), "size": 0, "ranks": [1], "compute_ps": 50 * US}
        columns = run(lowered_of(job_of(2, late, {**MESSAGE, "after": [0]}), hosts=2))
        assert columns["task_left_ps"][2] == columns["task_entered_ps"][2] == 50 * US

    def test_ranks_of_one_host_copy(self) -> None:
        """One after the other at the rate of the host, then the latency."""
        both = Rows()
        both.add([0, 0], [1, 1], piece=[0, 1], step=0)
        template = both.build("twice", "custom", n_ranks=2, n_pieces=2)
        job = job_of(2, {"template": template, "size": 2 * 1000, "eager": True}, hosts=[1, 1])
        lowered = lowered_of(job, hosts=2, local={"local_rate_bps": 8 * 10**9, "local_latency_ps": US})
        columns = run(lowered)
        assert lowered.program is not None
        assert (lowered.n_flows, lowered.program.n_local) == (0, 1)
        assert columns["task_left_ps"].tolist() == [0, 2 * 1_000_000 + US]
        assert columns["counters"]["hops"] == 0


class TestOrder:
    def test_joins_stand_for_many(self) -> None:
        """Rank 1 answers rank 0 when two messages have arrived, by way of two joins."""
        rows = Rows()
        first = rows.add([0, 0], [1, 1], piece=[0, 1], channel=[0, 1], step=0)
        join = rows.add(1, 1, piece=0, step=1, after=[first[np.newaxis, :]])
        again = rows.add(1, 1, piece=0, step=1, after=[join])
        rows.add(1, 0, piece=0, step=2, after=[again])
        template = rows.build("joined", "custom", n_ranks=2, n_pieces=2)
        job = job_of(2, {"template": template, "size": 2 * PAYLOAD, "eager": True})
        columns = run(lowered_of(job, hosts=2))
        second_ps = ARRIVAL_PS + FRAME_PS
        assert columns["task_left_ps"][1] == second_ps
        assert columns["task_left_ps"][0] >= second_ps + ARRIVAL_PS
        assert columns["operation_sent_bytes"].tolist() == [3 * PAYLOAD]

    def test_transfers_of_a_lane_go_in_order(self) -> None:
        """The second transfer of a lane waits for nothing, but the first does."""
        rows = Rows()
        arrival = rows.add(1, 0, piece=0, step=0)
        rows.add(0, 1, piece=0, step=1, after=[arrival])
        rows.add(0, 1, piece=1, step=1)
        template = rows.build("in order", "custom", n_ranks=2, n_pieces=2)
        job = job_of(2, {"template": template, "size": 2 * PAYLOAD, "eager": True})
        columns = run(lowered_of(job, hosts=2))
        assert columns["task_left_ps"][0] == ARRIVAL_PS
        assert columns["task_left_ps"][1] > 2 * ARRIVAL_PS

    @pytest.mark.parametrize("eager", [False, True])
    def test_a_transfer_follows_the_acknowledgement_of_another(self, eager: bool) -> None:
        """Rank 0 sends to rank 2 when rank 1 has all, and so knows."""
        rows = Rows()
        first = rows.add(0, 1, piece=0, step=0)
        rows.add(0, 2, piece=1, step=1, follows=first)
        template = rows.build("one by one", "custom", n_ranks=3, n_pieces=2)
        job = job_of(3, {"template": template, "size": 2 * PAYLOAD, "eager": eager})
        columns = run(lowered_of(job, hosts=3))
        round_ps = ARRIVAL_PS + 2 * ACK_PS + ALPHA_PS
        last_ps = round_ps if eager else 2 * round_ps
        assert columns["task_left_ps"].tolist() == [last_ps, ARRIVAL_PS, round_ps + ARRIVAL_PS]

    def test_copies_are_followed_too(self) -> None:
        """Three ranks of one host; a join follows the second copy, and another rank waits for it."""
        rows = Rows()
        first = rows.add(0, 1, piece=0, step=0)
        second = rows.add(0, 2, piece=0, step=1, follows=first)
        join = rows.add(0, 0, piece=0, step=2, follows=second)
        rows.add(0, 1, piece=0, step=3, after=[join])
        template = rows.build("one by one", "custom", n_ranks=3, n_pieces=1)
        job = job_of(3, {"template": template, "size": 1000}, hosts=[1, 1, 1])
        columns = run(lowered_of(job, hosts=2, local={"local_rate_bps": 8 * 10**9}))
        assert columns["task_left_ps"].tolist() == [3 * US, 3 * US, 2 * US]

    def test_a_group_of_one(self) -> None:
        alone = build_template("all_reduce", algorithm="ring", n_ranks=1)
        columns = run(lowered_of(job_of(1, {"template": alone, "size": 10**9}), hosts=2))
        assert columns["task_left_ps"].tolist() == [0]

    def test_two_jobs_have_their_own_connections(self) -> None:
        lowered = lowered_of(job_of(2, MESSAGE), job_of(2, MESSAGE), hosts=2)
        columns = run(lowered)
        assert (lowered.n_flows, columns["flow_sent"].tolist()) == (2, [1, 1])

    def test_overlapping_groups(self) -> None:
        """Rank 1 takes part in both all-reduces; the ranks that it meets first do not wait for the others."""
        ring = {"template": build_template("all_reduce", algorithm="ring", n_ranks=2), "size": 2 * PAYLOAD}
        first, second = {**ring, "ranks": [0, 1]}, {**ring, "ranks": [1, 2], "after": [0]}
        columns = run(lowered_of(job_of(3, first, second), hosts=3))
        left = columns["task_left_ps"]
        assert left[0] < left[3]
        assert columns["task_entered_ps"].tolist() == [0, 0, left[1], 0]


class TestWaiting:
    def test_what_is_missing_of_a_run_that_stalls(self) -> None:
        """Everything is lost on the way to rank 1, and nothing is sent again."""
        ring = build_template("all_reduce", algorithm="ring", n_ranks=3)
        job = job_of(3, {"template": ring, "size": 3 * PAYLOAD})
        lowered = lowered_of(job, hosts=3, ports={4: {"loss": 1.0}})
        simulator, engine = Simulator(lowered), Engine(lowered)
        assert (simulator.run(), engine.run()) == ("STALLED", "STALLED")
        posted, sent = simulator.waiting()
        assert [rows.tolist() for rows in engine.waiting()] == [posted.tolist(), sent.tolist()]
        assert simulator.columns()["task_left_ps"].tolist() == [-1, -1, -1]
        # each rank has one lane of four transfers; what came after the lost one is missing
        assert posted["posted"].tolist() == [3, 1, 2]
        assert set(sent["connection"].tolist()) == {0}
