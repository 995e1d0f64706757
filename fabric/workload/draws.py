"""Random draws of the workload, counter-based: no draw depends on how many others were made.

Each traffic entry has a key made from the seed, its kind and its number among the entries of that
kind. So an entry that is added, removed or renamed changes no draw of an entry of another kind or of
those of its own kind that stand before it. Within an entry a draw is named by a stream (what it is
for), an entity (a host or a flow) and a counter.

Only additions, multiplications and divisions of doubles are used, element by element, and never the
`log` of the C library or of NumPy's vector code, which differ between machines in the last bit: the
same scenario gives the same flows everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from fabric.keyed_hash import Purpose, draw, mix64, purpose_key, uniform

__all__ = ["EntryDraws", "Stream", "exponential_of_bits", "integers_of_bits"]

UInt64Array = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]

LOG_2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476
SERIES_TERMS = 12
"""Terms of 2 artanh(z) = 2(z + z^3/3 + ...); |z| <= 0.172, so the next one is below 1e-19."""


class Stream(IntEnum):
    """What a draw of a traffic entry is for."""

    JITTER = 1
    DESTINATION = 2
    SIZE = 3
    GAP = 4
    LEAF_ORDER = 5
    HOST_ORDER = 6
    REPAIR = 7


@dataclass(frozen=True)
class EntryDraws:
    """The draws of one traffic entry.

    Attributes
    ----------
    key : int
        64 bits that belong to this entry alone; see :meth:`of_entry`.
    """

    key: int

    @classmethod
    def of_entry(cls, seed: int, *, kind: str, occurrence: int) -> EntryDraws:
        """Key of the `occurrence`-th entry (from 0) of a kind.

        Examples
        --------
        >>> first = EntryDraws.of_entry(1, kind="poisson", occurrence=0)
        >>> first == EntryDraws.of_entry(1, kind="poisson", occurrence=1)
        False
        """
        key = purpose_key(seed, Purpose.WORKLOAD)
        for byte in kind.encode():
            key = int(mix64(key ^ byte))
        return cls(int(mix64(key ^ occurrence)))

    def bits(self, stream: Stream, entity: npt.ArrayLike, counter: npt.ArrayLike = 0) -> UInt64Array:
        """64 random bits per (entity, counter); the two are broadcast against each other."""
        return draw(int(mix64(self.key + stream)), entity, counter)

    def uniform(self, stream: Stream, entity: npt.ArrayLike, counter: npt.ArrayLike = 0) -> FloatArray:
        """Doubles in [0, 1)."""
        return uniform(self.bits(stream, entity, counter))

    def below(
        self, bound: int, stream: Stream, entity: npt.ArrayLike, counter: npt.ArrayLike = 0
    ) -> npt.NDArray[np.int64]:
        """Integers in [0, bound)."""
        return integers_of_bits(self.bits(stream, entity, counter), bound=bound)


def integers_of_bits(bits: UInt64Array, *, bound: int) -> npt.NDArray[np.int64]:
    """Integers in [0, bound) from the upper 32 of 64 random bits; bias below bound * 2^-32.

    Examples
    --------
    >>> integers_of_bits(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), bound=10).tolist()
    [0, 5, 9]
    """
    if not 0 < bound <= 2**32:
        raise ValueError(f"bound must lie in 1 .. 2^32, not {bound}")
    return np.asarray(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


def exponential_of_bits(bits: UInt64Array) -> FloatArray:
    """Exponential variates of mean 1 from 64 random bits: -ln(u), u uniform in (0, 1].

    The logarithm is the series of 2 artanh((m-1)/(m+1)) on the mantissa m in [sqrt(1/2), sqrt(2)).

    Examples
    --------
    >>> exponential_of_bits(np.array([2**63 - 2**11, 2**64 - 1], dtype=np.uint64)).tolist()
    [0.6931471805599453, 0.0]
    """
    u = ((bits >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53
    mantissa, exponent = np.frexp(u)
    low = mantissa < SQRT_HALF
    mantissa = np.where(low, mantissa * 2.0, mantissa)
    exponent = exponent - low
    z = (mantissa - 1.0) / (mantissa + 1.0)
    square = z * z
    series = np.zeros_like(z)
    for term in range(SERIES_TERMS - 1, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return np.asarray(-(exponent * LOG_2 + 2.0 * z * series) + 0.0)
