"""Templates lane by lane.

Transfers of one source, destination and channel are a lane. Transfers are put in the order of the rank that
sends them and of their lane (lanes in the order in which the table first uses them, the transfers of one as
they stand there), so that what a rank does is one range; each join has a lane to itself. What ranks do on
their lanes is kept as patterns (`patterns.py`); of a rotation it is one, and no table of all rows is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.lowering.patterns import Patterns, RankTables, find_patterns
from fabric.workload.collectives import Template
from fabric.workload.collectives.arrays import Int64Array, bases, expand_ranges, lengths
from fabric.workload.collectives.rotation import Rotation
from fabric.workload.collectives.template import NOTHING

__all__ = ["CELLS", "Lanes", "inverse", "lanes_of"]

CELLS = 1 << 17
"""Of temporary tables of operations and transfers."""


@dataclass(frozen=True, eq=False)
class Lanes:
    """A template lane by lane, numbered from 0.

    Attributes
    ----------
    n_ranks, n_pieces : int
        Reducers are ranks.
    source, destination, channel : ndarray of int64 [lanes]
        Ascending by source; of joins, on which nothing is sent, the destination is the source.
    patterns : Patterns
        What the ranks do on their lanes.
    """

    n_ranks: int
    n_pieces: int
    source: Int64Array
    destination: Int64Array
    channel: Int64Array
    patterns: Patterns

    @property
    def is_join(self) -> npt.NDArray[np.bool_]:
        """Lanes on which nothing is sent."""
        return np.asarray(self.source == self.destination)

    @property
    def per_rank(self) -> Int64Array:
        """How many lanes each rank has."""
        return np.bincount(self.source, minlength=self.n_ranks)

    def transfers(self) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        """All transfers, of some ranks at a time: their lanes, first pieces and how many each carries."""
        patterns, lane_base = self.patterns, bases(self.per_rank)
        base = bases(patterns.lane_transfers)[bases(patterns.n_lanes)]
        sends = lengths(base)[patterns.rank_pattern]
        blocks = np.searchsorted(np.cumsum(sends), np.arange(CELLS, int(sends.sum()), CELLS), side="right")
        for ranks in np.split(np.arange(self.n_ranks), np.unique(blocks)):
            count = sends[ranks]
            transfer = expand_ranges(base[patterns.rank_pattern[ranks]], count)
            lane = patterns.lane[transfer] + np.repeat(lane_base[ranks], count)
            piece = patterns.piece[transfer] + np.repeat(patterns.rank_piece[ranks], count)
            yield lane, piece % self.n_pieces, patterns.count[transfer]


def lanes_of(template: Template) -> Lanes:
    """Return a template lane by lane."""
    if template.rotation is not None:
        return _lanes_of_rotation(template.rotation)
    n_ranks = template.n_ranks + template.n_reducers
    source, destination = template.source.astype(np.int64), template.destination.astype(np.int64)
    channel = template.channel.astype(np.int64)
    key = (source * n_ranks + destination) << 8 | channel
    joins = np.flatnonzero(source == destination)
    key[joins] = (n_ranks * n_ranks << 8) + joins
    _, first, lane = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, source[first]))
    first, lane = first[order], inverse(order)[lane.ravel()]
    ends = source[first], destination[first]
    tables = _rank_tables(template, *ends, lane)
    return Lanes(n_ranks, template.n_pieces, *ends, channel[first], find_patterns(tables))


def _rank_tables(
    template: Template, source: Int64Array, destination: Int64Array, lane: Int64Array
) -> RankTables:
    """What each rank of a template does, from the ends of its lanes and the lane of each transfer."""
    n_ranks, rows = template.n_ranks + template.n_reducers, len(template)
    by_lane = np.argsort(lane, kind="stable")
    number = inverse(by_lane)
    waiting, before = template.waits()
    waiting, before = number[waiting], number[before]
    pairs = np.lexsort((waiting, before))
    follower, first_of_two = _follows(template, number)
    is_join = source == destination
    to = np.where(is_join, n_ranks, destination)[lane]
    return RankTables(
        template.n_pieces,
        lane_base=bases(np.bincount(source, minlength=n_ranks)),
        transfer_base=bases(np.bincount(lane, minlength=len(source))),
        is_join=is_join,
        receives=np.bincount(to, minlength=n_ranks + 1)[:n_ranks],
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


def _lanes_of_rotation(rotation: Rotation) -> Lanes:
    """One pattern, that of rank 0; the others have its pieces so many further on."""
    count, rank = len(rotation), np.arange(rotation.n_ranks)
    _, first, lane = np.unique(rotation.distance, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    first, lane = first[order], inverse(order)[lane.ravel()]
    by_lane = np.argsort(lane, kind="stable")
    number, piece = inverse(by_lane), rotation.piece[by_lane]
    waits = rotation.after >= 0
    waiting, before = number[waits], number[rotation.after[waits]]
    nothing = np.zeros(count, dtype=np.int64)
    first_piece = int(piece[0]) if count else 0
    patterns = Patterns(
        rank_pattern=np.zeros_like(rank),
        rank_piece=(first_piece + rank) % rotation.n_ranks if count else np.zeros_like(rank),
        n_lanes=np.array([len(first)]),
        receives=np.array([count]),
        lane_transfers=np.bincount(lane, minlength=len(first)),
        lane_joins=np.zeros(len(first), dtype=np.int64),
        lane=lane[by_lane],
        piece=(piece - first_piece) % rotation.n_ranks,
        count=nothing + 1,
        waits=waits[by_lane].astype(np.int64),
        n_next=np.bincount(before, minlength=count),
        next_transfer=waiting[np.lexsort((waiting, before))],
        n_followers=nothing,
        follower=nothing[:0],
    )
    source = np.repeat(rank, len(first))
    destination = (source + np.tile(rotation.distance[first], rotation.n_ranks)) % rotation.n_ranks
    return Lanes(rotation.n_ranks, rotation.n_ranks, source, destination, np.zeros_like(source), patterns)


def inverse(order: Int64Array) -> Int64Array:
    """Where each number stands in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
