"""Gradient compression: what it leaves to send, and when that is worth it.

Top-K sends the largest values with their indices. Indices differ from rank to rank, so sums grow, and the
plain way is to gather all payloads everywhere: D - 1 of them for each rank, against 2(D-1)/D of the dense
gradients. It wins while D < 2 * dense / payload. Quantised gradients keep the dense collectives
(reduce-scatter and all-gather of the quantised form). Error feedback keeps what was not sent: memory, no
bytes.

Source: Lin et al., arXiv 1712.01887 (Top-K, error feedback); Alistarh et al., arXiv 1610.02132
(quantisation).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from fabric.spec.base import Problem, Spec
from fabric.units import Rate

__all__ = ["Compression", "Quantised", "TopK"]


class TopK(Spec, frozen=True, kw_only=True, tag_field="kind", tag="top_k"):
    """The largest values of a gradient.

    Parameters
    ----------
    ratio : float
        Share of the values that is sent.
    value_bytes, index_bytes : int
        Of a value and of its index. Default 4 each.
    bitmap : bool
        Positions as one bit for every value instead of indices.
    error_feedback : bool
        Whether what is not sent is kept for the next step, in `value_bytes` each.
    encode_rate, decode_rate : Rate, optional
        At which a rank chooses values, in bytes of dense gradient, and adds up those that came, in bytes of
        payload: time that it computes. None (default): in no time.

    Examples
    --------
    >>> way = TopK(ratio=0.01)
    >>> way.payload_bytes(10**8), int(way.wire_bytes(10**8, n_ranks=16)), way.break_even_ranks(10**8)
    (8000000, 120000000, 100.0)
    """

    ratio: float
    value_bytes: int = 4
    index_bytes: int = 4
    bitmap: bool = False
    error_feedback: bool = True
    encode_rate: Rate | None = None
    decode_rate: Rate | None = None

    def problems(self) -> Iterator[Problem]:
        if not 0 < self.ratio <= 1:
            yield "ratio", self.ratio, "above 0, at most 1"
        for name in ("value_bytes", "index_bytes"):
            if getattr(self, name) < 1:
                yield name, getattr(self, name), "at least 1"
        yield from _rates(self)

    def kept(self, values: int) -> int:
        """Values that are sent."""
        return min(math.ceil(Fraction(str(self.ratio)) * values), values)

    def payload_bytes(self, values: int) -> int:
        """Bytes that a rank has for the others."""
        positions = -(-values // 8) if self.bitmap else self.kept(values) * self.index_bytes
        return self.kept(values) * self.value_bytes + positions

    def wire_bytes(self, values: int, *, n_ranks: int) -> Fraction:
        """Bytes that a rank sends: an all-gather of all payloads."""
        return Fraction((n_ranks - 1) * self.payload_bytes(values))

    def break_even_ranks(self, values: int, *, dense_bytes: int | None = None) -> float:
        """Ranks from which on the dense all-reduce sends less.

        `dense_bytes` is the size of a dense value, `value_bytes` unless given.
        """
        dense = values * (self.value_bytes if dense_bytes is None else dense_bytes)
        return 2 * dense / self.payload_bytes(values)

    def state_bytes(self, values: int) -> int:
        """Memory of the error feedback on each rank."""
        return values * self.value_bytes if self.error_feedback else 0


class Quantised(Spec, frozen=True, kw_only=True, tag_field="kind", tag="quantised"):
    """Values in few bits, with a scale for every block.

    Parameters
    ----------
    bits, block, scale_bytes : int
        Of a value; values that share a scale; of a scale. Default 8, 256, 4.
    error_feedback : bool
        As of `TopK`, in 4 bytes each.
    encode_rate, decode_rate : Rate, optional
        As of `TopK`.

    Examples
    --------
    >>> Quantised(bits=8, block=256).payload_bytes(10**8)
    101562500
    """

    bits: int = 8
    block: int = 256
    scale_bytes: int = 4
    error_feedback: bool = False
    encode_rate: Rate | None = None
    decode_rate: Rate | None = None

    def problems(self) -> Iterator[Problem]:
        if not 1 <= self.bits <= 32:
            yield "bits", self.bits, "1 to 32"
        if self.block < 1:
            yield "block", self.block, "at least 1"
        if self.scale_bytes < 0:
            yield "scale_bytes", self.scale_bytes, "at least 0"
        yield from _rates(self)

    def payload_bytes(self, values: int) -> int:
        """Bytes of the whole gradient."""
        return -(-values * self.bits // 8) + -(-values // self.block) * self.scale_bytes

    def wire_bytes(self, values: int, *, n_ranks: int) -> Fraction:
        """Bytes that a rank sends: reduce-scatter and all-gather of the quantised gradient."""
        return Fraction(2 * (n_ranks - 1), n_ranks) * self.payload_bytes(values)

    def state_bytes(self, values: int) -> int:
        """Memory of the error feedback on each rank."""
        return values * 4 if self.error_feedback else 0


Compression = TopK | Quantised


def _rates(spec: TopK | Quantised) -> Iterator[Problem]:
    for name in ("encode_rate", "decode_rate"):
        if getattr(spec, name) == 0:
            yield name, getattr(spec, name), "a rate above 0, or none"
