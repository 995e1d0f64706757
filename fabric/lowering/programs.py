"""Arrays of a program: its templates lane by lane, its connections, its tasks.

Transfers are put in the order of the rank that sends them and of their lane (lanes in the order in which
the table first uses them, the transfers of one as they stand there), so that what a rank does is one
range; each join has a lane to itself. Connections are found for each list of ranks that take part in
operations together: one for each pair of them and channel that any of these sends on. Those between hosts are
flows, the others are local.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.lowered import LoweredProgram
from fabric.workload.flow_table import FlowTable
from fabric.workload.program import Program, TransferTable

__all__ = ["LoweredConnections", "program_arrays"]

NO_CONNECTION = 0xFFFFFFFF
"""Of joins, on whose lanes nothing is sent."""

LARGEST_TABLE = 2**32 - 2

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LoweredConnections:
    """A program as arrays, and its connections as flows.

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

    @property
    def is_join(self) -> npt.NDArray[np.bool_]:
        """Lanes on which nothing is sent."""
        return np.asarray(self.source == self.destination)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What operations share: templates, lists of ranks, and pairs of the two."""

    lanes: list[_Lanes]
    groups: list[Int64Array]
    pairs: dict[tuple[int, int], int]
    template: list[int]
    group: list[int]


def program_arrays(
    program: Program, *, n_hosts: int, label: str = "program", **pattern: Any
) -> LoweredConnections:
    """Lower a program.

    Parameters
    ----------
    program : Program
    n_hosts : int
        Hosts of the network.
    label : str
        What its connections are called in results.
    **pattern
        `traffic_class`, `transport` and others of its connections, as for `FlowTable.from_arrays`.

    Returns
    -------
    LoweredConnections

    Raises
    ------
    fabric.errors.SpecError
        A rank on a host that does not exist, sizes that do not fit their template, or a table of 2^32
        rows or more.

    Examples
    --------
    >>> from fabric.workload.program import Operation
    >>> program = Program(hosts=(0, 1), operations=(Operation(ranks=(0, 1), compute_ps=5),))
    >>> lowered = program_arrays(program, n_hosts=2)
    >>> len(lowered.flows), lowered.program.task_host.tolist()
    (0, [0, 1])
    """
    for rank, host in enumerate(program.hosts):
        if not 0 <= host < n_hosts:
            raise SpecError(f"program.hosts[{rank}]", host, f"a host number from 0 to {n_hosts - 1}")
    plan = _plan(program)
    connections = _connections(plan, np.array(program.hosts, dtype=np.int64))
    columns = {
        "n_connections": len(connections.source_host),
        "n_local": connections.n_local,
        "local_rate_bps": program.local_rate_bps,
        "local_latency_ps": program.local_latency_ps,
        **_template_columns(plan.lanes),
        **_operation_columns(program, plan, connections),
        **_task_columns(program),
    }
    flows = _connection_flows(columns, plan, connections, label=label, pattern=pattern)
    return LoweredConnections(flows, LoweredProgram(**columns))


def _plan(program: Program) -> _Plan:
    templates: dict[tuple[int, int], int] = {}
    groups: dict[tuple[int, ...], int] = {}
    plan = _Plan([], [], {}, [], [])
    for operation in program.operations:
        key = (id(operation.template), len(operation.ranks))
        if key not in templates:
            templates[key] = len(plan.lanes)
            plan.lanes.append(_lanes(operation.template, n_ranks=len(operation.ranks)))
        if operation.ranks not in groups:
            groups[operation.ranks] = len(plan.groups)
            plan.groups.append(np.array(operation.ranks, dtype=np.int64))
        plan.template.append(templates[key])
        plan.group.append(groups[operation.ranks])
        plan.pairs.setdefault((plan.group[-1], plan.template[-1]), len(plan.pairs))
    return plan


def _lanes(template: TransferTable | None, *, n_ranks: int) -> _Lanes:
    none = np.empty(0, dtype=np.int64)
    if template is None:
        start = np.zeros(1, dtype=np.int64)
        return _Lanes(n_ranks, 1, none, none, none, none, none, none, none, start, none)
    source, destination = template.source.astype(np.int64), template.destination.astype(np.int64)
    channel, rows = template.channel.astype(np.int64), len(template.source)
    key = (source * n_ranks + destination) << 8 | channel
    joins = np.flatnonzero(source == destination)
    key[joins] = (n_ranks * n_ranks << 8) + joins
    _, first, lane = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, source[first]))
    first, lane = first[order], _inverse(order)[lane.ravel()]
    by_lane = np.argsort(lane, kind="stable")
    number = _inverse(by_lane)
    each = np.asarray(np.diff(template.after_base.astype(np.int64)), dtype=np.int64)
    before, waiting = number[template.after.astype(np.int64)], np.repeat(number, each)
    pairs = np.lexsort((waiting, before))
    return _Lanes(
        n_ranks,
        template.n_pieces,
        source=source[first],
        destination=destination[first],
        channel=channel[first],
        transfer_lane=lane[by_lane],
        piece=template.piece.astype(np.int64)[by_lane],
        count=template.count.astype(np.int64)[by_lane],
        waits=each[by_lane],
        next_base=_bases(np.bincount(before, minlength=rows)),
        next_transfer=waiting[pairs],
    )


@dataclass(frozen=True, eq=False)
class _Connections:
    """Connections between hosts, with their ends, then those within a host; and which each lane takes."""

    source_host: Int64Array
    destination_host: Int64Array
    n_local: int
    of_pair: list[Int64Array]


def _connections(plan: _Plan, hosts: Int64Array) -> _Connections:
    """Find the connections of each list of ranks, in the order in which its templates use them."""
    ends = [np.empty((2, 0), dtype=np.int64)]
    of_pair = [np.full(len(plan.lanes[t].source), NO_CONNECTION, np.int64) for _, t in plan.pairs]
    n_found = 0
    for group, ranks in enumerate(plan.groups):
        used = [(pair, plan.lanes[t]) for (g, t), pair in plan.pairs.items() if g == group]
        sends = [np.flatnonzero(lanes.source != lanes.destination) for _, lanes in used]
        source, destination, channel = (
            np.concatenate([getattr(lanes, name)[rows] for (_, lanes), rows in zip(used, sends, strict=True)])
            for name in ("source", "destination", "channel")
        )
        key = (source * len(ranks) + destination) << 8 | channel
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first)
        which = n_found + _inverse(order)[which.ravel()]
        n_found += len(first)
        first = first[order]
        ends.append(hosts[ranks[np.stack([source[first], destination[first]])]])
        for (pair, _), rows in zip(used, sends, strict=True):
            of_pair[pair][rows], which = which[: len(rows)], which[len(rows) :]
    source, destination = np.concatenate(ends, axis=1)
    remote = source != destination
    number = np.where(remote, np.cumsum(remote) - 1, np.count_nonzero(remote) + np.cumsum(~remote) - 1)
    for lanes in of_pair:
        sends = lanes != NO_CONNECTION
        lanes[sends] = number[lanes[sends]]
    return _Connections(source[remote], destination[remote], int(np.count_nonzero(~remote)), of_pair)


def _piece_offsets(program: Program, plan: _Plan) -> tuple[Int64Array, Int64Array]:
    """Where the pieces of each operation start in a table of offsets (-1: they are even), and the table."""
    known: dict[tuple[int, int], int] = {}
    tables: list[Int64Array] = []
    start = np.full(len(program.operations), -1, dtype=np.int64)
    total = 0
    for number, operation in enumerate(program.operations):
        template, size = operation.template, operation.size
        if template is None or (isinstance(size, int) and template.block is None):
            continue
        key = (plan.template[number], size if isinstance(size, int) else -1 - id(size))
        if key not in known:
            known[key] = total
            tables.append(_bases(_piece_bytes(template, size, number)))
            total += len(tables[-1])
        start[number] = known[key]
    return start, _join(tables)


def _even_offsets(total: int, parts: int) -> Int64Array:
    """Where parts begin that differ by at most one byte, the first ones larger; and where they end."""
    each, larger = divmod(total, parts)
    part = np.arange(parts + 1, dtype=np.int64)
    return np.asarray(part * each + np.minimum(part, larger))


def _piece_bytes(template: TransferTable, size: int | Sequence[int], number: int) -> Int64Array:
    try:
        return template.piece_bytes(size)
    except SpecError as error:
        raise SpecError(f"program.operations[{number}].{error.path}", error.value, error.allowed) from None


def _connection_flows(
    columns: dict[str, Any], plan: _Plan, connections: _Connections, *, label: str, pattern: dict[str, Any]
) -> FlowTable:
    """The connections between hosts as flows, as large as all their messages."""
    uses: Counter[tuple[int, int, int, int]] = Counter()
    sizes = zip(columns["operation_pieces"].tolist(), columns["operation_bytes"].tolist(), strict=True)
    for template, group, (table, total) in zip(plan.template, plan.group, sizes, strict=True):
        uses[plan.pairs[group, template], template, table, total] += 1
    size_bytes = np.zeros(len(connections.source_host) + connections.n_local, dtype=np.int64)
    for (pair, template, table, total), times in uses.items():
        lanes = plan.lanes[template]
        offset = columns["piece_offset_bytes"][table:] if table >= 0 else _even_offsets(total, lanes.n_pieces)
        to = connections.of_pair[pair][lanes.transfer_lane]
        sends = to != NO_CONNECTION
        sent = (offset[lanes.piece + lanes.count] - offset[lanes.piece])[sends]
        np.add.at(size_bytes, to[sends], times * sent)
    return FlowTable.from_arrays(
        connections.source_host,
        connections.destination_host,
        size_bytes=np.maximum(1, size_bytes[: len(connections.source_host)]),
        label=label,
        **pattern,
    )


def _template_columns(templates: Sequence[_Lanes]) -> dict[str, Any]:
    """All templates, one after the other, their ranks, lanes and transfers numbered on."""
    ranks = _bases([lanes.n_ranks for lanes in templates])
    lane = _bases([len(lanes.source) for lanes in templates])
    transfer = _bases([len(lanes.transfer_lane) for lanes in templates])
    after = _bases([len(lanes.next_transfer) for lanes in templates])
    per_rank = [np.bincount(lanes.source, minlength=lanes.n_ranks) for lanes in templates]
    per_lane = [np.bincount(lanes.transfer_lane, minlength=len(lanes.source)) for lanes in templates]
    return {
        "template_rank_base": _u32(ranks),
        "template_pieces": _u32([lanes.n_pieces for lanes in templates]),
        "rank_lane_base": _u32(_bases(_join(per_rank))),
        "rank_receives": _u32(_join([_receives(lanes) for lanes in templates])),
        "lane_transfer_base": _u32(_bases(_join(per_lane))),
        "lane_destination": _u32(_join([each.destination for each in templates], shift=ranks)),
        "transfer_lane": _u32(_join([each.transfer_lane for each in templates], shift=lane)),
        "transfer_piece": _u32(_join([each.piece for each in templates])),
        "transfer_count": _u32(_join([each.count for each in templates])),
        "transfer_waits": _u32(_join([each.waits for each in templates])),
        "transfer_next_base": _u32(
            np.append(_join([each.next_base[:-1] for each in templates], shift=after), after[-1])
        ),
        "transfer_next": _u32(_join([each.next_transfer for each in templates], shift=transfer)),
    }


def _receives(lanes: _Lanes) -> Int64Array:
    """Transfers from other ranks to each rank."""
    to = np.where(lanes.is_join, lanes.n_ranks, lanes.destination)[lanes.transfer_lane]
    return np.bincount(to, minlength=lanes.n_ranks + 1)[: lanes.n_ranks]


def _operation_columns(program: Program, plan: _Plan, connections: _Connections) -> dict[str, Any]:
    operations = program.operations
    start, offset_bytes = _piece_offsets(program, plan)
    start_of_pair = _bases([len(lanes) for lanes in connections.of_pair])
    pairs = [plan.pairs[key] for key in zip(plan.group, plan.template, strict=True)]
    even = [each.size if isinstance(each.size, int) else 0 for each in operations]
    return {
        "operation_template": _u32(plan.template),
        "operation_bytes": np.array(even, dtype=np.int64),
        "operation_pieces": start,
        "operation_start_ps": np.array([each.start_ps for each in operations], dtype=np.int64),
        "operation_compute_ps": np.array([each.compute_ps for each in operations], dtype=np.int64),
        "operation_eager": np.array([each.eager for each in operations], dtype=np.uint8),
        "operation_lanes": start_of_pair[np.array(pairs, dtype=np.int64)],
        "operation_task_base": _u32(_bases([len(each.ranks) for each in operations])),
        "piece_offset_bytes": offset_bytes,
        "lane_connection": _u32(_join(connections.of_pair)),
    }


def _task_columns(program: Program) -> dict[str, Any]:
    """Tasks operation by operation, and which of them wait for which."""
    operations, hosts = program.operations, np.array(program.hosts, dtype=np.int64)
    ranks = [np.array(operation.ranks, dtype=np.int64) for operation in operations]
    base = _bases([len(each) for each in ranks])
    before: list[Int64Array] = []
    waiting: list[Int64Array] = []
    for number, operation in enumerate(operations):
        for earlier in set(operation.after):
            _, here, there = np.intersect1d(ranks[number], ranks[earlier], return_indices=True)
            waiting.append(base[number] + here)
            before.append(base[earlier] + there)
    rank, after, then = _join(ranks), _join(before), _join(waiting)
    order = np.lexsort((then, after))
    return {
        "task_rank": _u32(rank),
        "task_host": _u32(hosts[rank]),
        "task_waits": _u32(np.bincount(then, minlength=len(rank))),
        "task_next_base": _u32(_bases(np.bincount(after, minlength=len(rank)))),
        "task_next": _u32(then[order]),
    }


def _inverse(order: Int64Array) -> Int64Array:
    """Where each number stands in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def _bases(count: npt.ArrayLike) -> Int64Array:
    """Where each of ranges of these lengths begins, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(count, dtype=np.int64))])


def _join(parts: Sequence[npt.NDArray[Any]], *, shift: Int64Array | None = None) -> Int64Array:
    moved = parts if shift is None else [part + by for part, by in zip(parts, shift, strict=False)]
    return np.concatenate([np.empty(0, dtype=np.int64), *moved])


def _u32(values: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    array = np.asarray(values, dtype=np.int64)
    if array.size and int(array.max()) > NO_CONNECTION:
        raise SpecError("program", int(array.max()), f"tables of at most {LARGEST_TABLE} rows")
    return array.astype(np.uint32)
