"""Training jobs that cannot be, each with one error, and `fabric step`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support_steps import entry_of, scenario_of

import fabric
from fabric.cli import main
from fabric.errors import SpecError
from fabric.spec import Training
from fabric.step import StepReport


class TestCommandLine:
    FILE = """
name = "tiny"
topology = { kind = "single_switch", hosts = 8 }

[[traffic]]
kind = "training"
job = { model = { layers = 2, hidden = 64, ffn = 128, heads = 4, vocabulary = 256 }, sequence = 64, \
global_batch = 8, parallelism = { dp = 4 } }
compute = { kind = "given", forward = "10us" }
"""

    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        (tmp_path / "tiny.toml").write_text(self.FILE)
        return "tiny.toml"

    def test_step(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["step", file]) == 0
        assert "efficiency" in capsys.readouterr().out
        assert Path("results/tiny/timeline.png").read_bytes().startswith(b"\x89PNG")
        assert len(StepReport.load("results/tiny").steps) == 1
        assert main(["plot", "results/tiny", "--kind", "timeline", "--out", "again.png"]) == 0
        assert main(["step", file, "--quiet", "--no-plot"]) == 0
        assert not Path("results/tiny/timeline.png").exists()

    def test_sweeps_and_scale(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["step", file, "--sweep", "traffic[0].job.parallelism.zero=0,1"]) == 0
        assert "step_ps" in capsys.readouterr().out
        assert Path("results/tiny/sweep.png").exists()
        assert main(["step", file, "--scale", "2,4,8", "--out", "scale"]) == 0
        assert "scale_efficiency" in capsys.readouterr().out
        assert Path("scale/scale.png").exists()
        assert main(["step", file, "--scale", "2,0"]) == 2
        assert "--scale: 0 is not allowed" in capsys.readouterr().err
        assert main(["step", file, "--scale", "two"]) == 2

    def test_ctrl_c_keeps_what_was_run(
        self, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def second_is_interrupted(scenario: fabric.Scenario, **options: Any) -> StepReport:
            if scenario.name.endswith("(2)"):
                raise KeyboardInterrupt
            return fabric.run_step(scenario, **options)

        monkeypatch.setattr("fabric.step.run.run_step", second_is_interrupted)
        assert main(["step", file, "--sweep", "run.seed=1,2,3"]) == 130
        assert capsys.readouterr().err == "fabric: interrupted after 1 of 3 runs, saving what was recorded\n"
        assert sorted(path.name for path in Path("results/tiny").iterdir()) == ["1", "sweep.csv"]

    def test_other_commands_make_sense_of_the_file(
        self, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["run", file, "--out", "run"]) == 0
        assert "training" in capsys.readouterr().out
        assert main(["topo", file]) == 0
        assert main(["matrix", file]) == 0
        assert "dp" in capsys.readouterr().out


class TestBadJobs:
    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            (entry_of({"dp": 16}, job={"global_batch": 16}), r"traffic\[0\].hosts.*at least 16 hosts"),
            (
                entry_of(
                    {"dp": 4},
                    schedule="dualpipe",
                ),
                "schedule.stages",
            ),
            (entry_of({"pp": 3}, schedule="interleaved"), "micro_batches"),
            (entry_of({"dp": 4}, algorithms={"all_reduce": "pigeon"}), r"traffic\[0\].algorithm.*pigeon"),
            (entry_of({"dp": 4}, transport={"data_class": "none"}), r"traffic\[0\].transport.data_class"),
        ],
    )
    def test_what_the_network_shows(self, entry: dict[str, Any], words: str) -> None:
        with pytest.raises(SpecError, match=words):
            fabric.run(scenario_of(entry), progress=False)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"steps": 0}, "Training.steps"),
            ({"algorithms": {"gossip": "ring"}}, "Training.algorithms.gossip"),
            ({"router": {"choice": "hot"}}, "none for a model without experts"),
            ({"slowness": [{"ranks": [8]}]}, r"Training.slowness\[0\].ranks"),
            ({"slowness": [{"factor": 0.5, "begin": "1ms"}]}, "at least 1 between begin and end"),
            ({"slowness": [{"pause": "1ms", "step": 1}]}, r"slowness\[0\].step"),
            ({"compression": {"kind": "top_k", "ratio": 0}}, "ratio"),
            ({"packing": {"lengths": [128], "shares": [1], "sequences": 8}}, "packing.lengths"),
            ({"storage": [{"kind": "batches", "hosts": ""}]}, r"storage\[0\].hosts"),
            ({"compute": {"kind": "flops", "peak_tflops": 0}}, "peak_tflops"),
            ({"compute": {"kind": "given", "forward": "1us", "weight": "3us"}}, "weight"),
            ({"jitter": "1us"}, "no jitter"),
        ],
    )
    def test_what_is_wrong_in_itself(self, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(SpecError, match=words):
            Training(**{**entry_of({"dp": 8}), **changes})
