"""What the page about training steps says holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabric.training import MODELS, SCHEDULES, load_job
from fabric.training.volumes import GROUPS

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "training.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_estimate_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLES) == 2
    exec(EXAMPLES[1], {})
    shown = PAGE[PAGE.index(EXAMPLES[1]) :].split("```")[2].strip()
    assert capsys.readouterr().out.strip() == shown


def test_the_first_example_and_its_file_are_one_job(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(EXAMPLES[0], names)
    file = tmp_path / "job.toml"
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file.write_text(text)
    assert load_job(file) == names["job"]


def test_figures_of_the_estimate() -> None:
    names: dict[str, object] = {}
    exec(EXAMPLES[1], names)
    parameters = names["model"].parameters  # type: ignore[attr-defined]
    compute = 6 * parameters * 1024 * 4096 / 1024 / 989e12 / 0.4
    figures = {
        "parameters on a rank": f"{parameters / 8 / 1e9:.1f}",
        "… at 50 GB/s a rank": f"{float(names['sent']['dp']) / 50e9:.1f} s",  # type: ignore[index]
        "… at 450 GB/s a rank": f"{float(names['sent']['tp']) / 450e9:.2f} s",  # type: ignore[index]
        "compute": f"{compute:.1f} s",
    }
    for name, value in figures.items():
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {name} |"))
        assert row.split("|")[2].strip().startswith(value), name


def test_names_are_those_of_the_code() -> None:
    table = PAGE[PAGE.index("| dimension |") :].split("\n\n")[0]
    rows = {name for line in table.splitlines()[2:] for name in line.split("|")[1].strip().split(", ")}
    assert set(GROUPS) <= rows
    for name in SCHEDULES:
        assert f"`{name}`" in PAGE
    for model in MODELS.values():
        if model.name.startswith(("GPT-3", "Llama 3", "Mixtral", "DeepSeek")):
            assert f"{model.parameters:,}".replace(",", " ") in PAGE.replace("\n", " "), model.name
