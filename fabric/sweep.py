"""One scenario under several settings: the runs of a sweep, one after the other, and what differs.

`Scenario.sweep` (in a file the table `[sweep]`) has values by path; every combination is a run of its
own, the last path changing fastest. Runs share nothing but the seed, so each gives what it gives alone.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabric.errors import FabricError, SpecError
from fabric.io.directory import check_target
from fabric.io.files import write_whole
from fabric.result import Result, Table
from fabric.result.steps import PART_COLUMNS, step_numbers
from fabric.scenario import load_scenario, with_values
from fabric.simulate import EngineName, run
from fabric.spec import Scenario
from fabric.spec.sweep import is_path

__all__ = ["SweepResult", "SweepRun", "run_each", "run_sweep", "save_sweep", "sweep_runs"]

KIND = "kind"


@dataclass(frozen=True, kw_only=True)
class SweepRun:
    """One run of a sweep.

    Attributes
    ----------
    labels : dict of str to str
        By axis, what this run has there.
    scenario : Scenario
        Without a sweep; its name has the labels at its end.
    """

    labels: dict[str, str]
    scenario: Scenario


@dataclass(frozen=True)
class SweepResult:
    """What came of a sweep.

    Attributes
    ----------
    name : str
        Of the scenario.
    runs : tuple of SweepRun
        Those that were run: all of them, unless it was interrupted.
    results : tuple of Result
        One a run.
    interrupted : bool
        Whether it was, by Ctrl-C: in the last of these runs, or before the next one had begun.
    question : str
        Of the scenario.
    """

    name: str
    runs: tuple[SweepRun, ...]
    results: tuple[Result, ...]
    interrupted: bool = False
    question: str = ""

    @property
    def axes(self) -> tuple[str, ...]:
        """What differs between runs."""
        return tuple(self.runs[0].labels) if self.runs else ()

    @property
    def table(self) -> Table:
        """One row a run: its labels, what it took, the fullest queue, what was marked, paused, lost.

        Of training jobs, instead of flows: the time of a step and where it goes.

        `done_ps` is when nothing was left to do, the last acknowledgement included, -1 if the run ended
        before. Where several jobs of collectives run beside each other, each has the time of its longest
        operation (`training_ps`), -1 if none was done. `fct_*_ps` are times of the flows that were
        delivered, -1 if none was; `slowdown_max` is against an empty network, and no number if none was.
        """
        trains = bool(self.results) and all("steps" in result.tables for result in self.results)
        numbers = _step_numbers if trains else _numbers
        jobs = () if trains else self.jobs
        rows = [
            {**one.labels, **_job_times(result, jobs), **numbers(result)}
            for one, result in zip(self.runs, self.results, strict=True)
        ]
        columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}
        optional = [name for name in (*TIMES, *map(job_column, jobs)) if name in columns]
        return Table(columns, name=self.name or "sweep", optional=optional)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Jobs that run beside each other in every run, which have columns of their own; none if one does."""
        each = [[row["job"] for row in result.summary["collectives"]] for result in self.results]
        names = tuple(
            dict.fromkeys(name for name in (each[0] if each else ()) if all(name in one for one in each))
        )
        return names if len(names) > 1 else ()

    def __str__(self) -> str:
        """The table, without the columns in which no run has a value."""
        table = self.table
        told = {name: table[name] for name in table.columns if _has_values(table, name)}
        return Table(told, name=table.name, optional=table.optional & told.keys()).text()


