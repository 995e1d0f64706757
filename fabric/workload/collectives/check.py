"""Check of a template as data: what every rank ends with, and that this is what the collective promises.

The template is interpreted symbolically. A **unit** is one block of one transfer. What it carries is a set
of contributions (collectives that reduce) or where the block comes from (those that move data), and follows
from the units that it waits for, as the class `Template` says; so it does not depend on any timing. At the
end every rank has what it had, with all that arrived applied in the order of the table.

Found are: a rank that sends what it does not have, contributions that are added twice, a rank that ends
with too little, too much or with another block, and data that a rank gets although it has it.

Sets are bits, exact, a few words at a time so that memory stays bounded; units are handled generation by
generation with arrays: a ring all-reduce on 1,000 ranks takes some seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.workload.collectives.arrays import Int64Array, bases, expand_ranges, lengths
from fabric.workload.collectives.levels import generations
from fabric.workload.collectives.promise import WORD_BITS, Promise, promise_of
from fabric.workload.collectives.template import Template

__all__ = ["check_template"]

PASS_WORDS = 2**23
"""Words of all units that one pass may hold."""

Words = npt.NDArray[np.uint32]


def check_template(template: Template, *, redundant: bool = False) -> None:
    """Prove that a template does what its collective promises.

    Parameters
    ----------
    template : Template
        Of any collective but "custom", which promises nothing.
    redundant : bool
        Accept that ranks get what they already have, as in a broadcast by scatter and all-gather.

    Raises
    ------
    SpecError
        Naming rank, block and transfer that are wrong; or the column, if the table is none.

    Examples
    --------
    >>> from fabric.workload.collectives import build_template
    >>> check_template(build_template("all_reduce", algorithm="double_binary_tree", n_ranks=7))
    """
    template.verify()
    if template.collective == "custom":
        raise SpecError(_path(template), "custom", "a collective that promises something")
    promise = promise_of(template)
    if not promise.adds and template.reduce.any():
        row = int(np.flatnonzero(template.reduce)[0])
        raise SpecError(
            f"{_path(template)}: reduce[{row}]", 1, f"0, since {template.collective} adds nothing up"
        )
    units = _units(template)
    ends = _ends(template, units, promise)
    each = max(1, PASS_WORDS // max(len(units.block), 1))
    seen = _Seen(
        carries=np.zeros(len(units.block), dtype=np.bool_),
        whole=np.ones(len(ends.arrival), dtype=np.bool_),
        had=np.ones(len(ends.rank), dtype=np.bool_),
        complete=np.ones(len(ends.before.place), dtype=np.bool_),
    )
    for first in range(0, promise.n_words, each):
        words = range(first, min(first + each, promise.n_words))
        _check_pass(template, units, ends, promise, words, seen)
    if not (promise.repeats or redundant):
        _refuse_repeats(template, ends, seen)


@dataclass(frozen=True, kw_only=True)
class _Fold:
    """How contents come about: of unit or cell `place[i]` by `part[base[i]:base[i+1]]`, units that arrive."""

    place: Int64Array
    base: Int64Array
    part: Int64Array
    keeps_own: npt.NDArray[np.bool_]
    """Whether what was there at the beginning stays; by place."""


@dataclass(frozen=True, kw_only=True)
class _Units:
    """Units in the order of generations."""

    transfer: Int64Array
    block: Int64Array
    generation_base: Int64Array
    fold: _Fold
    position: Int64Array
    """Where each unit, in the order of the table, stands here."""


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """Contents that the collective promises: cells (rank, block) and how they come about."""

    rank: Int64Array
    block: Int64Array
    fold: _Fold
    before: _Fold
    """What cells have before the last that another rank stores there; cells without one are not in it."""
    arrival_cell: Int64Array
    arrival: Int64Array
    """Units that arrive from another rank in each cell."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What has been seen in the words of all passes so far."""

    carries: npt.NDArray[np.bool_]
    """Units that carry something."""
    whole: npt.NDArray[np.bool_]
    """Arrivals that bring a cell all that it must end with."""
    had: npt.NDArray[np.bool_]
    """Cells that have it from the beginning."""
    complete: npt.NDArray[np.bool_]
    """Cells, of those in `_Ends.before`, that have it before it is stored there."""


