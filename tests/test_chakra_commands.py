"""Chakra traces as traffic, on the command line and in scenarios."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support_chakra import attribute, collective, node, traces
from support_chakra_programs import ALL_REDUCE, OWN, US

import fabric
from fabric.cli import main
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.spec import Scenario, SingleSwitch

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
