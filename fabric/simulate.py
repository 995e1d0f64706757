"""Run a scenario: build it, let an engine work in chunks, collect the result.

A run is a pure function of the scenario and its seed. Cutting it into chunks, stopping it and going
on, watching its progress and choosing the engine do not change what happens; overriding `seed` or
`until` changes the scenario, and the result's provenance says so. Chunks are kept short enough that
Ctrl-C is answered within a tenth of a second. The native engine works in windows of simulated time, node
after node; a result is taken between two windows, so that it holds the same instant everywhere, unless
the rest of a window takes longer than a person may wait.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from fabric.errors import SimulationError, SpecError
from fabric.given import as_flows, as_network, described, files_of
from fabric.interrupt import InterruptRequest
from fabric.jobs import scenario_jobs
from fabric.lower import lower_with_flows
from fabric.outcome import Built, Engine, build_result
from fabric.progress import Progress
from fabric.result import Provenance, Result
from fabric.result.text import counted, time_text
from fabric.scenario import dump_scenario, load_scenario
from fabric.spec import DISTRIBUTIONS, Scenario, Spec
from fabric.topology import Network, build_network
from fabric.units import Duration, QuantityError
from fabric.workload import FlowTable, Job, build_flows, split_over_queue_pairs

__all__ = ["ENGINES", "EngineName", "Simulation", "run"]

EngineName = Literal["native", "reference"]
ENGINES: tuple[EngineName, ...] = ("native", "reference")

FIRST_CHUNK_HOPS = {"native": 20_000, "reference": 1_000}
"""Hops of the first chunk; later ones follow the engine's speed."""

SHORTEST_CHUNK_HOPS, LONGEST_CHUNK_HOPS = 200, 400_000
CHUNK_S = 0.02
"""Time that a chunk should take: a fifth of what a person may wait for an answer to Ctrl-C."""

WINDOW_S = 0.05
"""Time that the rest of a window may take before a result is taken in its midst."""


def run(
    scenario: Scenario | str | Path,
    *,
    engine: EngineName = "native",
    until: Duration | str | int | None = None,
    progress: bool | None = None,
    seed: int | None = None,
    network: Any = None,
    flows: FlowTable | None = None,
) -> Result:
    """Run a scenario to its end and return what happened.

    Parameters
    ----------
    scenario : Scenario or path
        What to run, or the name of its file.
    engine : "native" or "reference"
        The compiled engine, or the readable one; results are the same.
    until : Duration or str or int
        Stop at this simulated time ("5ms"; an integer is picoseconds), instead of `run.until`.
    progress : bool
        Show a progress bar on standard error; by default if that is a terminal.
    seed : int
        Instead of `run.seed`.
    network : Network or networkx.Graph
        Instead of what `topology` describes, which is not looked at (a graph's edges take what they
        leave out from the `link` of a `GraphFile`). The result has it as a file, and its scenario
        names that.
    flows : FlowTable
        Instead of what `traffic` describes, which is not looked at; kept like `network`.

    Returns
    -------
    Result
        Its status is "INTERRUPTED" if Ctrl-C was pressed; it then holds what was recorded so far.

    Raises
    ------
    SpecError
        If the scenario cannot be run; raised before anything is.

    Examples
    --------
    >>> import fabric
    >>> scenario = fabric.Scenario(
    ...     topology=fabric.SingleSwitch(hosts=4),
    ...     traffic=(fabric.Incast(receivers=("host0",), senders=3, size="64KB"),),
    ... )
    >>> result = fabric.run(scenario, engine="reference")
    >>> result.status, len(result.flows)
    ('FINISHED', 3)
    """
    simulation = Simulation(scenario, engine=engine, until=until, seed=seed, network=network, flows=flows)
    simulation.run(progress=progress)
    return simulation.result()


