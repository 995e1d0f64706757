"""Ctrl-C: a real run on the native engine stops at once and is saved, whenever the keys are pressed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabric
from fabric.bench import Bench, bench_csv, run_bench
from fabric.cli import main
from fabric.result import Result
from fabric.scenario import dump_scenario
from fabric.simulate import Simulation, run
from fabric.spec import (
    Collective,
    Incast,
    LeafSpine,
    Permutation,
    QueueRecord,
    Record,
    Scenario,
    SingleSwitch,
)

ROOT = Path(fabric.__file__).resolve().parent.parent

ENDLESS = """
topology = {kind = "leaf_spine", leaves = 8, spines = 4, hosts_per_leaf = 8}
traffic = [{kind = "permutation", size = "1TB"}]
"""

WATCHED = """
import sys, time
import fabric.cli, fabric.progress, fabric.simulate

look, run = fabric.progress.Progress.look, fabric.simulate.Simulation.run

def first_look(self):
    print("running", flush=True)
    fabric.progress.Progress.look = look

def timed(self, **options):
    status = run(self, **options)
    print(time.monotonic(), flush=True)
    return status

fabric.progress.Progress.look, fabric.simulate.Simulation.run = first_look, timed
sys.exit(fabric.cli.main(["run", "endless.toml", "--out", "out"]))
"""
"""The command, saying when its run has begun and when it has returned."""

LONGEST_REACTION_S = 1.0
"""Ten times what is promised, for machines that do other things too."""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    Path("endless.toml").write_text(ENDLESS)


def test_a_run_of_the_native_engine_stops_at_once_and_is_saved() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.3)
    pressed_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    returned_s = float(process.stdout.readline())
    printed, errors = process.communicate(timeout=30)
    assert returned_s - pressed_s < LONGEST_REACTION_S
    assert process.returncode == 130
    assert errors.startswith("fabric: interrupted at ")
    assert "64 of 64 flows not delivered" in printed
    result = Result.load("out")
    assert (result.status, result.provenance.engine) == ("INTERRUPTED", "native")
    assert result.counters["hops"] > 0


PRESSED_IN_IMPORT = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["PRESSED_AT"]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Press())
from fabric.__main__ import main
sys.exit(main())
"""
"""The entry point, with Ctrl-C when it comes to import a module."""


@pytest.mark.parametrize("module", ["fabric.cli", "argparse", "fabric.cli.topo", "numpy", "fabric.scenario"])
def test_while_modules_are_imported_it_is_quiet(module: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PRESSED_IN_IMPORT, "run", "endless.toml"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PRESSED_AT": module},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (process.returncode, process.stderr) == (130, "fabric: interrupted\n")


def pressed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press the keys at the end of the first chunk of a run, which stops it."""
    run_chunk = Simulation._run_chunk

    def interrupted(simulation: Simulation, until_ps: int) -> None:
        run_chunk(simulation, until_ps)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Simulation, "_run_chunk", interrupted)


def test_again_while_saving_it_is_still_saved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pressed_twice(monkeypatch)
    save = Result.save

    def interrupted(result: Result, *arguments: object, **options: object) -> None:
        signal.raise_signal(signal.SIGINT)
        save(result, *arguments, **options)  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Result, "save", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert main(["run", "endless.toml", "--out", "out"]) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert "result      out\n" in capsys.readouterr().out
    assert Result.load("out").status == "INTERRUPTED"


def test_again_while_drawing_it_is_saved_already(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pressed_twice(monkeypatch)

    def drawing(*arguments: object) -> None:
        assert Result.load("out").status == "INTERRUPTED"
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("fabric.cli.run.draw", drawing)
    assert main(["run", "endless.toml", "--out", "out"]) == 130
    printed = capsys.readouterr().out
    assert "flows not delivered" in printed
    assert "no picture: interrupted" in printed
    assert Result.load("out").status == "INTERRUPTED"


SIZES = [1000, 2000, 4000]


class TestBench:
    """What was measured is kept, whether the run of a size stops at the end of a chunk or at once."""

    RING = Scenario(topology=SingleSwitch(hosts=4), traffic=(Collective(algorithm="ring"),), name="four")

    @pytest.fixture(params=["end of a chunk", "at once"])
    def third_is_interrupted(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        def third(scenario: Scenario, **how: Any) -> Result:
            entry = scenario.traffic[0]
            assert isinstance(entry, Collective)
            if entry.size != SIZES[2]:
                return run(scenario, **how)
            if request.param == "at once":
                raise KeyboardInterrupt
            return replace(run(scenario, **how), status="INTERRUPTED")

        monkeypatch.setattr("fabric.bench.measure.run", third)

    @pytest.mark.usefixtures("third_is_interrupted")
    def test_the_sizes_before_are_kept(self) -> None:
        part = run_bench(Bench(scenario=self.RING, sizes=SIZES))
        assert bench_csv(part) == bench_csv(run_bench(Bench(scenario=self.RING, sizes=SIZES[:2])))

    @pytest.mark.usefixtures("third_is_interrupted")
    def test_nothing_measured_is_no_table(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            run_bench(Bench(scenario=self.RING, sizes=SIZES[2:]))

    @pytest.mark.usefixtures("third_is_interrupted")
    def test_the_command_saves_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("four.toml").write_text(dump_scenario(self.RING))
        sizes = ["-b", "1000B", "-e", "4000B", "--csv", "part.csv"]
        assert main(["bench", "four.toml", *sizes]) == 130
        printed = capsys.readouterr()
        assert printed.err == "fabric: interrupted after 2 of 3 sizes, saving what was measured\n"
        assert len([line for line in printed.out.splitlines() if "float" in line]) == 2
        assert len(Path("part.csv").read_text().splitlines()) == 1 + 2
        assert not Path("results").exists()


class TestWindows:
    """The native engine runs node after node to the end of a window; results stand between two windows."""

    SCENARIO = Scenario(
        topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=4),
        traffic=(Incast(senders=9, size="30KB"), Permutation(size="100KB")),
        record=Record(queues=QueueRecord(delta=1), pauses=True),
    )

    @pytest.mark.parametrize("hops", [1, 37, 200, 1111])
    def test_a_result_in_the_midst_of_a_run_holds_one_instant(self, hops: int) -> None:
        simulation = Simulation(self.SCENARIO)
        assert simulation.step(hops=hops) == "BUDGET"
        part = simulation.result()
        assert part.counters["hops"] >= hops
        whole = run(self.SCENARIO, until=part.duration_ps)
        assert part.fingerprint == whole.fingerprint
        for name, table in whole.tables.items():
            for column in table.columns:
                np.testing.assert_array_equal(part.tables[name][column], table[column], err_msg=column)
        simulation.run()
        assert simulation.result().fingerprint == run(self.SCENARIO).fingerprint

    def test_a_window_that_takes_long_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fabric.simulate.WINDOW_S", 0.0)
        simulation = Simulation(self.SCENARIO)
        simulation.step(hops=37)
        hops = simulation.result().counters["hops"]
        monkeypatch.undo()
        assert hops < simulation.result().counters["hops"]
        simulation.run()
        assert simulation.result().fingerprint == run(self.SCENARIO).fingerprint
