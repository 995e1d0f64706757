"""Programs as Chakra traces and back: random ones mean the same, and end at the same picosecond."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support_chakra_programs import ended, random_program, waits, written
from support_programs import random_job

from fabric.errors import SpecError
from fabric.formats.chakra import read_chakra
from fabric.workload.chakra import import_chakra
from fabric.workload.chakra_export import export_chakra
from fabric.workload.collectives import Collective
from fabric.workload.program import ProgramBuilder


@pytest.mark.parametrize("collectives", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_a_program_comes_back_and_ends_when_it_did(tmp_path: Path, seed: int, collectives: bool) -> None:
    """To the picosecond, without channels, which nodes have not."""
    program = random_program(seed, chained=True)
    again, _ = import_chakra(written(program, tmp_path, collectives=collectives))
    one, other = ended(program), ended(again)
    assert (one[0], one[2]) == (other[0], other[2])
    if not any(template.channel.any() for template in program.templates):
        assert one[1] == other[1]


@pytest.mark.parametrize("collectives", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_a_program_comes_back_with_its_bytes(tmp_path: Path, seed: int, collectives: bool) -> None:
    program = random_program(seed, chained=False)
    again, _ = import_chakra(written(program, tmp_path, collectives=collectives))
    one, other = ended(program), ended(again)
    assert (one[0], one[2]) == (other[0], other[2])
    assert again.n_messages == program.n_messages


@pytest.mark.parametrize("seed", range(25))
def test_an_order_of_computation_never_waits_in_a_circle(tmp_path: Path, seed: int) -> None:
    """Whatever the waits: traces that do not say that computation may overlap run to their end."""
    file = written(random_program(seed, chained=False), tmp_path, collectives=True)
    for each in tmp_path.glob("*.et"):
        each.write_bytes(each.read_bytes().replace(b"concurrent", b"unknown..."))
    program, _ = import_chakra(file)
    status, _, _ = ended(program.verify())
    assert status == "FINISHED"
    spans: dict[int, list[int]] = {}
    for operation in np.flatnonzero(program.compute_ps > 0).tolist():
        spans.setdefault(int(program.ranks_of(operation)[0]), []).append(operation)
    before = {(later, earlier) for _, later, earlier in waits(program)}
    for own in spans.values():
        if len(own) == 2:
            assert any(reaches(before, *pair) for pair in (own, own[::-1]))


def reaches(before: set[tuple[int, int]], later: int, earlier: int) -> bool:
    """Whether one operation waits for another, directly or not."""
    todo, seen = [later], set()
    while todo:
        at = todo.pop()
        if at == earlier:
            return True
        for each in {other for one, other in before if one == at} - seen:
            seen.add(each)
            todo.append(each)
    return False


@pytest.mark.parametrize("seed", range(10))
def test_programs_by_chance_come_back(tmp_path: Path, seed: int) -> None:
    """Templates without meaning, with joins and sends after sends."""
    draw = random.Random(seed)
    job = random_job(draw, 4, most_bytes=20_000)
    again, _ = import_chakra(written(job.program, tmp_path, collectives=True))
    assert again.n_messages == job.program.n_messages
    assert again.n_ranks == job.program.n_ranks


def test_a_second_time_nothing_changes(tmp_path: Path) -> None:
    for seed in range(10):
        first, second = tmp_path / f"{seed}", tmp_path / f"{seed}-again"
        first.mkdir()
        second.mkdir()
        once, _ = import_chakra(written(random_program(seed, chained=True), first, collectives=True))
        twice, _ = import_chakra(written(once, second, collectives=True))
        for column in ("size_bytes", "compute_ps", "eager", "task_rank"):
            assert sorted(getattr(once, column)) == sorted(getattr(twice, column)), column
        assert len(once.wait_task) == len(twice.wait_task)
        assert ended(once) == ended(twice)


def test_nodes_are_what_other_readers_expect(tmp_path: Path) -> None:
    work = ProgramBuilder(n_ranks=4)
    pair = Collective(kind="all_gather", n_ranks=2, size_bytes=4096, algorithm="ring")
    first = work.collective(pair, ranks=[1, 3], compute_ps=2500)
    work.message(3, 0, size_bytes=77, after=[first])
    file = written(work.build(), tmp_path, collectives=True)
    assert json.loads((tmp_path / "comm_groups.json").read_text()) == {"1": [1, 3]}
    trace = read_chakra(file.with_name("x.3.et"))
    assert trace.version == "0.0.4"
    assert Counter(trace.kind.tolist()) == {4: 1, 7: 1, 5: 1}
    of = {int(kind): place for place, kind in enumerate(trace.kind)}
    assert (trace.comm_type[of[7]], trace.comm_size[of[7]], trace.group[of[7]]) == (2, 2048, "1")
    assert (trace.duration_us[of[4]], trace.duration_ps[of[4]]) == (0, 2500)
    assert (trace.comm_dst[of[5]], trace.comm_size[of[5]]) == (0, 77)
    assert len(read_chakra(file.with_name("x.2.et"))) == 0


def test_what_chakra_has_not_is_refused() -> None:
    from fabric.workload.collectives import build_template

    work = ProgramBuilder(n_ranks=5)
    work.operation(build_template("all_reduce", algorithm="in_network", n_ranks=4), 9, ranks=(0, 1, 2, 3, 5))
    with pytest.raises(SpecError, match="reducers"):
        export_chakra(work.build())
