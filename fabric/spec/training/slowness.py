"""Ranks that are slower than others: always, by chance, or for a while.

Several entries multiply. A distribution draws a factor of at least 1 for every rank, or anew for every
pass; it is keyed by seed, entry, rank and pass, so one rank's draws depend on no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec, quantity
from fabric.units import Duration

__all__ = ["Slowness"]

LARGEST_FACTOR = 1e6


class Slowness(Spec, frozen=True, kw_only=True):
    """What makes compute take longer.

    Parameters
    ----------
    ranks : tuple of int
        Which; none (default): all.
    factor : float
        Of their compute, at least 0. Default 1.
    spread : float
        Scale of the draws that come on top, at least 0: "exponential" multiplies by 1 + spread * E, E with
        mean 1, "uniform" by 1 + spread * U, U from 0 to 1. Default 0: none.
    distribution : {"exponential", "uniform"}
        Of the draws. Default "exponential".
    per : {"rank", "pass"}
        Whether a rank keeps its draw, or has one for every pass of every step.
    begin, end : Duration, optional
        Simulated time from and until which `factor` holds, for what is computed then; `factor` is then at
        least 1. None (default): always.
    pause : Duration
        The ranks stand still for so long before the first pass of `step`. Default 0.
    step : int
        Of `pause`, counted from 0. Default 0.
    """

    ranks: tuple[int, ...] = ()
    factor: float = 1.0
    spread: float = 0.0
    distribution: Literal["exponential", "uniform"] = "exponential"
    per: Literal["rank", "pass"] = "rank"
    begin: Duration | None = None
    end: Duration | None = None
    pause: Duration = quantity("0ns")
    step: int = 0

    @property
    def bounded(self) -> bool:
        """Whether it holds for a while only."""
        return self.begin is not None or self.end is not None

    def problems(self) -> Iterator[Problem]:
        for index, rank in enumerate(self.ranks):
            if rank < 0:
                yield f"ranks[{index}]", rank, "at least 0"
        for name in ("factor", "spread"):
            if not 0 <= getattr(self, name) <= LARGEST_FACTOR:
                yield name, getattr(self, name), f"from 0 to {LARGEST_FACTOR:g}"
        if self.step < 0:
            yield "step", self.step, "at least 0"
        if self.bounded:
            if self.factor < 1:
                yield "factor", self.factor, "at least 1 between begin and end"
            if self.spread or self.pause:
                yield "begin", self.begin, "a factor alone between begin and end"
            if self.end is not None and self.end <= (self.begin or 0):
                yield "end", self.end, "after begin"
