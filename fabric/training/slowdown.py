"""`Slowdown`: by how much each rank's compute is longer, pass by pass.

Draws are keyed by seed, entry, rank and pass: a rank's depend on no other's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.keyed_hash import draw, purpose_key, uniform
from fabric.spec.training.slowness import Slowness
from fabric.workload.draws import exponential_of_bits

__all__ = ["Slowdown"]

FloatArray = npt.NDArray[np.float64]

SLOWNESS_PURPOSE = 67
"""Key of the draws, apart from those of a run."""

EVERY_PASS = 0xFFFFFFFF
"""In place of a pass, of a draw that holds for all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Slowdown:
    """Factors and pauses.

    Attributes
    ----------
    factor : ndarray of float64 [ranks]
        That hold always.
    drawn : tuple of Slowness
        Entries that draw anew for every pass, with their number as key.
    pauses : mapping of (int, int) to int
        Picoseconds by step and rank.
    windows : tuple of (int, int, int, float)
        Rank, begin and end in picoseconds, factor.
    seed : int
    """

    factor: FloatArray
    drawn: tuple[tuple[int, Slowness], ...] = ()
    pauses: Mapping[tuple[int, int], int] = field(default_factory=dict)
    windows: tuple[tuple[int, int, int, float], ...] = ()
    seed: int = 1

    @classmethod
    def of(cls, factors: Sequence[float] | npt.ArrayLike) -> Slowdown:
        """Factors alone, one a rank.

        Raises
        ------
        SpecError
            If one is no number of at least 0.
        """
        factor = np.asarray(factors, dtype=np.float64)
        if factor.ndim != 1 or not (np.isfinite(factor) & (factor >= 0)).all():
            raise SpecError("slowness", factor.tolist()[:8], "a factor of at least 0 for each rank")
        return cls(factor=factor)

    @classmethod
    def of_entries(cls, entries: Sequence[Slowness], *, n_ranks: int, seed: int) -> Slowdown:
        """What the entries of a training job describe.

        Examples
        --------
        >>> slow = Slowdown.of_entries([Slowness(ranks=[1], factor=1.5)], n_ranks=3, seed=1)
        >>> slow.factor.tolist()
        [1.0, 1.5, 1.0]
        """
        factor = np.ones(n_ranks)
        drawn, pauses, windows = [], {}, []
        for number, one in enumerate(entries):
            ranks = np.arange(n_ranks) if not one.ranks else np.array(one.ranks, dtype=np.int64)
            if one.pause:
                pauses.update({(one.step, int(rank)): int(one.pause) for rank in ranks})
            if one.bounded:
                end = math.inf if one.end is None else int(one.end)
                last = 2**62 if end == math.inf else int(end)
                windows += [(int(rank), int(one.begin or 0), last, one.factor) for rank in ranks]
                continue
            factor[ranks] *= one.factor
            if one.spread and one.per == "rank":
                factor[ranks] *= _draws(one, number, ranks, EVERY_PASS, seed=seed)
            elif one.spread:
                drawn.append((number, one))
        return cls(factor=factor, drawn=tuple(drawn), pauses=pauses, windows=tuple(windows), seed=seed)

    def of_pass(self, ranks: npt.ArrayLike, number: int) -> FloatArray:
        """Factors of ranks in their pass with a number, counted over all steps."""
        chosen = np.asarray(ranks, dtype=np.int64)
        found = self.factor[chosen].copy()
        for key, one in self.drawn:
            own = np.isin(chosen, one.ranks) if one.ranks else np.ones(len(chosen), dtype=np.bool_)
            found[own] *= _draws(one, key, chosen[own], number, seed=self.seed)
        return found


def _draws(one: Slowness, entry: int, ranks: npt.NDArray[np.int64], number: int, *, seed: int) -> FloatArray:
    key = draw(purpose_key(seed, SLOWNESS_PURPOSE), entry, 0)
    bits = draw(key, ranks, number)
    chance = exponential_of_bits(bits) if one.distribution == "exponential" else uniform(bits)
    return np.asarray(1.0 + one.spread * chance, dtype=np.float64)
