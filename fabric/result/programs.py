"""From an engine's columns to the tables of collectives: what each operation took, and who waits for whom.

* `duration_ps` of an operation runs from the first of its ranks that enters to the last that leaves, as
  nccl-tests times a collective between barriers; `skew_ps` from the first that leaves to the last.
  What reducers in switches do counts in neither.
* `algbw_bps` is the size over that, `busbw_bps` that times the factor of nccl-tests.
* `duration_ps` of a rank runs from when it entered to when it left.
* A rank that is *waiting* when nothing can happen any more has entered and not left. It lacks transfers
  from others (which have been posted or not), or the acknowledgement of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.analysis import stats
from fabric.lowered import Lowered, LoweredProgram

from .table import Array, Category, Table

__all__ = ["OperationLabels", "operation_table", "rank_table", "waiting_table"]

LACKS = ("data", "acknowledgement")


@dataclass(frozen=True, kw_only=True, eq=False)
class OperationLabels:
    """Names of everything about operations that an engine numbers.

    Attributes
    ----------
    names : sequence of str, [operations]
    jobs, collectives, algorithms : Category, [operations]
    is_compute : numpy.ndarray of bool, [operations]
        Nothing but time to compute; the table of operations leaves it out.
    size_bytes : numpy.ndarray of int64, [operations]
        Of the full logical vector of a rank.
    busbw_factor : numpy.ndarray of float64, [operations]
    n_ranks : numpy.ndarray of int64, [operations]
        Without reducers, whose tasks are the last.
    chain : numpy.ndarray of int64, [operations]
        Messages of the longest chain in which each waits for the one before.
    ranks : numpy.ndarray of int64, [tasks]
        Rank of each task, as its job counts them.
    """

    names: Sequence[str]
    jobs: Category
    collectives: Category
    algorithms: Category
    is_compute: Array
    size_bytes: Array
    busbw_factor: Array
    n_ranks: Array
    chain: Array
    ranks: Array


def operation_table(columns: Mapping[str, Array], *, lowered: Lowered, labels: OperationLabels) -> Table:
    """Return the table of operations.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        What the engine counted.
    lowered : Lowered
    labels : OperationLabels
    """
    program = lowered.program
    entered, left, sent = (np.zeros(0, dtype=np.int64) for _ in range(3))
    base = np.zeros(1, dtype=np.int64)
    if program is not None:
        base = program.operation_task_base.astype(np.int64)
        entered, left = columns["task_entered_ps"], columns["task_left_ps"]
        sent = columns["operation_sent_bytes"]
    own = base[:-1] + labels.n_ranks
    first_entered = _reduced(np.minimum, entered, base, end=own)
    first_left, last_left = (_reduced(reduce, left, base, end=own) for reduce in (np.minimum, np.maximum))
    is_done = _reduced(np.minimum, left, base) >= 0
    duration = np.where(is_done, last_left - first_entered, -1)
    algbw = stats.goodput_bps(labels.size_bytes, duration_ps=duration)
    table = Table(
        {
            "operation": np.arange(len(labels.names), dtype=np.uint32),
            "name": np.array(labels.names, dtype=np.str_),
            "job": labels.jobs,
            "collective": labels.collectives,
            "algorithm": labels.algorithms,
            "ranks": labels.n_ranks,
            "chain": labels.chain,
            "size_bytes": labels.size_bytes,
            "sent_bytes": sent,
            "entered_ps": first_entered,
            "left_ps": np.where(is_done, last_left, -1),
            "duration_ps": duration,
            "skew_ps": np.where(is_done, last_left - first_left, -1),
            "algbw_bps": algbw,
            "busbw_bps": algbw * labels.busbw_factor,
        },
        name="operations",
        optional=("entered_ps", "left_ps", "duration_ps", "skew_ps"),
    )
    return table[~labels.is_compute]


def rank_table(
    columns: Mapping[str, Array], *, lowered: Lowered, labels: OperationLabels, nodes: Array
) -> Table:
    """Return the table of ranks: when each entered each operation and left it.

    Parameters
    ----------
    columns, lowered, labels
        As of `operation_table`.
    nodes : numpy.ndarray of str, [nodes]
        Names of hosts and switches.
    """
    program = lowered.program
    entered, left, host = (np.zeros(0, dtype=np.int64) for _ in range(3))
    base = np.zeros(1, dtype=np.int64)
    if program is not None:
        entered, left = columns["task_entered_ps"], columns["task_left_ps"]
        host = program.task_host.astype(np.int64)
        base = program.operation_task_base.astype(np.int64)
    operation = np.searchsorted(base, np.arange(len(entered)), side="right") - 1
    table = Table(
        {
            "operation": Category(operation, np.array(labels.names, dtype=np.str_)),
            "rank": labels.ranks,
            "host": Category(host, nodes),
            "entered_ps": entered,
            "left_ps": left,
            "duration_ps": np.where(left >= 0, left - entered, -1),
        },
        name="ranks",
        optional=("entered_ps", "left_ps", "duration_ps"),
    )
    return table[~labels.is_compute[operation]]


def waiting_table(
    posted: npt.NDArray[np.void],
    on_their_way: npt.NDArray[np.void],
    columns: Mapping[str, Array],
    *,
    lowered: Lowered,
    labels: OperationLabels,
) -> Table:
    """Return what the ranks that have entered an operation and not left it lack, and from whom.

    Parameters
    ----------
    posted, on_their_way : numpy.ndarray
        As `waiting()` of an engine returns them.
    columns : mapping of str to numpy.ndarray
        What the engine counted.
    lowered : Lowered
    labels : OperationLabels
    """
    rows: list[tuple[int, int, int, int, int, int, bool]] = []
    program = lowered.program
    if program is not None:
        entered, left = columns["task_entered_ps"], columns["task_left_ps"]
        base = program.operation_task_base.astype(np.int64)
        unfinished = _reduced(np.minimum, left, base) < 0
        begun = _reduced(np.maximum, entered, base) >= 0
        for operation in np.flatnonzero(unfinished & begun).tolist():
            rows += _lacking(program, operation, posted, on_their_way, entered, left)
    table = np.array(rows, dtype=np.int64).reshape(-1, 7)
    return Table(
        {
            "operation": Category(table[:, 0], np.array(labels.names, dtype=np.str_)),
            "rank": labels.ranks[table[:, 1]],
            "lacks": Category(table[:, 2], np.array(LACKS, dtype=np.str_)),
            "peer": labels.ranks[table[:, 3]],
            "transfers": table[:, 4],
            "posted": table[:, 5],
            "peer_has_entered": table[:, 6].astype(bool),
        },
        name="waiting",
    )


def _lacking(
    program: LoweredProgram,
    operation: int,
    posted: npt.NDArray[np.void],
    on_their_way: npt.NDArray[np.void],
    entered: Array,
    left: Array,
) -> list[tuple[int, int, int, int, int, int, bool]]:
    """Rows of one operation: each lane on which something has not arrived, or else not been acknowledged."""
    template = int(program.operation_template[operation])
    first_rank, end_rank = program.template_rank_base[template : template + 2].tolist()
    first_lane, end_lane = program.rank_lane_base[[first_rank, end_rank]].tolist()
    first_task = int(program.operation_task_base[operation])
    source, destination, total = _lanes(program, operation)
    sent = np.where(left[source] >= 0, total, 0)
    known = (posted["lane"] >= first_lane) & (posted["lane"] < end_lane)
    known &= (posted["task"] >= first_task) & (posted["task"] < first_task + end_rank - first_rank)
    sent[posted["lane"][known].astype(np.int64) - first_lane] = posted["posted"][known]
    moving = on_their_way[on_their_way["operation"] == operation]
    sender = first_rank + program.connection_source[moving["connection"]].astype(np.int64)
    lane = program.rank_lane_base[sender].astype(np.int64) + program.transfer_lane[moving["transfer"]]
    flying = np.bincount(lane - first_lane, minlength=len(total))
    rows: list[tuple[Any, ...]] = []
    missing = total - sent + flying
    is_lacking = (missing > 0) & (entered[destination] >= 0) & (source != destination)
    for lane in np.flatnonzero(is_lacking).tolist():
        peer = int(source[lane])
        rows.append(
            (
                operation,
                int(destination[lane]),
                0,
                peer,
                int(missing[lane]),
                int(flying[lane]),
                entered[peer] >= 0,
            )
        )
    has_all = {row[1] for row in rows}
    owing = (missing == 0) & (left[source] < 0) & (entered[source] >= 0) & (source != destination)
    for lane in np.flatnonzero(owing).tolist():
        own, peer = int(source[lane]), int(destination[lane])
        if own not in has_all:
            rows.append((operation, own, 1, peer, int(total[lane]), int(sent[lane]), entered[peer] >= 0))
    return rows


def _lanes(program: LoweredProgram, operation: int) -> tuple[Array, Array, Array]:
    """Tasks that send and receive on each lane of an operation (of a join, the same one), and how often."""
    template = int(program.operation_template[operation])
    first_rank, end_rank = program.template_rank_base[template : template + 2].tolist()
    base = program.rank_lane_base[first_rank : end_rank + 1].astype(np.int64)
    own = np.repeat(np.arange(end_rank - first_rank), np.diff(base))
    pattern = program.rank_pattern[first_rank + own]
    lane = program.pattern_lane_base[pattern].astype(np.int64) + np.arange(len(own)) - (base - base[0])[own]
    transfers = program.lane_transfer_base.astype(np.int64)
    first = int(program.operation_lanes[operation])
    connection = program.lane_connection[first : first + len(own)]
    joins = program.lane_joins[lane] != 0
    receiver = own.copy()
    receiver[~joins] = program.connection_destination[connection[~joins]]
    task = int(program.operation_task_base[operation])
    return task + own, task + receiver, transfers[lane + 1] - transfers[lane]


def _reduced(reduce: np.ufunc, values: Array, base: Array, *, end: Array | None = None) -> Array:
    """Smallest or largest value of each operation's tasks, up to `end`; every operation has one."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    if end is None:
        return np.asarray(reduce.reduceat(values, base[:-1]))
    parts = np.stack([base[:-1], end], axis=1).ravel()
    return np.asarray(reduce.reduceat(np.append(values, 0), parts)[::2])
