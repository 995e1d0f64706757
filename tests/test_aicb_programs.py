"""AICB and SimAI workloads as programs: who waits for whom, which ranks share what, what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabric
from fabric._core import Engine
from fabric.cli import main
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.formats.aicb import read_aicb
from fabric.lower import lower
from fabric.training import PassTimes, build_schedule, execute
from fabric.workload.aicb import import_aicb
from fabric.workload.aicb_groups import aicb_groups
from fabric.workload.aicb_micro_batches import micro_batches
from fabric.workload.job import Job
from fabric.workload.program import Program

TRAINING = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
NONE = "NONE 0"


def workload(folder: Path, *rows: str, policy: str = TRAINING, header: str = "") -> Path:
    """A file; each row is its columns from the first time on."""
    named = [f"row{number} -1 {row}" for number, row in enumerate(rows)]
    file = folder / "workload.txt"
    file.write_text("\n".join([f"{policy} {header}".strip(), str(len(rows)), *named]))
    return file


def row(forward: str = f"1 {NONE}", inputs: str = f"1 {NONE}", weights: str = f"1 {NONE}") -> str:
    return f"{forward} {inputs} {weights} 100"


def story(program: Program, rank: int) -> list[str]:
    """What a rank does: "C" and nanoseconds, or collective and bytes, and the numbers of what it is after."""
    tasks = np.flatnonzero(program.task_rank == rank)
    order = {int(task): number for number, task in enumerate(tasks)}
    told = []
    for task in tasks.tolist():
        operation = int(program.operation_of(task))
        kind = program.templates[int(program.template[operation])].collective
        size, spent = int(program.size_bytes[operation]), int(program.compute_ps[operation])
        what = f"C{spent // 1000}" if kind == "custom" else f"{kind} {size}"
        before = sorted(order[int(each)] for each in program.wait_for[program.wait_task == task])
        told.append(f"{what} after {before}" if before else what)
    return told


class TestOrder:
    def test_forward_and_back(self, tmp_path: Path) -> None:
        """Gradients of inputs are reduced beside the gradient of weights, those of weights beside all."""
        file = workload(
            tmp_path,
            row("5 ALLREDUCE 80", "7 ALLREDUCE 40", "9 REDUCESCATTER 16"),
            row("6 NONE 0", "8 NONE 0", "10 NONE 0"),
            header="model_parallel_NPU_group: 2 all_gpus: 4",
        )
        program, remarks = import_aicb(file)
        assert not remarks
        assert story(program, 0) == [
            "C5",
            "all_reduce 80 after [0]",
            "C6 after [1]",
            "C8 after [2]",
            "C10 after [3]",
            "C100 after [4]",
            "C7 after [4]",
            "all_reduce 40 after [6]",
            "C9 after [6]",
            "reduce_scatter 16 after [8]",
            "C100 after [9]",
        ]

    def test_rows_are_computed_again_from_a_checkpoint_on(self, tmp_path: Path) -> None:
        rows = [row(f"{number}1 NONE 0", f"{number}2 NONE 0", f"{number}3 NONE 0") for number in (1, 2, 3)]
        header = "model_parallel_NPU_group: 1 all_gpus: 1 checkpoints: 1 0 checkpoint_initiates: 1 2"
        program, _ = import_aicb(workload(tmp_path, *rows, header=header))
        times = [each.split()[0] for each in story(program, 0) if not each.startswith("C100")]
        assert times == ["C11", "C21", "C31", "C11", "C21", "C32", "C33", "C22", "C23", "C12", "C13"]
        plain, remarks = import_aicb(
            workload(tmp_path, *rows, header=header, policy="HYBRID_TRANSFORMER"), algorithms={}
        )
        assert len(story(plain, 0)) == len(story(program, 0)) - 2
        assert [each.what for each in remarks] == ["checkpoints"]

    def test_inference_goes_forward_alone(self, tmp_path: Path) -> None:
        header = "model_parallel_NPU_group: 2 all_gpus: 2"
        file = workload(tmp_path, row("5 ALLREDUCE 8"), policy="DISTRIBUTED_INFERENCE", header=header)
        assert story(import_aicb(file)[0], 1) == ["C5", "all_reduce 8 after [0]"]

    def test_micro_goes_row_by_row_on_all_ranks(self, tmp_path: Path) -> None:
        rows = [row(weights=f"1 ALLGATHER {size}") for size in (40, 80)]
        program, _ = import_aicb(workload(tmp_path, *rows, policy="MICRO"), n_ranks=4)
        assert [each for each in story(program, 3) if not each.startswith("C")] == [
            "all_gather 40 after [2]",
            "all_gather 80 after [6]",
        ]
        assert program.ranks_of(3).tolist() == [0, 1, 2, 3]

    def test_nothing_is_sent_to_oneself_or_of_nothing(self, tmp_path: Path) -> None:
        header = "model_parallel_NPU_group: 1 all_gpus: 2"
        file = workload(tmp_path, row("1 ALLREDUCE 80", weights="1 ALLREDUCE 0"), header=header)
        assert import_aicb(file)[0].n_messages == 0

    def test_what_is_left_out_is_said(self, tmp_path: Path) -> None:
        header = "model_parallel_NPU_group: 1 pp: 2 all_gpus: 4 pp_comm: 77"
        file = workload(tmp_path, row("1 BROADCAST 8"), row(), header=header)
        file.write_text(file.read_text().replace("row1 -1", "row1 0"))
        said = [str(each) for each in import_aicb(file)[1]]
        assert [each.removeprefix(f"{file}:").split()[0] for each in said] == ["3", "1", "4"]
        assert "BROADCAST" in said[0]
        assert "messages between 2 stages, 77 bytes each" in said[1]
        assert "dependency" in said[2]


class TestPipeline:
    """Two stages of two ranks, two micro-batches of two rows each between rows that stand once."""

    HEADER = "model_parallel_NPU_group: 2 pp: 2 ga: 2 all_gpus: 4 pp_comm: 4000"

    def file(self, folder: Path, *, header: str = HEADER, policy: str = TRAINING) -> Path:
        inside = row("5000 NONE 0", "6000 NONE 0", "4000 NONE 0").replace(" 100", " 0")
        once = row("0 NONE 0", "0 NONE 0", "0 NONE 0").replace(" 100", " 0")
        rows = [once, *[inside] * 4, once]
        names = ["norm", *["in", "out"] * 2, "loss"]
        named = [f"{name} -1 {each}" for name, each in zip(names, rows, strict=True)]
        file = folder / "workload.txt"
        file.write_text("\n".join([f"{policy} {header}", str(len(rows)), *named]))
        return file

    def test_stages_send_each_micro_batch_on_and_its_gradient_back(self, tmp_path: Path) -> None:
        program, remarks = import_aicb(self.file(tmp_path))
        assert not remarks
        assert micro_batches(read_aicb(self.file(tmp_path))) == [range(1, 3), range(3, 5)]
        first, second = story(program, 0), story(program, 2)
        assert [each.split(" after")[0] for each in first] == [
            *["C5000", "C5000", "broadcast 4000"] * 2,
            *["broadcast 4000"] * 2,
            *["C6000", "C4000"] * 4,
        ]
        assert first[2:4] == ["broadcast 4000 after [1]", "C5000 after [1]"]
        assert second[:3] == ["broadcast 4000", "broadcast 4000", "C5000 after [0]"]
        pairs = [program.ranks_of(number).tolist() for number in np.flatnonzero(program.size_bytes == 4000)]
        assert pairs == [[0, 2], [1, 3]] * 2 + [[2, 0], [3, 1]] * 2

    def test_a_step_takes_as_long_as_gpipe(self, tmp_path: Path) -> None:
        """(m + p - 1)(F + B) where messages take no time, less a gradient of weights that none waits for."""
        program, _ = import_aicb(self.file(tmp_path))
        scenario = fabric.Scenario(
            topology=fabric.SingleSwitch(hosts=2), traffic=[fabric.Permutation(size="1KB")]
        )
        engine = Engine(lower(scenario, jobs=[Job(program=program, hosts=np.zeros(4, dtype=np.int64))]))
        engine.run()
        left = engine.columns()["task_left_ps"]
        stage = PassTimes(forward=10_000, backward=20_000)
        schedule = build_schedule("gpipe", stages=2, micro_batches=2)
        assert left.min() >= 0
        assert left.max() / 1000 == execute(schedule, stage).makespan - 4_000

    @pytest.mark.parametrize(
        ("header", "n_ranks", "words"),
        [
            (HEADER.replace("ga: 2", "ga: 3"), None, "equal micro-batches as ga says (3, of at least 2)"),
            (HEADER.replace("ga: 2", "ga: 1"), None, "equal micro-batches as ga says (1, of at least 2)"),
            (HEADER, 2, "2 ranks are one stage"),
        ],
    )
    def test_messages_that_are_left_out(
        self, tmp_path: Path, header: str, n_ranks: int | None, words: str
    ) -> None:
        program, (remark,) = import_aicb(self.file(tmp_path, header=header), n_ranks=n_ranks)
        assert words in str(remark)
        assert "messages between 2 stages, 4000 bytes each" in str(remark)
        assert not (program.size_bytes == 4000).any()

    def test_inference_sends_forward_alone(self, tmp_path: Path) -> None:
        program, _ = import_aicb(self.file(tmp_path, policy="DISTRIBUTED_INFERENCE"))
        assert (program.size_bytes == 4000).sum() == 4


class TestGroups:
    @pytest.mark.parametrize(
        ("header", "n_ranks", "expected"),
        [
            (
                "model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16",
                None,
                {
                    "tp": [[0, 1], [2, 3]],
                    "dp": [[0, 2, 4, 6], [1, 3, 5, 7]],
                    "ep": [[0, 2], [1, 3]],
                    "dp_ep": [[0, 4], [1, 5]],
                },
            ),
            ("model_parallel_NPU_group: 1 ep: 4", 8, {"ep": [[0, 1, 2, 3]], "dp_ep": [[0, 4], [1, 5]]}),
            ("model_parallel_NPU_group: 2 ep: 2 pp: 12", 8, {"dp": [[0, 2, 4, 6]], "dp_ep": [[0, 4]]}),
        ],
    )
    def test_by_the_header(
        self, tmp_path: Path, header: str, n_ranks: int | None, expected: dict[str, list[list[int]]]
    ) -> None:
        found = aicb_groups(read_aicb(workload(tmp_path, row(), header=header)), n_ranks=n_ranks)
        for name, groups in expected.items():
            assert found.groups[name][: len(groups)].tolist() == groups, name
        for name, groups in found.groups.items():
            assert sorted(groups.ravel().tolist()) == list(range(found.n_ranks)), name

    def test_model_parallel_is_everyone_unless_said(self, tmp_path: Path) -> None:
        file = workload(tmp_path, row(), policy="MODEL")
        assert aicb_groups(read_aicb(file), n_ranks=3).groups["tp"].tolist() == [[0, 1, 2]]

    @pytest.mark.parametrize(
        ("header", "n_ranks", "words"),
        [
            ("model_parallel_NPU_group: 2", None, r"ranks: \(missing\)"),
            ("model_parallel_NPU_group: 2 ep: 4 all_gpus: 12", None, "ranks: 12.*a multiple of 8"),
            ("model_parallel_NPU_group: 2 all_gpus: 12", 5, "ranks: 5.*a multiple of 2"),
            ("model_parallel_NPU_group: 0 all_gpus: 12", None, "model_parallel_NPU_group: 0"),
            ("model_parallel_NPU_group: 1 ep: 0 all_gpus: 12", None, "ep: 0"),
            ("model_parallel_NPU_group: 16 all_gpus: 8", None, "model_parallel_NPU_group: 16.*1 to 8"),
            ("model_parallel_NPU_group: 1 pp: 0 all_gpus: 8", None, "pp: 0"),
        ],
    )
    def test_ranks_that_cannot_be_shared_out(
        self, tmp_path: Path, header: str, n_ranks: int | None, words: str
    ) -> None:
        with pytest.raises(SpecError, match=words):
            import_aicb(workload(tmp_path, row(), header=header), n_ranks=n_ranks)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "HYBRID_DLRM"}, ":1 policy: 'HYBRID_DLRM'"),
        ({"rows": (row("1 ALLREDUCEALLTOALL 8"),)}, ":3 forward: ALLREDUCEALLTOALL"),
        ({"rows": (row(inputs=f"1 ALLREDUCE {2**62 + 1}"),)}, ":3 bytes: '4611686018427387905'"),
        ({"rows": (row(f"{2**60} NONE 0"),)}, ":3 time: 1152921504606846976"),
        ({"header": "model_parallel_NPU_group: 2 all_gpus: 2 checkpoint_initiates: 1 0"}, ":1 .*checkpoint"),
    ],
)
def test_workloads_that_cannot_run(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    header = given.get("header", "model_parallel_NPU_group: 2 all_gpus: 2")
    rows = given.get("rows", (row(),))
    with pytest.raises(SpecError, match=words):
        import_aicb(workload(tmp_path, *rows, policy=given.get("policy", TRAINING), header=header))


# Commands and scenarios.


class TestCommands:
    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cables = "".join(f"{host} 4 100Gbps 1000ns 0\n" for host in range(4))
        (tmp_path / "topology.txt").write_text("5 1 4\n4\n" + cables)
        monkeypatch.chdir(tmp_path)

    def test_they_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = workload(
            tmp_path, row("5 ALLREDUCE 8000"), header="model_parallel_NPU_group: 2 pp: 2 all_gpus: 4"
        )
        assert recognise(file) == "aicb"
        assert main(["run", "topology.txt", file.name, "--out", "a", "--no-plot"]) == 0
        printed = capsys.readouterr().out
        assert "every rank is done" in printed
        assert "messages between 2 stages" in printed
        operations = fabric.Result.load("a").operations
        assert operations["collective"].tolist() == ["all_reduce"] * 2
        assert main(["convert", "topology.txt", file.name, "--out", "made/x.toml"]) == 0
        assert fabric.run("made/x.toml").fingerprint == fabric.Result.load("a").fingerprint
        assert main(["convert", "made/x.toml", "--out", "x.et"]) == 0
        assert main(["run", "topology.txt", "x.0.et", "--out", "b", "--no-plot"]) == 0
        ended = [fabric.Result.load(name).ranks["left_ps"].tolist() for name in ("a", "b")]
        assert ended[0] == ended[1]

    def test_a_file_without_ranks_takes_all_hosts(self, tmp_path: Path) -> None:
        file = workload(tmp_path, row(weights="1 ALLGATHER 8000"), policy="MICRO")
        assert recognise(file) == "aicb"
        assert main(["run", "topology.txt", file.name, "--out", "a", "--no-plot"]) == 0
        assert len(fabric.Result.load("a").ranks) == 4

    def test_too_many_ranks(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = workload(tmp_path, row(), header="model_parallel_NPU_group: 2 all_gpus: 64")
        assert main(["run", "topology.txt", file.name]) == 2
        assert "traffic[0].ranks: 64 (all_gpus of workload.txt)" in capsys.readouterr().err
        fewer = ["--set", "traffic[0].ranks=2", "--out", "a", "--no-plot"]
        assert main(["run", "topology.txt", file.name, *fewer]) == 0
        assert main(["run", "topology.txt", file.name, "--set", "traffic[0].ranks=8"]) == 2
        assert "traffic[0].ranks: 8 is not allowed; expected at most 4" in capsys.readouterr().err
        assert main(["run", "topology.txt", file.name, "--set", 'traffic[0].element="2B"']) == 2
        assert "no element for AICB" in capsys.readouterr().err
