"""Templates made of templates: backwards, one after the other, and the same in many groups.

A reduction is a broadcast backwards, a reduce-scatter an all-gather backwards; an all-reduce is a
reduce-scatter and then an all-gather, or a reduction and then a broadcast. Hierarchical algorithms run a
small template in many groups of ranks at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array, bases, expand_ranges, lengths, renumbered
from fabric.workload.collectives.rows import csr_of_pairs, joins_pay
from fabric.workload.collectives.template import NOTHING, Template

__all__ = ["backwards", "in_groups", "then"]


def backwards(template: Template, *, collective: str, name: str | None = None) -> Template:
    """Turn every transfer around and the order with it.

    What was copied to many is then collected from them: an all-gather becomes a reduce-scatter, a broadcast
    a reduce, a scatter a gather. What a rank sends one after the other arrives so, and nothing follows.

    Parameters
    ----------
    template : Template
    collective : str
        What the result does: "reduce_scatter" and "reduce" add up, "gather" stores.
    name : str, optional
        Of the result; the template's.
    """
    rows = len(template)
    transfer, before = template.waits()
    base, after = csr_of_pairs(*_ascending(rows - 1 - before, rows - 1 - transfer), rows=rows)
    last = template.n_steps - 1
    return replace(
        template,
        name=name or template.name,
        collective=collective,
        source=template.destination[::-1].copy(),
        destination=template.source[::-1].copy(),
        piece=template.piece[::-1].copy(),
        count=template.count[::-1].copy(),
        channel=template.channel[::-1].copy(),
        reduce=np.full(rows, collective != "gather", dtype=np.uint8),
        step=(last - template.step.astype(np.int64))[::-1].astype(np.uint32),
        after_base=base.astype(np.uint32),
        after=after.astype(np.uint32),
        follows=None,
    ).verify()


def then(first: Template, second: Template, *, collective: str, name: str) -> Template:
    """Run `second` on what `first` leaves behind.

    A transfer of `second` waits for every arrival of `first` on its pieces, unless it only passes on what
    was stored in `second`; for many such arrivals a join stands. Nothing is expanded to single pieces.

    Parameters
    ----------
    first, second : Template
        On the same ranks and pieces, without lists of blocks.
    collective, name : str
        Of the result.
    """
    if first.n_pieces != second.n_pieces or first.n_ranks != second.n_ranks:
        raise SpecError(
            "second", second.n_pieces, f"{first.n_pieces} pieces on {first.n_ranks} ranks, as first"
        )
    low, high, joined = _needs(first, second)
    joins = len(joined.rank)
    shift = len(first) + joins
    transfer, before = second.waits()
    own, earlier = first.waits()
    base, after = csr_of_pairs(
        *_ascending(
            np.concatenate([own, high, transfer + shift]), np.concatenate([earlier, low, before + shift])
        ),
        rows=shift + len(second),
    )
    zeros = np.zeros(joins, dtype=np.int64)

    def column(key: str, join: Int64Array, shift: int = 0) -> Int64Array:
        parts = (getattr(first, key).astype(np.int64), join, getattr(second, key).astype(np.int64) + shift)
        return np.concatenate(parts)

    return replace(
        first,
        name=name,
        collective=collective,
        n_reducers=max(first.n_reducers, second.n_reducers),
        source=column("source", joined.rank).astype(np.uint32),
        destination=column("destination", joined.rank).astype(np.uint32),
        piece=column("piece", joined.low).astype(np.uint32),
        count=column("count", joined.high - joined.low).astype(np.uint32),
        channel=column("channel", zeros).astype(np.uint8),
        reduce=column("reduce", zeros).astype(np.uint8),
        step=column("step", zeros + max(first.n_steps - 1, 0), first.n_steps).astype(np.uint32),
        after_base=base.astype(np.uint32),
        after=after.astype(np.uint32),
        follows=_follows_of_both(first, second, joins),
    ).verify()


def in_groups(
    template: Template, groups: Int64Array, *, n_ranks: int, n_pieces: int, piece: Int64Array, width: int
) -> Template:
    """Run a template in many groups at once.

    Parameters
    ----------
    template : Template
    groups : ndarray of int64 [groups, ranks of the template]
        Ranks of each group.
    n_ranks, n_pieces : int
        Of the result.
    piece : ndarray of int64 [groups]
        Where the data of each group begins.
    width : int
        Pieces of the result that one piece of the template stands for.
    """
    n_groups, rows = len(groups), len(template)
    row = np.repeat(np.arange(rows), n_groups)
    group = np.tile(np.arange(n_groups), rows)
    counts = lengths(template.after_base)[row]
    starts = template.after_base[:-1].astype(np.int64)[row]
    after = template.after[expand_ranges(starts, counts)].astype(np.int64) * n_groups + np.repeat(
        group, counts
    )
    return replace(
        template,
        n_ranks=n_ranks,
        n_pieces=n_pieces,
        n_blocks=n_pieces,
        grid=(n_ranks,),
        source=groups[group, template.source[row]].astype(np.uint32),
        destination=groups[group, template.destination[row]].astype(np.uint32),
        piece=(piece[group] + template.piece[row].astype(np.int64) * width).astype(np.uint32),
        count=(template.count[row] * width).astype(np.uint32),
        channel=template.channel[row],
        reduce=template.reduce[row],
        step=template.step[row],
        after_base=bases(counts).astype(np.uint32),
        after=after.astype(np.uint32),
        follows=renumbered(template.follows, row, lambda each: each * n_groups + group),
    )


def _follows_of_both(first: Template, second: Template, joins: int) -> npt.NDArray[np.uint32] | None:
    if first.follows is None and second.follows is None:
        return None
    shift = len(first) + joins
    one, two = (
        np.full(len(each), NOTHING, dtype=np.uint32) if each.follows is None else each.follows
        for each in (first, second)
    )
    later = renumbered(two, np.arange(len(two)), lambda each: each + shift)
    assert later is not None
    return np.concatenate([one, np.full(joins, NOTHING, dtype=np.uint32), later])


@dataclass(frozen=True, kw_only=True)
class _Ranges:
    """Pieces `[low, high)` of ranks."""

    rank: Int64Array
    low: Int64Array
    high: Int64Array

    def __getitem__(self, which: npt.NDArray[Any]) -> _Ranges:
        return _Ranges(rank=self.rank[which], low=self.low[which], high=self.high[which])


def _needs(first: Template, second: Template) -> tuple[Int64Array, Int64Array, _Ranges]:
    """Waits of `second` for `first`, pairs (before, transfer) of rows of the result, and the joins."""
    write, written = _writes(first)
    reader, reads = _own_reads(second)
    of, reads = _distinct(reads)
    base = np.searchsorted(written.rank, np.arange(first.n_ranks + first.n_reducers + 1))
    low = base[reads.rank]
    count = base[reads.rank + 1] - low
    read = np.repeat(np.arange(len(count), dtype=np.int64), count)
    place = expand_ranges(low, count)
    meets = (written.low[place] < reads.high[read]) & (reads.low[read] < written.high[place])
    read, before = read[meets], write[place[meets]]
    needed = np.bincount(read, minlength=len(count))
    many = joins_pay(needed, np.bincount(of, minlength=len(count)))
    join = np.cumsum(many) - 1 + len(first)
    shift = len(first) + int(many.sum())
    reader_of = np.argsort(of, kind="stable")
    readers = bases(np.bincount(of, minlength=len(count)))
    few = ~many[read]
    times = np.diff(readers)[read[few]]
    waits = many[of]
    return (
        np.concatenate([before[many[read]], join[of[waits]], np.repeat(before[few], times)]),
        np.concatenate(
            [
                join[read[many[read]]],
                reader[waits] + shift,
                reader[reader_of[expand_ranges(readers[read[few]], times)]] + shift,
            ]
        ),
        reads[many],
    )


def _writes(first: Template) -> tuple[Int64Array, _Ranges]:
    """Arrivals, by rank and in order, without those on which the same pieces were stored later."""
    rank, low = first.destination.astype(np.int64), first.piece.astype(np.int64)
    high = low + first.count
    order = np.lexsort((np.arange(len(first)), high, low, rank))
    if len(order):
        key = np.stack([rank, low, high])[:, order]
        starts = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
        index = np.arange(len(order))
        last = np.maximum.reduceat(np.where(first.reduce[order] == 0, index, -1), starts)
        order = order[index >= np.repeat(last, np.diff(np.append(starts, len(order))))]
        order = order[np.lexsort((order, rank[order]))]
    return order, _Ranges(rank=rank[order], low=low[order], high=high[order])


def _own_reads(second: Template) -> tuple[Int64Array, _Ranges]:
    """Transfers that carry what was there before `second`: not all of it was stored by arrivals in it."""
    after, before = second.waits()
    stored = second.reduce[before] == 0
    after, before = after[stored], before[stored]
    low = second.piece.astype(np.int64)
    high = low + second.count
    common = np.minimum(high[after], high[before]) - np.maximum(low[after], low[before])
    replaced = np.zeros(len(second), dtype=np.int64)
    np.add.at(replaced, after, np.maximum(common, 0))
    own = np.flatnonzero(replaced < second.count)
    return own, _Ranges(rank=second.source[own].astype(np.int64), low=low[own], high=high[own])


def _distinct(ranges: _Ranges) -> tuple[Int64Array, _Ranges]:
    """Which distinct range each is, and the distinct ranges, by rank."""
    order = np.lexsort((ranges.high, ranges.low, ranges.rank))
    each = ranges[order]
    differs = (np.diff(each.rank) != 0) | (np.diff(each.low) != 0) | (np.diff(each.high) != 0)
    first = np.append(np.ones(min(len(order), 1), dtype=np.bool_), differs)
    of = np.empty(len(order), dtype=np.int64)
    of[order] = np.cumsum(first) - 1
    return of, each[first]


def _ascending(transfer: Int64Array, before: Int64Array) -> tuple[Int64Array, Int64Array]:
    order = np.lexsort((before, transfer))
    return transfer[order], before[order]
