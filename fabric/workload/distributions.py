"""Flow-size distributions given as points of a cumulative distribution, linear between them.

A size is drawn by interpolating the bytes at a uniform number and rounding to a whole byte, at least
1. Three published distributions are built in, as CSV files beside this module:

* `websearch`: web search, the DCTCP workload as used with HPCC (mean 1.71 MB, a tenth above 5 MB);
* `fb_hadoop`: Hadoop at Facebook (mean 120 KB, half of the flows below 700 B);
* `ali_storage`: Alibaba's storage network in 2019 (mean 41 KB, 69 % below 8 KB).

Their values are those of github.com/alibaba-edu/High-Precision-Congestion-Control, `traffic_gen`. Any
other distribution is a CSV file with the header `bytes,cdf`: bytes never fall, cdf never falls, from
exactly 0 on the first line to exactly 1 on the last. Equal bytes on two lines are a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.spec.traffic import DISTRIBUTIONS
from fabric.workload.csv_rows import read_rows

__all__ = ["SizeDistribution", "load_distribution", "read_distribution"]

_SegmentMoment = Callable[[Fraction, Fraction], Fraction]

LARGEST_BYTES = 2**53
"""Sizes are interpolated as doubles, which hold whole numbers up to here."""


@dataclass(frozen=True, eq=False)
class SizeDistribution:
    """A piecewise linear distribution of flow sizes.

    Attributes
    ----------
    name : str
        Built-in name or file.
    bytes_at, cdf_at : ndarray of float64, shape [points]
        Sizes, and the share of flows that are at most as large.

    Raises
    ------
    SpecError
        If the points are not those of a distribution; the path is `name[point]`.

    Examples
    --------
    >>> sizes = load_distribution("websearch")
    >>> sizes.mean_bytes, sizes.quantile([0.5, 0.9]).round().tolist()
    (1711250.0, [73077.0, 5000000.0])
    """

    name: str
    bytes_at: npt.NDArray[np.float64]
    cdf_at: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.bytes_at.shape != self.cdf_at.shape or self.bytes_at.ndim != 1:
            raise SpecError(self.name, self.bytes_at.shape, "as many sizes as cdf values, in one column each")
        _check_points(
            self.bytes_at.tolist(),
            self.cdf_at.tolist(),
            [f"{self.name}[{point}]" for point in range(len(self.bytes_at))],
            self.name,
        )

    @cached_property
    def mean_bytes(self) -> float:
        """Mean size: sum of the cdf's steps times the middle of their bytes, rounded once."""
        return float(self._moment(lambda low, high: (low + high) / 2))

    @cached_property
    def squared_cv(self) -> float:
        """Variance over squared mean, of the continuous distribution."""
        second = self._moment(lambda low, high: (low * low + low * high + high * high) / 3)
        mean = self._moment(lambda low, high: (low + high) / 2)
        return float(second / (mean * mean)) - 1.0

    def quantile(self, share: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Size that a share of the flows does not exceed.

        Parameters
        ----------
        share : array_like of float, any shape
            In [0, 1].

        Returns
        -------
        ndarray of float64, the same shape
            Bytes, not rounded.
        """
        u = np.asarray(share, dtype=np.float64)
        if np.any((u < 0) | (u > 1)):
            raise ValueError("shares must lie in [0, 1]")
        left = np.clip(np.searchsorted(self.cdf_at, u, side="right") - 1, 0, len(self.cdf_at) - 2)
        rise = self.cdf_at[left + 1] - self.cdf_at[left]
        width = self.bytes_at[left + 1] - self.bytes_at[left]
        return np.asarray(self.bytes_at[left] + (u - self.cdf_at[left]) / rise * width)

    def sizes(self, uniform: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Turn uniform numbers into flow sizes.

        Parameters
        ----------
        uniform : array_like of float, any shape
            In [0, 1).

        Returns
        -------
        ndarray of int64, the same shape
            Bytes, rounded to the nearest whole one and at least 1.
        """
        return np.maximum(np.rint(self.quantile(uniform)), 1.0).astype(np.int64)

    def _moment(self, of_segment: _SegmentMoment) -> Fraction:
        """Exact: the decimals of the file are taken at face value."""
        sizes = [Fraction(str(size)) for size in self.bytes_at.tolist()]
        shares = [Fraction(str(share)) for share in self.cdf_at.tolist()]
        pieces = zip(sizes, sizes[1:], shares, shares[1:], strict=False)
        return sum(
            ((after - before) * of_segment(low, high) for low, high, before, after in pieces), Fraction()
        )


def load_distribution(name: str, *, path: str = "distribution") -> SizeDistribution:
    """A built-in distribution by name, or one read from a CSV file.

    Parameters
    ----------
    name : str
        One of :data:`fabric.spec.DISTRIBUTIONS`, or a file name.
    path : str
        Where the name stands in the scenario, for errors.

    Returns
    -------
    SizeDistribution

    Raises
    ------
    SpecError
        If there is no such distribution or file, or the file is wrong (naming its line).

    Examples
    --------
    >>> load_distribution("fb_hadoop").mean_bytes
    120420.75
    """
    if name in DISTRIBUTIONS:
        return _built_in(name)
    if not Path(name).exists():
        known = ", ".join(f'"{known}"' for known in DISTRIBUTIONS)
        raise SpecError(path, name, f"{known}, or a CSV file with the header bytes,cdf")
    return read_distribution(name, path=path)


def read_distribution(file: str | Path, *, path: str = "distribution") -> SizeDistribution:
    """Read a distribution from a CSV file with the header `bytes,cdf`.

    Parameters
    ----------
    file : str or Path
        The file; blank lines and lines that begin with `#` are skipped.
    path : str
        Where the file is named in the scenario, for errors.

    Returns
    -------
    SizeDistribution

    Raises
    ------
    SpecError
        If the file cannot be read, or a line of it is wrong.
    """
    sizes: list[float] = []
    shares: list[float] = []
    places: list[str] = []
    for line, row in read_rows(file, required=("bytes", "cdf"), path=path):
        place = f"{file}:{line}"
        sizes.append(_number(row["bytes"], f"{place} bytes"))
        shares.append(_number(row["cdf"], f"{place} cdf"))
        places.append(place)
    _check_points(sizes, shares, places, str(file))
    return SizeDistribution(str(file), np.array(sizes), np.array(shares))


@lru_cache
def _built_in(name: str) -> SizeDistribution:
    table = read_distribution(Path(__file__).with_name("data") / f"{name}.csv")
    return SizeDistribution(name, table.bytes_at, table.cdf_at)


def _number(text: str, place: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SpecError(place, text, "a number") from None


def _check_points(sizes: list[float], shares: list[float], places: list[str], name: str) -> None:
    """Raise on the first point at which this is not a distribution."""
    if len(sizes) < 2:
        raise SpecError(name, Said(f"{len(sizes)} points"), "at least two points, from cdf 0 to cdf 1")
    previous = (0.0, 0.0)
    for point, (size, share) in enumerate(zip(sizes, shares, strict=True)):
        place = places[point]
        if not previous[0] <= size <= LARGEST_BYTES:
            raise SpecError(f"{place} bytes", size, f"at least the line before ({previous[0]:g}), and finite")
        if not previous[1] <= share <= 1:
            hint = "; 100 % is 1" if share > 1 else ""
            raise SpecError(f"{place} cdf", share, f"{previous[1]:g} to 1, never falling{hint}")
        if point == 0 and share != 0:
            raise SpecError(f"{place} cdf", share, "0 on the first line")
        if point > 0 and previous == (size, share):
            raise SpecError(place, f"{size:g},{share:g}", "a point that differs from the one before")
        if point < len(sizes) - 1 and share == 1:
            raise SpecError(f"{place} cdf", share, "below 1 before the last line")
        previous = (size, share)
    if previous[1] != 1:
        raise SpecError(f"{places[-1]} cdf", previous[1], "1 on the last line")
    if previous[0] < 1:
        raise SpecError(f"{places[-1]} bytes", previous[0], "at least 1 byte")
