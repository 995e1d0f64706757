"""Commands on the pages: they run, and where a block shows what one prints, that is what it prints.

Commands on files that a page only names run on the small files of `tests/formats`.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fabric.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[list[str]]:
    """Arguments of every `fabric` command of a block, without comments."""
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("fabric ")]


def test_the_check_of_the_page_about_deadlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (scenario, *_), (shown, *_) = blocks("docs/deadlock.md", "toml"), blocks("docs/deadlock.md", "console")
    Path("fabric.toml").write_text(scenario)
    (arguments,) = commands(shown)
    assert main(arguments) == 1
    assert capsys.readouterr().out.startswith(shown.split("\n", 1)[1])


def test_the_refusal_of_the_readme(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = (each for each in blocks("README.md", "console") if each.startswith("$ fabric"))
    (arguments,) = commands(shown)
    assert main(arguments) == 2
    assert capsys.readouterr().err.strip() == shown.splitlines()[1]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of the names that the page about formats uses."""
    samples = ROOT / "tests" / "formats"
    names = {
        "flow_small.txt": "flow.txt",
        "leaf_spine.topo": "leaf_spine.topo",
        "barrier.cm": "permutation.cm",
    }
    for name in ("topology.txt", "config.txt"):
        shutil.copy(samples / name, tmp_path / name)
    for name, wanted in names.items():
        shutil.copy(samples / name, tmp_path / wanted)
    shutil.copy(samples / "flow_small.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(samples / "topology.txt", folder)
    (tmp_path / "workload.txt").write_text("MICRO\n1\nrow -1 1 NONE 0 1 NONE 0 1 ALLGATHER 4096 1")
    (tmp_path / "ring.toml").write_text(
        'topology = {kind = "single_switch", hosts = 2}\n'
        'traffic = [{kind = "collective", collective = "all_reduce", size = "1KB"}]\n'
    )
    assert main(["convert", "ring.toml", "--out", "w.et"]) == 0
    return tmp_path


def test_the_commands_of_the_page_about_formats(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In order: what one writes the next may read. A result called `x` and a program are made between."""
    first, *_ = blocks("docs/formats.md", "")
    for arguments in commands(first):
        if arguments[:2] == ["convert", "results/x"]:
            assert main(["run", "topology.txt", "flow.txt", "--out", "results/x", "--no-plot"]) == 0
        source = ["ring.toml" if "y.et" in arguments and each == "x.toml" else each for each in arguments]
        if source[0] == "run":
            source += ["--no-plot", "--out", f"results/{len(list(files.rglob('*')))}"]
        assert main(source) == 0, (arguments, capsys.readouterr().err)


def test_the_first_trace_of_the_page_about_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    monkeypatch.chdir(tmp_path)
    (block,) = (each for each in blocks("docs/formats.md", "console") if "ring.et" in each)
    for arguments in commands(block):
        assert main([*arguments, "--no-plot"] if arguments[0] == "run" else arguments) == 0
    assert "every rank is done" in capsys.readouterr().out
