"""Programs as tables: what builders make, what GOAL and htsim files become, and GOAL again."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from fabric.errors import SpecError
from fabric.formats.goal import CALC, RECV, SEND, read_goal
from fabric.workload.collectives import Collective, build_template
from fabric.workload.goal import export_goal, import_goal
from fabric.workload.matrix_program import import_matrix
from fabric.workload.program import Program, ProgramBuilder, compute_template, message_template

US = 10**6

TWO_RANKS = """num_ranks 2
rank 0 {
l1: calc 500
l2: send 1024b to 1 tag 7
l2 requires l1
}
rank 1 {
l1: recv 1024b from 0 tag 7
}
"""


def written(folder: Path, text: str, name: str = "some.goal") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def waits(program: Program) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Waits as pairs of (operation, rank)."""
    tasks = list(zip(program.operation_of(np.arange(program.n_tasks)), program.task_rank, strict=True))
    named = [(int(operation), int(rank)) for operation, rank in tasks]
    pairs = zip(program.wait_task.tolist(), program.wait_for.tolist(), strict=True)
    return {(named[task], named[before]) for task, before in pairs}


def same(one: Program, other: Program) -> bool:
    columns = ("template", "size_bytes", "compute_ps", "task_base", "task_rank", "wait_task", "wait_for")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


def test_ranks_wait_for_their_own_part_alone() -> None:
    job = ProgramBuilder(n_ranks=4)
    slow = job.compute(2, picoseconds=50 * US)
    ring = Collective(kind="all_reduce", n_ranks=3, size_bytes=999, algorithm="ring")
    first = job.collective(ring, ranks=(2, 0, 1), after=[slow])
    last = job.message(1, 3, size_bytes=10, after=[slow, first], start_ps=5)
    program = job.build()
    assert waits(program) == {((first, 2), (slow, 2)), ((last, 1), (first, 1))}
    assert program.ranks_of(first).tolist() == [2, 0, 1]
    assert program.piece_bytes(first).tolist() == [333] * 3
    assert (program.n_messages, program.n_tasks, program.start_ps.tolist()) == (13, 6, [0, 0, 5])
    assert program.templates == (compute_template(), ring.template(), message_template())


def test_many_operations_share_templates_and_sizes() -> None:
    job = ProgramBuilder(n_ranks=8)
    bruck = Collective(kind="all_to_all", n_ranks=8, size_bytes=4096, algorithm="bruck")
    before: list[int] = []
    for _ in range(100):
        before = [job.collective(bruck, ranks=range(8), after=before)]
    program = job.build()
    assert len(program.templates) == 1
    assert len(program.piece_offset_bytes) == program.templates[0].n_pieces + 1
    assert program.piece_bytes(57).tolist() == [2048] * 3
    assert len(program.wait_task) == 99 * 8
    matrix = np.array([[0, 3], [5, 0]])
    ragged = ProgramBuilder(n_ranks=2)
    ragged.collective(Collective(kind="all_to_all_v", n_ranks=2, matrix=matrix), ranks=(0, 1))
    assert ragged.build().piece_bytes(0).tolist() == [3, 5]


def test_reducers_have_places_after_the_ranks() -> None:
    template = build_template("all_reduce", algorithm="in_network", n_ranks=4)
    job = ProgramBuilder(n_ranks=8)
    job.operation(template, 1000, ranks=(4, 5, 6, 7, 8))
    assert job.build().n_tasks == 5


def build(add: object) -> Program:
    job = ProgramBuilder(n_ranks=4)
    add(job)  # type: ignore[operator]
    return job.build()


RING = build_template("all_reduce", algorithm="ring", n_ranks=3)


@pytest.mark.parametrize(
    ("add", "path", "what"),
    [
        (lambda job: job.operation(RING, 9, ranks=(0, 1)), "program[0].ranks", "3 ranks"),
        (lambda job: job.operation(RING, 9, ranks=(0, 1, 4)), "program[0].ranks", "0 to 3"),
        (lambda job: job.operation(RING, 9, ranks=(0, 1, 1)), "program[0].ranks", "every rank once"),
        (lambda job: job.message(2, 2, size_bytes=1), "program[0].ranks", "every rank once"),
        (lambda job: job.message(0, 1, size_bytes=-1), "program[0].size_bytes", "0 to"),
        (lambda job: job.compute(0, picoseconds=-1), "program[0].compute_ps", "0 to"),
        (lambda job: job.message(0, 1, size_bytes=1, after=[0, 7]), "program[0].after", "0 to 0"),
        (lambda job: job.wait(0, 0), "program[0].after", "operations from 0"),
    ],
)
def test_programs_are_checked(add: object, path: str, what: str) -> None:
    with pytest.raises(SpecError, match=what) as error:
        build(add)
    assert error.value.path == path


