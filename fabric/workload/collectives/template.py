"""`Template`: one collective algorithm on n ranks as a table of transfers.

A template says who sends which part of the data to whom, and what must have arrived first. It knows no
bytes, hosts or times, so one template serves every operation of that algorithm on that many ranks.

*Data.* The logical vector of every rank is cut into `n_pieces` pieces. A transfer carries the pieces
`[piece, piece + count)` of its source to its destination, which adds them to what it has (`reduce`) or
stores them. What it carries is what its source had at the beginning, with those arrivals of `after`
applied that concern the same pieces, in the order of the table. So `after` names *every* arrival whose
data a transfer carries; a template then means the same whatever the timing, and can be checked as data
(`fabric.workload.collectives.check`).

*Order.* What a transfer waits for stands before it in the table, so no template waits for itself.
Transfers of one source, destination and channel go in the order of the table.

*Own sends.* A rank that sends to several others may do so at once, or wait until one is over: `follows` names
a transfer of the same source that must have been acknowledged first.

*Joins.* A row whose source is its destination moves nothing and takes no time: it arrives when all that
it waits for has arrived. It stands for "all of these" where many transfers wait for the same many.

*Reducers.* Ranks from `n_ranks` on are reducers: places in switches that add up what they receive and
contribute nothing of their own.

*Blocks.* Where messages are made of parts that do not lie side by side (Bruck, rail-aligned
all-to-all), a piece is a list of blocks, and it is the `n_blocks` blocks into which the vector is cut.
Without such lists, block and piece are the same.

What a block is, by collective: in all-gather, reduce-scatter, gather and scatter on n ranks the blocks
`[r q, (r+1) q)` with `q = n_blocks / n` are those of rank r. In all-to-all, blocks `[j q, (j+1) q)` of a
rank are those for the rank at distance j: digit by digit in the mixed radix `grid` (first digit slowest),
that is the rank's own number plus j. In all-to-all-v, block `s n + d` is what rank s has for rank d.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import expand_ranges, lengths
from fabric.workload.collectives.rotation import Rotation
from fabric.workload.collectives.verify import MOST_RANKS, NOTHING, verify_numbers, verify_rows

__all__ = ["MOST_RANKS", "NOTHING", "Template", "even_sizes"]

U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

ROWS = frozenset(
    ("source", "destination", "piece", "count", "channel", "reduce", "step", "after_base", "after")
)
"""Columns that a rotation makes."""

MOST_CHANNELS = 256
LARGEST_BYTES = 2**62


@dataclass(frozen=True, eq=False)
class Template:
    """Transfers of a collective algorithm, in an order in which they can happen.

    Its arrays are made read-only.

    Attributes
    ----------
    name : str
        Of the algorithm ("ring").
    collective : str
        Key of `fabric.workload.collectives.kinds.COLLECTIVES`, or "custom".
    n_ranks, n_pieces : int
    source, destination : ndarray of uint32 [transfers]
        Ranks; from `n_ranks` on, reducers. Equal for joins.
    piece, count : ndarray of uint32 [transfers]
        The pieces `[piece, piece + count)`.
    channel : ndarray of uint8 [transfers]
        Which of the connections between the two ranks.
    reduce : ndarray of uint8 [transfers]
        1: the destination adds what arrives to what it has; 0: it stores it.
    step : ndarray of uint32 [transfers]
        When it happens if every step waits for the one before; for explanations and pictures.
    after_base : ndarray of uint32 [transfers + 1]
    after : ndarray of uint32
        Transfer t starts when `after[after_base[t] : after_base[t + 1]]` have arrived at its source.
    n_reducers : int
    root : int
        The rank that has or gets the data in broadcast, reduce, gather and scatter.
    block_base : ndarray of uint32 [pieces + 1], or None
    block : ndarray of uint32, or None
        Piece p consists of `block[block_base[p] : block_base[p + 1]]`.
    n_blocks : int
        0: pieces are blocks, `n_pieces` of them.
    grid : tuple of int
        Of an all-to-all: the mixed radix of its distances; empty: one digit.
    follows : ndarray of uint32 [transfers], or None
        Transfer of the same source that must have been acknowledged first; `NOTHING`: none. None: for all.
    rotation : Rotation or None
        What the rows from `source` to `after` were made of, or will be when they are asked for (`rotated`).
    """

    name: str
    collective: str
    n_ranks: int
    n_pieces: int
    source: U32
    destination: U32
    piece: U32
    count: U32
    channel: U8
    reduce: U8
    step: U32
    after_base: U32
    after: U32
    n_reducers: int = 0
    root: int = 0
    block_base: U32 | None = None
    block: U32 | None = None
    n_blocks: int = 0
    grid: tuple[int, ...] = field(default=())
    follows: U32 | None = None
    rotation: Rotation | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for column in fields(self):
            values = getattr(self, column.name)
            if isinstance(values, np.ndarray):
                values.flags.writeable = False
        if not self.n_blocks:
            object.__setattr__(self, "n_blocks", self.n_pieces)
        if not self.grid:
            object.__setattr__(self, "grid", (self.n_ranks,))

    @classmethod
    def rotated(cls, name: str, collective: str, rotation: Rotation) -> Template:
        """Return a template whose rows are those of a rotation, and are made when they are asked for."""
        template = object.__new__(cls)
        given = {"name": name, "collective": collective, "rotation": rotation}
        counts = dict.fromkeys(("n_ranks", "n_pieces", "n_blocks"), rotation.n_ranks)
        for key, value in {**given, **counts, "grid": (rotation.n_ranks,)}.items():
            object.__setattr__(template, key, value)
        verify_numbers(template)
        return template

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Columns of a rotation, which come to be all together."""
            if self.rotation is None or name not in ROWS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            for key, values in self.rotation.columns().items():
                values.flags.writeable = False
                object.__setattr__(self, key, values)
            return vars(self)[name]

    def __len__(self) -> int:
        if self.rotation is not None:
            return len(self.rotation) * self.n_ranks
        return len(self.source)

    @property
    def n_messages(self) -> int:
        """Transfers from one rank to another."""
        if self.rotation is not None:
            return len(self)
        return int(np.count_nonzero(self.source != self.destination))

    @property
    def n_steps(self) -> int:
        """Steps of the algorithm."""
        if self.rotation is not None:
            return int(self.rotation.step.max(initial=-1)) + 1
        return int(self.step.max()) + 1 if len(self) else 0

    @property
    def nbytes(self) -> int:
        """Memory of the table, as far as it has been made."""
        values = [*vars(self).values(), *(vars(self.rotation).values() if self.rotation else ())]
        return sum(array.nbytes for array in values if isinstance(array, np.ndarray))

    def waits(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Pairs (transfer, transfer that it waits for), in the order of the table."""
        each = lengths(self.after_base)
        return np.repeat(np.arange(len(self), dtype=np.int64), each), self.after.astype(np.int64)

    def piece_bytes(self, total: int | npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Size of every piece.

        Parameters
        ----------
        total : int or array_like of int
            Bytes of the full logical vector of a rank, cut evenly (`even_sizes`) into blocks; or the sizes
            of its parts (of an all-to-all-v: the matrix), each cut evenly into an equal number of blocks.

        Returns
        -------
        ndarray of int64 [pieces]

        Raises
        ------
        SpecError
            If a size is negative, or `n_blocks` is no multiple of their number.

        Examples
        --------
        >>> from fabric.workload.collectives import build_template
        >>> build_template("all_reduce", algorithm="ring", n_ranks=4).piece_bytes(10).tolist()
        [3, 3, 2, 2]
        """
        if isinstance(total, int | np.integer):
            if not 0 <= total <= LARGEST_BYTES:
                raise SpecError("size", int(total), f"0 to {LARGEST_BYTES} bytes")
            if self.block is None:
                return even_sizes(int(total), parts=self.n_pieces)
            base, rest = divmod(int(total), self.n_blocks)
            sizes = base + (self.block < rest).astype(np.int64)
        else:
            sizes = self._cut(np.asarray(total, dtype=np.int64).ravel())
            if self.block is None:
                return sizes
            sizes = sizes[self.block]
        assert self.block_base is not None
        sums = np.concatenate([[0], np.cumsum(sizes)])
        return np.diff(sums[self.block_base])

    def transfer_bytes(self, total: int | npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Bytes that every transfer puts on the wire; 0 for joins.

        Parameters and errors as of `piece_bytes`.

        Examples
        --------
        >>> from fabric.workload.collectives import build_template
        >>> ring = build_template("all_reduce", algorithm="ring", n_ranks=4)
        >>> int(ring.transfer_bytes(10).sum()) == 10 * 2 * 3
        True
        """
        offset = np.concatenate([[0], np.cumsum(self.piece_bytes(total))])
        sizes = offset[self.piece.astype(np.int64) + self.count] - offset[self.piece]
        return np.where(self.source == self.destination, 0, sizes)

    def blocks_of(
        self, transfers: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Blocks that transfers carry: how many each, and which, one transfer after the other."""
        first = self.piece[transfers].astype(np.int64)
        last = first + self.count[transfers]
        if self.block is None or self.block_base is None:
            return last - first, expand_ranges(first, last - first)
        low = self.block_base[first].astype(np.int64)
        counts = self.block_base[last].astype(np.int64) - low
        return counts, self.block[expand_ranges(low, counts)].astype(np.int64)

    def verify(self) -> Template:
        """Return itself, having checked what the class says of its columns.

        Raises
        ------
        SpecError
            Naming the template, the column and the first transfer that is wrong.
        """
        verify_numbers(self)
        verify_rows(self)
        return self

    def _cut(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sizes of blocks from sizes of equally many parts of the vector."""
        parts = len(sizes)
        if not parts or self.n_blocks % parts:
            raise SpecError(
                "sizes", parts, f"one size for each of {self.n_blocks} blocks, or a divisor of them"
            )
        if (sizes < 0).any():
            raise SpecError("sizes", int(sizes.min()), "sizes of at least 0 bytes")
        each = self.n_blocks // parts
        base, rest = np.divmod(sizes, each)
        return (base[:, np.newaxis] + (np.arange(each) < rest[:, np.newaxis])).ravel()


def even_sizes(total: int, *, parts: int) -> npt.NDArray[np.int64]:
    """Cut bytes into parts that differ by at most one: the first `total % parts` are one byte longer.

    Examples
    --------
    >>> even_sizes(10, parts=4).tolist(), even_sizes(2, parts=3).tolist()
    ([3, 3, 2, 2], [1, 1, 0])
    """
    base, rest = divmod(total, parts)
    sizes = np.full(parts, base, dtype=np.int64)
    sizes[:rest] += 1
    return sizes
