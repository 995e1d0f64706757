"""The critical path of a training step: from its end back to its beginning, always to what came last.

A rank that has left a task entered it when the last task before it on the same rank was left. In a
communication it waited for the rank that entered last, and then for the network; so the path goes over to
that rank. What is on it are stretches of compute and of transfers; shorten one of them and the step ends
earlier (until another path is the longest).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .table import Array, Category, Table

__all__ = ["critical_table"]

COMPUTE = "compute"
STORAGE = "storage"
PIPELINE = "pp"


def critical_table(tasks: Table, *, jobs: Sequence[str], nodes: Array) -> Table:
    """Return the critical path of every step of training jobs, first things first.

    Parameters
    ----------
    tasks : Table
        Of training jobs.
    jobs : sequence of str
    nodes : numpy.ndarray of str [nodes]
    """
    rows: list[dict[str, Any]] = []
    for job in jobs:
        own = np.flatnonzero((tasks["job"] == job) & (tasks["entered_ps"] >= 0) & (tasks["left_ps"] >= 0))
        rows += [{"job": job, **row} for row in _Walk(tasks[own]).rows()]
    host = np.array([row["host"] for row in rows], dtype=np.int64)
    names = ("job", "step", "dimension", "what", "rank", "after_rank", "operation", "begin_ps", "end_ps")
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    kinds = {"job": np.str_, "dimension": np.str_, "what": np.str_}
    table: dict[str, Any] = {name: np.array(columns[name], dtype=kinds.get(name, np.int64)) for name in names}
    table["duration_ps"] = table["end_ps"] - table["begin_ps"]
    return Table({**table, "host": Category(host, nodes)}, name="critical")


class _Walk:
    """Tasks of a job, found by rank and by when they were left."""

    def __init__(self, tasks: Table) -> None:
        self.rank, self.operation = tasks["rank"], tasks["operation"]
        self.entered, self.left = tasks["entered_ps"], tasks["left_ps"]
        self.dimension, self.what = tasks.raw("dimension"), tasks.raw("what")
        self.step, self.aside = tasks["step"], tasks["aside"]
        host = tasks.raw("host")
        assert isinstance(host, Category)
        self.host = host.codes
        self.is_compute = tasks["dimension"] == COMPUTE
        self.is_storage = tasks["dimension"] == STORAGE
        self.is_message = tasks["dimension"] == PIPELINE
        self.order = np.lexsort((self.entered, ~self.aside, self.left, self.rank))
        self.by_operation = np.argsort(self.operation, kind="stable")
        self.sorted_operation = self.operation[self.by_operation]

    def rows(self) -> list[Mapping[str, Any]]:
        rows: list[Mapping[str, Any]] = []
        counts = ~(self.aside & self.is_storage)
        begin = int(self.entered.min(initial=0)) if len(self.entered) else 0
        for step in range(int(self.step.max(initial=-1)) + 1):
            own = np.flatnonzero(counts & (self.step == step))
            if not len(own):
                break
            last = int(own[np.argmax(self.left[own])])
            rows += reversed(self._path(last, step, begin))
            begin = int(self.left[last])
        return rows

    def _path(self, last: int, step: int, begin: int) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        task, time = last, int(self.left[last])
        while task >= 0 and time > begin:
            peer = task if self.is_compute[task] else self._last_to_enter(task)
            since = max(int(self.entered[peer]), begin)
            if since < time:
                found.append(self._row(task, peer, step, since, time))
            time = since
            task = self._before(peer, time)
        return found

    def _last_to_enter(self, task: int) -> int:
        """Of the tasks of an operation, the one that entered last: itself, if that is one of them."""
        first, end = np.searchsorted(self.sorted_operation, [self.operation[task], self.operation[task] + 1])
        members = self.by_operation[first:end]
        if self.is_message[task]:
            members = members[self.aside[members]]
        if not len(members):
            return task
        latest = self.entered[members].max()
        if self.entered[task] == latest and not self.is_message[task]:
            return task
        return int(members[np.argmax(self.entered[members])])

    def _before(self, task: int, time: int) -> int:
        """The task that let another be entered: left on the same rank at that instant."""
        rank = self.rank[task]
        keys = self.order
        first = np.searchsorted(self.rank[keys], rank)
        end = np.searchsorted(self.rank[keys], rank, side="right")
        left = self.left[keys[first:end]]
        low, high = np.searchsorted(left, time), np.searchsorted(left, time, side="right")
        candidates = [int(one) for one in keys[first + low : first + high] if self.entered[one] < time]
        return candidates[0] if candidates else -1

    def _row(self, task: int, peer: int, step: int, since: int, until: int) -> Mapping[str, Any]:
        assert isinstance(self.dimension, Category)
        assert isinstance(self.what, Category)
        return {
            "step": step,
            "dimension": str(self.dimension.labels[self.dimension.codes[task]]),
            "what": str(self.what.labels[self.what.codes[task]]),
            "rank": int(self.rank[task]),
            "after_rank": int(self.rank[peer]),
            "host": int(self.host[task]),
            "operation": int(self.operation[task]),
            "begin_ps": since,
            "end_ps": until,
        }
