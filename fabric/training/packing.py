"""Sequence packing: sequences of different lengths in places of one size.

Without packing each sequence is padded to the place's size. Packed, several share a place and attend to
themselves alone: the padding is gone, the tokens on the wire are nearly all real, but the work of
attention, a sum of squares of lengths, differs from place to place, and a synchronous step waits for the
largest.

Sequences are packed first-fit, in the order given or the longest first (arXiv 2107.02027).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.keyed_hash import draw, purpose_key, uniform

__all__ = ["Packing", "draw_lengths", "pack_sequences"]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LENGTH_PURPOSE = 66
"""Key of the draws of lengths, apart from those of a run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Packing:
    """Sequences in places.

    Attributes
    ----------
    place_tokens : int
        Size of a place.
    length : ndarray of int64 [sequences]
    place : ndarray of int64 [sequences]
        Where each is.
    """

    place_tokens: int
    length: Int64Array
    place: Int64Array

    @property
    def n_places(self) -> int:
        """Places that are used."""
        return int(self.place.max()) + 1 if len(self.place) else 0

    @property
    def tokens(self) -> Int64Array:
        """Real tokens of each place."""
        return np.bincount(self.place, weights=self.length, minlength=self.n_places).astype(np.int64)

    @property
    def padding(self) -> float:
        """Share of the tokens that is padding."""
        whole = self.n_places * self.place_tokens
        return 1 - int(self.length.sum()) / whole if whole else 0.0

    @property
    def attention_pairs(self) -> Int64Array:
        """Pairs of a token and one that it sees, itself included, in each place.

        Attention is causal and inside a sequence.
        """
        pairs = self.length * (self.length + 1) // 2
        return np.bincount(self.place, weights=pairs, minlength=self.n_places).astype(np.int64)

    def rank_work(self, *, n_ranks: int, token_work: float, pair_work: float) -> FloatArray:
        """Work of each rank: places in turn, so much for a token and so much for a pair.

        Raises
        ------
        SpecError
            If there is no rank.
        """
        if n_ranks < 1:
            raise SpecError("n_ranks", n_ranks, "at least 1")
        work = token_work * self.tokens + pair_work * self.attention_pairs
        total = np.bincount(np.arange(self.n_places) % n_ranks, weights=work, minlength=n_ranks)
        return total.astype(np.float64)


def pack_sequences(
    lengths: npt.ArrayLike,
    *,
    place_tokens: int,
    how: Literal["none", "in_order", "longest_first"] = "longest_first",
) -> Packing:
    """Put sequences into places.

    Parameters
    ----------
    lengths : array_like of int [sequences]
        In tokens.
    place_tokens : int
    how : {"none", "in_order", "longest_first"}
        "none": every sequence has a place of its own.

    Raises
    ------
    SpecError
        If a sequence is empty or longer than a place.

    Examples
    --------
    >>> packed = pack_sequences([5, 3, 3, 2, 8], place_tokens=8)
    >>> packed.place.tolist(), packed.tokens.tolist(), packed.attention_pairs.tolist()
    ([1, 1, 2, 2, 0], [8, 8, 5], [36, 21, 9])
    """
    length = np.asarray(lengths)
    if length.ndim != 1 or not np.issubdtype(length.dtype, np.integer):
        raise SpecError("lengths", f"{length.dtype} {length.shape}", "whole numbers in a row")
    wrong = np.flatnonzero((length < 1) | (length > place_tokens))
    if wrong.size:
        raise SpecError(f"lengths[{wrong[0]}]", int(length[wrong[0]]), f"1 to {place_tokens} tokens")
    length = length.astype(np.int64)
    if how == "none":
        return Packing(place_tokens=place_tokens, length=length, place=np.arange(len(length)))
    if how not in ("in_order", "longest_first"):
        raise SpecError("how", how, '"none", "in_order" or "longest_first"')
    order = np.argsort(-length, kind="stable") if how == "longest_first" else np.arange(len(length))
    place = np.empty(len(length), dtype=np.int64)
    free = np.full(len(length), place_tokens, dtype=np.int64)
    used = 0
    for sequence in order.tolist():
        first = int(np.argmax(free[: used + 1] >= length[sequence]))
        place[sequence] = first
        free[first] -= length[sequence]
        used = max(used, first + 1)
    return Packing(place_tokens=place_tokens, length=length, place=place)


def draw_lengths(
    values: npt.ArrayLike, shares: npt.ArrayLike, *, sequences: int, seed: int = 1
) -> Int64Array:
    """Draw lengths from a distribution.

    Parameters
    ----------
    values, shares : array_like [n]
        Lengths in tokens, and how often each occurs.
    sequences : int
    seed : int

    Raises
    ------
    SpecError
        If the shares are none.

    Examples
    --------
    >>> lengths = draw_lengths([512, 8192], [0.9, 0.1], sequences=1000)
    >>> sorted(set(lengths.tolist())), bool(50 < (lengths == 8192).sum() < 150)
    ([512, 8192], True)
    """
    share = np.asarray(shares, dtype=np.float64)
    value = np.asarray(values, dtype=np.int64)
    if share.shape != value.shape or share.ndim != 1 or not (share >= 0).all() or not share.sum() > 0:
        raise SpecError("shares", str(share.shape), f"{len(value)} shares of at least 0, not all 0")
    edge = np.cumsum(share) / share.sum()
    chance = uniform(draw(purpose_key(seed, LENGTH_PURPOSE), np.arange(sequences), 0))
    return value[np.minimum(np.searchsorted(edge, chance, side="right"), len(value) - 1)]
