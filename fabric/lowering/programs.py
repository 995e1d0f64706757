"""Arrays of programs: what their ranks do, their connections, their tasks.

What a rank does is a range of a template's table lane by lane (`lanes.py`), and ranks that do the same share
it (`patterns.py`). Ranks that take part in operations together have one connection for each pair of them and
channel that any of these sends on; of a training job, for each dimension, whose groups are communicators of
their own. Those between hosts are flows, the others local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.lowered import LoweredProgram
from fabric.lowering.lanes import CELLS, Lanes, inverse, lanes_of
from fabric.lowering.slowness import slow_columns
from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.flow_table import FlowTable
from fabric.workload.job import Job

__all__ = ["LoweredJobs", "lower_jobs"]

NO_CONNECTION = 0xFFFFFFFF
"""Of joins, on whose lanes nothing is sent."""

LARGEST_TABLE = 2**32 - 2
MOST_CLASSES = 256
"""Of a job's connections; a switch has 8."""


@dataclass(frozen=True, eq=False)
class LoweredJobs:
    """Jobs as one program, and its connections as flows.

    Attributes
    ----------
    flows : FlowTable
        One row for each connection between hosts; its size is that of all its messages, at least 1.
    program : LoweredProgram
    """

    flows: FlowTable
    program: LoweredProgram


@dataclass(frozen=True, eq=False)
class _Plan:
    """What operations share: templates, lists of ranks (`groups`), and pairs of a group and a template."""

    lanes: list[Lanes]
    group_hosts: list[Int64Array]
    group_classes: list[Int64Array]
    group_dimension: list[str]
    group_job: Int64Array
    pair_group: Int64Array
    pair_template: Int64Array
    template: Int64Array
    pair: Int64Array

    @property
    def first_lane(self) -> Int64Array:
        """Where the lanes of each pair begin, and where the last ends."""
        return bases(np.array([len(each.source) for each in self.lanes], np.int64)[self.pair_template])


def lower_jobs(
    jobs: Sequence[Job], *, n_hosts: int, local_rate_bps: int = 0, local_latency_ps: int = 0, tick_ps: int = 1
) -> LoweredJobs:
    """Lower jobs, as one program of all their operations.

    Parameters
    ----------
    jobs : sequence of Job
    n_hosts : int
        Hosts of the network.
    local_rate_bps, local_latency_ps : int
        How messages between ranks of one host are copied; 0: in no time.
    tick_ps : int
        Ranks begin, compute and copy in multiples of it: times are rounded up.

    Returns
    -------
    LoweredJobs

    Raises
    ------
    fabric.errors.SpecError
        A rank without a host, or a table of 2^32 rows or more.

    Examples
    --------
    >>> from fabric.workload.program import ProgramBuilder
    >>> work = ProgramBuilder(n_ranks=2)
    >>> message = work.message(0, 1, size_bytes=100)
    >>> lowered = lower_jobs([Job(program=work.build(), hosts=[1, 0])], n_hosts=2)
    >>> lowered.flows.source.tolist(), lowered.program.task_host.tolist()
    ([1], [1, 0])
    """
    for job in jobs:
        job.check_hosts(n_hosts)
    plan = _plan(jobs)
    connections = _connections(plan)
    columns = {
        "n_connections": len(connections.source_host),
        "n_local": connections.n_local,
        "local_rate_bps": local_rate_bps,
        "local_latency_ps": int(_up(local_latency_ps, tick_ps)),
        "local_tick_ps": tick_ps,
        **_template_columns(plan.lanes),
        **_operation_columns(jobs, plan, tick_ps=tick_ps),
        "lane_connection": _u32(connections.of_lane),
        "connection_source": _u32(connections.source),
        "connection_destination": _u32(connections.destination),
        **_task_columns(jobs),
        **slow_columns(jobs),
    }
    flows = _connection_flows(jobs, plan, connections, columns)
    return LoweredJobs(flows, LoweredProgram(**columns))


