"""Chance without state: every random number is a keyed hash of what it is for.

A generator that hands out numbers in sequence makes every draw depend on every earlier one, so that
adding a flow changes all others. Here a draw is a function of (seed, purpose, entity, counter) alone:
whoever asks, in whatever order, gets the same answer. The mixing function is the finaliser of
SplitMix64 (Steele, Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014, variant
13 of David Stafford); path hashes use the 32-bit finaliser of MurmurHash3 (Austin Appleby, public
domain).

`pow_int` is here because it, too, must give the same bits wherever it is computed: a power by
repeated squaring in one fixed order, never the library's `pow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

__all__ = [
    "GOLDEN",
    "GOLDEN32",
    "MASK32",
    "MASK64",
    "Purpose",
    "draw",
    "entropy_hash",
    "entropy_number",
    "fmix32",
    "mix64",
    "murmur3",
    "pow_int",
    "purpose_key",
    "unit",
]

MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1
GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, odd: the increment of SplitMix64."""

GOLDEN32 = 0x9E3779B9
"""2^32 divided by the golden ratio, odd."""


class Purpose(IntEnum):
    """What a key is for; no two purposes share a stream."""

    ECN = 1
    LINK_LOSS = 2
    TIE = 3
    ECMP_SALT = 4
    PATH_HASH = 5
    PATH_CHOICE = 32


def mix64(x: int) -> int:
    """Scramble 64 bits (a bijection; the finaliser of SplitMix64)."""
    x &= MASK64
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31


def draw(key: int, a: int, b: int) -> int:
    """64 random bits for entity `a` and counter `b` under `key`."""
    return mix64(mix64(key ^ a) + b)


def entropy_hash(path_hash: int, number: int) -> int:
    """The path hash of a flow's entropy with this number (32 bits); 0 is the flow's own."""
    return path_hash + number * GOLDEN32 & MASK32


def entropy_number(path_hash: int, hash_of_number: int) -> int:
    """The number that `entropy_hash` made a hash of: an odd factor has an inverse."""
    return (hash_of_number - path_hash) * pow(GOLDEN32, -1, 1 << 32) & MASK32


def unit(bits: int) -> float:
    """The upper 53 of 64 random bits as a number in [0, 1)."""
    return (bits >> 11) * 2.0**-53


def purpose_key(seed: int, purpose: int) -> int:
    """The key under which a run with this `seed` draws for one purpose."""
    return mix64(seed * GOLDEN + purpose)


def fmix32(x: int) -> int:
    """Scramble 32 bits (a bijection; the finaliser of MurmurHash3)."""
    x &= MASK32
    x ^= x >> 16
    x = x * 0x85EBCA6B & MASK32
    x ^= x >> 13
    x = x * 0xC2B2AE35 & MASK32
    return x ^ x >> 16


def murmur3(words: Sequence[int], *, seed: int) -> int:
    """MurmurHash3 for x86, 32 bits (A. Appleby, public domain), of a key of whole words."""
    state = seed
    for word in words:
        state ^= _rotated(word * 0xCC9E2D51 & MASK32, 15) * 0x1B873593 & MASK32
        state = _rotated(state, 13) * 5 + 0xE6546B64 & MASK32
    return fmix32(state ^ 4 * len(words))


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & MASK32


def pow_int(base: float, n: int) -> float:
    """`base` to the power `n` (n >= 0) by repeated squaring, in one fixed order of multiplications."""
    result = 1.0
    while n:
        if n & 1:
            result *= base
        base *= base
        n >>= 1
    return result
