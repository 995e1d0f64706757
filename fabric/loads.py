"""What operations of programs put on which links: payload along the paths of their connections.

A connection keeps its path where switches hash (`fabric.routing.trace_path`). Where they choose frame by
frame, by load or by flowlet, only a connection's first and last link are known, and nothing is said of
those between. Acknowledgements, headers and what is sent again are not counted: this is what had to be
carried.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fabric.lowered import Lowered, LoweredProgram
from fabric.routing import NO_PORT, hashed_words, trace_path
from fabric.workload.program import Program

__all__ = ["busiest_ports", "connection_paths", "group_bytes"]

Int64Array = npt.NDArray[np.int64]

BY_HASH = 0
"""Of `Lowered.node_choice`: switches that hash."""


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


def group_bytes(
    lowered: Lowered, size_bytes: npt.ArrayLike, *, group: npt.ArrayLike, n_groups: int
) -> Int64Array:
    """Payload of groups of connections on every port.

    Parameters
    ----------
    lowered : Lowered
    size_bytes : array_like of int [connections]
    group : array_like of int [connections]
        -1: counts nowhere.
    n_groups : int

    Returns
    -------
    ndarray of int64 [ports, groups]
    """
    total = np.zeros((lowered.n_ports, n_groups), dtype=np.int64)
    size, of = np.asarray(size_bytes, dtype=np.int64), np.asarray(group, dtype=np.int64)
    for column in connection_paths(lowered).T:
        known = (column != NO_PORT) & (of >= 0)
        np.add.at(total, (column[known], of[known]), size[known])
    return total


def busiest_ports(lowered: Lowered, programs: Sequence[Program], operations: npt.ArrayLike) -> Int64Array:
    """The port that each operation keeps busy for longest, by its payload; -1: none.

    Parameters
    ----------
    lowered : Lowered
    programs : sequence of Program
        Those that were lowered, in order.
    operations : array_like of int
        Numbered over all programs.
    """
    wanted = np.asarray(operations, dtype=np.int64)
    found = np.full(len(wanted), -1, dtype=np.int64)
    program = lowered.program
    if program is None or not program.n_connections:
        return found
    paths = connection_paths(lowered)
    first = np.cumsum([0, *(len(each) for each in programs)])
    known: dict[tuple[int, int, int], int] = {}
    for place, operation in enumerate(wanted.tolist()):
        columns = program.operation_template, program.operation_lanes, program.operation_pieces
        template, lanes, pieces = (int(each[operation]) for each in columns)
        key = (template, lanes, pieces)
        if key not in known:
            number = int(np.searchsorted(first, operation, side="right")) - 1
            sent = _pair_bytes(programs[number], operation - int(first[number]))
            known[key] = _busiest(lowered, program, operation, sent, paths)
        found[place] = known[key]
    return found


def _pair_bytes(program: Program, operation: int) -> Int64Array:
    """Bytes from each rank of an operation to each [ranks, ranks]."""
    template = program.templates[int(program.template[operation])]
    offsets = np.concatenate([[0], np.cumsum(program.piece_bytes(operation))])
    piece = template.piece.astype(np.int64)
    size = offsets[piece + template.count] - offsets[piece]
    ranks = template.n_ranks + template.n_reducers
    sent = np.zeros((ranks, ranks), dtype=np.int64)
    np.add.at(sent, (template.source, template.destination), size)
    return sent


def _busiest(
    lowered: Lowered, program: LoweredProgram, operation: int, sent: Int64Array, paths: Int64Array
) -> int:
    template = int(program.operation_template[operation])
    first_rank, end_rank = program.template_rank_base[template : template + 2].tolist()
    first_lane, end_lane = program.rank_lane_base[[first_rank, end_rank]].tolist()
    begin = int(program.operation_lanes[operation])
    connection = np.unique(program.lane_connection[begin : begin + end_lane - first_lane]).astype(np.int64)
    connection = connection[connection < program.n_connections]
    ends = program.connection_source[connection], program.connection_destination[connection]
    ports = paths[connection]
    size = np.repeat(sent[ends], ports.shape[1]).astype(np.float64)
    flat = ports.ravel()
    port, place = np.unique(flat[flat != NO_PORT], return_inverse=True)
    if not len(port):
        return -1
    load = np.bincount(place, weights=size[flat != NO_PORT]) / lowered.port_rate_bps[port]
    return int(port[np.argmax(load)]) if load.max() > 0 else -1
