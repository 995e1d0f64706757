"""Arrays of programs: their templates lane by lane, their connections, their tasks.

Transfers are put in the order of the rank that sends them and of their lane (lanes in the order in which
the table first uses them, the transfers of one as they stand there), so that what a rank does is one
range; each join has a lane to itself. Ranks that take part in operations together have one connection for
each pair of them and channel that any of these sends on (of a training job: for each dimension, whose groups
are communicators of their own). Those between hosts are flows, the others local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.lowered import LoweredProgram
from fabric.lowering.slowness import slow_columns
from fabric.workload.collectives import Template
from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.collectives.template import NOTHING
from fabric.workload.flow_table import FlowTable
from fabric.workload.job import Job

__all__ = ["LoweredJobs", "lower_jobs"]

NO_CONNECTION = 0xFFFFFFFF
"""Of joins, on whose lanes nothing is sent."""

LARGEST_TABLE = 2**32 - 2
CELLS = 1 << 20
"""Of temporary tables of operations and transfers."""


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
class _Lanes:
    """A template lane by lane, numbered from 0."""

    n_ranks: int
    n_pieces: int
    source: Int64Array
    destination: Int64Array
    channel: Int64Array
    transfer_lane: Int64Array
    piece: Int64Array
    count: Int64Array
    waits: Int64Array
    next_base: Int64Array
    next_transfer: Int64Array
    follower_base: Int64Array
    follower: Int64Array

    @property
    def is_join(self) -> npt.NDArray[np.bool_]:
        """Lanes on which nothing is sent."""
        return np.asarray(self.source == self.destination)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What operations share: templates, lists of ranks (`groups`), and pairs of a group and a template."""

    lanes: list[_Lanes]
    group_hosts: list[Int64Array]
    group_classes: list[Int64Array]
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
    jobs: Sequence[Job], *, n_hosts: int, local_rate_bps: int = 0, local_latency_ps: int = 0
) -> LoweredJobs:
    """Lower jobs, as one program of all their operations.

    Parameters
    ----------
    jobs : sequence of Job
    n_hosts : int
        Hosts of the network.
    local_rate_bps, local_latency_ps : int
        How messages between ranks of one host are copied; 0: in no time.

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
        "local_latency_ps": local_latency_ps,
        **_template_columns(plan.lanes),
        **_operation_columns(jobs, plan),
        "lane_connection": _u32(connections.of_lane),
        **_task_columns(jobs),
        **slow_columns(jobs),
    }
    flows = _connection_flows(jobs, plan, connections, columns)
    return LoweredJobs(flows, LoweredProgram(**columns))


def _plan(jobs: Sequence[Job]) -> _Plan:
    templates: dict[int, int] = {}
    groups: dict[tuple[int, str, bytes], int] = {}
    pairs: dict[tuple[int, int], int] = {}
    lanes: list[_Lanes] = []
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
                lanes.append(_lanes(template))
            key = (number, "" if job.purpose is None else job.purpose.dimension[operation], ranks.tobytes())
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
        np.array([job for job, _, _ in groups], dtype=np.int64),
        distinct[:, 0],
        distinct[:, 1],
        np.array(template_of, dtype=np.int64),
        np.array(pair_of, dtype=np.int64),
    )


def _lanes(template: Template) -> _Lanes:
    n_ranks, rows = template.n_ranks + template.n_reducers, len(template)
    source, destination = template.source.astype(np.int64), template.destination.astype(np.int64)
    channel = template.channel.astype(np.int64)
    key = (source * n_ranks + destination) << 8 | channel
    joins = np.flatnonzero(source == destination)
    key[joins] = (n_ranks * n_ranks << 8) + joins
    _, first, lane = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, source[first]))
    first, lane = first[order], _inverse(order)[lane.ravel()]
    by_lane = np.argsort(lane, kind="stable")
    number = _inverse(by_lane)
    waiting, before = template.waits()
    waiting, before = number[waiting], number[before]
    pairs = np.lexsort((waiting, before))
    follower, first_of_two = _follows(template, number)
    return _Lanes(
        n_ranks,
        template.n_pieces,
        source=source[first],
        destination=destination[first],
        channel=channel[first],
        transfer_lane=lane[by_lane],
        piece=template.piece.astype(np.int64)[by_lane],
        count=template.count.astype(np.int64)[by_lane],
        waits=np.bincount(np.append(waiting, follower), minlength=rows),
        next_base=bases(np.bincount(before, minlength=rows)),
        next_transfer=waiting[pairs],
        follower_base=bases(np.bincount(first_of_two, minlength=rows)),
        follower=follower,
    )


def _follows(template: Template, number: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Transfers that follow another, and which, by that one."""
    if template.follows is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    row = np.flatnonzero(template.follows != NOTHING)
    follower, before = number[row], number[template.follows[row]]
    order = np.lexsort((follower, before))
    return follower[order], before[order]