def test_operations_that_wait_for_themselves_are_refused() -> None:
    job = ProgramBuilder(n_ranks=2)
    first, second = (job.compute(1, picoseconds=US) for _ in range(2))
    job.wait(first, second)
    job.wait(second, first)
    with pytest.raises(SpecError, match="waits of rank 1"):
        job.build()
    with pytest.raises(SpecError, match="at least one rank"):
        ProgramBuilder(n_ranks=0)


def test_goal_becomes_messages_and_compute(tmp_path: Path) -> None:
    program, remarks = import_goal(written(tmp_path, TWO_RANKS))
    assert not remarks
    assert program.n_ranks == 2
    assert program.size_bytes.tolist() == [1024, 0]
    assert program.compute_ps.tolist() == [0, 500_000]
    assert program.task_rank.tolist() == [0, 1, 0]
    assert waits(program) == {((0, 0), (1, 0))}
    assert program.eager.all()
    assert not import_goal(written(tmp_path, TWO_RANKS), eager=False)[0].eager.any()


def test_goal_in_every_spelling(tmp_path: Path) -> None:
    text = (
        "/* a comment\nover lines */\r\nnum_ranks 4 // ranks\r\n\r\nrank 2\r\n{\r\n"
        "  send 5b to 0 tag 3 cpu 1 nic 2 /* here */\r\n x: recv 6b from 0\r\n}\r\n"
        "rank 0 {\nrecv 5b from 2 tag 3\nb:send 6b to 2\nc: calc 7 cpu 2 }\nrank 3 {\n}"
    )
    blocks = list(read_goal(written(tmp_path, text)))
    assert [block.rank for block in blocks] == [2, 0, 3]
    assert blocks[0].kind.tolist() == [SEND, RECV]
    assert (blocks[0].cpu.tolist(), blocks[0].nic.tolist(), blocks[0].tag.tolist()) == (
        [1, 0],
        [2, 0],
        [3, 0],
    )
    assert blocks[1].kind.tolist() == [RECV, SEND, CALC]
    assert blocks[1].operation_line.tolist() == [11, 12, 13]
    program, _ = import_goal(written(tmp_path, text))
    assert program.size_bytes.tolist() == [5, 6, 0]


def test_the_kth_send_meets_the_kth_receive_of_its_tag(tmp_path: Path) -> None:
    text = (
        "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 1\nsend 2b to 1\nsend 3b to 1 tag 1\n}\n"
        "rank 1 {\na: recv 2b from 0\nb: recv 1b from 0 tag 1\nc: recv 3b from 0 tag 1\nc requires a\n}\n"
    )
    program, _ = import_goal(written(tmp_path, text))
    assert program.size_bytes.tolist() == [1, 2, 3]
    assert waits(program) == {((2, 1), (1, 1))}


def test_wildcards_meet_what_is_left(tmp_path: Path) -> None:
    head = "num_ranks 3\nrank 0 {\nsend 1b to 2 tag 5\nsend 2b to 2 tag 5\n}\nrank 2 {\n"
    program, _ = import_goal(written(tmp_path, head + "recv 1b from -1 tag 5\nrecv 2b from 0 tag -1\n}\n"))
    assert program.size_bytes.tolist() == [1, 2]
    several = head.replace("rank 2", "rank 1 {\nsend 3b to 2\n}\nrank 2")
    with pytest.raises(SpecError, match="several sends could meet"):
        import_goal(written(tmp_path, several + "recv 1b from -1 tag -1\nrecv 2b from 0 tag 5\n}\n"))


