"""Training jobs, task by task: what every rank did when, and for what.

A row is what one rank did in one operation: it computed, took part in a collective, sent a message or
received it. `ready_ps` is when all whom it needs had entered: the last rank of a collective, the sender of
a message. Until then the rank waited for others, from then on for the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabric.lowered import Lowered

from .table import Array, Category, Table

__all__ = ["TaskLabels", "link_table", "task_table"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskLabels:
    """What the operations of training jobs are for.

    Attributes
    ----------
    jobs : Category [operations]
    dimension, what : sequence of str [operations]
        Empty of operations of other jobs.
    step : ndarray of int64 [operations]
        -1 of operations of other jobs.
    aside : ndarray of bool [operations]
    own_ranks : ndarray of int64 [operations]
        Ranks of the job that count: the first so many of its program.
    is_message : ndarray of bool [operations]
        Of a rank to another; the first of its two sends.
    size_bytes : ndarray of int64 [operations]
    ranks : ndarray of int64 [tasks]
        Rank of each task, as its job counts them.
    """

    jobs: Category
    dimension: Sequence[str]
    what: Sequence[str]
    step: Array
    aside: Array
    own_ranks: Array
    is_message: Array
    size_bytes: Array
    ranks: Array


def task_table(columns: Mapping[str, Array], *, lowered: Lowered, labels: TaskLabels, nodes: Array) -> Table:
    """Return the table of tasks of training jobs.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        What the engine counted.
    lowered : Lowered
    labels : TaskLabels
    nodes : numpy.ndarray of str, [nodes]
    """
    program = lowered.program
    if program is None or not (labels.step >= 0).any():
        return _tasks({name: np.zeros(0, dtype=np.int64) for name in NUMBERS}, labels, nodes)
    base = program.operation_task_base.astype(np.int64)
    operation = np.repeat(np.arange(len(base) - 1), np.diff(base))
    entered, left = columns["task_entered_ps"].astype(np.int64), columns["task_left_ps"].astype(np.int64)
    someone_missing = np.minimum.reduceat(entered, base[:-1]) < 0
    ready = np.where(someone_missing, -1, np.maximum.reduceat(entered, base[:-1]))
    ready = np.where(labels.is_message, entered[base[:-1]], ready)
    first = np.arange(len(entered)) - base[operation] == 0
    rank = labels.ranks
    kept = np.flatnonzero((labels.step[operation] >= 0) & (rank < labels.own_ranks[operation]))
    chosen = operation[kept]
    return _tasks(
        {
            "operation": chosen,
            "rank": rank[kept],
            "host": program.task_host[kept].astype(np.int64),
            "step": labels.step[chosen],
            "aside": labels.aside[chosen]
            | (labels.is_message[chosen] & first[kept] & ~_stored(labels)[chosen]),
            "entered_ps": entered[kept],
            "ready_ps": ready[chosen],
            "left_ps": left[kept],
        },
        labels,
        nodes,
    )


NUMBERS = ("operation", "rank", "host", "step", "aside", "entered_ps", "ready_ps", "left_ps")


def _tasks(numbers: Mapping[str, Array], labels: TaskLabels, nodes: Array) -> Table:
    operation = numbers["operation"]
    dimensions, of_dimension = np.unique(np.array(labels.dimension, dtype=np.str_), return_inverse=True)
    whats, of_what = np.unique(np.array(labels.what, dtype=np.str_), return_inverse=True)
    return Table(
        {
            "operation": operation,
            "job": labels.jobs.take(operation),
            "rank": numbers["rank"],
            "host": Category(numbers["host"], nodes),
            "step": numbers["step"],
            "dimension": Category(of_dimension[operation], dimensions),
            "what": Category(of_what[operation], whats),
            "aside": numbers["aside"].astype(bool),
            "size_bytes": labels.size_bytes[operation],
            "entered_ps": numbers["entered_ps"],
            "ready_ps": numbers["ready_ps"],
            "left_ps": numbers["left_ps"],
        },
        name="tasks",
        optional=("entered_ps", "ready_ps", "left_ps"),
    )


def _stored(labels: TaskLabels) -> Array:
    """Messages that their sender waits for: synchronous checkpoints."""
    whats = np.array(labels.what, dtype=np.str_)
    return np.asarray(whats == "checkpoint")


def link_table(loads: Array, *, names: Sequence[str], ports: Table) -> Table:
    """Return what each dimension of training jobs puts on each link that carries something of them.

    Parameters
    ----------
    loads : ndarray of int64 [ports, dimensions]
        Payload.
    names : sequence of str [dimensions]
    ports : Table
        Of the run.
    """
    used = np.flatnonzero(loads.sum(axis=1) > 0)
    chosen = ports[used]
    return Table(
        {
            "port": used.astype(np.uint32),
            "link": chosen.raw("link"),
            "tier": chosen.raw("tier"),
            "rate_bps": chosen["rate_bps"],
            "utilisation": chosen["utilisation"],
            **{f"{name}_bytes": loads[used, number] for number, name in enumerate(names)},
        },
        name="loads",
    )