@dataclass(frozen=True, eq=False)
class _Connections:
    """Connections between hosts, their ends and jobs; then those within a host; and which each lane takes.

    `end_class` has the class that an end of a connection brings, as a number among its job's; 0: none.
    """

    source_host: Int64Array
    destination_host: Int64Array
    job: Int64Array
    end_class: Int64Array
    n_local: int
    of_lane: Int64Array


def _connections(plan: _Plan) -> _Connections:
    """Find the connections, numbered in the order in which pairs of a group and a template use them."""
    first_lane = plan.first_lane
    total = int(first_lane[-1])
    source_host, destination_host, key, end_class = (np.empty(total, dtype=np.int64) for _ in range(4))
    group = np.repeat(plan.pair_group, np.diff(first_lane))
    sends = np.empty(total, dtype=np.bool_)
    for template, lanes in enumerate(plan.lanes):
        pairs = np.flatnonzero(plan.pair_template == template)
        rows = first_lane[pairs][:, np.newaxis] + np.arange(len(lanes.source))
        hosts = np.array([plan.group_hosts[g] for g in plan.pair_group[pairs]], dtype=np.int64)
        hosts = hosts.reshape(len(pairs), lanes.n_ranks)
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
    rank = np.lexsort((first, end_class[first], plan.group_job[group[first]], ~remote))
    of_lane = np.full(total, NO_CONNECTION, dtype=np.int64)
    of_lane[order] = _inverse(rank)[np.cumsum(begins) - 1]
    used = first[rank][: np.count_nonzero(remote)]
    return _Connections(
        source_host[used],
        destination_host[used],
        plan.group_job[group[used]],
        end_class[used],
        int(np.count_nonzero(~remote)),
        of_lane,
    )


