"""Running in pieces: progress, chunks, interruption."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support_results import INCAST

from fabric.errors import SimulationError, SpecError
from fabric.interrupt import InterruptRequest
from fabric.result import Result
from fabric.scenario import load_scenario
from fabric.simulate import Simulation, run
from fabric.spec import Run


class TestSimulation:
    def test_cutting_a_run_into_pieces_changes_nothing(self, incast: Result) -> None:
        simulation = Simulation(INCAST, engine="reference")
        assert simulation.step(hops=7) == "BUDGET"
        assert simulation.run(until="5us") == "UNTIL"
        assert simulation.now == 5_000_000
        assert simulation.result().duration_ps == 5_000_000
        while simulation.step(hops=50) == "BUDGET":
            pass
        result = simulation.result()
        assert result.status == "FINISHED"
        assert result.fingerprint == incast.fingerprint
        for name, table in incast.tables.items():
            for column in table.columns:
                np.testing.assert_array_equal(result.tables[name][column], table[column])

    def test_overrides_are_part_of_the_provenance(self) -> None:
        result = run(INCAST, engine="reference", until="8us", seed=7, progress=False)
        scenario = load_scenario(result.provenance.scenario)
        assert (result.status, result.duration_ps) == ("UNTIL", 8_000_000)
        assert scenario.run == Run(seed=7, until="8us")
        assert result.provenance.seed == 7
        again = run(scenario, engine="reference", progress=False)
        assert again.fingerprint == result.fingerprint

    def test_another_seed_is_another_run(self, incast: Result) -> None:
        assert run(INCAST, engine="reference", seed=2, progress=False).fingerprint != incast.fingerprint

    def test_what_cannot_be_run_is_said(self) -> None:
        with pytest.raises(SpecError, match="until: '5xs' is not allowed"):
            run(INCAST, engine="reference", until="5xs")
        with pytest.raises(SpecError, match='expected "native" or "reference"'):
            Simulation(INCAST, engine="fast")  # type: ignore[arg-type]
        with pytest.raises(SpecError, match="hops: 0"):
            Simulation(INCAST, engine="reference").step(hops=0)

    def test_ctrl_c_keeps_what_was_recorded_and_the_run_can_go_on(
        self, incast: Result, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation._chunk_hops = 100
        engine_run, chunks = simulation._engine.run, []

        def interrupted(**bounds: Any) -> str:
            chunks.append(bounds)
            if len(chunks) == 2:
                signal.raise_signal(signal.SIGINT)
            return engine_run(**bounds)

        monkeypatch.setattr(simulation._engine, "run", interrupted)
        handler = signal.getsignal(signal.SIGINT)
        assert simulation.run() == "INTERRUPTED"
        assert signal.getsignal(signal.SIGINT) is handler
        assert [bounds["until_ps"] for bounds in chunks[2:]] == [simulation.now], "its window is finished"
        partial = simulation.result()
        assert partial.status == "INTERRUPTED"
        assert 0 < partial.counters["hops"] < incast.counters["hops"]
        assert len(partial.queue) > 0
        assert "interrupted at" in str(partial)
        assert simulation.run() == "FINISHED"
        assert simulation.result().fingerprint == incast.fingerprint

    def test_chunks_follow_the_speed_of_the_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        simulation = Simulation(INCAST, engine="reference")
        clock = iter(range(10**6))
        monkeypatch.setattr("fabric.simulate.time.perf_counter", lambda: next(clock) * 0.1)
        simulation._chunk_hops = 10_000
        simulation._run_chunk(until_ps=1)
        assert simulation._chunk_hops == pytest.approx(2_000, abs=1)

    def test_a_file_is_loaded(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run")
        file = tmp_path / "run" / "scenario.toml"
        for name in (file, str(file)):
            assert run(name, engine="reference").fingerprint == incast.fingerprint

    @pytest.mark.parametrize("scenario", [None, 3, {"topology": {}}])
    def test_what_is_no_scenario_is_said(self, scenario: Any) -> None:
        with pytest.raises(SpecError, match=r"scenario: .* expected a Scenario, or the name of a"):
            run(scenario)

    def test_a_simulation_shows_where_it_stands(self) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation.run(until="5us")
        assert repr(simulation) == "<Simulation incast: 6 hosts, 4 flows, reference engine, UNTIL at 5us>"

    def test_totals_survive_that_memory_runs_out(
        self, incast: Result, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation.step(hops=300)

        def fail(*arguments: Any, **options: Any) -> Any:
            raise SimulationError("memory has run out")

        for name in ("run", "rows"):
            monkeypatch.setattr(simulation._engine, name, fail)
        with pytest.raises(SimulationError, match="memory has run out"):
            simulation.run()
        with pytest.warns(UserWarning, match="memory has run out: what was recorded of drops, .* is lost"):
            result = simulation.result()
        assert result.counters["hops"] == 300
        assert result.flows["sent"].sum() > 0
        assert len(result.queue) == 0
        assert result.recorded == frozenset()
        assert "the run was left at" in str(result)

    def test_progress_is_shown_when_asked_for(self, capfd: pytest.CaptureFixture[str]) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation.run(progress=True)
        shown = capfd.readouterr().err
        assert "of 4 flows delivered" in shown
        assert "hops/s" in shown
        run(INCAST, engine="reference")
        assert capfd.readouterr().err == ""


class TestInterruptRequest:
    def test_the_second_signal_is_a_keyboard_interrupt(self) -> None:
        with InterruptRequest() as request:
            signal.raise_signal(signal.SIGINT)
            assert request.requested
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def test_other_threads_leave_signals_alone(self) -> None:
        handler, seen = signal.getsignal(signal.SIGINT), []

        def use() -> None:
            with InterruptRequest() as request:
                seen.append((request.requested, signal.getsignal(signal.SIGINT) is handler))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert seen == [(False, True)]