def _plan(jobs: Sequence[Job]) -> _Plan:
    templates: dict[int, int] = {}
    groups: dict[tuple[int, str, bytes], int] = {}
    pairs: dict[tuple[int, int], int] = {}
    lanes: list[Lanes] = []
    group_hosts: list[Int64Array] = []
    group_classes: list[Int64Array] = []
    template_of: list[int] = []
    pair_of: list[int] = []
    for number, job in enumerate(jobs):
        program, hosts = job.program, job.host_of
        classes = _rank_classes(job)
        for operation, index in enumerate(program.template.tolist()):
            template, ranks = program.templates[index], program.ranks_of(operation)
            if id(template) not in templates:
                templates[id(template)] = len(lanes)
                lanes.append(lanes_of(template))
            dimension = "" if job.purpose is None else job.purpose.dimension[operation]
            key = (number, dimension, ranks.tobytes())
            if key not in groups:
                groups[key] = len(group_hosts)
                group_hosts.append(hosts[ranks])
                group_classes.append(classes[ranks])
            template_of.append(templates[id(template)])
            pair_of.append(pairs.setdefault((groups[key], template_of[-1]), len(pairs)))
    distinct = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return _Plan(
        lanes,
        group_hosts,
        group_classes,
        [dimension for _, dimension, _ in groups],
        np.array([job for job, _, _ in groups], dtype=np.int64),
        distinct[:, 0],
        distinct[:, 1],
        np.array(template_of, dtype=np.int64),
        np.array(pair_of, dtype=np.int64),
    )


@dataclass(frozen=True, eq=False)
class _Connections:
    """Connections with their ends, of those between hosts, which come first, also hosts and jobs; and which
    each lane takes.

    `kind` has the dimension of a connection and the class that an end of it brings, as a number among those
    that its job has (`kinds`).
    """

    source: Int64Array
    destination: Int64Array
    source_host: Int64Array
    destination_host: Int64Array
    job: Int64Array
    kind: Int64Array
    kinds: list[tuple[int, str, int]]
    n_local: int
    of_lane: Int64Array


def _connections(plan: _Plan) -> _Connections:
    """Find the connections, numbered in the order in which pairs of a group and a template use them."""
    first_lane = plan.first_lane
    total = int(first_lane[-1])
    source, destination, source_host, destination_host, key, end_class = (
        np.empty(total, dtype=np.int64) for _ in range(6)
    )
    group = np.repeat(plan.pair_group, np.diff(first_lane))
    sends = np.empty(total, dtype=np.bool_)
    for template, lanes in enumerate(plan.lanes):
        pairs = np.flatnonzero(plan.pair_template == template)
        rows = first_lane[pairs][:, np.newaxis] + np.arange(len(lanes.source))
        hosts = np.array([plan.group_hosts[g] for g in plan.pair_group[pairs]], dtype=np.int64)
        hosts = hosts.reshape(len(pairs), lanes.n_ranks)
        source[rows], destination[rows] = lanes.source, lanes.destination
        source_host[rows], destination_host[rows] = hosts[:, lanes.source], hosts[:, lanes.destination]
        classes = np.array([plan.group_classes[g] for g in plan.pair_group[pairs]], dtype=np.int64)
        classes = classes.reshape(len(pairs), lanes.n_ranks)
        end_class[rows] = np.maximum(classes[:, lanes.source], classes[:, lanes.destination])
        key[rows] = (lanes.source * lanes.n_ranks + lanes.destination) << 8 | lanes.channel
        sends[rows] = ~lanes.is_join
    lane = np.flatnonzero(sends)
    order = lane[np.lexsort((lane, key[lane], group[lane]))]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (np.diff(key[order]) != 0) | (np.diff(group[order]) != 0)
    first = order[begins]
    remote = source_host[first] != destination_host[first]
    kinds, kind = _kinds(plan, group[first], end_class[first])
    rank = np.lexsort((first, kind, ~remote))
    of_lane = np.full(total, NO_CONNECTION, dtype=np.int64)
    of_lane[order] = inverse(rank)[np.cumsum(begins) - 1]
    used = first[rank][: np.count_nonzero(remote)]
    return _Connections(
        source[first[rank]],
        destination[first[rank]],
        source_host[used],
        destination_host[used],
        plan.group_job[group[used]],
        kind[rank][: len(used)],
        kinds,
        int(np.count_nonzero(~remote)),
        of_lane,
    )