class Simulation:
    """A scenario that can be run piece by piece.

    Parameters
    ----------
    scenario : Scenario or path
        What to run, or the name of its file.
    engine : "native" or "reference"
        Which engine.
    until : Duration or str or int
        End of the whole run, instead of `run.until`.
    seed : int
        Instead of `run.seed`.
    network, flows : optional
        As for :func:`run`.

    Raises
    ------
    SpecError
        If the scenario cannot be run.

    Examples
    --------
    >>> import fabric
    >>> simulation = fabric.Simulation(
    ...     fabric.Scenario(
    ...         topology=fabric.SingleSwitch(hosts=2),
    ...         traffic=(fabric.Permutation(size="64KB"),),
    ...     ),
    ...     engine="reference",
    ... )
    >>> simulation.run(until="1us")
    'UNTIL'
    >>> print(simulation.now)
    1us
    >>> simulation.run()
    'FINISHED'
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        engine: EngineName = "native",
        until: Duration | str | int | None = None,
        seed: int | None = None,
        network: Any = None,
        flows: FlowTable | None = None,
    ) -> None:
        self.scenario = _overridden(_loaded(scenario), until=until, seed=seed)
        if self.scenario.sweep:
            swept = ", ".join(self.scenario.sweep)
            raise SpecError("sweep", swept, "none, for a single run (fabric.run_sweep makes all of its runs)")
        self._network_given = network is not None
        self._built, self._flows_given = _build(self.scenario, network=network, flows=flows)
        self._engine_name: EngineName = engine
        self._failed = False
        self._engine = _start(engine, self._built)
        self._status = "BUDGET"
        self._wall_s = 0.0
        self._chunk_hops = FIRST_CHUNK_HOPS[engine]

    def __repr__(self) -> str:
        name = f"{self.scenario.name}: " if self.scenario.name else ""
        lowered = self._built.lowered
        return (
            f"<Simulation {name}{counted(lowered.n_hosts, 'host')}, {counted(lowered.n_flows, 'flow')}, "
            f"{self._engine_name} engine, {self._status} at {time_text(self._engine.now_ps)}>"
        )

    @property
    def now(self) -> Duration:
        """Simulated time."""
        return Duration(int(self._engine.now_ps))

    @property
    def network(self) -> Network:
        """What the scenario's topology describes, or what was given."""
        return self._built.network

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Programs that run, of collectives and training jobs."""
        return self._built.jobs

    @property
    def status(self) -> str:
        """Why the simulation stands: a status of `Result`, "BUDGET" between steps."""
        return self._status

    def run(self, *, until: Duration | str | int | None = None, progress: bool | None = False) -> str:
        """Go on to the end, or to a simulated time.

        Parameters
        ----------
        until : Duration or str or int
            Handle everything that happens before this time; never beyond the end of the run.
        progress : bool
            Show a progress bar; None: if standard error is a terminal.

        Returns
        -------
        str
            "FINISHED", "STALLED" (flows are left but nothing can happen), "UNTIL" or "INTERRUPTED".
        """
        end_ps = self._built.lowered.until_ps
        until_ps = end_ps if until is None else min(int(_duration(until)), end_ps)
        began_s = time.perf_counter()
        watch = Progress(self._engine, lowered=self._built.lowered, until_ps=until_ps, show=progress)
        try:
            with InterruptRequest() as interrupt, watch:
                self._status = "BUDGET"
                while self._status == "BUDGET":
                    self._run_chunk(until_ps)
                    watch.look()
                    if interrupt.requested and self._status == "BUDGET":
                        self._status = "INTERRUPTED"
                        self._finish_window()
        except SimulationError:
            self._failed = True
            raise
        finally:
            self._wall_s += time.perf_counter() - began_s
        return self._status

    def step(self, *, hops: int = 1) -> str:
        """Go on by about a number of frame arrivals.

        Parameters
        ----------
        hops : int
            The reference engine stops right after that many arrivals. The native engine stops once it has
            handled at least as many, in the midst of a window of simulated time if need be: some nodes are
            then ahead of others by less than the smallest link delay. :meth:`result` first finishes such a
            window, and going on gives what an uncut run gives.

        Returns
        -------
        str
            "BUDGET" if there is more to come, otherwise why the run ended.
        """
        if hops < 1:
            raise SpecError("hops", hops, "a whole number from 1")
        began_s = time.perf_counter()
        try:
            self._status = self._engine.run(until_ps=self._built.lowered.until_ps, max_hops=hops)
        except SimulationError:
            self._failed = True
            raise
        finally:
            self._wall_s += time.perf_counter() - began_s
        return self._status

    def result(self) -> Result:
        """Return what has happened so far.

        After a run that memory ran out for, totals are there as far as they came; series that cannot be
        had any more are left out with a warning.
        """
        if self._status == "BUDGET" and not self._failed:
            self._finish_window()
        scenario, built = self.scenario, self._built
        flows, network = self._flows_given, built.network if self._network_given else None
        provenance = Provenance.here(
            scenario=dump_scenario(described(_with_absolute_files(scenario), network=network, flows=flows)),
            files=files_of(built.network, with_network=self._network_given, flows=flows),
            name=scenario.name,
            question=scenario.question,
            expect=scenario.expect,
            seed=scenario.run.seed,
            engine=self._engine_name,
        )
        return build_result(
            self._engine,
            built=self._built,
            status=self._status,
            wall_s=self._wall_s,
            provenance=provenance,
        )

    def _finish_window(self) -> None:
        """Finish the window that the engine stands in, if it does and that is quick; go no further."""
        began_s = time.perf_counter()
        now_ps, status = int(self._engine.now_ps), "BUDGET"
        while status == "BUDGET" and time.perf_counter() - began_s < WINDOW_S:
            status = self._engine.run(until_ps=now_ps, max_hops=self._chunk_hops)
        if status in ("FINISHED", "STALLED"):
            self._status = status

    def _run_chunk(self, until_ps: int) -> None:
        """Let the engine work for about `CHUNK_S`, and fit the next chunk to its speed."""
        began_s = time.perf_counter()
        self._status = self._engine.run(until_ps=until_ps, max_hops=self._chunk_hops)
        took_s = max(time.perf_counter() - began_s, 1e-6)
        fitting = self._chunk_hops * min(2.0, CHUNK_S / took_s)
        self._chunk_hops = int(min(max(fitting, SHORTEST_CHUNK_HOPS), LONGEST_CHUNK_HOPS))


def _duration(value: Duration | str | int) -> Duration:
    try:
        return Duration(value)
    except QuantityError as error:
        raise SpecError("until", error.value, error.allowed) from None


def _overridden(scenario: Scenario, *, until: Duration | str | int | None, seed: int | None) -> Scenario:
    """Return the scenario with another end or seed, both part of its description."""
    changes: dict[str, object] = {}
    if until is not None:
        changes["until"] = _duration(until)
    if seed is not None:
        changes["seed"] = seed
    if not changes:
        return scenario
    run_spec = msgspec.structs.replace(scenario.run, **changes)
    return msgspec.structs.replace(scenario, run=run_spec)


def _with_absolute_files(scenario: Scenario) -> Scenario:
    """Return the scenario with the files that it names as absolute paths, valid from anywhere."""

    def located(spec: Spec) -> Any:
        names = {field: getattr(spec, field) for field in spec.FILES}
        paths: dict[str, Any] = {
            field: os.path.abspath(name)
            for field, name in names.items()
            if name is not None and name not in DISTRIBUTIONS
        }
        parts = {field: getattr(spec, field) for field in spec.__struct_fields__}
        parts = {field: part for field, part in parts.items() if isinstance(part, Spec)}
        paths |= {name: found for name, part in parts.items() if (found := located(part)) is not part}
        return msgspec.structs.replace(spec, **paths) if paths else spec

    traffic = tuple(located(entry) for entry in scenario.traffic)
    failures = tuple(located(entry) for entry in scenario.failures)
    topology = located(scenario.topology)
    return msgspec.structs.replace(scenario, topology=topology, traffic=traffic, failures=failures)


def _loaded(scenario: Any) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, (str, Path)):
        return load_scenario(scenario)
    raise SpecError("scenario", scenario, "a Scenario, or the name of a scenario file")


def _build(scenario: Scenario, *, network: Any, flows: FlowTable | None) -> tuple[Built, FlowTable | None]:
    """Return what is run, and the flows that were given, if any, before they are split."""
    used = _network_of(scenario, given=network)
    given = None if flows is None else as_flows(flows, network=used)
    described(scenario, network=None, flows=given)
    if given is None:
        table = build_flows(scenario, used)
    else:
        table = split_over_queue_pairs(given, scenario.transport)
    jobs = scenario_jobs(scenario, used) if given is None else []
    lowered, connected = lower_with_flows(scenario, network=used, flows=table, jobs=jobs)
    return Built(scenario=scenario, network=used, flows=connected, jobs=tuple(jobs), lowered=lowered), given


def _network_of(scenario: Scenario, *, given: Any) -> Network:
    return build_network(scenario.topology) if given is None else as_network(given, scenario=scenario)


def _start(name: EngineName, built: Built) -> Engine:
    if name == "reference":
        from fabric.reference import Simulator

        return Simulator(built.lowered)
    if name == "native":
        from fabric._core import Engine as NativeEngine

        native: Engine = NativeEngine(built.lowered)
        return native
    raise SpecError("engine", name, " or ".join(f'"{known}"' for known in ENGINES))
