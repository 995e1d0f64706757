"""Templates lane by lane.

Transfers of one source, destination and channel are a lane. Transfers are put in the order of the rank that
sends them and of their lane (lanes in the order in which the table first uses them, the transfers of one as
they stand there), so that what a rank does is one range; each join has a lane to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.lowering.patterns import RankTables
from fabric.workload.collectives import Template
from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.collectives.template import NOTHING

__all__ = ["Lanes", "inverse", "lanes_of", "rank_tables"]


@dataclass(frozen=True, eq=False)
class Lanes:
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


def lanes_of(template: Template) -> Lanes:
    n_ranks, rows = template.n_ranks + template.n_reducers, len(template)
    source, destination = template.source.astype(np.int64), template.destination.astype(np.int64)
    channel = template.channel.astype(np.int64)
    key = (source * n_ranks + destination) << 8 | channel
    joins = np.flatnonzero(source == destination)
    key[joins] = (n_ranks * n_ranks << 8) + joins
    _, first, lane = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, source[first]))
    first, lane = first[order], inverse(order)[lane.ravel()]
    by_lane = np.argsort(lane, kind="stable")
    number = inverse(by_lane)
    waiting, before = template.waits()
    waiting, before = number[waiting], number[before]
    pairs = np.lexsort((waiting, before))
    follower, first_of_two = _follows(template, number)
    return Lanes(
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


def rank_tables(lanes: Lanes) -> RankTables:
    """A template's lanes as what each of its ranks does."""
    return RankTables(
        lanes.n_pieces,
        lane_base=bases(np.bincount(lanes.source, minlength=lanes.n_ranks)),
        transfer_base=bases(np.bincount(lanes.transfer_lane, minlength=len(lanes.source))),
        is_join=lanes.is_join,
        receives=_receives(lanes),
        piece=lanes.piece,
        count=lanes.count,
        waits=lanes.waits,
        next_base=lanes.next_base,
        next_transfer=lanes.next_transfer,
        follower_base=lanes.follower_base,
        follower=lanes.follower,
    )


def _receives(lanes: Lanes) -> Int64Array:
    """Transfers from other ranks to each rank."""
    to = np.where(lanes.is_join, lanes.n_ranks, lanes.destination)[lanes.transfer_lane]
    return np.bincount(to, minlength=lanes.n_ranks + 1)[: lanes.n_ranks]


def inverse(order: Int64Array) -> Int64Array:
    """Where each number stands in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
