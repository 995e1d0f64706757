"""Text files as words that know their line, and columns of numbers made of them.

The formats of the ns-3 family are streams of words separated by blanks and line breaks. Columns are
converted as a whole with NumPy; only when that fails is the word that is wrong looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fabric.errors import MISSING, Said, SpecError
from fabric.units import LARGEST, Duration, QuantityError, Rate

__all__ = [
    "Words",
    "delay_ps",
    "place",
    "probability",
    "rate_bps",
    "read_text",
    "seconds_ps",
    "whole",
]

PS_PER_S = 10**12
SLOWEST_RATE_BPS = 1_000
LONGEST_NUMBER = 40
"""Characters of a number; longer ones are not numbers that anyone meant."""

_T = TypeVar("_T")


def read_text(file: str | Path, *, what: str = "file") -> str:
    """Return the text of a file.

    Parameters
    ----------
    file : str or Path
    what : str
        What it should be, for errors: "scenario file".

    Raises
    ------
    SpecError
        If it cannot be read or is not UTF-8.
    """
    if not str(file):
        raise SpecError("file name", "", f"the name of a {what}")
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(str(file), MISSING, f"an existing {what}") from None
    except OSError as error:
        raise SpecError(str(file), Said(f"({error.strerror})"), f"a {what} that can be read") from None
    except UnicodeDecodeError as error:
        raise SpecError(str(file), error.object[error.start : error.end], "text in UTF-8") from None


def place(file: str | Path, line: int, what: str = "") -> str:
    """Return how errors name a place: "topology.txt:3 rate"."""
    return f"{file}:{line} {what}".rstrip()


def whole(text: str, *, where: str, low: int = 0, high: int = LARGEST) -> int:
    """Return a whole number.

    Raises
    ------
    SpecError
        At `where`, if the text is none or outside [low, high].
    """
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else low - 1
    if not low <= number <= high:
        upper = f" to {high}" if high < LARGEST else " on"
        raise SpecError(where, text, f"a whole number from {low}{upper}")
    return number


def seconds_ps(text: str, *, where: str) -> int:
    """Return a time in decimal seconds, rounded to the nearest picosecond.

    Examples
    --------
    >>> seconds_ps("2.000020000", where="")
    2000020000000
    """
    try:
        exact = Decimal(text) * PS_PER_S
    except InvalidOperation:
        exact = Decimal(-1)
    if len(text) > LONGEST_NUMBER or not exact.is_finite() or not 0 <= exact <= LARGEST:
        raise SpecError(where, text, 'a time in seconds, such as "2.00002"')
    return int(exact.to_integral_value())


def rate_bps(text: str, *, where: str) -> int:
    """Return a rate: "100Gbps", "25Gb/s", "12.5GB/s", or bit/s ("25000000000.0")."""
    try:
        rate = int(Rate(text))
    except QuantityError as error:
        raise SpecError(where, error.value, error.allowed) from None
    if rate < SLOWEST_RATE_BPS:
        raise SpecError(where, text, "a rate of at least 1Kbps")
    return rate


def delay_ps(text: str, *, where: str) -> int:
    """Return a delay: "1000ns", "0.001ms"; seconds where no unit stands, as ns-3 reads it."""
    try:
        return int(Duration(text if text[-1:].isalpha() else f"{text}s"))
    except QuantityError as error:
        raise SpecError(where, text, error.allowed) from None


def probability(text: str, *, where: str) -> float:
    """Return a number in [0, 1)."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise SpecError(where, text, "a probability: at least 0 and below 1")
    return value


class Words:
    """The words of a file, in order.

    Parameters
    ----------
    file : str or Path
        Its name, for errors.
    text : str
    """

    def __init__(self, file: str | Path, text: str) -> None:
        self.file = str(file)
        self.text = text
        self.words = text.split()

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum([len(line.split()) for line in self.text.splitlines()], dtype=np.int64)

    def line(self, index: int) -> int:
        """Number of the line with word `index`; the last line for words after the end."""
        return min(int(np.searchsorted(self._ends, index, side="right")), max(len(self._ends) - 1, 0)) + 1

    def lines(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Lines of many words, all of which exist."""
        return np.searchsorted(self._ends, indices, side="right").astype(np.int64) + 1

    def where(self, index: int, what: str) -> str:
        """How errors name word `index`."""
        return place(self.file, self.line(index), what)

    def need(self, index: int, count: int, what: str) -> None:
        """Refuse a file that ends before word `index + count`."""
        if index + count > len(self.words):
            left = max(len(self.words) - index, 0)
            where = self.where(len(self.words), "")
            raise SpecError(where, Said(f"the end of the file after {left} words"), f"{count} words: {what}")

    def whole(self, index: int, what: str, *, low: int = 0, high: int = LARGEST) -> int:
        """Word `index` as a whole number."""
        return whole(self.words[index], where=self.where(index, what), low=low, high=high)

    def wholes(
        self, index: int, *, count: int, step: int, what: str, low: int = 0, high: int = LARGEST
    ) -> npt.NDArray[np.int64]:
        """Every `step`-th word from `index` on as whole numbers."""
        texts = self.words[index : index + step * count : step]
        try:
            values = np.array(texts, dtype=np.str_).astype(np.int64)
        except (ValueError, OverflowError):
            values = np.full(count, low - 1, dtype=np.int64)
        if ((values < low) | (values > high)).any():
            for number, text in enumerate(texts):
                whole(text, where=self.where(index + step * number, what), low=low, high=high)
        return values

    def each(self, index: int, *, count: int, step: int, what: str, read: Callable[..., _T]) -> list[_T]:
        """Every `step`-th word as `read` understands it; each text is read once."""
        known: dict[str, _T] = {}
        values = []
        for number, text in enumerate(self.words[index : index + step * count : step]):
            value = known.get(text)
            if value is None:
                value = known[text] = self._read(index + step * number, text, what, read)
            values.append(value)
        return values

    def _read(self, index: int, text: str, what: str, read: Callable[..., _T]) -> _T:
        try:
            return read(text, where="")
        except SpecError as error:
            raise SpecError(self.where(index, what), error.value, error.allowed) from None
