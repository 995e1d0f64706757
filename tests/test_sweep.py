"""Sweeps: what runs there are, that each is the run it would be alone, and what the command makes of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabric
from fabric.cli import main
from fabric.errors import FabricError, SpecError
from fabric.plot import comparison, to_image
from fabric.result import Result, Table
from fabric.scenario import load_scenario
from fabric.sweep import sweep_runs

BASE = """
name = "small"
question = "What changes?"
topology = {kind = "single_switch", hosts = 4}
traffic = [{kind = "incast", receivers = ["host0"], senders = 3, size = "50KB"}]
"""
SWEEP = """
[sweep]
"transport.payload" = [1000, 4000]

[sweep.control]
none = {"transport.congestion" = {kind = "none"}}

[sweep.control."DCTCP, step"]
"transport.congestion" = {kind = "dctcp"}
"switch.ecn" = {kmin = "9KB", kmax = "9KB", pmax = 1.0}
"""


def scenario(sweep: str = SWEEP) -> fabric.Scenario:
    return fabric.load_scenario(BASE + sweep)


class TestRuns:
    def test_every_combination_with_the_last_axis_fastest(self) -> None:
        runs = sweep_runs(scenario())
        assert [tuple(run.labels.values()) for run in runs] == [
            ("1000", "none"),
            ("1000", "DCTCP, step"),
            ("4000", "none"),
            ("4000", "DCTCP, step"),
        ]
        assert list(runs[0].labels) == ["payload", "control"]
        assert runs[3].scenario.transport.payload == 4000
        assert runs[3].scenario.switch.ecn == fabric.Ecn(kmin="9KB", kmax="9KB", pmax=1.0)
        assert runs[2].scenario.switch.ecn == fabric.Switch().ecn
        assert runs[3].scenario.name == "small (4000, DCTCP, step)"
        assert not any(run.scenario.sweep for run in runs)

    def test_a_scenario_without_a_sweep_is_one_run(self) -> None:
        (one,) = sweep_runs(scenario(""))
        assert one.labels == {}
        assert one.scenario == scenario("")

    @pytest.mark.parametrize(
        ("sweep", "axes", "labels"),
        [
            ('"transport.congestion.kind" = ["none", "dctcp"]', ["congestion"], ["none", "dctcp"]),
            ('"switch.ecn.kmin" = ["9KB"]\n"switch.ecn.kmax" = ["90KB"]', ["kmin", "kmax"], ["9KB"]),
            ('"run.seed" = [1, 1]', ["seed"], ["1", "1 #2"]),
            ('"switch.ecn" = [false, {kmin = "9KB"}]', ["ecn"], ["false", "kmin=9KB"]),
            ('traffic = [[{kind = "permutation", size = 9}]]', ["traffic"], ["permutation"]),
            (
                '"traffic[0].size" = [9]\n"topology.link.delay" = ["1us"]\n"traffic[0].victim_size"={a=8}',
                ["size", "delay", "victim_size"],
                ["9"],
            ),
        ],
    )
    def test_labels(self, sweep: str, axes: list[str], labels: list[str]) -> None:
        base = BASE.replace("senders = 3", "senders = 1, victims = 1")
        runs = sweep_runs(fabric.load_scenario(f"{base}\n[sweep]\n{sweep}"))
        assert list(runs[0].labels) == axes
        assert list(dict.fromkeys(run.labels[axes[0]] for run in runs)) == labels

    def test_a_sweep_survives_being_written(self) -> None:
        described = scenario()
        assert fabric.load_scenario(fabric.dump_scenario(described)) == described

    def test_swept_files_are_beside_the_scenario(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "in").mkdir()
        for name in ("a", "b"):
            (tmp_path / "in" / f"{name}.csv").write_text("source,destination,size,start\n0,1,1KB,0\n")
        sweep = '[sweep]\ntraffic = [[{kind = "flows", file = "a.csv"}], [{kind = "flows", file = "b.csv"}]]'
        (tmp_path / "in" / "x.toml").write_text(BASE + sweep)
        monkeypatch.chdir(tmp_path)
        assert len(fabric.run_sweep("in/x.toml").results) == 2
        (tmp_path / "in" / "b.csv").unlink()
        with pytest.raises(SpecError, match=r"sweep\.traffic\[1\]\[0\]\.file: 'b\.csv' .* an existing file"):
            fabric.load_scenario("in/x.toml")


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("sweep = 3", "sweep: 3 is not allowed; expected a table"),
        ('[sweep]\n"switch.ecn.kmin" = "9KB"', "sweep.switch.ecn.kmin: '9KB' .* a list of values"),
        ('[sweep]\n"switch.ecn.kmin" = []', "sweep.switch.ecn.kmin: .* a list of values"),
        ('[sweep]\n"swich.buffer" = ["9MB"]', "sweep.swich.buffer: .* the path of a value, such as"),
        ("[sweep]\nname = ['a']", "sweep.name: .* the path of a value"),
        ('[sweep.x]\na = {"swich.buffer" = "9MB"}', "sweep.x.a: 'swich.buffer' .* the path of a value"),
        ("[sweep.x]\na = 3", r"sweep\.x\.a: 3 .* a table of values by path"),
    ],
)
def test_a_sweep_that_is_none(sweep: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        scenario(sweep)


def test_a_value_that_does_not_fit_says_in_which_run() -> None:
    described = scenario('[sweep]\n"switch.ecn.kmin" = ["9KB", "9"]\n"transport.payload" = [9, "9us"]')
    with pytest.raises(SpecError, match=r"sweep \(9KB, 9us\): transport.payload: '9us'"):
        sweep_runs(described)


def test_too_many_runs() -> None:
    with pytest.raises(SpecError, match="1000000 runs"):
        scenario(
            "",
        ).replace(sweep={"run.seed": list(range(1000)), "transport.payload": list(range(1000))})


def test_one_run_of_a_sweep_is_refused_until_it_is_chosen() -> None:
    with pytest.raises(SpecError, match=r"fabric\.run_sweep"):
        fabric.run(scenario())


def test_runs_give_what_they_give_alone() -> None:
    swept = fabric.run_sweep(scenario(), progress=False)
    alone = [fabric.run(run.scenario) for run in sweep_runs(scenario())]
    assert [one.fingerprint for one in swept.results] == [one.fingerprint for one in alone]
    assert len({one.fingerprint for one in alone}) == 4
    assert swept.table["fct_max_ps"].tolist() == [int(one.flows["fct_ps"].max()) for one in alone]
    assert swept.table["control"].tolist() == ["none", "DCTCP, step"] * 2
    assert str(swept).count("\n") == 4


def test_what_never_ends_has_no_times() -> None:
    swept = fabric.run_sweep(
        scenario().replace(sweep={"run.until": ["1ns", "10ms"]}), engine="reference", progress=False
    )
    table = swept.table
    assert table["status"].tolist() == ["UNTIL", "FINISHED"]
    for column in ("done_ps", "fct_median_ps", "fct_p99_ps", "fct_max_ps"):
        assert table[column][0] == -1 < table[column][1]
    assert table["done_ps"][1] >= table["fct_max_ps"][1]
    assert np.isnan(table["slowdown_max"]).tolist() == [True, False]
    shown = [text.get_text() for text in comparison(table, axes=swept.axes)[0].texts]
    assert shown.count("never") == 1


def test_a_sweep_without_flows_says_when_all_is_done() -> None:
    ring = fabric.Scenario(
        topology=fabric.SingleSwitch(hosts=4),
        traffic=[fabric.Collective(collective="all_reduce", algorithm="ring", size="1MB")],
        sweep={"traffic[0].size": ["1MB", "2MB"]},
    )
    swept = fabric.run_sweep(ring, progress=False)
    for one, result in zip(swept.table, swept.results, strict=True):
        assert one["fct_max_ps"] == -1
        assert result.ranks["left_ps"].max() <= one["done_ps"] == result.duration_ps
    head = str(swept).splitlines()[0].split()
    assert head[:3] == ["size", "done_ps", "queue_peak_bytes"], "columns without a value are not shown"
    assert f"{swept.results[0].summary['connections']} connections, 6MB" in str(swept.results[0])
    assert "flows" not in str(swept.results[0])


def test_jobs_beside_each_other_have_columns_of_their_own() -> None:
    ring = {"collective": "all_reduce", "algorithm": "ring", "size": "1MB"}
    two = fabric.Scenario(
        topology=fabric.SingleSwitch(hosts=8),
        traffic=[
            fabric.Collective(name="training", hosts="host[0-3]", **ring),
            fabric.Collective(name="batch", hosts="host[4-7]", **ring),
        ],
        sweep={"traffic[1].size": ["1MB", "2MB"]},
    )
    swept = fabric.run_sweep(two, progress=False)
    assert swept.jobs == ("training", "batch")
    for one, result in zip(swept.table, swept.results, strict=True):
        took = result.operations["duration_ps"].tolist()
        assert [one["training_ps"], one["batch_ps"]] == took
    assert swept.table["batch_ps"][1] > 1.5 * swept.table["batch_ps"][0]
    panels = comparison(swept.table, axes=swept.axes, columns=("training_ps", "batch_ps"))
    assert [panel.get_title(loc="left") for panel in panels] == ["training", "batch"]


class TestCommand:
    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        Path("plain.toml").write_text(BASE)
        Path("swept.toml").write_text(BASE + SWEEP)

    def test_prints_a_table_and_saves_every_result(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["run", "swept.toml"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("small: What changes?\npayload  control")
        assert "results     results/small\n  picture     results/small/sweep.png\n" in printed
        assert Path("results/small/sweep.png").read_bytes().startswith(b"\x89PNG")
        rows = list(csv.DictReader(Path("results/small/sweep.csv").read_text().splitlines()))
        assert [row["control"] for row in rows] == ["none", "DCTCP, step"] * 2
        result = Result.load("results/small/4000-DCTCP-step")
        assert int(rows[3]["fct_max_ps"]) == result.flows["fct_ps"].max()
        assert main(["run", "swept.toml", "--quiet"]) == 0

    def test_axes_of_the_command_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["run", "plain.toml", "--sweep", "traffic[0].size=9KB,18KB", "--no-plot"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[1:4]] == ["size", "9KB", "18KB"]
        assert main(["run", "plain.toml", "--sweep", "transport.payload=[1000, 2000]", "--out", "o"]) == 0
        assert sorted(path.name for path in Path("o").iterdir()) == ["1000", "2000", "sweep.csv", "sweep.png"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--sweep", "traffic[0].size"], "--sweep: 'traffic[0].size'"),
            (["--sweep", "traffic[0].size="], "--sweep: 'traffic[0].size='"),
            (["--sweep", "traffic[0].size=9KB,x"], "sweep (x): traffic[0].size: 'x'"),
            (["--sweep", "run.seed=1,2", "--out", "plain.toml"], "plain.toml: exists and is not a directory"),
        ],
    )
    def test_what_is_wrong(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["run", "plain.toml", *arguments]) == 2
        assert f"fabric: error: {message}" in capsys.readouterr().err

    def test_ctrl_c_keeps_what_was_run(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("results/small").mkdir(parents=True)
        Path("results/small/sweep.png").write_bytes(b"of an older sweep")
        run = fabric.run

        def third_is_interrupted(scenario: fabric.Scenario, **options: Any) -> Result:
            if scenario.name.endswith("(4000, none)"):
                raise KeyboardInterrupt
            return run(scenario, **options)

        monkeypatch.setattr("fabric.sweep.run", third_is_interrupted)
        assert main(["run", "swept.toml"]) == 130
        assert capsys.readouterr().err == "fabric: interrupted after 2 of 4 runs, saving what was recorded\n"
        saved = sorted(path.name for path in Path("results/small").iterdir())
        assert saved == ["1000-DCTCP-step", "1000-none", "sweep.csv"]

    def test_labels_that_make_the_same_name(self) -> None:
        names = "traffic[0].name=a b,a-b,a b"
        assert main(["run", "plain.toml", "--sweep", names, "--no-plot", "--quiet", "--out", "o"]) == 0
        folders = [path for path in Path("o").iterdir() if path.is_dir()]
        labels = sorted(load_scenario(folder / "scenario.toml").traffic[0].name for folder in folders)
        assert labels == ["a b", "a b", "a-b"]

    def test_other_files_in_the_place_of_a_result_stay(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("o/2").mkdir(parents=True)
        Path("o/2/notes.txt").write_text("mine")
        assert main(["run", "plain.toml", "--sweep", "run.seed=1,2", "--out", "o"]) == 2
        assert sorted(path.name for path in Path("o").rglob("*")) == ["2", "notes.txt"]


class TestPicture:
    def test_groups_and_bars(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MPLBACKEND", "Agg")
        swept = fabric.run_sweep(scenario(), progress=False)
        panels = comparison(
            swept.table,
            axes=swept.axes,
            columns=("fct_max_ps", "queue_peak_bytes", "marks"),
            note=swept.question,
        )
        assert [len(panel.patches) for panel in panels] == [4, 4, 4]
        assert [text.get_text() for text in panels[0].get_yticklabels()] == ["none", "DCTCP, step"] * 2
        widths = [bar.get_width() for bar in panels[0].patches]
        times = swept.table["fct_max_ps"]
        assert widths[:2] == pytest.approx((times[:2] / times[:2].max()).tolist())
        assert max(widths[2:]) == 1
        assert "What changes?\nBy payload, control" in [text.get_text() for text in panels[0].texts]
        assert to_image(panels[0]).startswith(b"\x89PNG")

    def test_nothing_to_compare(self) -> None:
        with pytest.raises(FabricError, match="no runs"):
            comparison(Table({"a": [], "fct_max_ps": []}), axes=["a"], columns=["fct_max_ps"])
        with pytest.raises(FabricError, match="fct_max_ps"):
            comparison(Table({"a": ["x"]}), axes=["a"])
