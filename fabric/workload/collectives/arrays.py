"""Small pieces of array arithmetic that templates are made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Int64Array", "bases", "distinct", "distinct_pairs", "expand_ranges", "lengths", "renumbered"]

Int64Array = npt.NDArray[np.int64]


def distinct(values: Int64Array) -> Int64Array:
    """Return each value once, ascending: by sorting, which for millions of values beats `numpy.unique`.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values, kind="stable")
    differs = np.ones(len(ordered), dtype=np.bool_)
    differs[1:] = ordered[1:] != ordered[:-1]
    return ordered[differs]


def distinct_pairs(first: Int64Array, second: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return each pair of numbers from 0 on once, ascending.

    Examples
    --------
    >>> [each.tolist() for each in distinct_pairs(np.array([1, 0, 1]), np.array([2, 7, 2]))]
    [[0, 1], [7, 2]]
    """
    width = int(second.max(initial=0)) + 1
    one, two = np.divmod(distinct(first * width + second), width)
    return one, two


def expand_ranges(first: Int64Array, count: Int64Array) -> Int64Array:
    """Return `first[0], first[0]+1, ...` (`count[0]` numbers), then those of the next range, and so on.

    Examples
    --------
    >>> expand_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    shifted: Int64Array = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - count), count)
    return shifted


def bases(count: npt.NDArray[np.integer]) -> Int64Array:
    """Return where each of ranges of these lengths begins, and where the last ends.

    Examples
    --------
    >>> bases(np.array([2, 3])).tolist()
    [0, 2, 5]
    """
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count, dtype=np.int64)])


def lengths(base: npt.NDArray[np.integer]) -> Int64Array:
    """Return the lengths of ranges that begin, and the last of which ends, there: what `bases` undoes.

    Examples
    --------
    >>> lengths(np.array([0, 2, 5], dtype=np.uint32)).tolist()
    [2, 3]
    """
    wide = base.astype(np.int64)
    return wide[1:] - wide[:-1]


def renumbered(
    column: npt.NDArray[Any] | None, rows: Int64Array, number: Callable[[Int64Array], Int64Array]
) -> npt.NDArray[np.uint32] | None:
    """Return numbers of rows, taken at `rows`, as `number` changes them; the largest uint32 and None stay.

    Examples
    --------
    >>> renumbered(np.array([1, 2**32 - 1]), np.array([1, 0, 0]), lambda each: each + 10).tolist()
    [4294967295, 11, 11]
    """
    if column is None:
        return None
    taken = column[rows].astype(np.int64)
    nothing = taken == np.iinfo(np.uint32).max
    return np.where(nothing, taken, number(np.where(nothing, 0, taken))).astype(np.uint32)
