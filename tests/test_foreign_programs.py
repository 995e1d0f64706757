"""Real GOAL, MSCCL and htsim files as programs and templates, where they are at hand.

Where they are looked for: see `test_foreign_files`. What must be found was counted in the files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_foreign_files import MATRICES, SAMPLES, TOTALS

import fabric
from fabric.formats.msccl_xml import STEP_TYPES, parse_msccl
from fabric.workload.collectives import check_template
from fabric.workload.collectives.levels import depth
from fabric.workload.collectives.msccl import import_msccl
from fabric.workload.goal import export_goal, import_goal
from fabric.workload.matrix_program import import_matrix

GOALS = {
    "loggopsim/binary_tree_32.goal": (32, 31, 26, 31),
    "spcl-htsim/goal/incast_8_1_2MiB.goal": (16, 2, 1, 160_000_000),
    "spcl-htsim/goal/one_send.goal": (16, 1, 0, 80_000_000),
}
"""Ranks, messages, waits, bytes."""

RING = {"s": 4, "rrs": 8, "rrcs": 4, "rcs": 8, "r": 4}
ALGORITHMS = {
    "msccl-tools/allreduce_ring_4.xml": ("all_reduce", 4, 4, RING, 24, 6, 6),
    "msccl-tools/alltoall_allpairs_4.xml": ("all_to_all", 4, 24, {"s": 12, "r": 12, "cpy": 4}, 12, 3, 1),
    "msccl-tools/allgather_recursive_doubling_8.xml": (
        *("all_gather", 8, 24),
        {"s": 24, "r": 24, "nop": 8},
        *(24, 7, 3),
    ),
    "astra-sim/custom_ring_allreduce_8npus_1MB/custom_allreduce.xml": (
        *("all_reduce", 8, 8),
        {"s": 112, "rrc": 56, "r": 56},
        *(112, 14, 14),
    ),
}
"""Collective, ranks, thread blocks, steps, messages, chunks that each rank sends, depth."""

pytestmark = pytest.mark.skipif(not MATRICES, reason="no files of other simulators here")


@pytest.mark.parametrize("name", GOALS)
def test_goal_files(tmp_path: Path, name: str) -> None:
    program, remarks = import_goal(SAMPLES / name)
    waits = len(program.wait_task)
    found = (program.n_ranks, program.n_messages, waits, int(program.size_bytes.sum()))
    assert found == GOALS[name]
    assert not remarks
    copy = tmp_path / "copy.goal"
    copy.write_text("".join(export_goal(program)))
    again, _ = import_goal(copy)
    for column in ("template", "size_bytes", "task_rank", "wait_task", "wait_for"):
        assert np.array_equal(getattr(program, column), getattr(again, column))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_msccl_files(name: str) -> None:
    collective, ranks, blocks, steps, messages, chunks, deep = ALGORITHMS[name]
    given = parse_msccl(SAMPLES / name)
    kinds, counts = np.unique(given.step_type, return_counts=True)
    found = {STEP_TYPES[kind]: int(count) for kind, count in zip(kinds, counts, strict=True)}
    assert (given.collective, given.n_ranks, len(given.block_rank), found) == (
        collective,
        ranks,
        blocks,
        steps,
    )
    template = import_msccl(given)
    check_template(template)
    assert (template.n_messages, depth(template)) == (messages, deep)
    sent = np.bincount(template.source, weights=template.transfer_bytes(given.n_chunks), minlength=ranks)
    assert sent.tolist() == [chunks] * ranks


@pytest.mark.parametrize("file", MATRICES, ids=lambda file: file.name)
def test_matrices_are_programs(file: Path) -> None:
    program, _ = import_matrix(file)
    flows, waits, size = TOTALS[file.name]
    assert (program.n_messages, len(program.wait_task), int(program.size_bytes.sum())) == (flows, waits, size)


@pytest.mark.parametrize("name", [*GOALS, *ALGORITHMS])
def test_programs_run(name: str) -> None:
    """As traffic, recognised by content, on a host for each rank; what is sent is what the program says."""
    is_goal = name in GOALS
    ranks = GOALS[name][0] if is_goal else ALGORITHMS[name][1]
    program = fabric.Program(file=str(SAMPLES / name), size=None if is_goal else "1MB")
    scenario = fabric.Scenario(topology=fabric.SingleSwitch(hosts=ranks), traffic=[program])
    result = fabric.run(scenario)
    assert result.status == "FINISHED"
    assert (result.ranks["left_ps"] >= 0).all()
    if is_goal:
        assert int(result.operations["sent_bytes"].sum()) == GOALS[name][3]
