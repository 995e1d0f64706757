"""What a step puts on the wire, packet by packet: the payload of each dimension is its volume, exactly.

Every data frame that leaves a host is recorded. The operations of one dimension run by themselves, so that
its frames are no other's; and all of them together, whose payload is the sum.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fabric._core import Engine
from fabric.lower import lower
from fabric.spec import LeafSpine, Permutation, Record, Scenario
from fabric.spec.run import PacketRecord
from fabric.training import Model, Parallelism, Step, StepTimes, TrainingJob, build_step, volumes
from fabric.training.volumes import GROUPS
from fabric.workload.job import Job
from fabric.workload.program import Program

DENSE = Model(layers=4, hidden=64, ffn=128, heads=8, vocabulary=1024, tied=True)
MIXTURE = Model(
    layers=4,
    hidden=64,
    ffn=128,
    heads=8,
    vocabulary=1024,
    tied=False,
    experts={"count": 8, "top_k": 2, "ffn": 32, "shared": 1},  # type: ignore[arg-type]
)
DATA = 0
"""Kind of a frame."""

JOBS: dict[str, tuple[Model, dict[str, Any], dict[str, Any], set[str]]] = {
    "dense": (DENSE, {"tp": 2, "dp": 2, "pp": 2}, {}, {"tp", "dp", "pp", "embedding"}),
    "one tensor rank": (DENSE, {"dp": 4, "pp": 2, "zero": 1}, {}, {"dp", "pp", "embedding"}),
    "sequence parallel, gathered again": (
        DENSE,
        {"tp": 4, "sp": True, "dp": 2, "zero": 2},
        {"regather": True, "gradient_bytes": 4},
        {"tp", "dp"},
    ),
    "recomputed, weights cut": (DENSE, {"tp": 2, "dp": 4, "zero": 3}, {"recompute": True}, {"tp", "dp"}),
    "context in a ring": (DENSE, {"cp": 2, "dp": 2, "pp": 2}, {}, {"cp", "dp", "pp", "embedding"}),
    "context gathered": (DENSE, {"tp": 2, "cp": 4}, {"context": "all_gather"}, {"tp", "cp", "dp"}),
    "context by heads": (DENSE, {"cp": 2, "dp": 4}, {"context": "all_to_all"}, {"cp", "dp"}),
    "experts over tensor and data ranks": (
        MIXTURE,
        {"tp": 2, "sp": True, "dp": 2, "pp": 2, "ep": 4, "etp": 1},
        {},
        {"tp", "dp", "pp", "ep"},
    ),
    "experts over context ranks": (
        MIXTURE,
        {"cp": 2, "dp": 2, "pp": 2, "ep": 4},
        {},
        {"cp", "dp", "pp", "ep"},
    ),
    "one tensor rank, many experts": (MIXTURE, {"dp": 8, "ep": 4}, {}, {"dp", "ep", "edp"}),
    "experts cut by tensor ranks": (
        MIXTURE,
        {"tp": 2, "sp": True, "dp": 4, "ep": 2, "etp": 2},
        {},
        {"tp", "dp", "ep", "etp", "edp"},
    ),
    "chunks": (DENSE, {"tp": 2, "dp": 2, "pp": 2, "vpp": 2}, {}, {"tp", "dp", "pp", "embedding"}),
}
"""Model, layout, what else, and the dimensions that send."""


def step_of(case: str) -> tuple[TrainingJob, Step]:
    model, layout, how, _ = JOBS[case]
    job = TrainingJob(model=model, sequence=64, global_batch=8, parallelism=Parallelism(**layout), **how)
    return job, build_step(job, times=StepTimes(forward_ps=1000, backward_ps=2000))


def payload_bytes(program: Program) -> int:
    """Of all data frames that leave hosts, each by its own size."""
    scenario = Scenario(
        topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=4),
        traffic=[Permutation(size="1KB", start="1s")],
        record=Record(packets=PacketRecord(ports=("host*",))),
    )
    engine = Engine(lower(scenario, jobs=[Job(program=program, hosts=np.arange(8))]))
    assert engine.run(until_ps=10**11) == "UNTIL"
    assert (engine.columns()["task_left_ps"] >= 0).all()
    assert not engine.columns()["drops_by_reason"].any()
    rows = engine.rows("packet")
    data = rows[rows["kind"] == DATA]
    return int(data["value"].sum()) - len(data) * int(scenario.transport.header)


def chosen(program: Program, keep: npt.NDArray[np.bool_]) -> Program:
    """Some operations of a program, which wait for nothing."""
    tasks = np.repeat(keep, np.diff(program.task_base))
    count = np.diff(program.task_base)[keep]
    columns = ("template", "size_bytes", "pieces", "start_ps", "compute_ps", "eager")
    none = np.zeros(0, dtype=np.int64)
    return replace(
        program,
        **{name: getattr(program, name)[keep] for name in columns},
        task_base=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        task_rank=program.task_rank[tasks],
        wait_task=none,
        wait_for=none,
    ).verify()


@pytest.mark.parametrize("case", JOBS)
def test_the_payload_of_each_dimension_is_its_volume(case: str) -> None:
    job, step = step_of(case)
    layout = job.parallelism
    assert layout.world == 8
    expected = dict.fromkeys(GROUPS, Fraction(0))
    for stage in range(layout.pp):
        for row in volumes(job, stage=stage):
            expected[row.dimension] += row.wire_bytes * (layout.world // layout.pp)
    assert {name for name, volume in expected.items() if volume} == JOBS[case][3]
    of = np.array(step.dimension)
    for name in JOBS[case][3]:
        assert payload_bytes(chosen(step.program, of == name)) == expected[name], name
    assert payload_bytes(step.program) == sum(expected.values())