def _units(template: Template) -> _Units:
    every = np.arange(len(template), dtype=np.int64)
    counts, block = template.blocks_of(every)
    transfer = np.repeat(every, counts)
    unit, part = _parts(template, transfer, block, bases(counts))
    step = template.step.astype(np.int64)
    after, before = template.waits()
    level = step if (step[before] < step[after]).all() else generations(template)
    order = np.argsort(level[transfer], kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    by_place = np.argsort(position[unit], kind="stable")
    fold = _fold(
        place=position[unit][by_place],
        part=position[part][by_place],
        stores=template.reduce[transfer[part][by_place]] == 0,
        places=len(order),
    )
    return _Units(
        transfer=transfer[order],
        block=block[order],
        generation_base=bases(np.bincount(level[transfer])) if len(order) else np.zeros(1, dtype=np.int64),
        fold=fold,
        position=position,
    )


def _parts(
    template: Template, transfer: Int64Array, block: Int64Array, unit_base: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Pairs (unit, unit of the same block that it waits for), the second ascending for each first."""
    after, before = template.waits()
    if template.block is None:
        low = np.maximum(template.piece[after], template.piece[before]).astype(np.int64)
        ends = template.piece.astype(np.int64) + template.count
        count = np.maximum(np.minimum(ends[after], ends[before]) - low, 0)
        shift = unit_base[:-1] - template.piece
        return (
            expand_ranges(shift[after] + low, count),
            expand_ranges(shift[before] + low, count),
        )
    key = transfer * template.n_blocks + block
    order = np.argsort(key, kind="stable")
    count = unit_base[after + 1] - unit_base[after]
    unit = expand_ranges(unit_base[after], count)
    wanted = np.repeat(before, count) * template.n_blocks + block[unit]
    place = np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)
    found = key[order[place]] == wanted if len(key) else np.zeros(0, dtype=np.bool_)
    return unit[found], order[place[found]]


def _fold(*, place: Int64Array, part: Int64Array, stores: npt.NDArray[np.bool_], places: int) -> _Fold:
    """What of arrivals, grouped by place and in order, is left: nothing before the last that is stored."""
    keeps_own = np.ones(places, dtype=np.bool_)
    if not len(place):
        return _Fold(place=place, base=np.zeros(1, dtype=np.int64), part=part, keeps_own=keeps_own)
    first = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
    index = np.arange(len(place))
    last_store = np.maximum.reduceat(np.where(stores, index, -1), first)
    group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(place))))
    kept = index >= last_store[group]
    keeps_own[place[first[last_store >= 0]]] = False
    return _Fold(
        place=place[first],
        base=bases(np.bincount(group[kept], minlength=len(first))),
        part=part[kept],
        keeps_own=keeps_own,
    )


def _ends(template: Template, units: _Units, promise: Promise) -> _Ends:
    key = template.destination[units.transfer].astype(np.int64) * template.n_blocks + units.block
    in_table_order = units.position
    by_key = in_table_order[np.argsort(key[in_table_order], kind="stable")]
    wanted = promise.rank * template.n_blocks + promise.block
    low = np.searchsorted(key, wanted, side="left", sorter=by_key)
    count = np.searchsorted(key, wanted, side="right", sorter=by_key) - low
    cell = np.repeat(np.arange(len(wanted), dtype=np.int64), count)
    arrival = by_key[expand_ranges(low, count)]
    transfer = units.transfer[arrival]
    fold = _fold(place=cell, part=arrival, stores=template.reduce[transfer] == 0, places=len(wanted))
    wire = template.source[transfer] != template.destination[transfer]
    return _Ends(
        rank=promise.rank,
        block=promise.block,
        fold=fold,
        before=_before_last_store(template, cell, arrival, transfer, cells=len(wanted)),
        arrival_cell=cell[wire],
        arrival=arrival[wire],
    )


def _before_last_store(
    template: Template, cell: Int64Array, arrival: Int64Array, transfer: Int64Array, *, cells: int
) -> _Fold:
    """What of arrivals in cells comes before the last, if that is one that another rank stores."""
    stores = template.reduce[transfer] == 0
    wire = template.source[transfer] != template.destination[transfer]
    last = np.full(cells, -1, dtype=np.int64)
    last[cell[stores & wire]] = np.flatnonzero(stores & wire)
    earlier = np.arange(len(cell)) < last[cell]
    return _fold(place=cell[earlier], part=arrival[earlier], stores=stores[earlier], places=cells)


def _check_pass(
    template: Template, units: _Units, ends: _Ends, promise: Promise, words: range, seen: _Seen
) -> None:
    """Interpret with these words of the sets, and compare."""
    source = template.source[units.transfer].astype(np.int64)
    content = promise.contents(source, units.block, words)
    content[~units.fold.keeps_own] = 0
    fold = units.fold
    bounds = np.searchsorted(fold.place, units.generation_base)
    disjoint = promise.adds and not promise.repeats
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if low < high:
            place = fold.place[low:high]
            twice = _add(content, content, fold, low, high, disjoint=disjoint)
            if twice >= 0:
                raise _twice(template, units, int(place[twice]))
    silent = np.flatnonzero(~seen.carries)
    seen.carries[silent] = content[silent].any(axis=1)
    if words.stop == promise.n_words:
        _refuse_nothing(template, units, seen)
    final = promise.contents(ends.rank, ends.block, words)
    own = final.copy()
    final[~ends.fold.keeps_own] = 0
    twice = _add(final, content, ends.fold, 0, len(ends.fold.place), disjoint=disjoint)
    if twice >= 0:
        _refuse_end(template, ends, int(ends.fold.place[twice]), "has contributions twice")
    expected = promise.expected(words)
    if not np.array_equal(final, expected):
        wrong = int(np.flatnonzero((final != expected).any(axis=1))[0])
        _refuse_end(template, ends, wrong, _difference(final, expected, promise, wrong, words))
    _see_complete(ends, content, own, expected, seen)
    whole, had = np.flatnonzero(seen.whole), np.flatnonzero(seen.had)
    seen.whole[whole] = (content[ends.arrival[whole]] == expected[ends.arrival_cell[whole]]).all(axis=1)
    seen.had[had] = (own[had] == expected[had]).all(axis=1)


def _see_complete(ends: _Ends, content: Words, own: Words, expected: Words, seen: _Seen) -> None:
    """Keep of the cells in `before` those that have all that they must end with, as far as one can see."""
    left = np.flatnonzero(seen.complete)
    if not left.size:
        return
    fold = ends.before
    cell, count = fold.place[left], lengths(fold.base)[left]
    before = np.where(fold.keeps_own[cell][:, np.newaxis], own[cell], 0).astype(np.uint32)
    some = _Fold(
        place=np.arange(len(left), dtype=np.int64),
        base=bases(count),
        part=fold.part[expand_ranges(fold.base[left], count)],
        keeps_own=fold.keeps_own,
    )
    _add(before, content, some, 0, len(left), disjoint=False)
    seen.complete[left] = (before == expected[cell]).all(axis=1)


def _add(into: Words, content: Words, fold: _Fold, low: int, high: int, *, disjoint: bool) -> int:
    """Add what arrives to some places; return which of them has a contribution twice then, or -1.

    Sums of disjoint sets are their unions; where a contribution is there twice the sum is larger.
    """
    if low == high:
        return -1
    place, first, last = fold.place[low:high], fold.base[low], fold.base[high]
    values = content[fold.part[first:last]]
    total = into[place].astype(np.uint64) if disjoint else None
    if last - first > high - low:
        starts = fold.base[low:high] - first
        if total is not None:
            total += np.add.reduceat(values, starts, axis=0, dtype=np.uint64)
        values = np.bitwise_or.reduceat(values, starts, axis=0)
    elif total is not None:
        total += values
    into[place] |= values
    if total is None:
        return -1
    wrong = total != into[place]
    return int(np.flatnonzero(wrong.any(axis=1))[0]) if wrong.any() else -1


def _twice(template: Template, units: _Units, unit: int) -> SpecError:
    what = f"{_unit(template, units, unit)} carries contributions twice"
    return SpecError(_path(template), Said(what), "each once")


def _refuse_nothing(template: Template, units: _Units, seen: _Seen) -> None:
    empty = np.flatnonzero(~seen.carries)
    if empty.size:
        what = f"{_unit(template, units, int(empty[0]))} carries what its source does not have"
        raise SpecError(_path(template), Said(what), "data that the source has, or that it waits for")


def _refuse_repeats(template: Template, ends: _Ends, seen: _Seen) -> None:
    times = np.bincount(ends.arrival_cell[seen.whole], minlength=len(ends.rank)) + seen.had
    times[ends.before.place[seen.complete]] += 1
    twice = np.flatnonzero(times > 1)
    if twice.size:
        _refuse_end(template, ends, int(twice[0]), "gets what it already has")


def _refuse_end(template: Template, ends: _Ends, cell: int, what: str) -> None:
    where = f"rank {ends.rank[cell]}, block {ends.block[cell]}"
    allowed = f"what {template.collective} promises"
    raise SpecError(_path(template), Said(f"{where}: {what}"), allowed)


def _difference(final: Words, expected: Words, promise: Promise, cell: int, words: range) -> str:
    if not promise.adds:
        have, want = int(final[cell, 0]) - 1, int(expected[cell, 0]) - 1
        return f"ends with {'nothing' if have < 0 else f'that of rank {have}'} instead of that of rank {want}"
    differ = final[cell] ^ expected[cell]
    word = int(np.flatnonzero(differ)[0])
    bit = int(differ[word]) & -int(differ[word])
    rank = words[word] * WORD_BITS + bit.bit_length() - 1
    return f"ends {'with' if int(final[cell, word]) & bit else 'without'} the contribution of rank {rank}"


def _unit(template: Template, units: _Units, unit: int) -> str:
    transfer = int(units.transfer[unit])
    ends = f"{template.source[transfer]} -> {template.destination[transfer]}"
    return f"transfer {transfer} ({ends}, step {template.step[transfer]}), block {units.block[unit]}:"


def _path(template: Template) -> str:
    return f"template {template.collective}/{template.name} on {template.n_ranks} ranks"
