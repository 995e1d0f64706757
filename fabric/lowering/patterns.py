"""What the ranks of a template do, each thing once: patterns.

A **pattern** is all that a rank sends, in what order and after what, without whom it talks to. Ranks that do
the same share one, though each with other pieces of the data, so many further in turn: those of a ring all
share one, and its table grows with n instead of n². Numbers in a pattern are local: its lanes and transfers
count from 0, and what waits for the arrival of a transfer is named by its place in the pattern of the
destination.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.workload.collectives.arrays import Int64Array, expand_ranges, lengths

__all__ = ["Patterns", "RankTables", "find_patterns"]


@dataclass(frozen=True, eq=False)
class RankTables:
    """What every rank of a template does; lanes and transfers in the order of ranks, numbered on.

    Attributes
    ----------
    n_pieces : int
    lane_base : ndarray of int64 [ranks + 1]
        Lanes that each rank sends on.
    transfer_base : ndarray of int64 [lanes + 1]
    is_join : ndarray of bool [lanes]
    receives : ndarray of int64 [ranks]
        Transfers of others to each rank.
    piece, count, waits : ndarray of int64 [transfers]
    next_base, next_transfer : ndarray of int64
        Transfers that come after the arrival of each.
    follower_base, follower : ndarray of int64
        Transfers that follow the acknowledgement of each.
    """

    n_pieces: int
    lane_base: Int64Array
    transfer_base: Int64Array
    is_join: npt.NDArray[np.bool_]
    receives: Int64Array
    piece: Int64Array
    count: Int64Array
    waits: Int64Array
    next_base: Int64Array
    next_transfer: Int64Array
    follower_base: Int64Array
    follower: Int64Array


@dataclass(frozen=True, eq=False)
class Patterns:
    """The patterns of a template, one after the other, and which one each rank has.

    Attributes
    ----------
    rank_pattern, rank_piece : ndarray of int64 [ranks]
        Which, and what is added to the pieces of its transfers, modulo the number of pieces.
    n_lanes, receives : ndarray of int64 [patterns]
    lane_transfers, lane_joins : ndarray of int64 [lanes]
    lane : ndarray of int64 [transfers]
        Of the lanes of its pattern.
    piece, count, waits, n_next, n_followers : ndarray of int64 [transfers]
    next_transfer, follower : ndarray of int64
        Of the transfers of the destination's pattern, and of its own.
    """

    rank_pattern: Int64Array
    rank_piece: Int64Array
    n_lanes: Int64Array
    receives: Int64Array
    lane_transfers: Int64Array
    lane_joins: Int64Array
    lane: Int64Array
    piece: Int64Array
    count: Int64Array
    waits: Int64Array
    n_next: Int64Array
    next_transfer: Int64Array
    n_followers: Int64Array
    follower: Int64Array


def find_patterns(tables: RankTables) -> Patterns:
    """Return what ranks do, once each.

    Parameters
    ----------
    tables : RankTables

    Returns
    -------
    Patterns
    """
    n_ranks = len(tables.receives)
    lane_transfers = lengths(tables.transfer_base)
    transfer_base = tables.transfer_base[tables.lane_base]
    rank = np.repeat(np.arange(n_ranks), lengths(transfer_base))
    is_join = np.repeat(tables.is_join, lane_transfers)
    piece, first_piece = _relative(tables, rank, is_join, n_ranks)
    by_lane = (lane_transfers, tables.is_join.astype(np.int64))
    local_lane = np.repeat(np.arange(len(tables.is_join)), lane_transfers) - tables.lane_base[rank]
    n_next, n_followers = lengths(tables.next_base), lengths(tables.follower_base)
    by_transfer = (
        local_lane,
        piece,
        np.where(is_join, 1, tables.count),
        tables.waits,
        n_next,
        n_followers,
    )
    next_transfer = tables.next_transfer - transfer_base[rank[tables.next_transfer]]
    follower = tables.follower - transfer_base[rank[tables.follower]]
    next_base, follower_base = tables.next_base[transfer_base], tables.follower_base[transfer_base]
    parts = [
        *((tables.lane_base, each) for each in by_lane),
        *((transfer_base, each) for each in by_transfer),
        (next_base, next_transfer),
        (follower_base, follower),
    ]
    pattern, example = _equal(parts, tables.receives)
    lanes, transfers, then, followers = (
        expand_ranges(base[example], lengths(base)[example])
        for base in (tables.lane_base, transfer_base, next_base, follower_base)
    )
    columns = [each[transfers] for each in by_transfer]
    return Patterns(
        rank_pattern=pattern,
        rank_piece=first_piece,
        n_lanes=lengths(tables.lane_base)[example],
        receives=tables.receives[example],
        lane_transfers=by_lane[0][lanes],
        lane_joins=by_lane[1][lanes],
        lane=columns[0],
        piece=columns[1],
        count=columns[2],
        waits=columns[3],
        n_next=columns[4],
        next_transfer=next_transfer[then],
        n_followers=columns[5],
        follower=follower[followers],
    )


def _relative(
    tables: RankTables, rank: Int64Array, is_join: npt.NDArray[np.bool_], n_ranks: int
) -> tuple[Int64Array, Int64Array]:
    """Pieces as so many further than that of the first transfer of the same rank; and the pieces of these."""
    sends = np.flatnonzero(~is_join)
    first_piece = np.zeros(n_ranks, dtype=np.int64)
    first_piece[rank[sends[::-1]]] = tables.piece[sends[::-1]]
    piece = (tables.piece - first_piece[rank]) % tables.n_pieces
    piece[is_join] = 0
    return piece, first_piece


def _equal(parts: list[tuple[Int64Array, Int64Array]], receives: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Number ranks by what all their columns hold; and say which rank is the first of each number."""
    numbers: dict[tuple[bytes | int, ...], int] = {}
    pattern = np.empty(len(receives), dtype=np.int64)
    example: list[int] = []
    narrow = [(base.tolist(), values.astype(np.uint32)) for base, values in parts]
    for rank, received in enumerate(receives.tolist()):
        key = (received, *(values[base[rank] : base[rank + 1]].tobytes() for base, values in narrow))
        if key not in numbers:
            numbers[key] = len(example)
            example.append(rank)
        pattern[rank] = numbers[key]
    return pattern, np.array(example, dtype=np.int64)
