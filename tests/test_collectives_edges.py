"""Programs at the edges: groups of one, no bytes, sizes that do not divide, orders, waits for ever.

Both engines run each of them and give the same; what cannot run says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support_lowered import small_lowered
from support_programs import with_jobs
from support_templates import ALGORITHMS

import fabric
from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lowered import Lowered
from fabric.lowering.programs import lower_jobs
from fabric.reference import Simulator
from fabric.workload.collectives import Rows, Template, build_template
from fabric.workload.job import Job
from fabric.workload.program import ProgramBuilder

WITH_SIZES = [which for which in ALGORITHMS if which[0] != "all_to_all_v"]


def run(*jobs: Job, hosts: int, reason: str = "FINISHED", **fields: Any) -> dict[str, Any]:
    """Columns of both engines, which are the same."""
    lowered = small_lowered(**with_jobs(*jobs, hosts=hosts), **fields)
    return run_lowered(lowered, reason)


def run_lowered(lowered: Lowered, reason: str = "FINISHED") -> dict[str, Any]:
    simulator, engine = Simulator(lowered), Engine(lowered)
    assert (simulator.run(), engine.run()) == (reason, reason)
    simulator.check_invariants()
    columns, native = simulator.columns(), engine.columns()
    for name in ("task_entered_ps", "task_left_ps", "operation_sent_bytes"):
        np.testing.assert_array_equal(native[name], columns[name], name)
    assert native["counters"] == columns["counters"]
    return columns


def alone(template: Template, size: int, *, hosts: Any = None, eager: bool = False) -> Job:
    """One operation of all ranks, and of reducers."""
    places = template.n_ranks + template.n_reducers
    builder = ProgramBuilder(template.n_ranks)
    builder.operation(template, size, ranks=range(places), eager=eager)
    return Job(program=builder.build(), hosts=range(places) if hosts is None else hosts)


@pytest.mark.parametrize("which", WITH_SIZES, ids="{0[0]}-{0[1]}".format)
class TestEveryAlgorithm:
    def test_a_group_of_one(self, which: tuple[str, str]) -> None:
        """It enters and leaves, and sends nothing."""
        template = build_template(which[0], algorithm=which[1], n_ranks=1)
        size = 0 if which[0] == "barrier" else 10**9
        columns = run(alone(template, size), hosts=2)
        assert columns["task_left_ps"].tolist() == [0]
        assert columns["operation_sent_bytes"].tolist() == [0]

    @pytest.mark.parametrize(("size", "n_ranks"), [(0, 4), (1, 5), (7, 3), (4097, 6), (10_007, 7)])
    def test_sizes_that_do_not_divide(self, which: tuple[str, str], size: int, n_ranks: int) -> None:
        """No bytes at all included: then every message is a frame of the smallest size."""
        template = build_template(which[0], algorithm=which[1], n_ranks=n_ranks)
        columns = run(alone(template, size), hosts=n_ranks + template.n_reducers)
        assert (columns["task_left_ps"] > 0).all()
        assert columns["operation_sent_bytes"].tolist() == [int(template.transfer_bytes(size).sum())]

    def test_all_ranks_on_one_host(self, which: tuple[str, str]) -> None:
        """Everything is copied: nothing crosses a wire."""
        template = build_template(which[0], algorithm=which[1], n_ranks=6)
        places = template.n_ranks + template.n_reducers
        columns = run(alone(template, 6000, hosts=[1] * places), hosts=2)
        assert (columns["task_left_ps"] == 0).all()
        assert columns["counters"]["hops"] == 0
        assert columns["operation_sent_bytes"].tolist() == [int(template.transfer_bytes(6000).sum())]

    def test_two_ranks_a_host(self, which: tuple[str, str]) -> None:
        template = build_template(which[0], algorithm=which[1], n_ranks=6)
        places = template.n_ranks + template.n_reducers
        columns = run(alone(template, 6000, hosts=[rank // 2 for rank in range(places)]), hosts=4)
        assert (columns["task_left_ps"] >= 0).all()


def ring_of(n_ranks: int) -> Template:
    return build_template("all_reduce", algorithm="ring", n_ranks=n_ranks)


class TestGroups:
    def test_overlapping_groups_at_once(self) -> None:
        """Two all-reduces share ranks 2 and 3, and wait for nothing: connections are each group's own."""
        builder = ProgramBuilder(6)
        ring = ring_of(4)
        for ranks in (range(4), range(2, 6)):
            builder.operation(ring, 40_000, ranks=ranks)
        columns = run(Job(program=builder.build(), hosts=range(6)), hosts=6)
        assert columns["operation_sent_bytes"].tolist() == [240_000, 240_000]
        assert len(columns["flow_sent"]) == 8

    def test_a_group_in_another_order_is_another_ring(self) -> None:
        builder = ProgramBuilder(4)
        ring = ring_of(4)
        first = builder.operation(ring, 40_000, ranks=(0, 1, 2, 3))
        builder.operation(ring, 40_000, ranks=(0, 2, 1, 3), after=[first])
        columns = run(Job(program=builder.build(), hosts=range(4)), hosts=4)
        assert len(columns["flow_sent"]) == 8
        assert (columns["task_entered_ps"][4:] == columns["task_left_ps"][[0, 2, 1, 3]]).all()

    def test_orders_that_differ_but_end(self) -> None:
        """Ranks 0 and 1 are in A then B, ranks 2 and 3 in B then C; B waits for A, C for B."""
        builder = ProgramBuilder(4)
        pair, four = ring_of(2), ring_of(4)
        first = builder.operation(pair, 20_000, ranks=(0, 1))
        all_of_them = builder.operation(four, 20_000, ranks=(3, 1, 0, 2), after=[first])
        builder.operation(pair, 20_000, ranks=(3, 2), after=[all_of_them])
        columns = run(Job(program=builder.build(), hosts=range(4)), hosts=4)
        assert (columns["task_left_ps"] > 0).all()

    def test_reducers_may_serve_several_operations(self) -> None:
        """Two trees of switches have their top in common."""
        tree = build_template("all_reduce", algorithm="in_network", n_ranks=4, fan_in=(2, 2))
        assert (tree.n_ranks, tree.n_reducers) == (4, 3)
        builder = ProgramBuilder(8)
        builder.operation(tree, 4000, ranks=(0, 1, 2, 3, 8, 9, 12))
        builder.operation(tree, 4000, ranks=(4, 5, 6, 7, 10, 11, 12))
        columns = run(Job(program=builder.build(), hosts=range(13)), hosts=13)
        # up and down, on each of the six edges of a tree
        assert columns["operation_sent_bytes"].tolist() == [2 * 6 * 4000] * 2

    def test_a_reducer_needs_a_host(self) -> None:
        tree = build_template("all_reduce", algorithm="in_network", n_ranks=4)
        with pytest.raises(SpecError, match=r"hosts: 4 hosts .*; expected one for each of 5 ranks"):
            run(alone(tree, 4000, hosts=range(4)), hosts=5)