def _kinds(
    plan: _Plan, group: Int64Array, end_class: Int64Array
) -> tuple[list[tuple[int, str, int]], Int64Array]:
    """Jobs, dimensions and classes that occur, in the order of their first use; and which each has."""
    dimensions = {name: number for number, name in enumerate(dict.fromkeys(plan.group_dimension))}
    dimension = np.array([dimensions[name] for name in plan.group_dimension], dtype=np.int64)[group]
    packed = (plan.group_job[group] * (len(dimensions) + 1) + dimension) * MOST_CLASSES + end_class
    found, kind = np.unique(packed, return_inverse=True)
    names = list(dimensions)
    kinds = []
    for each in found.tolist():
        rest, place = divmod(each, MOST_CLASSES)
        job, number = divmod(rest, len(dimensions) + 1)
        kinds.append((job, names[number], place))
    return kinds, kind.ravel()


def _connection_flows(
    jobs: Sequence[Job], plan: _Plan, connections: _Connections, columns: dict[str, Any]
) -> FlowTable:
    """The connections between hosts as flows, as large as all their messages."""
    count = len(connections.source_host)
    size_bytes = np.maximum(1, _connection_bytes(plan, connections, columns)[:count])
    tables = []
    for number, (job_number, dimension, place) in enumerate(connections.kinds):
        job, own = jobs[job_number], connections.kind == number
        names = [job.traffic_class, *_class_names(job)]
        table = FlowTable.from_arrays(
            connections.source_host[own],
            connections.destination_host[own],
            size_bytes=size_bytes[own],
            label=f"{job.name}/{dimension}" if dimension else job.name,
            traffic_class=names[place],
            transport=job.transport,
            entry=job.entry,
            path=job.path,
        )
        tables.append(table)
    return FlowTable.concatenate(tables)


def _class_names(job: Job) -> list[str]:
    """Traffic classes that ranks of a job bring to their connections."""
    return sorted(set(job.rank_classes.values()))


def _rank_classes(job: Job) -> Int64Array:
    """Class of each rank: 1 + its place among the job's names; 0: none of its own."""
    number = {name: place for place, name in enumerate(_class_names(job), start=1)}
    classes = np.zeros(len(job.host_of), dtype=np.int64)
    for rank, name in job.rank_classes.items():
        classes[rank] = number[name]
    return classes


