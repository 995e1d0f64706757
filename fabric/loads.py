"""What operations of programs put on which links: payload along the paths of their connections.

A connection keeps its path where switches hash (`fabric.routing.trace_path`). Where they choose frame by
frame, by load or by flowlet, only a connection's first and last link are known, and nothing is said of
those between. Acknowledgements, headers and what is sent again are not counted: this is what had to be
carried.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.lowered import Lowered, LoweredProgram
from fabric.routing import NO_PORT, hashed_words, trace_path

__all__ = ["busiest_ports", "connection_paths", "group_bytes"]

Int64Array = npt.NDArray[np.int64]

BY_HASH = 0
"""Of `Lowered.node_choice`: switches that hash."""

CELLS = 1 << 20
"""Of temporary tables of operations and transfers."""


def connection_paths(lowered: Lowered) -> Int64Array:
    """Ports that the frames of each connection leave by, as `trace_path`; unknown ones left out.

    Returns
    -------
    ndarray of int64 [connections, longest path]
        -1 after the last.
    """
    program = lowered.program
    if program is None or not program.n_connections:
        return np.zeros((0, 1), dtype=np.int64)
    flows = np.arange(lowered.n_flows - program.n_connections, lowered.n_flows)
    paths = trace_path(
        lowered,
        first_port=lowered.flow_port[flows],
        destination=lowered.flow_destination[flows],
        path_hash=lowered.flow_hash[flows],
        words=hashed_words(
            lowered,
            source=lowered.flow_source[flows],
            destination=lowered.flow_destination[flows],
            flow=flows,
        ),
    )
    if (lowered.node_choice[lowered.n_hosts :] != BY_HASH).any():
        last = (paths != NO_PORT).sum(axis=1) - 1
        inner = (np.arange(paths.shape[1]) > 0) & (np.arange(paths.shape[1]) < last[:, np.newaxis])
        paths = np.where(inner, NO_PORT, paths)
    return paths


def group_bytes(lowered: Lowered, group: npt.ArrayLike, *, n_groups: int) -> Int64Array:
    """Payload of groups of operations on every port.

    Parameters
    ----------
    lowered : Lowered
    group : array_like of int [operations]
        -1: counts nowhere.
    n_groups : int

    Returns
    -------
    ndarray of int64 [ports, groups]
    """
    total = np.zeros((lowered.n_ports, n_groups), dtype=np.int64)
    program = lowered.program
    if program is None or not program.n_connections:
        return total
    of = np.asarray(group, dtype=np.int64)
    sent = np.zeros((program.n_connections, n_groups), dtype=np.int64)
    lanes, sizes, operations = _transfers(program, np.flatnonzero(of >= 0))
    for lane, size, operation in zip(lanes, sizes, operations, strict=True):
        connection = program.lane_connection[lane].astype(np.int64)
        own = connection < program.n_connections
        rows = np.broadcast_to(of[operation][:, np.newaxis], connection.shape)
        np.add.at(sent, (connection[own], rows[own]), size[own])
    paths = connection_paths(lowered)
    for column in paths.T:
        known = column != NO_PORT
        np.add.at(total, column[known], sent[known])
    return total


def busiest_ports(lowered: Lowered, operations: npt.ArrayLike) -> Int64Array:
    """The port that each operation keeps busy for longest, by its payload; -1: none.

    Parameters
    ----------
    lowered : Lowered
    operations : array_like of int
    """
    wanted = np.asarray(operations, dtype=np.int64)
    found = np.full(len(wanted), -1, dtype=np.int64)
    program = lowered.program
    if program is None or not program.n_connections:
        return found
    paths = connection_paths(lowered)
    known: dict[tuple[int, int, int], int] = {}
    for place, operation in enumerate(wanted.tolist()):
        columns = program.operation_template, program.operation_lanes, program.operation_pieces
        template, lanes, pieces = (int(each[operation]) for each in columns)
        key = (template, lanes, pieces)
        if key not in known:
            known[key] = _busiest(lowered, program, operation, paths)
        found[place] = known[key]
    return found


def _busiest(lowered: Lowered, program: LoweredProgram, operation: int, paths: Int64Array) -> int:
    lanes, sizes, _ = _transfers(program, np.array([operation]))
    if not lanes:
        return -1
    connection = program.lane_connection[lanes[0][0]].astype(np.int64)
    own = connection < program.n_connections
    if not own.any():
        return -1
    ports = paths[connection[own]]
    size = np.repeat(sizes[0][0][own], ports.shape[1])
    flat = ports.ravel()
    port, place = np.unique(flat[flat != NO_PORT], return_inverse=True)
    if not len(port):
        return -1
    load = np.bincount(place, weights=size[flat != NO_PORT]) / lowered.port_rate_bps[port]
    return int(port[np.argmax(load)]) if load.max() > 0 else -1


def _transfers(
    program: LoweredProgram, operations: Int64Array
) -> tuple[list[Int64Array], list[Int64Array], list[Int64Array]]:
    """Lanes and bytes of the transfers of operations, template by template, a row an operation."""
    lanes, sizes, rows = [], [], []
    for template in np.unique(program.operation_template[operations]).tolist():
        chosen = operations[program.operation_template[operations] == template]
        first_rank, end_rank = program.template_rank_base[template : template + 2].tolist()
        first_lane, end_lane = program.rank_lane_base[[first_rank, end_rank]].tolist()
        begin, end = program.lane_transfer_base[[first_lane, end_lane]].tolist()
        if begin == end:
            continue
        lane = program.transfer_lane[begin:end].astype(np.int64) - first_lane
        piece = program.transfer_piece[begin:end].astype(np.int64)
        last = piece + program.transfer_count[begin:end]
        pieces = int(program.template_pieces[template])
        many = max(1, CELLS // (end - begin))
        for part in np.split(chosen, np.arange(many, len(chosen), many)):
            each, larger = np.divmod(program.operation_bytes[part][:, np.newaxis], max(pieces, 1))
            size = (last - piece) * each + np.minimum(last, larger) - np.minimum(piece, larger)
            table = program.operation_pieces[part]
            listed = np.flatnonzero(table >= 0)
            start = table[listed][:, np.newaxis]
            size[listed] = (
                program.piece_offset_bytes[start + last] - program.piece_offset_bytes[start + piece]
            )
            lanes.append(program.operation_lanes[part][:, np.newaxis] + lane)
            sizes.append(size)
            rows.append(part)
    return lanes, sizes, rows
