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
        measured = _Job(own, ranks, facts.get(job, {})).rows()
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


class _Job:
    """The tasks of a job, cut into pieces of time and counted once each.

    `share` has, by "exposed" or "waiting" and dimension, which pieces count as that.
    """

    def __init__(self, tasks: Table, n_ranks: int, facts: Mapping[str, float]) -> None:
        self.tasks, self.n_ranks, self.facts = tasks, n_ranks, facts
        self.dimension, self.step = tasks["dimension"], tasks["step"]
        self.step_end = self._step_ends()
        entered = tasks["entered_ps"]
        self.begun = int(entered[entered >= 0].min(initial=0)) if (entered >= 0).any() else 0
        if len(self.step_end):
            self._count()

    def rows(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the rows of its steps and of their communication."""
        if not len(self.step_end):
            return [], []
        steps, communication = [], []
        of_name = {name: self._times(name) for name in self.names}
        idle = self._mean(~self.counted)
        idle[0] -= self.begun
        whole = {
            "compute_ps": self._mean(self.computing),
            "paused_ps": self._mean(self.pausing),
            "overlapped_ps": self._mean(self.any_active & self.computing),
        }
        begins = np.concatenate([[self.begun], self.step_end[:-1]])
        for number, (begin, end) in enumerate(zip(begins.tolist(), self.step_end.tolist(), strict=True)):
            here = self.pieces.length * (self.computing & (self.pieces.step == number))
            busy = np.bincount(self.pieces.rank, weights=here, minlength=self.n_ranks)
            waiting = {name: float(each["waiting_ps"][number]) for name, each in of_name.items()}
            bubble = waiting.pop(PIPELINE) + float(idle[number]) if PIPELINE in waiting else 0.0
            done = 0.0 if PIPELINE in of_name else float(idle[number])
            steps.append(
                {
                    "step": number,
                    "begin_ps": begin,
                    "end_ps": end,
                    "duration_ps": end - begin,
                    "compute_max_ps": busy.max(),
                    "busiest_rank": int(np.argmax(busy)),
                    "exposed_ps": sum(float(each["exposed_ps"][number]) for each in of_name.values()),
                    "bubble_ps": bubble,
                    "waiting_ps": sum(waiting.values()) + done,
                    "mfu": _mfu(self.facts, self.n_ranks, end - begin),
                    **{name: float(values[number]) for name, values in whole.items()},
                }
            )
            for name, each in of_name.items():
                times = {key: float(values[number]) for key, values in each.items()}
                count = self._operations(number, name)
                communication.append({"step": number, "dimension": name, "operations": count, **times})
        return steps, communication

    def _step_ends(self) -> Array:
        """Ends of the steps that are done, from the first on."""
        beside = self.tasks["aside"] & (self.dimension == STORAGE)
        left = self.tasks["left_ps"]
        ends: list[int] = []
        for number in range(int(self.step.max(initial=-1)) + 1):
            own = left[(self.step == number) & ~beside]
            if not len(own) or (own < 0).any():
                break
            ends.append(int(own.max()))
        return np.array(ends, dtype=np.int64)

    def _count(self) -> None:
        tasks = self.tasks
        known = (tasks["left_ps"] > tasks["entered_ps"]) & (tasks["what"] != PACE)
        begin, end, of = tasks["entered_ps"][known], tasks["left_ps"][known], self.dimension[known]
        aside, moves = tasks["aside"][known], of != COMPUTE
        middle = np.clip(np.where(moves, tasks["ready_ps"][known], end), begin, end)
        rank = tasks["rank"][known]
        self.pieces = _Pieces(
            np.concatenate([rank, rank]),
            np.concatenate([begin, middle]),
            np.concatenate([middle, end]),
            step_end=self.step_end,
            n_ranks=self.n_ranks,
        )
        nothing = np.zeros(len(of), dtype=bool)
        pauses = ~moves & (tasks["what"][known] == PAUSE)
        self.computing = self.pieces.covered(np.tile(~moves & ~pauses, 2))
        self.pausing = self.pieces.covered(np.tile(pauses, 2)) & ~self.computing
        self.counted = self.computing | self.pausing
        self.names = [str(name) for name in np.unique(of[moves])]
        self.share: dict[tuple[str, str], Array] = {}
        self.active: dict[str, Array] = {}
        for name in self.names:
            self.active[name] = self.pieces.covered(np.concatenate([nothing, of == name]))
        for is_aside in (False, True):
            for kind in ("exposed", "waiting"):
                for name in self.names:
                    chosen = (of == name) & (aside == is_aside)
                    halves = [nothing, chosen] if kind == "exposed" else [chosen, nothing]
                    now = self.pieces.covered(np.concatenate(halves)) & ~self.counted
                    before = self.share.get((kind, name), np.zeros(len(now), dtype=bool))
                    self.share[kind, name] = before | now
                    self.counted |= now
        none = np.zeros(len(self.counted), dtype=bool)
        self.any_active = np.any([none, *self.active.values()], axis=0)

    def _times(self, name: str) -> dict[str, Array]:
        """Times of a dimension, by step."""
        return {
            "active_ps": self._mean(self.active[name]),
            "exposed_ps": self._mean(self.share["exposed", name]),
            "overlapped_ps": self._mean(self.active[name] & self.computing),
            "waiting_ps": self._mean(self.share["waiting", name]),
        }

    def _mean(self, where: Array) -> Array:
        """Time of pieces by step, over all ranks."""
        count = len(self.step_end)
        total = np.bincount(self.pieces.step, weights=self.pieces.length * where, minlength=count + 1)
        return np.asarray(total[:count] / self.n_ranks)

    def _operations(self, step: int, name: str) -> int:
        chosen = (self.step == step) & (self.dimension == name) & (self.tasks["what"] != PACE)
        return len(np.unique(self.tasks["operation"][chosen]))


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