def test_who_waits_for_a_start_waits_for_what_that_waits_for(tmp_path: Path) -> None:
    text = (
        "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nd: calc 4\n"
        "b requires a\nc irequires b\nd irequires c\nd requires b\n}\n"
    )
    program, remarks = import_goal(written(tmp_path, text))
    found = {(task, before) for (task, _), (before, _) in waits(program)}
    assert found == {(1, 0), (2, 0), (3, 0), (3, 1)}
    assert [(remark.line, remark.what) for remark in remarks] == [(3, "calc")]


DAMAGED = {
    "": "num_ranks",
    "num_ranks\n": ":1",
    "num_ranks 0\n": "1 to",
    "num_ranks two\n": "num_ranks",
    "num_ranks 2\nsend 1b to 1\n": ":2: 'send 1b to 1'",
    "num_ranks 2\nrank 2 {\n}\n": "0 to 1",
    "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n": "line 2",
    "num_ranks 2\nrank 0\ncalc 1\n}\n": "{ after the rank",
    "num_ranks 2\nrank 0 { calc 1\n}\n": "lines of their own",
    "num_ranks 2\nrank 0 {\ncalc 1\n": "the end of the file in the block of rank 0",
    "num_ranks 2\nrank 0 {\nwait 1\n}\n": ":3: 'wait 1'",
    "num_ranks 2\nrank 0 {\nsend 1 to 1\n}\n": "'1'",
    "num_ranks 2\nrank 0 {\nsend 1b from 1\n}\n": "send nb to r",
    "num_ranks 2\nrank 0 {\nsend -1b to 1\n}\n": ":3 send",
    "num_ranks 2\nrank 0 {\nsend 1b to 0\n}\n": "another rank than 0",
    "num_ranks 2\nrank 0 {\nsend 1b to 7\n}\n": "0 to 1",
    "num_ranks 2\nrank 0 {\nsend 1b to -1\n}\n": "0 to 1",
    "num_ranks 2\nrank 0 {\nsend 1b to 1 tag x\n}\n": ":3 tag",
    "num_ranks 2\nrank 0 {\nsend 1b to 1 nic 0 tag 1\n}\n": "in this order",
    "num_ranks 2\nrank 0 {\ncalc 1.5\n}\n": ":3 calc",
    "num_ranks 2\nrank 0 {\na: calc 1\na: calc 2\n}\n": "line 3",
    "num_ranks 2\nrank 0 {\na: calc 1\na requires b\n}\n": ":4 label: 'b'",
    "num_ranks 2\nrank 0 {\na: calc 1\na requires a\n}\n": ":4",
    "num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n": "do not wait",
    "num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na irequires b\nb irequires a\n}\n": "a circle",
    "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\n": ":3 send: send to 1 tag 0 of rank 0",
    "num_ranks 2\nrank 0 {\nrecv 1b from 1\n}\n": ":3 recv: recv from 1 tag 0 of rank 0",
    "num_ranks 2\nrank 0 {\nrecv 1b from -1\n}\n": "a wildcard that nothing meets",
    "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 2b from 0\n}\n": ":6 recv: 2",
    "num_ranks 2\n": "no rank",
    "/* num_ranks 2\nrank 0 {\n}\n": "without an end",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_goal_gets_one_error(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(SpecError) as error:
        import_goal(file)
    assert DAMAGED[text] in str(error.value)
    assert str(file) in error.value.path


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="an existing file"):
        import_goal(tmp_path / "absent.goal")
    (tmp_path / "odd.goal").write_bytes(b"num_ranks \xff\n")
    with pytest.raises(SpecError, match="UTF-8"):
        import_goal(tmp_path / "odd.goal")


def random_goal(seed: int) -> str:
    draw = random.Random(seed)
    ranks = draw.randint(1, 6)
    rows: list[list[str]] = [[] for _ in range(ranks)]
    for _ in range(draw.randint(0, 30)):
        source, destination = draw.randrange(ranks), draw.randrange(ranks)
        if source == destination:
            rows[source].append(f"calc {draw.randint(0, 99)}")
        else:
            tag, size = draw.randint(0, 2), draw.randint(0, 9) * 10
            rows[source].append(f"send {size}b to {destination} tag {tag}")
            rows[destination].append(f"recv {size}b from {source} tag {tag}")
    text = f"num_ranks {ranks}\n"
    for rank, own in enumerate(rows):
        if own:
            labelled = "".join(f"l{number}: {row}\n" for number, row in enumerate(own))
            pairs = [
                f"l{later} {draw.choice(['requires', 'irequires'])} l{draw.randrange(later)}\n"
                for later in range(1, len(own))
                if draw.random() < 0.5
            ]
            text += f"rank {rank} {{\n{labelled}{''.join(pairs)}}}\n"
    return text if any(rows) else text + "rank 0 {\ncalc 1\n}\n"


@pytest.mark.parametrize("seed", range(60))
def test_goal_comes_back_identical_in_meaning(tmp_path: Path, seed: int) -> None:
    program, _ = import_goal(written(tmp_path, random_goal(seed)))
    again, _ = import_goal(written(tmp_path, "".join(export_goal(program)), "again.goal"))
    assert same(program, again)


@pytest.mark.parametrize("algorithm", ["ring", "direct", "halving_doubling", "double_binary_tree"])
def test_collectives_become_goal(tmp_path: Path, algorithm: str) -> None:
    for n_ranks in (1, 2, 5, 19):
        job = ProgramBuilder(n_ranks=n_ranks)
        work = [job.compute(rank, picoseconds=1000) for rank in range(n_ranks)]
        reduce = Collective(kind="all_reduce", n_ranks=n_ranks, size_bytes=10_007, algorithm=algorithm)
        first = job.collective(reduce, ranks=range(n_ranks), after=work, compute_ps=2000)
        job.collective(reduce, ranks=range(n_ranks)[::-1], after=[first], start_ps=7000)
        text = "".join(export_goal(job.build()))
        program, _ = import_goal(written(tmp_path, text))
        told = reduce.explain()
        assert program.n_messages == 2 * told.messages
        assert program.size_bytes.sum() == 2 * told.sent_bytes.sum()
        sent = np.bincount(
            program.task_rank[program.task_base[:-1][program.template == 0]],
            weights=program.size_bytes[program.template == 0],
            minlength=n_ranks,
        )
        assert sent.tolist() == (told.sent_bytes + told.sent_bytes[::-1]).tolist()


def test_what_goal_has_not_is_refused() -> None:
    job = ProgramBuilder(n_ranks=5)
    job.operation(build_template("all_reduce", algorithm="in_network", n_ranks=4), 9, ranks=(0, 1, 2, 3, 5))
    with pytest.raises(SpecError, match="reducers"):
        export_goal(job.build())
    odd = ProgramBuilder(n_ranks=1)
    odd.compute(0, picoseconds=1500)
    with pytest.raises(SpecError, match="whole nanoseconds"):
        export_goal(odd.build())


MATRIX = """Nodes 6
Connections 4
Triggers 2
0->1 id 1 start 5 size 100 send_done_trigger 1
0->2 id 2 trigger 1 size 200 recv_done_trigger 2
2->3 id 3 trigger 2 size 300
4->3 id 4 trigger 2 size 400
trigger id 1 oneshot
trigger id 2 oneshot
"""


def test_triggers_become_waits_and_news(tmp_path: Path) -> None:
    program, remarks = import_matrix(written(tmp_path, MATRIX, "some.cm"), start_unit="ns")
    assert program.n_ranks == 6
    assert program.size_bytes.tolist() == [100, 200, 300, 400, 0]
    assert program.start_ps.tolist() == [5000, 0, 0, 0, 0]
    assert program.ranks_of(4).tolist() == [2, 4]
    assert waits(program) == {
        ((1, 0), (0, 0)),
        ((2, 2), (1, 2)),
        ((3, 4), (4, 4)),
        ((4, 2), (1, 2)),
    }
    assert [remark.line for remark in remarks] == [7]


def test_flows_that_wait_in_a_circle_are_refused(tmp_path: Path) -> None:
    text = (
        "Nodes 4\nConnections 2\nTriggers 2\n0->1 id 1 trigger 1 size 9 recv_done_trigger 2\n"
        "1->0 id 2 trigger 2 size 9 recv_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n"
    )
    with pytest.raises(SpecError, match=r"some.cm:4 trigger: line 4 after line 5 after line 4"):
        import_matrix(written(tmp_path, text, "some.cm"))