def _connection_flows(
    jobs: Sequence[Job], plan: _Plan, connections: _Connections, columns: dict[str, Any]
) -> FlowTable:
    """The connections between hosts as flows, as large as all their messages."""
    count = len(connections.source_host)
    size_bytes = np.maximum(1, _connection_bytes(plan, connections, columns)[:count])
    tables = []
    for number, job in enumerate(jobs):
        for place, name in enumerate([job.traffic_class, *_class_names(job)]):
            own = (connections.job == number) & (connections.end_class == place)
            if place and not own.any():
                continue
            table = FlowTable.from_arrays(
                connections.source_host[own],
                connections.destination_host[own],
                size_bytes=size_bytes[own],
                label=job.name if not place else f"{job.name}-{name}",
                traffic_class=name,
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
        many = max(1, CELLS // max(1, len(lanes.piece)))
        for part in np.split(operations, np.arange(many, len(operations), many)):
            row = first_lane[plan.pair[part]][:, np.newaxis] + lanes.transfer_lane
            to = np.minimum(connections.of_lane[row], len(total) - 1)
            first, end = lanes.piece, lanes.piece + lanes.count
            each, larger = np.divmod(size_bytes[part][:, np.newaxis], lanes.n_pieces)
            sent = (end - first) * each + np.minimum(end, larger) - np.minimum(first, larger)
            own = np.flatnonzero(table[part] >= 0)
            start = table[part][own][:, np.newaxis]
            sent[own] = offset_bytes[start + end] - offset_bytes[start + first]
            np.add.at(total, to.ravel(), sent.ravel())
    return total


def _template_columns(templates: Sequence[_Lanes]) -> dict[str, Any]:
    """All templates, one after the other, their ranks, lanes and transfers numbered on."""
    ranks = bases(np.array([each.n_ranks for each in templates], dtype=np.int64))
    lane = bases(np.array([len(each.source) for each in templates], dtype=np.int64))
    transfer = bases(np.array([len(each.transfer_lane) for each in templates], dtype=np.int64))
    after = bases(np.array([len(each.next_transfer) for each in templates], dtype=np.int64))
    per_rank = [np.bincount(each.source, minlength=each.n_ranks) for each in templates]
    per_lane = [np.bincount(each.transfer_lane, minlength=len(each.source)) for each in templates]
    next_base = _join([each.next_base[:-1] for each in templates], shift=after)
    followers = bases(np.array([len(each.follower) for each in templates], dtype=np.int64))
    follower_base = np.empty(0, dtype=np.int64)
    if followers[-1]:
        follower_base = _join([each.follower_base[:-1] for each in templates], shift=followers)
        follower_base = np.append(follower_base, followers[-1])
    return {
        "template_rank_base": _u32(ranks),
        "template_pieces": _u32([each.n_pieces for each in templates]),
        "rank_lane_base": _u32(bases(_join(per_rank))),
        "rank_receives": _u32(_join([_receives(each) for each in templates])),
        "lane_transfer_base": _u32(bases(_join(per_lane))),
        "lane_destination": _u32(_join([each.destination for each in templates], shift=ranks)),
        "transfer_lane": _u32(_join([each.transfer_lane for each in templates], shift=lane)),
        "transfer_piece": _u32(_join([each.piece for each in templates])),
        "transfer_count": _u32(_join([each.count for each in templates])),
        "transfer_waits": _u32(_join([each.waits for each in templates])),
        "transfer_next_base": _u32(np.append(next_base, after[-1])),
        "transfer_next": _u32(_join([each.next_transfer for each in templates], shift=transfer)),
        "transfer_follower_base": _u32(follower_base),
        "transfer_follower": _u32(_join([each.follower for each in templates], shift=transfer)),
    }


def _receives(lanes: _Lanes) -> Int64Array:
    """Transfers from other ranks to each rank."""
    to = np.where(lanes.is_join, lanes.n_ranks, lanes.destination)[lanes.transfer_lane]
    return np.bincount(to, minlength=lanes.n_ranks + 1)[: lanes.n_ranks]


def _operation_columns(jobs: Sequence[Job], plan: _Plan) -> dict[str, Any]:
    programs = [job.program for job in jobs]
    offsets = bases(np.array([len(each.piece_offset_bytes) for each in programs], dtype=np.int64))
    pieces = [np.where(p.pieces >= 0, p.pieces + by, -1) for p, by in zip(programs, offsets, strict=False)]
    tasks = bases(np.array([each.n_tasks for each in programs], dtype=np.int64))
    task_base = _join([each.task_base[:-1] for each in programs], shift=tasks)
    return {
        "operation_template": _u32(plan.template),
        "operation_bytes": _join([each.size_bytes for each in programs]),
        "operation_pieces": _join(pieces),
        "operation_start_ps": _join([each.start_ps for each in programs]),
        "operation_compute_ps": _join([each.compute_ps for each in programs]),
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


def _inverse(order: Int64Array) -> Int64Array:
    """Where each number stands in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


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