def test_tables_are_as_small_as_the_algorithm() -> None:
    """Halving-doubling on 2,048 ranks: n lg n connections, and for each of 2 n lg n messages a few
    words, and one for each that it waits for (at most lg n of each half)."""
    n_ranks, rounds = 2048, 11
    template = build_template("all_reduce", algorithm="halving_doubling", n_ranks=n_ranks)
    lowered = lower_jobs([alone(template, 8_000_000)], n_hosts=n_ranks)
    arrays = [each for each in vars(lowered.program).values() if isinstance(each, np.ndarray)]
    assert lowered.program.n_connections == len(lowered.flows) == n_ranks * rounds
    assert len(lowered.program.transfer_lane) <= 2 * n_ranks * rounds
    assert sum(each.nbytes for each in arrays) < (64 + 4 * 2 * rounds) * 2 * n_ranks * rounds


def crossed() -> Job:
    """Rank 0 enters A, then B; rank 1 enters B, then A. Each stays in its first until the other comes."""
    builder = ProgramBuilder(2)
    ring = ring_of(2)
    first, second = (builder.operation(ring, 2000, ranks=(0, 1)) for _ in range(2))
    between = builder.compute(0, picoseconds=0, after=[first])
    builder.wait(second, between)
    between = builder.compute(1, picoseconds=0, after=[second])
    builder.wait(first, between)
    return Job(program=builder.build(), hosts=range(2), entry=0)


class TestEndsThatNeverCome:
    def test_crossed_orders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The run ends, and says who waits where for whom."""
        monkeypatch.setattr("fabric.simulate.scenario_jobs", lambda scenario, network: [crossed()])
        scenario = fabric.Scenario(
            topology=fabric.SingleSwitch(hosts=2), traffic=[fabric.Collective(algorithm="ring", size=2000)]
        )
        result = fabric.run(scenario)
        assert result.status == "STALLED"
        rows = [
            (row["rank"], row["lacks"], row["peer"], row["peer_has_entered"])
            for row in (result.waiting[number] for number in range(len(result.waiting)))
        ]
        assert sorted(rows) == [(0, "data", 1, False), (1, "data", 0, False)]
        for rank, other in ((0, 1), (1, 0)):
            expected = f"for 2 transfers from rank {other}, which has not entered"
            assert f"rank {rank} waits in " in result.stopped
            assert expected in result.stopped

    def test_a_send_whose_turn_never_comes(self) -> None:
        """The first message of rank 0 is lost for good: rank 1 and rank 2, whose turn is next, get none."""
        rows = Rows()
        first = rows.add(0, 1, piece=0, step=0)
        rows.add(0, 2, piece=0, step=1, follows=first)
        template = rows.build("one by one", "custom", n_ranks=3, n_pieces=1)
        lowered = small_lowered(**with_jobs(alone(template, 2000), hosts=3), ports={0: {"loss": 1.0}})
        columns = run_lowered(lowered, "STALLED")
        assert columns["task_left_ps"].tolist() == [-1, -1, -1]
        engine = Engine(lowered)
        engine.run()
        posted, on_their_way = engine.waiting()
        assert posted["posted"].tolist() == [1, 0]
        assert on_their_way["transfer"].tolist() == [0]

    def test_a_wait_for_oneself_is_refused(self) -> None:
        builder = ProgramBuilder(2)
        ring = ring_of(2)
        first = builder.operation(ring, 100, ranks=(0, 1))
        second = builder.operation(ring, 100, ranks=(1, 0), after=[first])
        builder.wait(first, second)
        with pytest.raises(SpecError, match="operations that do not wait for themselves"):
            builder.build()
