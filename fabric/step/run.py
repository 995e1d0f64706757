"""Run the training steps of a scenario and explain them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from fabric.errors import Said, SpecError
from fabric.scenario import load_scenario
from fabric.simulate import EngineName, Simulation
from fabric.spec import Scenario, Training
from fabric.step.ideal import ideal_steps
from fabric.step.report import StepReport
from fabric.sweep import SweepResult, run_each

__all__ = ["run_step", "run_step_sweep"]


def run_step(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: EngineName = "native",
    progress: bool | None = None,
    seed: int | None = None,
) -> StepReport:
    """Run the training jobs of a scenario and measure their steps, also against an infinitely fast network.

    Parameters
    ----------
    scenario : Scenario or path
        With at least one entry of kind "training".
    engine, progress, seed
        As for :func:`fabric.run`.

    Returns
    -------
    StepReport
        Prints as a table; its `result` is that of the run.

    Raises
    ------
    SpecError
        If the scenario cannot be run, or has no training job.

    Examples
    --------
    >>> import fabric
    >>> scenario = fabric.Scenario(
    ...     topology=fabric.SingleSwitch(hosts=2),
    ...     traffic=[fabric.Training(
    ...         job={"model": "gpt2-small", "sequence": 1024, "global_batch": 4, "parallelism": {"pp": 2}},
    ...         compute={"kind": "given", "forward": "1ms"})])
    >>> report = run_step(scenario)
    >>> report.steps["duration_ps"].tolist(), report.ideal["duration_ps"].tolist()
    ([91760494440], [90000000000])
    """
    loaded = scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
    if not any(isinstance(entry, Training) for entry in loaded.traffic):
        raise SpecError("traffic", Said("no training job"), 'an entry of kind "training"')
    simulation = Simulation(loaded, engine=engine, seed=seed)
    simulation.run(progress=progress)
    result = simulation.result()
    ideal = ideal_steps(simulation.scenario, network=simulation.network, jobs=simulation.jobs)
    return StepReport(replace(result, tables={**result.tables, "ideal": ideal}))


def run_step_sweep(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: EngineName = "native",
    progress: bool | None = None,
) -> SweepResult:
    """Run every combination of a scenario's sweep, as :func:`run_step` does one.

    Returns
    -------
    SweepResult
        Its table has the numbers of steps; a `StepReport` of each result says the rest. Ctrl-C ends the
        sweep; what had been run until then is in it.
    """
    loaded = scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
    return run_each(loaded, lambda one: run_step(one, engine=engine, progress=progress).result)
