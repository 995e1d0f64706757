"""The step as a program: it sends exactly its volumes, in the order of its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.reference import Simulator
from fabric.spec import LeafSpine, Permutation, Router, Scenario, SingleSwitch
from fabric.training import (
    Model,
    Parallelism,
    PassTimes,
    Slowdown,
    Step,
    StepPlan,
    StepTimes,
    TokenRoutes,
    TrainingJob,
    build_step,
    execute,
    volumes,
)
from fabric.training.volumes import GROUPS
from fabric.workload.job import Job

TIMES = StepTimes(forward_ps=1000, backward_ps=2000, weight_ps=1000)


def job_of(layout: dict[str, Any], *, moe: bool = False, sp: bool = True, **how: Any) -> TrainingJob:
    experts = {"count": 8, "top_k": 2, "ffn": 32, "shared": 1, "dense_layers": 3}
    model = Model(
        layers=how.pop("layers", 8),
        hidden=64,
        ffn=128,
        heads=8,
        vocabulary=1024,
        tied=not moe,
        experts=experts if moe else None,  # type: ignore[arg-type]
    )
    world = layout.get("tp", 1) * layout.get("cp", 1) * layout.get("dp", 1)
    parallelism = Parallelism(
        **layout, sp=layout.get("tp", 1) > 1 and sp, etp=1, ep=min(world, 8) if moe else 1
    )
    return TrainingJob(
        **{"model": model, "sequence": 64, "global_batch": 8, "parallelism": parallelism, **how}
    )


def ideal(step: Step) -> float:
    """End of the last operation if all that is sent arrives at once: every rank on one host."""
    scenario = Scenario(topology=SingleSwitch(hosts=2), traffic=[Permutation(size="1KB")])
    hosts = np.zeros(step.program.n_ranks, dtype=np.int64)
    engine = Engine(lower(scenario, jobs=[Job(program=step.program, hosts=hosts)]))
    engine.run()
    left = engine.columns()["task_left_ps"]
    assert (left >= 0).all()
    return float(left.max())


CASES = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "cp": st.sampled_from([1, 2]),
        "dp": st.sampled_from([1, 2]),
        "pp": st.sampled_from([1, 2, 4]),
        "vpp": st.sampled_from([1, 2]),
        "zero": st.integers(0, 3),
    }
)
HOW = st.fixed_dictionaries(
    {
        "moe": st.booleans(),
        "recompute": st.booleans(),
        "regather": st.booleans(),
        "accumulate": st.booleans(),
        "context": st.sampled_from(["ring", "all_gather", "all_to_all"]),
        "gradient_bytes": st.sampled_from([2, 4]),
        "global_batch": st.sampled_from([8, 16]),
    }
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(CASES, HOW, st.booleans())
def test_a_step_sends_its_volumes(layout: dict[str, int], how: dict[str, Any], cut: bool) -> None:
    sp = cut or how["moe"]
    how["regather"] = how["regather"] and layout["tp"] > 1 and sp
    job = job_of(layout, sp=sp, **how)
    step = build_step(job, times=TIMES)
    stage_of = job.parallelism.coordinates(np.arange(job.parallelism.world))["pp"]
    sends = {name: step.sent_bytes(name) for name in GROUPS}
    for stage in range(job.parallelism.pp):
        expected: dict[str, Fraction] = {}
        for row in volumes(job, stage=stage):
            expected[row.dimension] = expected.get(row.dimension, Fraction(0)) + row.wire_bytes
        here = stage_of == stage
        for dimension in GROUPS:
            sent = sends[dimension][here]
            wanted = expected.get(dimension, Fraction(0))
            assert sent.sum() == wanted * int(here.sum()) or dimension == "embedding"
            assert abs(sent - float(wanted)).max() <= 2 * len(step.dimension)


SCHEDULED = [
    (name, pp, overlap)
    for name in ("gpipe", "1f1b", "interleaved", "zb1p", "dualpipe")
    for pp in (1, 2, 4)
    for overlap in (False, True)
    if name != "dualpipe" or (pp > 1 and not overlap)
]


@pytest.mark.parametrize(("name", "pp", "overlap"), SCHEDULED)
def test_compute_follows_the_schedule(name: str, pp: int, overlap: bool) -> None:
    vpp = 2 if name == "interleaved" else 1
    job = job_of({"tp": 2, "dp": 2, "pp": pp, "vpp": vpp}, global_batch=16)
    step = build_step(
        job,
        times=StepTimes(forward_ps=1000, backward_ps=2000, weight_ps=1000, update_ps=7),
        plan=StepPlan(schedule=name, two_batch_overlap=overlap),
    )
    layers = 8 / (pp * vpp)
    chunk = PassTimes(forward=1000 * layers, backward=2000 * layers, weight=1000 * layers)
    assert ideal(step) == execute(step.schedule, chunk).makespan + 7


def test_one_slow_rank_delays_all() -> None:
    job = job_of({"tp": 2, "dp": 2, "pp": 2})
    even = ideal(build_step(job, times=StepTimes(forward_ps=1000, backward_ps=2000, update_ps=10)))
    slowness = [1.0] * 8
    slowness[3] = 1.5
    slow = ideal(
        build_step(
            job,
            times=StepTimes(forward_ps=1000, backward_ps=2000, update_ps=10),
            plan=StepPlan(slowdown=Slowdown.of(slowness)),
        )
    )
    assert slow > even
    all_slow = build_step(
        job,
        times=StepTimes(forward_ps=1000, backward_ps=2000, update_ps=10),
        plan=StepPlan(slowdown=Slowdown.of([1.5] * 8)),
    )
    assert ideal(all_slow) == 1.5 * even


@dataclass
class Given(TokenRoutes):
    """Copies as given, whatever the router says."""

    copies: Any = None

    def _route(self, turn: int, ranks: Any) -> Any:
        return self.copies, self.copies.sum(axis=0) / self.copies.sum(axis=1).mean()


def test_skewed_experts_send_what_their_matrix_says() -> None:
    job = job_of({"dp": 4}, moe=True)
    assert job.parallelism.ep == 4
    copies = np.array([[32, 96, 0, 0], [0, 128, 0, 0], [1, 1, 2, 124], [32, 32, 32, 32]])
    routes = Given(job=job, router=Router(), server_of=np.zeros(4, dtype=np.int64), copies=copies)
    step = build_step(job, times=TIMES, plan=StepPlan(routes=routes))
    token = 2 * 64
    out, back = copies.sum(axis=1) - np.diag(copies), copies.sum(axis=0) - np.diag(copies)
    passes = 5 * job.micro_batches
    assert step.sent_bytes("ep").tolist() == (2 * passes * token * (out + back)).tolist()


def test_gradients_are_reduced_beside_what_is_left() -> None:
    """The first chunks to end reduce while others still compute: no compute waits for a reduction."""
    step = build_step(job_of({"dp": 2, "pp": 2, "vpp": 2}), times=TIMES)
    program = step.program
    later, earlier = program.operation_of(program.wait_task), program.operation_of(program.wait_for)
    for operation, before in zip(later.tolist(), earlier.tolist(), strict=True):
        if step.dimension[before] == "dp":
            assert step.dimension[operation] != "compute"
    first = step.dimension.index("dp")
    assert "compute" in step.dimension[first:]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"schedule": "dualpipe"}, "micro_batches"),
        ({"schedule": "never"}, "never"),
        ({"slowdown": Slowdown.of([1.0])}, "slowness"),
        ({"algorithms": {"all_reduce": "pigeon"}}, "pigeon"),
    ],
)
def test_steps_that_are_none(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        build_step(job_of({"tp": 2, "pp": 2}, sp=False, global_batch=2), times=TIMES, plan=StepPlan(**given))


def test_times_that_are_none() -> None:
    with pytest.raises(SpecError, match="slowness"):
        Slowdown.of([-1.0])
    with pytest.raises(SpecError, match="forward_ps"):
        StepTimes(forward_ps=-1, backward_ps=1)
    with pytest.raises(SpecError, match="weight_ps"):
        StepTimes(forward_ps=1, backward_ps=1, weight_ps=2)


def test_both_engines_run_a_step_and_send_its_volumes() -> None:
    """Payload by dimension, of a mixture of experts on 16 ranks with every dimension but context."""
    job = job_of({"tp": 2, "dp": 2, "pp": 4, "zero": 1}, moe=True)
    step = build_step(job, times=TIMES, plan=StepPlan(schedule="zb1p"))
    scenario = Scenario(
        topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=8), traffic=[Permutation(size="1KB")]
    )
    lowered = lower(scenario, jobs=[Job(program=step.program, hosts=np.arange(16))])
    of = np.array(step.dimension)
    stages = job.parallelism.pp
    each = [volumes(job, stage=stage) for stage in range(stages)]
    ends = []
    for engine in (Engine(lowered), Simulator(lowered)):
        assert engine.run() == "FINISHED"
        columns = engine.columns()
        assert (columns["task_left_ps"] >= 0).all()
        assert columns["task_left_ps"].max() > ideal(step)
        sent = columns["operation_sent_bytes"]
        for dimension in ("tp", "ep", "dp", "edp", "pp"):
            per_stage = [sum(row.wire_bytes for row in rows if row.dimension == dimension) for rows in each]
            assert sent[of == dimension].sum() == sum(per_stage) * 4, dimension
        assert not sent[of == "compute"].any()
        ends.append(columns["task_left_ps"].tolist())
    assert ends[0] == ends[1]
