"""What each collective promises: what ranks have of every block at first, and must have at the end.

Contents are words of 32 bits: sets of contributing ranks in collectives that add up, otherwise one word,
the rank from which the block comes, plus one (0: nothing).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.workload.collectives.arrays import Int64Array, distinct
from fabric.workload.collectives.kinds import COLLECTIVES
from fabric.workload.collectives.template import Template

__all__ = ["WORD_BITS", "Promise", "origins", "promise_of"]

Words = npt.NDArray[np.uint32]
WORD_BITS = 32


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a collective on `n_ranks` ranks must bring about.

    Attributes
    ----------
    collective : str
    n_ranks, n_blocks, root : int
    rank, block : ndarray of int64 [cells]
        What must have its value at the end.
    origin : ndarray of int64 [cells]
        Where it comes from; of no meaning where contributions are added.
    """

    collective: str
    n_ranks: int
    n_blocks: int
    root: int
    rank: Int64Array
    block: Int64Array
    origin: Int64Array

    @property
    def adds(self) -> bool:
        """Whether contents are sets of contributions."""
        return COLLECTIVES[self.collective].reduces

    @property
    def repeats(self) -> bool:
        """Whether a contribution may arrive more than once: news of who has entered a barrier."""
        return self.collective == "barrier"

    @property
    def n_words(self) -> int:
        """Words of a content."""
        return -(-self.n_ranks // WORD_BITS) if self.adds else 1

    def contents(self, rank: Int64Array, block: Int64Array, words: range) -> Words:
        """What ranks have of blocks at the beginning."""
        if self.adds:
            content = np.zeros((len(rank), len(words)), dtype=np.uint32)
            word = rank // WORD_BITS - words.start
            there = np.flatnonzero((rank < self.n_ranks) & (word >= 0) & (word < len(words)))
            bit = (rank[there] % WORD_BITS).astype(np.uint32)
            content[there, word[there]] = np.left_shift(np.uint32(1), bit)
            return content
        holder = rank
        if self.collective in ("all_gather", "gather"):
            holder = block // (self.n_blocks // self.n_ranks)
        elif self.collective in ("broadcast", "scatter"):
            holder = np.full_like(rank, self.root)
        elif self.collective == "all_to_all_v":
            holder = block // (self.n_blocks // self.n_ranks)
        has = (rank == holder) & (rank < self.n_ranks)
        return np.where(has, rank + 1, 0).astype(np.uint32)[:, np.newaxis]

    def expected(self, words: range) -> Words:
        """What the cells must have at the end."""
        if not self.adds:
            return (self.origin + 1).astype(np.uint32)[:, np.newaxis]
        everyone = [min(max(self.n_ranks - word * WORD_BITS, 0), WORD_BITS) for word in words]
        full = np.array([2**bits - 1 for bits in everyone], dtype=np.uint32)
        return np.broadcast_to(full, (len(self.rank), len(full)))


def promise_of(template: Template) -> Promise:
    """Return what a template's collective promises."""
    ranks, blocks, collective = template.n_ranks, template.n_blocks, template.collective
    every_block = np.arange(blocks, dtype=np.int64)
    width = max(blocks // ranks, 1)
    if collective in ("reduce", "gather"):
        rank, block = np.full_like(every_block, template.root), every_block
        origin = block // width
    elif collective in ("reduce_scatter", "scatter"):
        rank, block = every_block // width, every_block
        origin = np.full_like(rank, template.root)
    elif collective == "all_to_all_v":
        block = distinct(template.block.astype(np.int64)) if template.block is not None else every_block
        pair = block // (blocks // ranks**2)
        rank, origin = pair % ranks, pair // ranks
    else:
        rank, block = np.repeat(np.arange(ranks, dtype=np.int64), blocks), np.tile(every_block, ranks)
        origin = np.full_like(rank, template.root)
        if collective == "all_gather":
            origin = block // width
        elif collective == "all_to_all":
            origin = origins(rank, block // width, grid=template.grid)
        elif collective == "send_recv":
            origin = (rank - 1) % ranks
    return Promise(
        collective=collective,
        n_ranks=ranks,
        n_blocks=blocks,
        root=template.root,
        rank=rank,
        block=block,
        origin=origin,
    )


def origins(rank: Int64Array, distance: Int64Array, *, grid: tuple[int, ...]) -> Int64Array:
    """Ranks from which `rank` is `distance` away, digit by digit in the mixed radix `grid`.

    Examples
    --------
    >>> origins(np.array([0, 1]), np.array([1, 1]), grid=(4,)).tolist()
    [3, 0]
    >>> origins(np.array([0]), np.array([3]), grid=(2, 2)).tolist()
    [3]
    """
    origin = np.zeros_like(rank)
    place = 1
    for radix in reversed(grid):
        digit = (rank // place - distance // place) % radix
        origin += digit * place
        place *= radix
    return origin