def sweep_runs(scenario: Scenario) -> list[SweepRun]:
    """Return the runs of a scenario's sweep; one without labels if it has none.

    Raises
    ------
    SpecError
        If a value does not fit; the path says which run.

    Examples
    --------
    >>> from fabric.spec import Permutation, SingleSwitch
    >>> scenario = Scenario(
    ...     topology=SingleSwitch(hosts=4),
    ...     traffic=[Permutation(size="1MB")],
    ...     sweep={"traffic[0].size": ["1MB", "2MB"], "transport.payload": [1000, 4000]},
    ... )
    >>> [run.labels for run in sweep_runs(scenario)][1]
    {'size': '1MB', 'payload': '4000'}
    """
    base = scenario.replace(sweep={})
    names = _axis_names(list(scenario.sweep))
    choices = [list(_choices(axis, values)) for axis, values in scenario.sweep.items()]
    runs = []
    for combination in itertools.product(*choices):
        labels = {name: label for name, (label, _) in zip(names, combination, strict=True)}
        values = {path: value for _, settings in combination for path, value in settings.items()}
        described = ", ".join(labels.values())
        try:
            made = with_values(base, values)
        except SpecError as error:
            raise SpecError(f"sweep ({described}): {error.path}", error.value, error.allowed) from None
        name = f"{base.name} ({described})".strip() if labels else base.name
        runs.append(SweepRun(labels=labels, scenario=made.replace(name=name)))
    return runs


def run_sweep(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: EngineName = "native",
    progress: bool | None = None,
) -> SweepResult:
    """Run every combination of a scenario's sweep.

    Parameters
    ----------
    scenario : Scenario or path
        With a `sweep`.
    engine, progress
        As for :func:`fabric.run`.

    Returns
    -------
    SweepResult
        Ctrl-C ends the sweep; what had been run until then is in it.

    Raises
    ------
    SpecError
        If one of the scenarios cannot be run; those that only the network shows, when its turn comes.

    Examples
    --------
    >>> from fabric.spec import Permutation, SingleSwitch
    >>> scenario = Scenario(
    ...     topology=SingleSwitch(hosts=4),
    ...     traffic=[Permutation(size="64KB")],
    ...     sweep={"transport.payload": [1000, 4000]},
    ... )
    >>> run_sweep(scenario).table["fct_max_ps"].tolist()
    [2906600, 2887880]
    """
    described = scenario if isinstance(scenario, Scenario) else load_scenario(os.fspath(scenario))
    return run_each(described, lambda one: run(one, engine=engine, progress=progress))


def run_each(scenario: Scenario, run_one: Callable[[Scenario], Result]) -> SweepResult:
    """Run every combination of a scenario's sweep in a way of the caller's; as :func:`run_sweep` otherwise.

    Parameters
    ----------
    scenario : Scenario
        With a `sweep`.
    run_one : callable
        Takes each combination, a `Scenario` without a sweep, and returns its result.
    """
    runs = sweep_runs(scenario)
    results: list[Result] = []
    interrupted = False
    for one in runs:
        try:
            results.append(run_one(one.scenario))
            interrupted = results[-1].status == "INTERRUPTED"
        except KeyboardInterrupt:
            if not results:
                raise
            interrupted = True
        if interrupted:
            break
    return SweepResult(
        scenario.name, tuple(runs[: len(results)]), tuple(results), interrupted, scenario.question
    )


def save_sweep(sweep: SweepResult, directory: str | os.PathLike[str]) -> None:
    """Save every result of a sweep in a directory of its own, and the table beside them.

    Parameters
    ----------
    sweep : SweepResult
    directory : path
        Gets `sweep.csv` and a directory a run, named by its labels. `sweep.png`, a picture of an older
        sweep, goes.

    Raises
    ------
    FabricError
        If one of these exists and is no result, or cannot be written.
    """
    target = Path(directory)
    check_sweep_target(target, sweep.runs)
    for name, result in zip(_file_names(sweep.runs), sweep.results, strict=True):
        result.save(target / name)
    text = io.StringIO()
    table = sweep.table
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(row.values() for row in table)
    write_whole(target / "sweep.csv", text.getvalue().encode())
    (target / "sweep.png").unlink(missing_ok=True)


def check_sweep_target(target: Path, runs: Sequence[SweepRun]) -> None:
    """Refuse a target that a sweep must not write to, before anything is run.

    Raises
    ------
    FabricError
        If it is no directory, or one of its runs' directories is something else than a result.
    """
    if os.path.lexists(target) and not target.is_dir():
        raise FabricError(f"{target}: exists and is not a directory")
    for name in _file_names(runs):
        check_target(target / name)