def _connection_bytes(plan: _Plan, connections: _Connections, columns: dict[str, Any]) -> Int64Array:
    """Bytes that all operations send over each connection; joins have the last row."""
    total = np.zeros(len(connections.source_host) + connections.n_local + 1, dtype=np.int64)
    size_bytes, table = columns["operation_bytes"], columns["operation_pieces"]
    offset_bytes, first_lane = columns["piece_offset_bytes"], plan.first_lane
    for template, lanes in enumerate(plan.lanes):
        operations = np.flatnonzero(plan.template == template)
        for transfer_lane, first, count in lanes.transfers():
            end = first + count
            many = max(1, CELLS // max(1, len(first)))
            for part in np.split(operations, np.arange(many, len(operations), many)):
                row = first_lane[plan.pair[part]][:, np.newaxis] + transfer_lane
                to = np.minimum(connections.of_lane[row], len(total) - 1)
                each, larger = np.divmod(size_bytes[part][:, np.newaxis], lanes.n_pieces)
                sent = count * each + np.minimum(end, larger) - np.minimum(first, larger)
                own = np.flatnonzero(table[part] >= 0)
                start = table[part][own][:, np.newaxis]
                sent[own] = offset_bytes[start + end] - offset_bytes[start + first]
                np.add.at(total, to.ravel(), sent.ravel())
    return total


def _template_columns(templates: Sequence[Lanes]) -> dict[str, Any]:
    """What the ranks of all templates do, one template after the other, all numbered on."""
    found = [each.patterns for each in templates]
    patterns = bases(np.array([len(each.receives) for each in found], dtype=np.int64))
    follower = _join([each.follower for each in found])
    follower_base = bases(_join([each.n_followers for each in found]))
    return {
        "template_rank_base": _u32(bases(np.array([each.n_ranks for each in templates], dtype=np.int64))),
        "template_pieces": _u32([each.n_pieces for each in templates]),
        "rank_pattern": _u32(_join([each.rank_pattern for each in found], shift=patterns)),
        "rank_piece": _u32(_join([each.rank_piece for each in found])),
        "rank_lane_base": _u32(bases(_join([each.per_rank for each in templates]))),
        "pattern_lane_base": _u32(bases(_join([each.n_lanes for each in found]))),
        "pattern_receives": _u32(_join([each.receives for each in found])),
        "lane_transfer_base": _u32(bases(_join([each.lane_transfers for each in found]))),
        "lane_joins": _join([each.lane_joins for each in found]).astype(np.uint8),
        "transfer_lane": _u32(_join([each.lane for each in found])),
        "transfer_piece": _u32(_join([each.piece for each in found])),
        "transfer_count": _u32(_join([each.count for each in found])),
        "transfer_waits": _u32(_join([each.waits for each in found])),
        "transfer_next_base": _u32(bases(_join([each.n_next for each in found]))),
        "transfer_next": _u32(_join([each.next_transfer for each in found])),
        "transfer_follower_base": _u32(follower_base if len(follower) else follower),
        "transfer_follower": _u32(follower),
    }


def _operation_columns(jobs: Sequence[Job], plan: _Plan, *, tick_ps: int) -> dict[str, Any]:
    programs = [job.program for job in jobs]
    offsets = bases(np.array([len(each.piece_offset_bytes) for each in programs], dtype=np.int64))
    pieces = [np.where(p.pieces >= 0, p.pieces + by, -1) for p, by in zip(programs, offsets, strict=False)]
    tasks = bases(np.array([each.n_tasks for each in programs], dtype=np.int64))
    task_base = _join([each.task_base[:-1] for each in programs], shift=tasks)
    return {
        "operation_template": _u32(plan.template),
        "operation_bytes": _join([each.size_bytes for each in programs]),
        "operation_pieces": _join(pieces),
        "operation_start_ps": _up(_join([each.start_ps for each in programs]), tick_ps),
        "operation_compute_ps": _up(_join([each.compute_ps for each in programs]), tick_ps),
        "operation_eager": _join([each.eager for each in programs]).astype(np.uint8),
        "operation_lanes": plan.first_lane[plan.pair],
        "operation_task_base": _u32(np.append(task_base, tasks[-1])),
        "piece_offset_bytes": _join([each.piece_offset_bytes for each in programs]),
    }


def _task_columns(jobs: Sequence[Job]) -> dict[str, Any]:
    """The tasks of all jobs, where they are, and which of them wait for which."""
    programs = [job.program for job in jobs]
    ranks = bases(np.array([len(job.host_of) for job in jobs], dtype=np.int64))
    tasks = bases(np.array([each.n_tasks for each in programs], dtype=np.int64))
    then = _join([each.wait_task for each in programs], shift=tasks)
    before = _join([each.wait_for for each in programs], shift=tasks)
    order, count = np.lexsort((then, before)), int(tasks[-1])
    return {
        "task_rank": _u32(_join([each.task_rank for each in programs], shift=ranks)),
        "task_host": _u32(_join([job.host_of[job.program.task_rank] for job in jobs])),
        "task_waits": _u32(np.bincount(then, minlength=count)),
        "task_next_base": _u32(bases(np.bincount(before, minlength=count))),
        "task_next": _u32(then[order]),
    }


def _up(times: Any, tick_ps: int) -> Any:
    """Times, rounded up to whole ticks."""
    return times + -times % tick_ps


def _join(parts: Sequence[npt.NDArray[Any]], *, shift: Int64Array | None = None) -> Int64Array:
    moved = parts if shift is None else [part + by for part, by in zip(parts, shift, strict=False)]
    return np.concatenate([np.empty(0, dtype=np.int64), *moved])


def _u32(values: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    array = np.asarray(values, dtype=np.int64)
    if len(array) > LARGEST_TABLE or (array.size and int(array.max()) > NO_CONNECTION):
        raise SpecError(
            "program", max(len(array), int(array.max())), f"tables of at most {LARGEST_TABLE} rows"
        )
    return array.astype(np.uint32)
