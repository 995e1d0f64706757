"""Counter-based randomness: keyed hashes of (seed, purpose, entity, counter).

There is no generator state. Every draw is a pure function of what it is for, so adding a flow does
not change what another flow draws, and any draw can be repeated alone, in any order, by NumPy or by
either engine with the same bits.

`mix64` is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014, with the constants of Stafford's variant 13); `fmix32` is the finaliser of
MurmurHash3 (Appleby). Both are bijections. Everything works on arrays of any shape and on plain
integers, modulo 2**64 or 2**32.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["Purpose", "draw", "fmix32", "mix64", "purpose_key", "uniform"]

MASK64 = 2**64 - 1
GOLDEN64 = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio, made odd: the increment of SplitMix64."""


class Purpose(IntEnum):
    """What a draw is for; the second part of every key. Workloads use `WORKLOAD`."""

    ECN = 1
    LINK_LOSS = 2
    TIE = 3
    ECMP_SALT = 4
    PATH_HASH = 5
    WORKLOAD = 6
    PATH_CHOICE = 32


def mix64(value: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Mix the 64 bits of every value so that each input bit flips half of the output bits.

    Parameters
    ----------
    value : array_like of integers, any shape
        Taken modulo 2**64; a plain integer may be negative or larger.

    Returns
    -------
    numpy.ndarray of uint64, the same shape

    Examples
    --------
    >>> hex(int(mix64(1)))
    '0x5692161d100b05e5'
    """
    x = _as_uint64(value)
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def draw(key: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """64 random bits of `key` for entity `a` and counter `b` (broadcast against each other).

    Parameters
    ----------
    key : array_like of integers
        A key of `purpose_key`.
    a, b : array_like of integers, any shapes that broadcast
        The entity (a flow, a node) and a counter.

    Returns
    -------
    numpy.ndarray of uint64, the broadcast shape

    Examples
    --------
    >>> key = purpose_key(1, Purpose.PATH_HASH)
    >>> bool(draw(key, 7, 0) == draw(key, [6, 7], 0)[1])
    True
    """
    with np.errstate(over="ignore"):
        return mix64(mix64(_as_uint64(key) ^ _as_uint64(a)) + _as_uint64(b))


def uniform(bits: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Turn 64 random bits into doubles in [0, 1), from their upper 53 bits.

    Examples
    --------
    >>> float(uniform(2**63))
    0.5
    """
    return np.asarray((_as_uint64(bits) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def purpose_key(seed: int, purpose: int) -> int:
    """The key under which a run with `seed` draws for `purpose`.

    Parameters
    ----------
    seed : int
        `run.seed`, taken modulo 2**64.
    purpose : int
        A `Purpose`, or a number above it.

    Returns
    -------
    int
        In 0 .. 2**64 - 1.

    Examples
    --------
    >>> purpose_key(1, Purpose.ECN) != purpose_key(2, Purpose.ECN)
    True
    """
    return int(mix64(seed * GOLDEN64 + int(purpose)))


def fmix32(value: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Mix the 32 bits of every value (what a switch hashes a path hash and its salt with).

    Parameters
    ----------
    value : array_like of integers in 0 .. 2**32 - 1, any shape

    Returns
    -------
    numpy.ndarray of uint32, the same shape

    Examples
    --------
    >>> hex(int(fmix32(1)))
    '0x514e28b7'
    """
    x = np.asarray(value, dtype=np.uint32)
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(x ^ (x >> np.uint32(16)))


def murmur3(words: npt.ArrayLike, *, seed: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """MurmurHash3 for x86, 32 bits (A. Appleby, public domain), of keys of whole words.

    Parameters
    ----------
    words : array_like of integers in 0 .. 2**32 - 1 [keys, words]
        Words as little-endian memory has them.
    seed : array_like of integers in 0 .. 2**32 - 1 [keys]

    Returns
    -------
    numpy.ndarray of uint32 [keys]

    Examples
    --------
    >>> hex(int(murmur3([[0x0B000001, 0x0B000D01, 0x00642710]], seed=[32])[0]))
    '0xe007d8a2'
    """
    keys = np.asarray(words, dtype=np.uint32)
    state = np.asarray(seed, dtype=np.uint32)
    with np.errstate(over="ignore"):
        for column in keys.T:
            state = state ^ _rotated(column * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
            state = _rotated(state, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return fmix32(state ^ np.uint32(4 * keys.shape[1]))


def _rotated(value: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return value << np.uint32(bits) | value >> np.uint32(32 - bits)


def _as_uint64(value: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    if isinstance(value, int):
        return np.asarray(value & MASK64, dtype=np.uint64)
    return np.asarray(value).astype(np.uint64, copy=False)