def _file_names(runs: Sequence[SweepRun]) -> list[str]:
    """The labels of each run as the name of a directory; a number is added to names that repeat."""
    names: list[str] = []
    for one in runs:
        plain = re.sub(r"[^\w.+-]+", "-", "-".join(one.labels.values())).strip("-.") or "run"
        numbered = (f"{plain}-{count}" for count in itertools.count(2))
        names.append(next(name for name in itertools.chain([plain], numbered) if name not in names))
    return names


def _axis_names(paths: list[str]) -> list[str]:
    """The last word of each path, that before "kind"; the whole path where this is not clear."""
    names = []
    for path in paths:
        words = re.findall(r"[A-Za-z_]\w*", path) if is_path(path) else [path]
        names.append(words[-2] if words[-1] == KIND and len(words) > 1 else words[-1])
    often = Counter(names)
    taken = set(names) & RESULT_COLUMNS
    return [
        path if often[name] > 1 or name in taken else name for name, path in zip(names, paths, strict=True)
    ]


def _choices(axis: str, values: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The labels along an axis, with the values by path that each stands for."""
    if is_path(axis):
        yield from ((label, {axis: value}) for label, value in _labelled(values))
    else:
        yield from values.items()


def _labelled(values: Any) -> Iterator[tuple[str, Any]]:
    """Values with their labels, which differ."""
    if isinstance(values, Mapping):
        yield from values.items()
        return
    seen: Counter[str] = Counter()
    for value in values:
        label = _label(value)
        seen[label] += 1
        yield (label if seen[label] == 1 else f"{label} #{seen[label]}"), value


def _label(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("name") or value.get(KIND) or ", ".join(f"{k}={v}" for k, v in value.items()))
    if isinstance(value, list | tuple):
        return "+".join(_label(each) for each in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _has_values(table: Table, name: str) -> bool:
    values = table[name]
    if values.dtype.kind == "f":
        return not bool(np.isnan(values).all())
    return name not in table.optional or bool((values != -1).any())


def _numbers(result: Result) -> dict[str, Any]:
    summary = result.summary
    fct_ps, slowdown = summary["fct_ps"], summary["slowdown"]["max"]
    done_ps = result.duration_ps if result.status == "FINISHED" else None
    times = (done_ps, fct_ps["p50"], fct_ps["p99"], fct_ps["max"])
    return {
        **{name: -1 if time is None else int(time) for name, time in zip(TIMES, times, strict=True)},
        "slowdown_max": math.nan if slowdown is None else float(slowdown),
        "queue_peak_bytes": int(result.ports["queue_peak_bytes"].max()),
        "marks": int(summary["marks"]),
        "paused_ps": int(summary["pauses"]["paused_ps"]),
        "drops": sum(summary["drops"].values()),
        "retransmitted": int(summary["retransmitted"]),
        "status": result.status,
    }


def job_column(job: str) -> str:
    """The column of a job's time."""
    return f"{job}_ps"


def _job_times(result: Result, jobs: Sequence[str]) -> dict[str, int]:
    longest = {row["job"]: row["max_ps"] for row in result.summary["collectives"]}
    return {job_column(job): -1 if longest[job] is None else int(longest[job]) for job in jobs}


def _step_numbers(result: Result) -> dict[str, Any]:
    numbers = _numbers(result)
    kept = ("queue_peak_bytes", "paused_ps", "drops", "status")
    return {
        **step_numbers(result.tables),
        **{PORT_NAMES.get(name, name): numbers[name] for name in kept},
    }


PORT_NAMES = {"paused_ps": "ports_paused_ps"}
"""Of what ports did, where ranks have a column of that name."""

TIMES = ("done_ps", "fct_median_ps", "fct_p99_ps", "fct_max_ps")
RESULT_COLUMNS = frozenset(
    (
        *(
            *TIMES,
            "slowdown_max",
            "queue_peak_bytes",
            "marks",
            "paused_ps",
            "drops",
            "retransmitted",
            "status",
        ),
        *("step_ps", *PART_COLUMNS, "efficiency", "mfu", "ports_paused_ps"),
    )
)
"""Columns of `SweepResult.table` that are no axes."""
