"""The shipped scenarios: every one gives what `scenarios/expected.json` says, bit for bit.

`python scenarios/update_expected.py` writes that file anew and prints what changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support_scenarios import EXPECTED, FILES, FOLDER, result_of, script, trains

import fabric
from fabric.cli import main

LONG = {
    **dict.fromkeys(
        (
            *("websearch without DCQCN", "link_failure_1024", "moe_node_limited (server, 16 chunks)"),
            *(f"oversubscribed_step ({ratio})" for ratio in (1.0, 1.2, 1.5)),
        ),
        pytest.mark.slow,
    ),
    **dict.fromkeys(
        (
            *("llama3_405b_step", "dual_plane_1024", "dual_plane_1024, healthy"),
            *(f"moe_node_limited ({copies})" for copies in ("expert", "rank", "server")),
        ),
        pytest.mark.exhaustive,
    ),
}
"""Cases that take more than 5 s, or up to a minute."""

MARKED = [pytest.param(name, marks=LONG.get(name, ())) for name in script.CASES]


class TestExpected:
    @pytest.mark.parametrize("name", MARKED)
    def test_gives_what_is_checked_in(self, name: str) -> None:
        assert script.expected_of(script.CASES[name], result_of(name)) == EXPECTED[name], (
            "behaviour changed; if that is meant, run python scenarios/update_expected.py and say why"
        )

    def test_every_file_is_a_case_and_every_case_is_checked_in(self) -> None:
        assert {case.file for case in script.CASES.values()} == set(FILES)
        assert list(EXPECTED) == list(script.CASES)

    @pytest.mark.parametrize("file", FILES)
    def test_opens_with_its_question_and_the_number_to_expect(self, file: str) -> None:
        text = (FOLDER / file).read_text(encoding="utf-8")
        assert text.startswith("# ")
        scenario = fabric.load_scenario(FOLDER / file)
        commands = ("step",) if trains(scenario) else ("run", "failures")
        assert any(f"fabric {command} scenarios/{file}" in text for command in commands)
        assert scenario.name == file.removesuffix(".toml")
        assert scenario.question.endswith("?")
        assert any(letter.isdigit() for letter in scenario.expect)


class TestUpdate:
    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Let the script work on a copy of `expected.json` with one number of one case changed."""
        changed = {**EXPECTED, "victim": {**self.measured(), "marks": 1}}
        path = tmp_path / "expected.json"
        path.write_text(json.dumps(changed))
        monkeypatch.setattr(script, "EXPECTED", path)
        return path

    def measured(self) -> dict[str, Any]:
        found: dict[str, Any] = script.expected_of(script.CASES["victim"], result_of("victim"))
        return found

    def test_prints_what_changed_and_writes_it(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        marks = self.measured()["marks"]
        before = file.read_text()
        assert script.main(["victim", "--check"]) == 1
        assert f"    marks: 1 -> {marks} (+{marks - 1})\n" in capsys.readouterr().out
        assert file.read_text() == before
        assert script.main(["victim"]) == 0
        assert json.loads(file.read_text()) == {**EXPECTED, "victim": self.measured()}
        assert [path.name for path in file.parent.iterdir()] == ["expected.json"]
        assert script.main(["victim", "--check"]) == 0

    def test_an_unknown_name_lists_the_known(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match="2"):
            script.main(["incest"])
        assert "there are: incast, incast_pfc_only" in capsys.readouterr().err


class TestCommandLine:
    def test_the_first_scenario_gives_a_table_and_a_picture(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        assert main(["run", str(FOLDER / "incast.toml")]) == 0
        printed = capsys.readouterr().out
        assert f"fingerprint     {EXPECTED['incast']['fingerprint']}\n" in printed
        assert "expected        The last of 64 messages arrives after 2.800 ms" in printed
        assert max(map(len, printed.split("\n"))) <= 120
        picture = tmp_path / "results" / "incast" / "queues.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 200_000
