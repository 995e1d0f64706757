"""What the page about training steps says holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fabric
from fabric.topology import build_network
from fabric.training import MODELS, SCHEDULES, load_job, training_jobs
from fabric.training.volumes import GROUPS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "training.md").read_text()
TABLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
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
    (text,) = (one for one in TABLES if one.startswith("# job.toml"))
    file.write_text(text)
    assert load_job(file) == names["job"]


def test_the_entry_is_one_of_a_scenario() -> None:
    (text,) = (one for one in TABLES if one.startswith("[[traffic]]"))
    scenario = fabric.load_scenario(f'topology = {{ kind = "single_switch", hosts = 128 }}\n{text}')
    (job,) = training_jobs(scenario, build_network(scenario.topology))
    assert job.purpose is not None
    assert (job.program.n_ranks, int(job.purpose.step.max())) == (128, 1)


def test_answers_of_scenarios_are_those_that_are_checked_in() -> None:
    """Times of the table, to the digits that it shows."""
    expected = json.loads((ROOT / "scenarios" / "expected.json").read_text())
    shown = {
        "pipeline_1f1b": (151.8, 142.8),
        "moe_hot_expert (hot)": (35.6,),
        "moe_hot_expert (regrouped)": (37.6,),
        "moe_node_limited (server)": (42.2,),
        "moe_node_limited (expert)": (52.0,),
        "moe_node_limited (server, 16 chunks)": (36.4,),
        "moe_low_latency (64)": (16.4,),
        "moe_low_latency (64, overlapped)": (13.1,),
        "topk_compression (dense)": (23.0,),
        "topk_compression (Top-K 1.25 %)": (13.3,),
        "oversubscribed_step (1.5)": (12.23,),
        "llama3_405b_step": (139,),
    }
    table = PAGE[PAGE.index("| scenario |") :].split("\n\n")[0]
    for name, times in shown.items():
        (row,) = (line for line in table.splitlines() if line.startswith(f"| `{name.split(' ')[0]}` |"))
        found = expected[name]["steps"][0]["duration_ps"] / 1e9
        assert f"{times[0]:g}" in row
        digits = len(f"{times[0]:g}".partition(".")[2])
        assert round(found, digits) == times[0], name


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
