"""The same algorithm several times side by side: channels, chunks and slices; and several algorithms as one.

NCCL runs a collective over several **channels**, each with a part of the data on connections of its own.
In a channel it goes through the data in **chunks**, as many as its buffers hold at a time, one after the
other; a chunk moves in **slices**, which follow each other within every step, so that a rank forwards one
while the next arrives. Here each is a copy of the algorithm's rows on a part of every piece; the order of
the rows is chunk by chunk, row by row, slice by slice, channel by channel. The parts of a chunk wait for
nothing but their own data: chunks overlap as far as the order on a connection lets them.

Source: NCCL 2 (github.com/NVIDIA/nccl), `src/device/all_reduce.h` and `src/enqueue.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array, bases, distinct, expand_ranges, lengths, renumbered
from fabric.workload.collectives.kinds import COLLECTIVES
from fabric.workload.collectives.template import MOST_CHANNELS, NOTHING, Template

__all__ = ["relabel", "side_by_side", "split"]

MOST_PARTS = 2**20


def split(template: Template, *, channels: int = 1, chunks: int = 1, slices: int = 1) -> Template:
    """Cut every piece into `channels * chunks * slices` parts, each of which goes its way.

    Parameters
    ----------
    template : Template
    channels : int
        Copies on connections of their own.
    chunks : int
        Copies one after the other on the same connections.
    slices : int
        Copies that follow each other within each step.

    Returns
    -------
    Template
        Steps are numbered as if each took the port of a rank for itself: those of a chunk follow the
        one before at the interval in which a rank sends, or receives, all of its messages.

    Raises
    ------
    SpecError
        If a number is not allowed.

    Examples
    --------
    >>> from fabric.workload.collectives import build_template
    >>> chain = build_template("broadcast", algorithm="chain", n_ranks=4)
    >>> split(chain, chunks=5).n_steps  # n - 2 + chunks
    7
    """
    used = int(template.channel.max()) + 1 if len(template) else 1
    for name, value in (("channels", channels), ("chunks", chunks), ("slices", slices)):
        most = MOST_CHANNELS // used if name == "channels" else MOST_PARTS
        if not isinstance(value, int) or not 1 <= value <= most:
            raise SpecError(name, value, f"1 to {most}")
    parts = channels * chunks * slices
    if parts == 1:
        return template
    rows = len(template)
    chunk, row, piece_slice, channel = (
        each.ravel() for each in np.indices((chunks, rows, slices, channels), dtype=np.int64)
    )
    part = (channel * chunks + chunk) * slices + piece_slice
    interval = _interval(template)
    base, after = _copied_waits(template, chunks=chunks, inner=slices * channels)
    step = template.step.astype(np.int64)[row]
    made = replace(
        template,
        n_pieces=template.n_pieces * parts,
        n_blocks=template.n_blocks * parts,
        block_base=None,
        block=None,
        source=template.source[row],
        destination=template.destination[row],
        piece=(template.piece[row] + part * template.n_pieces).astype(np.uint32),
        count=template.count[row],
        channel=(template.channel[row] * channels + channel).astype(np.uint8),
        reduce=template.reduce[row],
        step=(step * slices + piece_slice + chunk * interval * slices).astype(np.uint32),
        after_base=base.astype(np.uint32),
        after=after.astype(np.uint32),
        follows=renumbered(
            template.follows,
            row,
            lambda each: ((chunk * rows + each) * slices + piece_slice) * channels + channel,
        ),
    )
    if template.block is None and not _blocks_matter(template.collective):
        return made.verify()
    return _with_blocks(made, [template] * parts).verify()


def side_by_side(templates: Sequence[Template], *, name: str) -> Template:
    """Run templates of one collective at once, each with its share of the data and channels of its own.

    The shares are in proportion to the blocks of the templates.

    Parameters
    ----------
    templates : sequence of Template
        For the same collective, ranks, reducers and root.
    name : str
        Of the result.
    """
    first = templates[0]
    row_base = bases(np.array([len(each) for each in templates]))
    piece_base = bases(np.array([each.n_pieces for each in templates]))
    channel_base = bases(np.array([int(each.channel.max(initial=0)) + 1 for each in templates]))
    if channel_base[-1] > MOST_CHANNELS:
        raise SpecError("channels", int(channel_base[-1]), f"at most {MOST_CHANNELS}")
    step = np.concatenate([each.step for each in templates])
    order = np.argsort(step, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    counts = np.concatenate([lengths(each.after_base) for each in templates])
    after = np.concatenate([each.after + row_base[i] for i, each in enumerate(templates)]).astype(np.int64)
    starts = bases(counts)

    def column(key: str, shift: Int64Array | None = None) -> Int64Array:
        parts = [getattr(each, key) + (0 if shift is None else shift[i]) for i, each in enumerate(templates)]
        return np.concatenate(parts)[order].astype(np.int64)

    made = replace(
        first,
        name=name,
        n_pieces=int(piece_base[-1]),
        n_blocks=sum(each.n_blocks for each in templates),
        block_base=None,
        block=None,
        source=column("source").astype(np.uint32),
        destination=column("destination").astype(np.uint32),
        piece=column("piece", piece_base).astype(np.uint32),
        count=column("count").astype(np.uint32),
        channel=column("channel", channel_base).astype(np.uint8),
        reduce=column("reduce").astype(np.uint8),
        step=step[order].astype(np.uint32),
        after_base=bases(counts[order]).astype(np.uint32),
        after=place[after[expand_ranges(starts[order], counts[order])]].astype(np.uint32),
        follows=_follows_side_by_side(templates, order, place),
    )
    blocks_as_pieces = all(each.block is None for each in templates)
    if blocks_as_pieces and not _blocks_matter(first.collective):
        return made.verify()
    return _with_blocks(made, templates).verify()


def relabel(template: Template, order: Sequence[int]) -> Template:
    """Give rank i of a template the number `order[i]`; what belongs to a rank goes with it.

    Raises
    ------
    SpecError
        If `order` is not every rank once.
    """
    new = np.asarray(order, dtype=np.int64)
    ranks = template.n_ranks
    if new.shape != (ranks,) or not np.array_equal(np.sort(new), np.arange(ranks)):
        raise SpecError("order", tuple(order), f"every rank from 0 to {ranks - 1} once")
    places = np.concatenate([new, np.arange(ranks, ranks + template.n_reducers)]).astype(np.uint32)
    made = replace(
        template,
        source=places[template.source],
        destination=places[template.destination],
        root=int(new[template.root]),
    )
    if not COLLECTIVES[template.collective].owned:
        return made
    width = template.n_blocks // ranks
    block = np.arange(template.n_blocks) if template.block is None else template.block.astype(np.int64)
    base = np.arange(template.n_pieces + 1) if template.block_base is None else template.block_base
    block = new[block // width] * width + block % width
    return replace(made, block_base=base.astype(np.uint32), block=block.astype(np.uint32))


def _follows_side_by_side(
    templates: Sequence[Template], order: Int64Array, place: Int64Array
) -> npt.NDArray[np.uint32] | None:
    if all(each.follows is None for each in templates):
        return None
    parts, first = [], 0
    for each in templates:
        own = np.full(len(each), NOTHING) if each.follows is None else each.follows.astype(np.int64)
        parts.append(np.where(own == NOTHING, NOTHING, own + first))
        first += len(each)
    return renumbered(np.concatenate(parts), order, lambda each: place[each])


def _interval(template: Template) -> int:
    """Steps in which the busiest rank sends, or receives, what one chunk asks of it."""
    wire = template.source != template.destination
    if not wire.any():
        return 1
    steps = np.int64(template.n_steps)
    busy = []
    for ends in (template.source, template.destination):
        pairs = distinct(ends[wire].astype(np.int64) * steps + template.step[wire])
        busy.append(int(np.bincount(pairs // steps).max()))
    return max(busy)


def _copied_waits(template: Template, *, chunks: int, inner: int) -> tuple[Int64Array, Int64Array]:
    """Waits of copies: each for the same copy of what the original waits for."""
    rows = len(template)
    counts = lengths(template.after_base)
    each = np.repeat(counts, inner)
    starts = np.repeat(template.after_base[:-1].astype(np.int64), inner)
    copy = np.repeat(np.tile(np.arange(inner, dtype=np.int64), rows), each)
    one = template.after[expand_ranges(starts, each)].astype(np.int64) * inner + copy
    shift = np.arange(chunks, dtype=np.int64)[:, np.newaxis] * (rows * inner)
    return bases(np.tile(each, chunks)), (one[np.newaxis, :] + shift).ravel()


def _blocks_matter(collective: str) -> bool:
    """Whether it matters which of the blocks a piece is: where blocks belong to ranks."""
    return COLLECTIVES[collective].owned or collective in ("all_to_all", "all_to_all_v")


def _with_blocks(made: Template, parts: Sequence[Template]) -> Template:
    """Say of which blocks the pieces of parts, one part after the other, consist.

    Blocks of all parts lie rank by rank (distance by distance), in each the parts side by side.
    """
    owners = made.n_ranks if _blocks_matter(made.collective) else 1
    if made.collective == "all_to_all_v":
        owners = made.n_ranks**2
    widths = np.array([each.n_blocks // owners for each in parts], dtype=np.int64)
    place = bases(widths)
    counts, blocks = [], []
    for number, each in enumerate(parts):
        every = (
            np.arange(each.n_pieces, dtype=np.int64) if each.block is None else each.block.astype(np.int64)
        )
        width = int(widths[number])
        blocks.append(every // width * place[-1] + place[number] + every % width)
        ones = np.ones(each.n_pieces, dtype=np.int64)
        counts.append(ones if each.block_base is None else lengths(each.block_base))
    return replace(
        made,
        block_base=bases(np.concatenate(counts)).astype(np.uint32),
        block=np.concatenate(blocks).astype(np.uint32),
    )
