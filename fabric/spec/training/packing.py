"""`SequencePacking`: batches of sequences of different lengths; see `fabric.training.packing`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec

__all__ = ["SequencePacking"]


class SequencePacking(Spec, frozen=True, kw_only=True):
    """Sequences of drawn lengths in places of the job's `sequence` tokens.

    The global batch of the job follows: so many places as the sequences need, filled up to a multiple of what
    the data ranks take at a time.

    Parameters
    ----------
    lengths : tuple of int
        Lengths that occur, in tokens.
    shares : tuple of float
        How often each does.
    sequences : int
        Drawn for one step.
    how : {"none", "in_order", "longest_first"}
        "none": each has a place of its own, padded. Default "longest_first".
    """

    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    sequences: int
    how: Literal["none", "in_order", "longest_first"] = "longest_first"

    def problems(self) -> Iterator[Problem]:
        if not self.lengths or len(self.lengths) != len(self.shares):
            yield "shares", self.shares, f"a share for each of {len(self.lengths)} lengths"
        for index, length in enumerate(self.lengths):
            if length < 1:
                yield f"lengths[{index}]", length, "at least 1"
        if any(share < 0 for share in self.shares) or not sum(self.shares) > 0:
            yield "shares", self.shares, "shares of at least 0, not all 0"
        if self.sequences < 1:
            yield "sequences", self.sequences, "at least 1"
