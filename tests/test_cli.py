"""The command line: what it prints, writes and returns; and what `import fabric` offers and costs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fabric
from fabric.cli import main
from fabric.result import Result
from fabric.simulate import Simulation

SCENARIO = """
name = "small incast"
question = "Does it fill?"
expect = "It does."

[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 2

[[traffic]]
kind = "incast"
receivers = ["host0"]
senders = 3
size = "50KB"

[record.queues]
delta = "1B"
"""

SMALL_BENCH = ["-e", "1KiB", "--no-plot", "--engine", "reference", "--csv", "/dev/full"]
ROOT = Path(fabric.__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    Path("incast.toml").write_text(SCENARIO)
    Path("plain.toml").write_text(SCENARIO.partition("[record.queues]")[0])


def files() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file() and path.suffix != ".toml")


def run_reference(*arguments: str) -> int:
    return main(["run", *arguments, "--engine", "reference"])


class TestRun:
    def test_prints_a_table_and_saves_the_result(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_reference("incast.toml") == 0
        printed = capsys.readouterr()
        assert printed.out.startswith("small incast: Does it fill?\n")
        for part in ("4 hosts, 4 switches", "3 flows, 150KB", "slowest flows", "It does.", "fullest queues"):
            assert part in printed.out
        assert "result      results/small-incast\n" in printed.out
        assert "picture     results/small-incast/queues.png\n" in printed.out
        assert printed.err == ""
        result = Result.load("results/small-incast")
        assert result.status == "FINISHED"
        assert Path("results/small-incast/queues.png").read_bytes().startswith(b"\x89PNG")
        assert all(name.startswith("results/") for name in files())

    def test_without_queues_the_picture_shows_completion_times(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run_reference("plain.toml", "--out", "out") == 0
        assert "no queue depths were recorded" in capsys.readouterr().out
        assert files() == ["out/fct.png", "out/summary.json", "out/tables.npz"]

    def test_of_many_sizes_the_picture_shows_slowdown(self, capsys: pytest.CaptureFixture[str]) -> None:
        poisson = 'traffic=[{kind="poisson", load=0.5, distribution="fb_hadoop", flows=20}]'
        assert run_reference("plain.toml", "--out", "out", "--set", poisson) == 0
        assert "the picture shows slowdown by size" in capsys.readouterr().out
        assert files() == ["out/slowdown.png", "out/summary.json", "out/tables.npz"]

    def test_a_run_with_nothing_to_draw_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_reference("plain.toml", "--until", "1ns", "--out", "out") == 0
        assert "no picture: no flow was delivered" in capsys.readouterr().out
        assert files() == ["out/summary.json", "out/tables.npz"]

    def test_options_change_the_scenario(self) -> None:
        options = ("--seed", "9", "--until", "3us", "--set", "traffic[0].size=60KB", "--set", "name=other")
        assert run_reference("incast.toml", *options, "--no-plot", "--quiet") == 0
        result = Result.load("results/other")
        assert (result.status, result.duration_ps, result.provenance.seed) == ("UNTIL", 3_000_000, 9)
        assert result.flows["size_bytes"].tolist() == [60_000] * 3
        saved = tomllib.loads(Path("results/other/scenario.toml").read_text())
        assert "expect" not in saved
        assert saved["run"] == {"seed": 9, "until": "3us"}

    def test_quiet_prints_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_reference("incast.toml", "--quiet", "--no-plot") == 0
        assert capsys.readouterr() == ("", "")

    def test_a_saved_scenario_runs_again_to_the_same_fingerprint(self) -> None:
        assert run_reference("incast.toml", "--quiet", "--no-plot", "--out", "one") == 0
        assert run_reference("one/scenario.toml", "--quiet", "--no-plot", "--out", "two") == 0
        assert Result.load("one").fingerprint == Result.load("two").fingerprint

    def test_a_saved_scenario_finds_its_files(self) -> None:
        Path("data").mkdir()
        Path("data/flows.csv").write_text("source,destination,size,start\nhost0,host1,10KB,0us\n")
        Path("data/listed.toml").write_text(
            '[topology]\nkind = "single_switch"\nhosts = 2\n[[traffic]]\nkind = "flows"\nfile = "flows.csv"\n'
        )
        assert run_reference("data/listed.toml", "--quiet", "--no-plot", "--out", "deep/one") == 0
        assert run_reference("deep/one/scenario.toml", "--quiet", "--no-plot", "--out", "two") == 0
        assert Result.load("deep/one").fingerprint == Result.load("two").fingerprint

    def test_running_twice_replaces_the_result(self) -> None:
        for _ in range(2):
            assert run_reference("incast.toml", "--quiet") == 0
        assert main(["plot", "results/small-incast", "--kind", "fct"]) == 0
        assert run_reference("incast.toml", "--quiet", "--no-plot") == 0
        assert not Path("results/small-incast/fct.png").exists()

    def test_the_name_of_a_scenario_cannot_leave_the_folder(self) -> None:
        assert run_reference("incast.toml", "--set", "name=../../etc/x y", "--quiet", "--no-plot") == 0
        assert os.listdir("results") == ["etc-x-y"]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (["run", "none.toml"], "none.toml"),
            (["run", "incast.toml", "--set", "switch.ecn.kmin=9x"], "switch.ecn.kmin: '9x'"),
            (["run", "incast.toml", "--set", "switch.ecnn=3"], "ecnn"),
            (["run", "incast.toml", "--until", "5xs"], "--until: '5xs'"),
            (["run", "incast.toml", "--until", "5"], "--until: '5'"),
            (["run", "incast.toml", "--set", "traffic[0].senders=99"], "traffic[0].senders"),
            (["run", "incast.toml", "--seed", "x"], "--seed"),
            (["run", "incast.toml", "--engine", "fast"], "fast"),
            (["run", "incast.toml", "--out", "incast.toml"], "incast.toml: exists"),
            (["run", "incast.toml", "--out", "."], "not a fabric result"),
            (["run"], "FILE"),
            (["fly"], "fly"),
            ([], "COMMAND"),
            (["plot", "nowhere"], "nowhere: not a fabric result"),
            (["plot", "nowhere", "--kind", "pie"], "pie"),
            (["plot", "nowhere", "--out", "picture.bmp"], "picture.bmp"),
            (["plot", "nowhere", "--kind", "fct", "--ports", "leaf0"], "--ports"),
            (["topo", "incast.toml", "--out", "picture"], "picture"),
            (["run", "incast.toml", "--out", ""], "--out: '' is not allowed"),
            (["plot", "nowhere", "--out", ""], "--out: '' is not allowed"),
            (["topo", "incast.toml", "--out", ""], "--out: '' is not allowed"),
            (["convert", "incast.toml", "--out", ""], "--out: '' is not allowed"),
            (["convert", "incast.toml", "--out", "x.toml"], "for these sources a name such as topology*.txt"),
            (["convert", "none", "--out", "x.toml"], "none: (missing)"),
            (["run", "incast.toml", "--first-start", "0s"], "no first_start with a scenario"),
            (["run", "incast.toml", "--start-unit", "ns"], "no start_unit with a scenario"),
            (["run", ""], "file name: ''"),
            (["run", "."], ".: (Is a directory) is not allowed; expected a file that can be read"),
            (["matrix", "."], ".: (Is a directory) is not allowed; expected a training job that can be read"),
            (
                ["matrix", "none.toml"],
                "none.toml: (missing) is not allowed; expected an existing training job",
            ),
            (["validate", ".", "--markdown", ""], "--markdown: '' is not allowed"),
            (["bench", "incast.toml", "--csv", ""], "--csv: '' is not allowed"),
        ],
    )
    def test_one_line_and_exit_code_2_and_nothing_written(
        self, arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        assert code == 2
        assert printed.err.startswith("fabric: error: ")
        assert printed.err.count("\n") == 1
        assert part in printed.err
        assert printed.out == ""
        assert files() == []

    def test_an_output_that_cannot_be_written(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("blocked").write_text("a file")
        assert run_reference("incast.toml", "--out", "blocked/run/one") == 2
        printed = capsys.readouterr()
        assert printed.err == f"fabric: error: {Path('blocked').absolute()}: exists and is not a directory\n"
        assert printed.out == ""
        assert files() == ["blocked"]

    def test_ports_without_a_queue(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_reference("incast.toml", "--quiet", "--no-plot", "--out", "out") == 0
        assert main(["plot", "out", "--ports", "spine7->*"]) == 2
        assert "no port matches 'spine7->*'" in capsys.readouterr().err


class TestOtherCommands:
    @pytest.mark.parametrize("kind", ["queues", "fct", "slowdown", "utilisation"])
    def test_plot_draws_into_the_result(self, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_reference("incast.toml", "--quiet", "--no-plot", "--out", "out") == 0
        assert main(["plot", "out", "--kind", kind]) == 0
        assert capsys.readouterr().out == f"out/{kind}.png\n"
        assert Path(f"out/{kind}.png").read_bytes().startswith(b"\x89PNG")

    def test_plot_takes_a_file_and_ports(self) -> None:
        assert run_reference("incast.toml", "--quiet", "--no-plot", "--out", "out") == 0
        assert main(["plot", "out", "--ports", "leaf0->host0", "--out", "pictures/queue.svg"]) == 0
        assert Path("pictures/queue.svg").read_bytes().startswith(b"<?xml")

    def test_topo_describes_and_draws(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["topo", "incast.toml", "--out", "net.png", "--set", "topology.spines=1"]) == 0
        printed = capsys.readouterr().out
        rows = dict(line.split(maxsplit=1) for line in printed.split("\n") if line.startswith("  "))
        assert (rows["host"], rows["leaf"], rows["spine"]) == ("4", "2", "1")
        assert (rows["oversubscription"], rows["diameter"]) == ("2:1", "4 links")
        assert Path("net.png").read_bytes().startswith(b"\x89PNG")

    def test_schema_is_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["schema"]) == 0
        assert "Scenario" in json.loads(capsys.readouterr().out)["$defs"]

    def test_the_version_is_that_of_the_project(self, capsys: pytest.CaptureFixture[str]) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        with pytest.raises(SystemExit) as stop:
            main(["--version"])
        assert stop.value.code == 0
        assert capsys.readouterr().out == f"fabric {project['version']}\n"
        assert fabric.__version__ == project["version"]


def start_python(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class TestInterruption:
    def test_ctrl_c_saves_and_returns_130(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_chunk = Simulation._run_chunk

        def interrupted(simulation: Simulation, until_ps: int) -> None:
            simulation._chunk_hops = 50
            run_chunk(simulation, until_ps)
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Simulation, "_run_chunk", interrupted)
        assert run_reference("incast.toml", "--out", "out") == 130
        printed = capsys.readouterr()
        assert re.match(r"fabric: interrupted at [\d.]+us, saving", printed.err)
        assert printed.err.endswith(", saving what was recorded\n")
        assert "3 of 3 flows not delivered" in printed.out
        result = Result.load("out")
        assert result.status == "INTERRUPTED"
        assert result.counters["hops"] == 50

    def test_ctrl_c_outside_a_run_is_one_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupted(*arguments: object, **options: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("fabric.scenario.load_scenario", interrupted)
        assert run_reference("incast.toml") == 130
        assert capsys.readouterr() == ("", "fabric: interrupted\n")
        assert files() == []

    def test_a_reader_that_goes_away_is_no_error(self) -> None:
        process = start_python("-m", "fabric", "schema")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


class TestStreams:
    """Outputs that are closed, full, devices or links."""

    @pytest.mark.parametrize("closed", ["stdout", "stderr"])
    def test_a_closed_output_is_no_error(self, closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, closed, None)
        assert main(["bench", "plain.toml", *SMALL_BENCH[:-2]]) == 0

    @pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
    def test_a_full_disk_is_one_line(self) -> None:
        for arguments, named in ((["schema"], ""), (["bench", "plain.toml", *SMALL_BENCH], "/dev/full: ")):
            target = "/dev/full" if not named else os.devnull
            with open(target, "w") as stdout:
                process = subprocess.run(
                    [sys.executable, "-m", "fabric", *arguments],
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    text=True,
                    check=False,
                )
            assert process.returncode == 2
            assert process.stderr.startswith("fabric: error: ")
            assert process.stderr.endswith(f"{named}No space left on device\n")
            assert process.stderr.count("\n") == 1
        assert Path("/dev/full").is_char_device()
        assert files() == []

    def test_a_pipe_is_sent_what_a_file_would_hold(self) -> None:
        os.mkfifo("pipe")
        reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True)
        bench = ["bench", "plain.toml", *SMALL_BENCH[:-1]]
        assert main([*bench, "pipe"]) == 0
        assert main([*bench, "table.csv"]) == 0
        assert reader.communicate(timeout=20)[0] == Path("table.csv").read_text()
        assert Path("pipe").is_fifo()

    def test_what_a_link_leads_to_is_written(self) -> None:
        Path("pictures").mkdir()
        Path("network.png").symlink_to("pictures/network.png")
        for _ in range(2):
            assert main(["topo", "plain.toml", "--out", "network.png"]) == 0
        assert Path("network.png").is_symlink()
        assert Path("pictures/network.png").read_bytes().startswith(b"\x89PNG")
        assert os.listdir("pictures") == ["network.png"]


class TestPublicNames:
    def test_every_name_is_there(self) -> None:
        for name in fabric.__all__:
            assert getattr(fabric, name) is not None
        assert set(fabric.spec.__all__) <= set(fabric.__all__)
        assert set(dir(fabric)) == set(fabric.__all__)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = fabric.nonsense

    def test_importing_is_light(self) -> None:
        heavy = ("matplotlib", "networkx", "pandas", "pyarrow", "tqdm", "msgspec", "numpy")
        code = f"import sys, fabric; print([name for name in {heavy!r} if name in sys.modules])"
        process = start_python("-c", code)
        stdout, stderr = process.communicate(timeout=20)
        assert (stdout.strip(), stderr) == ("[]", "")

    def test_help_is_light(self) -> None:
        heavy = ("matplotlib", "networkx", "msgspec", "numpy")
        code = (
            "import sys; from fabric.cli.main import parser; parser().format_help()\n"
            f"print([name for name in {heavy!r} if name in sys.modules])"
        )
        stdout, stderr = start_python("-c", code).communicate(timeout=20)
        assert (stdout.strip(), stderr) == ("[]", "")

    def test_a_run_imports_no_pictures(self) -> None:
        code = (
            "import sys, fabric\n"
            "fabric.run(fabric.load_scenario('incast.toml'), engine='reference')\n"
            "print([name for name in ('matplotlib', 'pandas', 'pyarrow', 'tqdm') if name in sys.modules])"
        )
        process = start_python("-c", code)
        stdout, stderr = process.communicate(timeout=20)
        assert (stdout.strip(), stderr) == ("[]", "")
