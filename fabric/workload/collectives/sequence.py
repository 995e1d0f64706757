"""Templates made of templates: backwards, one after the other, and the same in many groups.

A reduction is a broadcast backwards, a reduce-scatter an all-gather backwards; an all-reduce is a
reduce-scatter and then an all-gather, or a reduction and then a broadcast. Hierarchical algorithms run a
small template in many groups of ranks at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array, bases, expand_ranges
from fabric.workload.collectives.rows import JOIN_ABOVE, csr_of_pairs
from fabric.workload.collectives.template import Template

__all__ = ["backwards", "in_groups", "then"]


def backwards(template: Template, *, collective: str, name: str | None = None) -> Template:
    """Turn every transfer around and the order with it.

    What was copied to many is then collected from them: an all-gather becomes a reduce-scatter, a broadcast
    a reduce, a scatter a gather.

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
    ).verify()


def then(first: Template, second: Template, *, collective: str, name: str) -> Template:
    """Run `second` on what `first` leaves behind.

    A transfer of `second` waits for every arrival of `first` that its data is made of, unless it passes on
    what arrived in `second`; for many such arrivals a join stands.

    Parameters
    ----------
    first, second : Template
        On the same ranks and pieces, without lists of blocks.
    collective, name : str
        Of the result.
    """
    if first.n_pieces != second.n_pieces or first.n_ranks != second.n_ranks:
        raise SpecError("second", second.n_pieces, f"{first.n_pieces} pieces on {first.n_ranks} ranks, as first")
    low, high, join_rank, join_piece = _needs(first, second)
    joins = len(join_rank)
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
        source=column("source", join_rank).astype(np.uint32),
        destination=column("destination", join_rank).astype(np.uint32),
        piece=column("piece", join_piece).astype(np.uint32),
        count=column("count", zeros + 1).astype(np.uint32),
        channel=column("channel", zeros).astype(np.uint8),
        reduce=column("reduce", zeros).astype(np.uint8),
        step=column("step", zeros + max(first.n_steps - 1, 0), first.n_steps).astype(np.uint32),
        after_base=base.astype(np.uint32),
        after=after.astype(np.uint32),
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
    counts = np.diff(template.after_base.astype(np.int64))[row]
    starts = template.after_base[:-1].astype(np.int64)[row]
    after = template.after[expand_ranges(starts, counts)].astype(np.int64) * n_groups + np.repeat(group, counts)
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
    )


def _needs(
    first: Template, second: Template
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Waits of `second` for `first` as pairs of rows of the result (before, transfer), and the joins for them.

    A **cell** is a piece of a rank. Its writes are the arrivals in `first` from the last that was stored on.
    """
    pieces = first.n_pieces
    write, write_cell = _cells(first, first.destination, pieces)
    order = np.argsort(write_cell, kind="stable")
    write, write_cell = write[order], write_cell[order]
    if len(write):
        starts = np.flatnonzero(np.concatenate([[True], write_cell[1:] != write_cell[:-1]]))
        index = np.arange(len(write))
        last = np.maximum.reduceat(np.where(first.reduce[write] == 0, index, -1), starts)
        kept = index >= np.repeat(last, np.diff(np.append(starts, len(write))))
        write, write_cell = write[kept], write_cell[kept]
    read, read_cell = _own_reads(second, pieces)
    low = np.searchsorted(write_cell, read_cell, side="left")
    count = np.searchsorted(write_cell, read_cell, side="right") - low
    many = count > JOIN_ABOVE
    joined, which = np.unique(read_cell[many], return_inverse=True)
    join_low = np.searchsorted(write_cell, joined, side="left")
    join_count = np.searchsorted(write_cell, joined, side="right") - join_low
    shift = len(first) + len(joined)
    join_row = len(first) + np.arange(len(joined), dtype=np.int64)
    few = ~many
    before = [
        write[expand_ranges(join_low, join_count)],
        join_row[which.ravel()],
        write[expand_ranges(low[few], count[few])],
    ]
    transfer = [np.repeat(join_row, join_count), read[many] + shift, np.repeat(read[few], count[few]) + shift]
    return np.concatenate(before), np.concatenate(transfer), joined // pieces, joined % pieces


def _cells(template: Template, rank: np.ndarray, pieces: int) -> tuple[Int64Array, Int64Array]:
    count = template.count.astype(np.int64)
    transfer = np.repeat(np.arange(len(template), dtype=np.int64), count)
    return transfer, rank.astype(np.int64)[transfer] * pieces + expand_ranges(template.piece.astype(np.int64), count)


def _own_reads(second: Template, pieces: int) -> tuple[Int64Array, Int64Array]:
    """Pairs (transfer, cell) that read what was there before `second`: no arrival in it was stored there."""
    transfer, cell = _cells(second, second.source, pieces)
    after, before = second.waits()
    stored = second.reduce[before] == 0
    after, before = after[stored], before[stored]
    ends = second.piece.astype(np.int64) + second.count
    low = np.maximum(second.piece[after], second.piece[before]).astype(np.int64)
    count = np.maximum(np.minimum(ends[after], ends[before]) - low, 0)
    unit_base = bases(second.count) - np.append(second.piece.astype(np.int64), 0)
    replaced = expand_ranges(unit_base[after] + low, count)
    own = np.ones(len(transfer), dtype=np.bool_)
    own[replaced] = False
    return transfer[own], cell[own]


def _ascending(transfer: Int64Array, before: Int64Array) -> tuple[Int64Array, Int64Array]:
    order = np.lexsort((before, transfer))
    return transfer[order], before[order]
