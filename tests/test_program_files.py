"""GOAL and MSCCL files as traffic, and what entries of collectives say: ranks, chunks, matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_bad_collectives import GOAL, MSCCL

import fabric
from fabric.cli import main
from fabric.convert import import_files
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.scenario import load_scenario
from fabric.topology import build_network
from fabric.workload import Job, build_jobs
from fabric.workload.ragged import read_matrix, zipf_matrix

SWITCH = "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n"
TOPOLOGY = fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=4)


def jobs_of(*traffic: fabric.Collective | fabric.Program) -> list[Job]:
    scenario = fabric.Scenario(topology=TOPOLOGY, traffic=traffic)
    return build_jobs(scenario, build_network(scenario.topology))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("topology.txt", SWITCH), ("two.goal", GOAL), ("two.xml", MSCCL)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestRecognition:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            (GOAL, "goal"),
            ("// a schedule\n/* of\nranks */\n\nnum_ranks 4\n", "goal"),
            ("num_ranksx 4\n", None),
            (MSCCL, "msccl"),
            ('<?xml version="1.0"?>\n<!-- one -->\n' + MSCCL, "msccl"),
            ("<html><algo/></html>", None),
        ],
    )
    def test_by_content(self, tmp_path: Path, text: str, kind: str | None) -> None:
        (tmp_path / "file").write_text(text)
        assert recognise(tmp_path / "file") == kind


class TestPrograms:
    def test_ranks_take_the_first_hosts(self, files: Path) -> None:
        [job] = jobs_of(fabric.Program(file="two.goal", hosts="host[3-6]"))
        assert (job.host_of.tolist(), job.name, job.program.n_messages) == ([3, 4], "program", 1)
        [job] = jobs_of(fabric.Program(file="two.goal", ranks_per_host=2, name="own"))
        assert (job.host_of.tolist(), job.name) == ([0, 0], "own")
        [job] = jobs_of(fabric.Program(file="two.goal", order="shuffled"))
        assert job.host_of.tolist() != [0, 1]

    def test_they_start_when_the_entry_does(self, files: Path) -> None:
        for file, size in (("two.goal", None), ("two.xml", "1KB")):
            [job] = jobs_of(fabric.Program(file=file, size=size, start="3us"))
            assert job.program.start_ps.tolist() == [3 * 10**6]

    def test_eager_or_not(self, files: Path) -> None:
        for eager in (True, False):
            [goal] = jobs_of(fabric.Program(file="two.goal", eager=eager))
            [msccl] = jobs_of(fabric.Program(file="two.xml", size="1KB", eager=eager))
            assert goal.program.eager.tolist() == msccl.program.eager.tolist() == [eager]

    def test_both_engines_run_them_beside_other_traffic(self, files: Path) -> None:
        scenario = fabric.Scenario(
            topology=TOPOLOGY,
            traffic=(
                fabric.Program(file="two.goal", hosts="host[0-1]"),
                fabric.Program(file="two.xml", size="100KB", hosts="host[27]"),
                fabric.Permutation(size="20KB"),
            ),
        )
        native, readable = fabric.run(scenario), fabric.run(scenario, engine="reference")
        assert native.fingerprint == readable.fingerprint
        assert native.status == "FINISHED"
        assert native.operations["name"].tolist() == ["program#0", "program-2#0"]
        assert native.operations["sent_bytes"].tolist() == [8, 100_000]
        assert native.ranks["host"].tolist() == ["host0", "host1", "host2", "host7"]

    def test_a_saved_result_runs_again_from_anywhere(self, files: Path, tmp_path: Path) -> None:
        (files / "s.toml").write_text(
            'topology = { kind = "single_switch", hosts = 2 }\n'
            'traffic = [{ kind = "program", file = "two.xml", size = "1MB" }]\n'
        )
        result = fabric.run(load_scenario("s.toml"))
        result.save(tmp_path / "saved")
        again = fabric.run(tmp_path / "saved" / "scenario.toml")
        assert again.fingerprint == result.fingerprint

    def test_messages_within_a_host_have_no_bandwidth_and_can_be_saved(
        self, files: Path, tmp_path: Path
    ) -> None:
        scenario = fabric.Scenario(
            topology=fabric.SingleSwitch(hosts=2),
            traffic=[fabric.Program(file="two.goal", ranks_per_host=2)],
        )
        result = fabric.run(scenario)
        result.save(tmp_path / "saved")
        assert fabric.Result.load(tmp_path / "saved").summary["collectives"] == result.summary["collectives"]


class TestCommands:
    def test_run_takes_them_as_it_takes_flows(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["run", "topology.txt", "two.goal", "--out", "goal", "--no-plot"]) == 0
        assert main(["run", "two.xml", "topology.txt", "--set", "traffic[0].size=1MB", "--out", "x"]) == 0
        printed = capsys.readouterr().out
        assert "every rank is done" in printed
        assert fabric.Result.load("x").operations["size_bytes"].tolist() == [10**6]
        assert "the picture shows how busy links were" in printed
        assert Path("x/utilisation.png").read_bytes().startswith(b"\x89PNG")

    def test_a_topology_and_a_size_are_missed(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["run", "two.goal"]) == 2
        assert "two.goal is not allowed; expected also a file of topology" in capsys.readouterr().err
        assert main(["run", "topology.txt", "two.xml"]) == 2
        assert "traffic[0].size: (missing)" in capsys.readouterr().err
        assert main(["run", "topology.txt", "two.goal", "two.xml"]) == 2
        assert "expected one file of flows (besides two.goal)" in capsys.readouterr().err
        assert main(["run", "topology.txt", "two.goal", "--first-start", "0s"]) == 2
        assert "no first_start for a program" in capsys.readouterr().err

    @pytest.mark.parametrize("program", ["two.goal", "two.xml"])
    def test_converted_scenarios_come_with_a_copy(self, files: Path, program: str) -> None:
        assert main(["convert", "topology.txt", program, "--out", "made/x.toml"]) == 0
        suffix = Path(program).suffix
        made = sorted(path.name for path in Path("made").iterdir())
        assert made == sorted(["x-network.json", f"x-program{suffix}", "x.toml"])
        assert Path(f"made/x-program{suffix}").read_text() == Path(program).read_text()
        size = ["traffic[0].size=1MB"] if suffix == ".xml" else []
        direct = import_files("topology.txt", program).scenario
        sized = direct.replace(traffic=[direct.traffic[0].replace(size="1MB")]) if size else direct
        converted = fabric.run(load_scenario("made/x.toml", overrides=size))
        assert converted.fingerprint == fabric.run(sized).fingerprint

    def test_a_collective_becomes_goal(self, files: Path) -> None:
        Path("ring.toml").write_text(
            'topology = { kind = "single_switch", hosts = 4 }\n'
            'traffic = [{ kind = "collective", algorithm = "ring", size = "4KB" }]\n'
        )
        assert main(["convert", "ring.toml", "--out", "ring.goal"]) == 0
        [job] = jobs_of(fabric.Program(file="ring.goal"))
        assert (job.program.n_ranks, job.program.n_messages) == (4, 24)
        assert int(job.program.size_bytes.sum()) == 24_000

    def test_two_jobs_are_not_one_schedule(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        Path("two.toml").write_text(
            'topology = { kind = "single_switch", hosts = 4 }\n'
            'traffic = [{ kind = "collective", size = "4KB" }, { kind = "collective", size = "4KB" }]\n'
        )
        assert main(["convert", "two.toml", "--out", "two-jobs.goal"]) == 2
        assert "exactly one, for GOAL" in capsys.readouterr().err
        assert not Path("two-jobs.goal").exists()


class TestEntries:
    def test_some_ranks(self) -> None:
        [job] = jobs_of(fabric.Collective(algorithm="ring", size="1MB", ranks=3, hosts="host[2-7]"))
        assert job.host_of.tolist() == [2, 3, 4]
        [job] = jobs_of(fabric.Collective(algorithm="ring", size="1MB", ranks=5, ranks_per_host=2))
        assert job.host_of.tolist() == [0, 0, 1, 1, 2]

    def test_pieces_in_chunks(self) -> None:
        [whole] = jobs_of(fabric.Collective(algorithm="ring", size="8MB", chunk="1MB"))
        [four] = jobs_of(fabric.Collective(algorithm="ring", size="8MB", chunk="250001B"))
        assert four.program.n_messages == 4 * whole.program.n_messages
        assert four.program.piece_bytes(0).max() == 250_000

    def test_popularity_by_zipfs_law(self) -> None:
        """Everyone sends the same in all, to the k-th most popular of the others 1/k of the first's share."""
        [job] = jobs_of(
            fabric.Collective(collective="all_to_all_v", algorithm="direct", size="1MB", skew=1.0)
        )
        lowered = fabric.run(
            fabric.Scenario(
                topology=TOPOLOGY,
                traffic=[
                    fabric.Collective(collective="all_to_all_v", algorithm="direct", size="1MB", skew=1.0)
                ],
            )
        )
        connections = lowered.connections
        sent = [connections["size_bytes"][connections["source"] == f"host{n}"].sum() for n in range(8)]
        assert min(sent) > 10**6 - 8
        got = np.sort(
            [connections["size_bytes"][connections["destination"] == f"host{n}"].sum() for n in range(8)]
        )
        assert got[-1] / got[0] > 4
        assert job.program.n_messages == 56

    def test_zipf_without_skew_is_even(self) -> None:
        even = zipf_matrix(np.arange(5), size_bytes=1000, skew=0.0)
        assert even.tolist() == (250 * (1 - np.eye(5, dtype=int))).tolist()
        assert zipf_matrix(np.arange(1), size_bytes=1000, skew=2.0).tolist() == [[0]]

    def test_a_matrix_from_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text("# by sender\n0, 7,0\n\n1,0, 2\n100,200,0\n")
        assert read_matrix(str(tmp_path / "m.csv"), n_ranks=3).tolist() == [
            [0, 7, 0],
            [1, 0, 2],
            [100, 200, 0],
        ]
        (tmp_path / "s.toml").write_text(
            'topology = { kind = "single_switch", hosts = 3 }\n'
            '[[traffic]]\nkind = "collective"\ncollective = "all_to_all_v"\n'
            'algorithm = "direct"\nmatrix = "m.csv"\n'
        )
        result = fabric.run(load_scenario(tmp_path / "s.toml"))
        assert result.operations["sent_bytes"].tolist() == [310]
        with pytest.raises(SpecError, match=r"m\.csv:2"):
            read_matrix(str(tmp_path / "m.csv"), n_ranks=4)
