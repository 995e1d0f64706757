"""Chakra traces as programs, and programs as Chakra traces: small ones written here, and random ones."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support_chakra import attribute, collective, node, put, receive, send, traces, varint
from support_programs import random_job

import fabric
from fabric._core import Engine
from fabric.cli import main
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.formats.chakra import read_chakra
from fabric.lower import lower
from fabric.spec import Permutation, Scenario, SingleSwitch
from fabric.workload.chakra import import_chakra
from fabric.workload.chakra_export import export_chakra
from fabric.workload.collectives import Collective
from fabric.workload.job import Job
from fabric.workload.program import Program, ProgramBuilder

US = 10**6
ALL_REDUCE, ALL_GATHER, BROADCAST, BARRIER = 0, 2, 5, 9


def after(*numbers: int) -> bytes:
    return put(5, b"".join(map(varint, numbers)))


def waits(program: Program) -> set[tuple[int, int, int]]:
    """Rank, operation, and the operation that it waits for there."""
    later, earlier = program.operation_of(program.wait_task), program.operation_of(program.wait_for)
    rank = program.task_rank[program.wait_task]
    return set(zip(rank.tolist(), later.tolist(), earlier.tolist(), strict=True))


class TestImport:
    def test_a_send_meets_a_receive(self, tmp_path: Path) -> None:
        file = traces(
            tmp_path,
            node(1, 4, put(7, 3)) + send(2, 1, 500, after(1)),
            receive(9, 0, 500) + node(4, 4, after(9), put(7, 5)),
        )
        program, remarks = import_chakra(file)
        assert not remarks
        assert (program.n_ranks, len(program), program.n_messages) == (2, 3, 1)
        assert program.size_bytes.tolist() == [500, 0, 0]
        assert program.compute_ps.tolist() == [0, 3 * US, 5 * US]
        assert [program.ranks_of(each).tolist() for each in range(3)] == [[0, 1], [0], [1]]
        assert waits(program) == {(0, 0, 1), (1, 2, 0)}
        assert program.eager.tolist()[0]

    def test_a_wait_is_of_one_rank_alone(self, tmp_path: Path) -> None:
        """The sender orders its two messages, the receiver does not."""
        file = traces(
            tmp_path,
            send(1, 1, 10, tag=1) + send(2, 1, 20, after(1), tag=2),
            receive(1, 0, 10, tag=1) + receive(2, 0, 20, tag=2),
        )
        program, _ = import_chakra(file)
        assert waits(program) == {(0, 1, 0)}

    def test_messages_of_one_tag_meet_in_the_order_of_issue(self, tmp_path: Path) -> None:
        """Not of the file: node 3 is issued first, though it stands last."""
        file = traces(
            tmp_path,
            send(5, 1, 50, after(3)) + send(3, 1, 30),
            receive(7, 0, 50, after(6)) + receive(6, 0, 30),
        )
        program, _ = import_chakra(file)
        assert program.size_bytes.tolist() == [30, 50]

    def test_sizes_of_collectives(self, tmp_path: Path) -> None:
        """An all-gather's is one rank's part; elements have bytes."""
        own = collective(1, ALL_REDUCE, 1000, name="a") + collective(2, ALL_GATHER, 1000, name="b")
        file = traces(tmp_path, own, own, own, own)
        assert import_chakra(file)[0].size_bytes.tolist() == [1000, 4000]
        assert import_chakra(file, element_bytes=2)[0].size_bytes.tolist() == [2000, 8000]

    def test_collectives_belong_together_by_name(self, tmp_path: Path) -> None:
        one = collective(1, ALL_REDUCE, 8, name="x") + collective(2, ALL_REDUCE, 16, name="y")
        other = collective(1, ALL_REDUCE, 16, name="y") + collective(2, ALL_REDUCE, 8, name="x")
        assert import_chakra(traces(tmp_path, one, other))[0].size_bytes.tolist() == [8, 16]

    def test_or_by_order_where_names_differ(self, tmp_path: Path) -> None:
        one = collective(1, ALL_REDUCE, 8, name="rank 0, b") + collective(2, ALL_REDUCE, 16, name="rank 0, a")
        other = collective(1, ALL_REDUCE, 8, name="rank 1") + collective(2, ALL_REDUCE, 16, name="rank 1")
        assert import_chakra(traces(tmp_path, one, other))[0].size_bytes.tolist() == [8, 16]

    @pytest.mark.parametrize("group", ["", "0"])
    def test_no_group_is_all_ranks(self, tmp_path: Path, group: str) -> None:
        own = collective(1, ALL_REDUCE, 8, group=group)
        program, _ = import_chakra(traces(tmp_path, own, own, own))
        assert program.ranks_of(0).tolist() == [0, 1, 2]

    def test_groups_beside_the_traces_or_named(self, tmp_path: Path) -> None:
        own = collective(1, ALL_REDUCE, 8, group="7")
        file = traces(tmp_path, own, own, groups='{"7": [1, 0]}')
        assert import_chakra(file)[0].ranks_of(0).tolist() == [1, 0]
        named = tmp_path / "mine.json"
        named.write_text('{"7": [0, 1]}')
        assert import_chakra(file, groups=named)[0].ranks_of(0).tolist() == [0, 1]
        (tmp_path / "w.comm_groups.json").write_text('{"7": [0]}')
        with pytest.raises(SpecError, match="a group with rank 1 in it"):
            import_chakra(file)

    def test_the_root_is_first(self, tmp_path: Path) -> None:
        own = collective(1, BROADCAST, 9, attribute("comm_src", 2, arm=7))
        program, _ = import_chakra(traces(tmp_path, own, own, own))
        assert program.ranks_of(0).tolist() == [2, 0, 1]
        barrier = collective(1, BARRIER, 0)
        assert import_chakra(traces(tmp_path, barrier, barrier, barrier))[0].size_bytes.tolist() == [0]

    def test_algorithms(self, tmp_path: Path) -> None:
        own = collective(1, ALL_REDUCE, 8, attribute("algorithm", "direct"))
        file = traces(tmp_path, *[own] * 4)
        assert import_chakra(file)[0].templates[0].name == "direct"
        asked = import_chakra(file, algorithms={"all_reduce": "halving_doubling"})[0]
        assert asked.templates[0].name == "halving_doubling"
        plain = traces(tmp_path, *[collective(1, ALL_REDUCE, 8)] * 4)
        assert import_chakra(plain)[0].templates[0].name == "ring"

    def test_operations_without_a_time(self, tmp_path: Path) -> None:
        file = traces(tmp_path, node(1, 4, attribute("num_ops", 5000)))
        program, remarks = import_chakra(file)
        assert program.compute_ps.tolist() == [0]
        assert ["flops" in str(each) for each in remarks] == [True]
        program, remarks = import_chakra(file, flops=1e9)
        assert (program.compute_ps.tolist(), remarks) == ([5 * US], [])

    def test_computation_is_done_one_at_a_time(self, tmp_path: Path) -> None:
        """The smallest number of what is ready first; a CPU computes beside the accelerator."""
        loose = (
            node(3, 4, put(7, 1))
            + node(2, 4, after(9), put(7, 1))
            + node(9, 4, put(7, 1))
            + node(4, 4, put(7, 2))
            + node(1, 4, put(7, 5), attribute("is_cpu_op", 1))
            + node(5, 4)
        )
        program, remarks = import_chakra(traces(tmp_path, loose))
        assert [str(each.what) for each in remarks] == ["computation of 1 ranks that nothing orders"]
        times = (program.compute_ps // US).tolist()
        assert times == [5, 1, 2, 0, 1, 1]
        assert waits(program) == {(0, 2, 1), (0, 4, 2), (0, 5, 4)}

    def test_one_chain_needs_no_order(self, tmp_path: Path) -> None:
        chain = node(1, 4, put(7, 1)) + node(2, 1, after(1)) + node(3, 4, after(2), put(7, 1))
        program, remarks = import_chakra(traces(tmp_path, chain))
        assert len(program.wait_task) == 2
        assert "nothing orders" not in str(remarks)

    def test_the_order_is_that_of_an_execution(self, tmp_path: Path) -> None:
        """By number alone, rank 0 would wait with node 2 for node 1, which waits for what follows node 2."""
        file = traces(
            tmp_path,
            node(1, 4, after(7), put(7, 1))
            + receive(7, 1, 8)
            + node(2, 4, put(7, 1))
            + send(3, 1, 8, after(2)),
            receive(7, 0, 8) + node(1, 4, after(7), put(7, 1)) + send(2, 0, 8, after(1)),
        )
        program, _ = import_chakra(file)
        order = waits(program)
        computes = {int(program.ranks_of(each)[0]): [] for each in range(2, 5)}
        for each in range(2, 5):
            computes[int(program.ranks_of(each)[0])].append(each)
        one, two = computes[0]
        assert (0, two, one) in order or (0, one, two) in order
        program.verify()
        with_hosts = Job(program=program, hosts=[0, 1])
        scenario = Scenario(topology=SingleSwitch(hosts=2), traffic=[Permutation(size="1KB")])
        engine = Engine(lower(scenario, jobs=[with_hosts]))
        assert engine.run() == "FINISHED"

    def test_other_nodes_take_their_time(self, tmp_path: Path) -> None:
        program, remarks = import_chakra(traces(tmp_path, node(1, 2, put(7, 4)) + node(2, 10, after(1))))
        assert program.compute_ps.tolist() == [4 * US, 0]
        assert [each.what for each in remarks] == ["accesses to memory and storage, metadata"]


OWN = collective(1, ALL_REDUCE, 8)

BAD: dict[str, tuple[tuple[bytes, ...], str | None, str]] = {
    "a send without a receive": ((send(1, 1, 5), b""), None, r"w\.0\.et: byte 9 \(node 1\) message to 1"),
    "a receive without a send": ((b"", receive(1, 0, 5)), None, r"w\.1\.et.*message from 0, tag 0"),
    "tags that differ": ((send(1, 1, 5, tag=1), receive(1, 0, 5)), None, "alone"),
    "sizes that differ": ((send(1, 1, 5), receive(3, 0, 6)), None, r"w\.1\.et.*6.*5, as node 1 of rank 0"),
    "a message to oneself": ((send(1, 0, 5),), None, "comm_dst: 0.*another rank"),
    "a message to nobody": ((send(1, 7, 5), b""), None, "comm_dst: 7.*below 2"),
    "no receiver": ((node(1, 5, attribute("comm_size", 5)),), None, r"comm_dst: \(missing\)"),
    "no size": ((node(1, 5, attribute("comm_dst", 1)), b""), None, r"comm_size: \(missing\)"),
    "another's send": (
        (send(1, 1, 5, attribute("comm_src", 1)), receive(1, 0, 5)),
        None,
        "comm_src: 1.*the rank of the trace",
    ),
    "a circle": (
        (node(3, 4, after(4)) + node(4, 4, after(3)),),
        None,
        r"node 3 after 4 after 3.*do not wait for themselves",
    ),
    "no group file": ((collective(1, 0, 8, group="3"),), None, "pg_name: '3'.*a file of groups"),
    "no such group": ((collective(1, 0, 8, group="3"),), '{"1": [0]}', "'3'.*comm_groups.json"),
    "not in its group": ((OWN, collective(1, 0, 8, group="1")), '{"1": [0]}', "a group with rank 1"),
    "a group of strangers": ((OWN,), '{"1": [0, 5]}', "group '1': 5.*ranks from 0 to 0"),
    "group 0 of some": ((OWN, OWN), '{"0": [0]}', "all ranks"),
    "one more collective": (
        (OWN + collective(2, 0, 8, name="d"), OWN),
        None,
        r"w\.0\.et.*node 2.*all ranks: 1 collectives on rank 1, 2 on rank 0",
    ),
    "a rank without it": ((OWN, b""), None, r"0 collectives on rank 1, 1 on rank 0"),
    "two types": ((OWN, collective(1, 2, 8)), None, r"w\.1\.et.*all_gather of 8.*all_reduce of 8, as node 1"),
    "two sizes": ((OWN, collective(1, 0, 9)), None, r"all_reduce of 9.*all_reduce of 8"),
    "no type": ((node(1, 7, attribute("comm_size", 8)),), None, r"comm_type: \(missing\).*written 0"),
    "a collective without a size": (
        (node(1, 7, attribute("comm_type", 0)),),
        None,
        r"comm_size: \(missing\)",
    ),
    "too large": ((*[collective(1, 2, 2**61)] * 3,), None, "at most 4611686018427387904"),
    "too long": ((node(1, 4, put(7, 2**50)),), None, "duration.*at most"),
    "a root elsewhere": ((collective(1, 5, 8, attribute("comm_src", 4)),), None, "root: 4"),
    "no such algorithm": ((collective(1, 0, 8, attribute("algorithm", "pigeon")),), None, "'pigeon'"),
    "nothing": ((b"", b""), None, "traces without a node"),
}


@pytest.mark.parametrize("case", BAD)
def test_traces_that_do_not_fit_each_other(tmp_path: Path, case: str) -> None:
    by_rank, groups, words = BAD[case]
    with pytest.raises(SpecError, match=words) as error:
        import_chakra(traces(tmp_path, *by_rank, groups=groups))
    assert str(error.value).startswith(str(tmp_path))


def test_files_that_are_missing(tmp_path: Path) -> None:
    traces(tmp_path, OWN, OWN, OWN)
    (tmp_path / "w.1.et").unlink()
    with pytest.raises(SpecError, match=r"w\.1\.et: nothing.*each rank from 0 to 2"):
        import_chakra(tmp_path / "w.2.et")
    (tmp_path / "w.et").write_bytes(b"")
    with pytest.raises(SpecError, match=r"such as w\.0\.et"):
        import_chakra(tmp_path / "w.et")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"element_bytes": 0}, "element_bytes"),
        ({"flops": 0.0}, "flops"),
        ({"flops": float("nan")}, "flops"),
        ({"algorithms": {"all_reduces": "ring"}}, "all_reduces"),
        ({"algorithms": {"all_reduce": "pigeon"}}, "algorithms.all_reduce: 'pigeon'"),
    ],
)
def test_options_that_are_none(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        import_chakra(traces(tmp_path, OWN, OWN), **given)


# There and back.


def written(program: Program, folder: Path, *, collectives: bool) -> Path:
    texts = export_chakra(program, collectives=collectives)
    for rank, text in enumerate(texts.traces):
        (folder / f"x.{rank}.et").write_bytes(text)
    (folder / "comm_groups.json").write_text(json.dumps(texts.groups))
    return folder / "x.0.et"


def ended(program: Program) -> tuple[str, list[int], int]:
    """How a run ends, when each rank does, and what was sent."""
    scenario = Scenario(topology=SingleSwitch(hosts=8), traffic=[Permutation(size="1KB", start="1s")])
    engine = Engine(lower(scenario, jobs=[Job(program=program, hosts=np.arange(8))]))
    status = engine.run()
    columns = engine.columns()
    ends = np.full(8, -1, dtype=np.int64)
    np.maximum.at(ends, program.task_rank, columns["task_left_ps"])
    return status, ends.tolist(), int(columns["operation_sent_bytes"].sum())


ONE_PEER = [
    ("all_reduce", ("ring", "halving_doubling")),
    ("all_gather", ("ring",)),
    ("reduce_scatter", ("ring",)),
    ("all_to_all", ("pairwise",)),
    ("broadcast", ("chain",)),
    ("barrier", ("dissemination",)),
]
"""Algorithms in which a rank sends to one other at a time."""
MANY_PEERS = [
    ("all_reduce", ("double_binary_tree", "direct")),
    ("all_gather", ("direct",)),
    ("reduce_scatter", ("bruck",)),
    ("all_to_all", ("direct",)),
    ("broadcast", ("binomial",)),
]


class Draw:
    """Operations by chance, which wait for any before them; `chained`: each rank does and sends one thing at
    a time, so that no order of what may be sent at one instant plays a part (it is in no file)."""

    def __init__(self, seed: int, *, chained: bool) -> None:
        self.random, self.chained = random.Random(seed), chained
        self.last: list[list[int]] = [[] for _ in range(8)]

    def before(self, number: int, ranks: list[int]) -> list[int]:
        """What the operation of that number waits for."""
        chain = sorted({each for rank in ranks for each in self.last[rank]})
        for rank in ranks:
            self.last[rank] = [number]
        some = self.random.sample(range(number), min(number, self.random.randint(0, 3)))
        return chain if self.chained else some


def random_program(seed: int, *, chained: bool) -> Program:
    """Collectives on groups, messages, compute; times that are no whole microseconds."""
    drawn = Draw(seed, chained=chained)
    draw = drawn.random
    work = ProgramBuilder(n_ranks=8)
    kinds = ONE_PEER if chained else [*ONE_PEER, *MANY_PEERS]
    for number in range(draw.randint(3, 15)):
        what = draw.random()
        if what < 0.3:
            ranks = [draw.randrange(8)]
            spent = draw.choice([0, US, 1234567])
            work.compute(ranks[0], picoseconds=spent, after=drawn.before(number, ranks))
        elif what < 0.6:
            ranks = draw.sample(range(8), 2)
            work.message(
                *ranks,
                size_bytes=draw.choice([0, 1, 9000]),
                after=drawn.before(number, ranks),
                eager=not chained and draw.random() < 0.5,
            )
        else:
            kind, algorithms = draw.choice(kinds)
            size = 0 if kind == "barrier" else draw.choice([8 * 840, 10_007])
            ranks = draw.sample(range(8), draw.choice([1, 2, 4, 8]))
            options = {"channels": 2} if draw.random() < 0.2 else {}
            one = Collective(
                kind=kind,
                n_ranks=len(ranks),
                size_bytes=size,
                algorithm=draw.choice(algorithms),
                options=options,
            )
            work.collective(
                one,
                ranks=ranks,
                after=drawn.before(number, ranks),
                compute_ps=draw.choice([0, 777]),
                start_ps=draw.choice([0, 0, 5 * US]),
                eager=not chained and draw.random() < 0.7,
            )
    return work.build()


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


# Commands and scenarios.

SWITCH = "5 1 4\n4\n" + "".join(f"{host} 4 100Gbps 1000ns 0\n" for host in range(4))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "topology.txt").write_text(SWITCH)
    (tmp_path / "ring.toml").write_text(
        'topology = { kind = "single_switch", hosts = 4 }\n'
        'traffic = [{ kind = "collective", algorithm = "ring", size = "4KB", hosts = "host[0-2]" }]\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestCommands:
    def test_a_collective_becomes_traces_that_run(
        self, files: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["convert", "ring.toml", "--out", "ring.et"]) == 0
        made = sorted(path.name for path in files.glob("ring.*"))
        assert made == ["ring.0.et", "ring.1.et", "ring.2.et", "ring.comm_groups.json", "ring.toml"]
        assert recognise("ring.0.et") == "chakra"
        assert main(["run", "topology.txt", "ring.0.et", "ring.2.et", "--out", "a", "--no-plot"]) == 0
        assert "every rank is done" in capsys.readouterr().out
        operations = fabric.Result.load("a").operations
        assert operations["algorithm"].tolist() == ["ring"]
        assert operations["sent_bytes"].tolist() == [4 * 4000]

    def test_groups_are_recognised(self, files: Path) -> None:
        own = collective(1, ALL_REDUCE, 800, group="2")
        traces(files, own, own, own)
        Path("mine.json").write_text('{"2": [2, 0, 1]}')
        assert recognise("mine.json") == "chakra_groups"
        assert main(["run", "mine.json", "w.1.et", "topology.txt", "--out", "b", "--no-plot"]) == 0
        assert fabric.Result.load("b").operations["size_bytes"].tolist() == [800]
        assert main(["convert", "mine.json", "w.1.et", "topology.txt", "--out", "made/x.toml"]) == 0
        made = sorted(path.name for path in Path("made").iterdir())
        assert made == [
            "x-network.json",
            *(f"x-program.{rank}.et" for rank in range(3)),
            "x-program.comm_groups.json",
            "x.toml",
        ]
        fingerprint = fabric.run("made/x.toml").fingerprint
        assert fingerprint == fabric.Result.load("b").fingerprint

    def test_traces_of_more_ranks_are_not_mixed(
        self, files: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        traces(files, OWN, OWN, OWN, OWN, prefix="ring")
        assert main(["convert", "ring.toml", "--out", "ring.0.et"]) == 2
        assert "without traces of 4 ranks" in capsys.readouterr().err

    def test_options_in_a_scenario(self, files: Path) -> None:
        traces(files, OWN + node(2, 4, attribute("num_ops", 1000)), OWN)
        options = {"element": "4B", "flops": 1e9, "algorithms": {"all_reduce": "direct"}}
        program = fabric.Program(file="w.0.et", **options)  # type: ignore[arg-type]
        result = fabric.run(Scenario(topology=SingleSwitch(hosts=2), traffic=[program]))
        assert result.operations["size_bytes"].tolist() == [32]
        assert result.operations["algorithm"].tolist() == ["direct"]

    def test_the_entry_of_the_page_of_formats(self, files: Path) -> None:
        """With traces as the page names them."""
        own = collective(1, ALL_REDUCE, 8) + node(2, 4, attribute("num_ops", 4 * 10**8))
        traces(files, own, own)
        page = (Path(__file__).resolve().parent.parent / "docs" / "formats.md").read_text()
        [entry] = [text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "w.0.et" in text]
        Path("page.toml").write_text('topology = { kind = "single_switch", hosts = 2 }\n' + entry)
        result = fabric.run("page.toml")
        assert result.operations["size_bytes"].tolist() == [16]
        assert int(result.ranks["left_ps"].max()) >= US

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"size": "1MB"}, "no size for Chakra"),
            ({"ranks": 4}, "no ranks for Chakra"),
            ({"algorithms": {"all_reduce": "pigeon"}}, r"traffic\[0\]\.algorithms\.all_reduce: 'pigeon'"),
            ({"algorithms": {"sum": "ring"}}, r"traffic\[0\]\.algorithms: 'sum'"),
        ],
    )
    def test_options_that_do_not_fit(self, files: Path, options: dict[str, Any], words: str) -> None:
        program = fabric.Program(file=str(traces(files, OWN, OWN)), **options)
        with pytest.raises(SpecError, match=words):
            fabric.run(Scenario(topology=SingleSwitch(hosts=2), traffic=[program]))

    def test_two_formats_are_one_too_many(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        traces(files, OWN)
        traces(files, OWN, prefix="v")
        assert main(["run", "topology.txt", "w.0.et", "v.0.et"]) == 2
        assert "one file of flows (besides w.0.et)" in capsys.readouterr().err
