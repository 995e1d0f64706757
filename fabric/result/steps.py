"""Where the time of training steps goes, rank by rank, to the picosecond.

A step ends when the last of its ranks is done with all of it, storage that runs aside excepted; it begins
when the step before it ended. At every instant a rank is counted once, as the first of these that holds:

1. it **computes** (or is paused, if a scenario says so);
2. a communication that its next operation needs is under way: **exposed**;
3. it waits in such a communication for a rank that has not entered it: in the pipeline that is the
**bubble**, else
   it is **waiting** for a slower rank;
4. a communication that runs aside (gradients, storage) is under way or waits for a rank: exposed, or waiting;
5. nothing: its pipeline has not begun, or it is done: bubble; without a pipeline, waiting.

So the five add up to the step's time. Communication that is under way while the rank computes is
**overlapped**.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .table import Array, Table

__all__ = ["efficiency", "step_numbers", "step_tables"]

PIPELINE = "pp"
COMPUTE = "compute"
PAUSE = "pause"
STORAGE, PACE = "storage", "pace"
"""Of storage: what moves, and the pauses between its parts, in which nobody waits."""

PS_PER_S = 10**12


class _Pieces:
    """Stretches of time in which nothing changes, rank by rank, between the ends of intervals and of
    steps."""

    def __init__(self, rank: Array, begin: Array, end: Array, *, step_end: Array, n_ranks: int) -> None:
        ranks = np.repeat(np.arange(n_ranks), len(step_end) + 1)
        marks = np.tile(np.concatenate([[0], step_end]), n_ranks)
        times, number = np.unique(np.concatenate([begin, end, marks]), return_inverse=True)
        key = np.concatenate([rank, rank, ranks]) * len(times) + number
        keys, place = np.unique(key, return_inverse=True)
        self.first, self.last = place[: len(begin)], place[len(begin) : 2 * len(begin)]
        self.rank, at = np.divmod(keys, len(times))
        same = self.rank[1:] == self.rank[:-1]
        self.length = np.append(np.where(same, times[np.append(at[1:], 0)[:-1]] - times[at[:-1]], 0), 0)
        self.step = np.searchsorted(step_end, times[at], side="right")

    def covered(self, chosen: Array) -> Array:
        """Whether each piece lies in one of the chosen intervals."""
        change = np.zeros(len(self.length) + 1, dtype=np.int64)
        np.add.at(change, self.first[chosen], 1)
        np.add.at(change, self.last[chosen], -1)
        return np.cumsum(change)[:-1] > 0


def step_tables(
    tasks: Table, *, n_ranks: Mapping[str, int], facts: Mapping[str, Mapping[str, float]]
) -> tuple[Table, Table]:
    """Return the tables of steps and of their communication.

    Parameters
    ----------
    tasks : Table
        Of training jobs.
    n_ranks : mapping of str to int
        Ranks of each job.
    facts : mapping of str to mapping
        Of each job: "flops" of a step and "peak_flops" of a rank, if known.

    Returns
    -------
    steps : Table
        One row a job and step, as far as steps were done; times are means over ranks.
    communication : Table
        One row a job, step and dimension.
    """
    steps: list[dict[str, Any]] = []
    communication: list[dict[str, Any]] = []
    for job, ranks in n_ranks.items():
        own = tasks[tasks["job"] == job]
        measured = _job_rows(own, ranks, facts.get(job, {}))
        steps += [{"job": job, **row} for row in measured[0]]
        communication += [{"job": job, **row} for row in measured[1]]
    return _table(steps, STEP_COLUMNS, "steps"), _table(communication, COMMUNICATION_COLUMNS, "communication")


STEP_COLUMNS: Mapping[str, Any] = {
    "job": np.str_,
    "step": np.int64,
    "begin_ps": np.int64,
    "end_ps": np.int64,
    "duration_ps": np.int64,
    "compute_ps": np.float64,
    "compute_max_ps": np.float64,
    "busiest_rank": np.int64,
    "paused_ps": np.float64,
    "exposed_ps": np.float64,
    "overlapped_ps": np.float64,
    "bubble_ps": np.float64,
    "waiting_ps": np.float64,
    "mfu": np.float64,
}
COMMUNICATION_COLUMNS: Mapping[str, Any] = {
    "job": np.str_,
    "step": np.int64,
    "dimension": np.str_,
    "operations": np.int64,
    "active_ps": np.float64,
    "exposed_ps": np.float64,
    "overlapped_ps": np.float64,
    "waiting_ps": np.float64,
}


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any], name: str) -> Table:
    return Table(
        {key: np.array([row[key] for row in rows], dtype=kind) for key, kind in columns.items()}, name=name
    )


def _job_rows(
    tasks: Table, n_ranks: int, facts: Mapping[str, float]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    entered, ready, left = tasks["entered_ps"], tasks["ready_ps"], tasks["left_ps"]
    dimension, aside = tasks["dimension"], tasks["aside"]
    step, rank = tasks["step"], tasks["rank"]
    bounds = (left >= 0) | (aside & (dimension == STORAGE))
    n_steps = int(step.max(initial=-1)) + 1
    done = [bool(bounds[step == number].all()) for number in range(n_steps)]
    n_done = done.index(False) if False in done else n_steps
    if not n_done:
        return [], []
    counts = (left >= 0) & ~(aside & (dimension == STORAGE))
    step_end = np.array([left[counts & (step == number)].max() for number in range(n_done)])
    begun = int(entered[entered >= 0].min())
    known = (left >= 0) & (left > entered) & (tasks["what"] != PACE)
    from_, to, of = entered[known], left[known], dimension[known]
    by, is_aside = rank[known], aside[known]
    is_pause = (of == COMPUTE) & (tasks["what"][known] == PAUSE)
    is_compute = (of == COMPUTE) & ~is_pause
    moves = ~(of == COMPUTE)
    middle = np.clip(np.where(moves, ready[known], to), from_, to)
    pieces = _Pieces(
        np.concatenate([by, by]),
        np.concatenate([from_, middle]),
        np.concatenate([middle, to]),
        step_end=step_end,
        n_ranks=n_ranks,
    )
    nothing = np.zeros(len(of), dtype=bool)
    waits = lambda chosen: np.concatenate([chosen, nothing])  # noqa: E731
    works = lambda chosen: np.concatenate([nothing, chosen])  # noqa: E731
    both = np.concatenate
    computing = pieces.covered(both([is_compute, is_compute]))
    pausing = pieces.covered(both([is_pause, is_pause])) & ~computing
    counted = computing | pausing
    names = [str(name) for name in np.unique(of[moves])]
    share: dict[tuple[str, str], Array] = {}
    active = {name: pieces.covered(works(moves & (of == name))) for name in names}
    for kind, chosen, part in (
        ("exposed", moves & ~is_aside, works),
        ("waiting", moves & ~is_aside, waits),
        ("exposed", moves & is_aside, works),
        ("waiting", moves & is_aside, waits),
    ):
        for name in names:
            now = pieces.covered(part(chosen & (of == name))) & ~counted
            share[kind, name] = share.get((kind, name), np.zeros(len(now), dtype=bool)) | now
            counted |= now

    def mean(where: Array) -> Array:
        """Time of pieces by step, over all ranks."""
        total = np.bincount(pieces.step, weights=pieces.length * where, minlength=n_done + 1)
        return np.asarray(total[:n_done] / n_ranks)

    idle = mean(~counted)
    idle[0] -= begun
    compute, paused = mean(computing), mean(pausing)
    of_name = {
        name: {
            "active_ps": mean(active[name]),
            "exposed_ps": mean(share["exposed", name]),
            "overlapped_ps": mean(active[name] & computing),
            "waiting_ps": mean(share["waiting", name]),
        }
        for name in names
    }
    overlapped = mean(np.any([*active.values()], axis=0) & computing) if names else np.zeros(n_done)
    begin = np.concatenate([[begun], step_end[:-1]])
    steps, communication = [], []
    for number in range(n_done):
        here = pieces.step == number
        busy = np.bincount(pieces.rank, weights=pieces.length * (computing & here), minlength=n_ranks)
        duration = int(step_end[number] - begin[number])
        waiting = {name: float(of_name[name]["waiting_ps"][number]) for name in names}
        waiting.setdefault(PIPELINE, 0.0)
        waiting[PIPELINE if PIPELINE in of_name else "done"] = float(idle[number]) + waiting[PIPELINE]
        bubble = waiting.pop(PIPELINE)
        steps.append(
            {
                "step": number,
                "begin_ps": int(begin[number]),
                "end_ps": int(step_end[number]),
                "duration_ps": duration,
                "compute_ps": compute[number],
                "compute_max_ps": busy.max(),
                "busiest_rank": int(np.argmax(busy)),
                "paused_ps": paused[number],
                "exposed_ps": sum(float(each["exposed_ps"][number]) for each in of_name.values()),
                "overlapped_ps": overlapped[number],
                "bubble_ps": bubble,
                "waiting_ps": sum(waiting.values()),
                "mfu": _mfu(facts, n_ranks, duration),
            }
        )
        chosen = (step == number) & (dimension != COMPUTE) & (tasks["what"] != PACE)
        for name in names:
            each = {key: float(values[number]) for key, values in of_name[name].items()}
            count = len(np.unique(tasks["operation"][chosen & (dimension == name)]))
            communication.append({"step": number, "dimension": name, "operations": count, **each})
    return steps, communication


def _mfu(facts: Mapping[str, float], n_ranks: int, duration_ps: int) -> float:
    """Model FLOPs utilisation: operations that the model needs, over what all ranks could do meanwhile."""
    if not facts.get("flops") or not facts.get("peak_flops") or not duration_ps:
        return float("nan")
    return facts["flops"] / (facts["peak_flops"] * n_ranks * duration_ps / PS_PER_S)


def efficiency(steps: Table, ideal: Table) -> float:
    """Time of steps on an infinitely fast network over their time; NaN if not known."""
    count = min(len(steps), len(ideal))
    real = float(steps["duration_ps"][:count].sum())
    return float(ideal["duration_ps"][:count].sum()) / real if real else float("nan")


def step_numbers(tables: Mapping[str, Table]) -> dict[str, Any]:
    """Return the headline numbers of the first training job of a result, means over its steps.

    Parameters
    ----------
    tables : mapping of str to Table
        Of a result with training jobs.
    """
    steps = tables["steps"]
    job = steps["job"] == steps["job"][0] if len(steps) else np.zeros(0, dtype=bool)
    own = steps[job]
    numbers: dict[str, Any] = {"step_ps": _mean(own["duration_ps"])}
    numbers |= {name: _mean(own[name]) for name in PART_COLUMNS}
    if "ideal" in tables and len(own):
        ideal = tables["ideal"]
        numbers["efficiency"] = efficiency(own, ideal[ideal["job"] == own["job"][0]])
    numbers["mfu"] = _mean(own["mfu"])
    return numbers


PART_COLUMNS = ("compute_ps", "paused_ps", "exposed_ps", "waiting_ps", "bubble_ps", "overlapped_ps")
"""Columns of steps that say where time goes; all but the last add up to it."""


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
