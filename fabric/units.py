"""`Rate`, `Size`, `Duration`: integers that read and print their unit.

Each is an `int` in the base unit of the whole project: bits per second, bytes, picoseconds. They
are read from text ("400Gbps", "64MiB", "1.5us"), from integers (base units) and from floats that
are whole; arithmetic on them gives plain `int`. Conversion is exact: a text that is not a whole
number of base units is refused instead of rounded, and `str()` prints the shortest text that reads
back as the same value. The `format_*` functions round, for tables.

Bits and bytes are told apart by letter, as the field writes them: `b` is a bit, `B` a byte, so
"50GB/s" is 400 Gbit/s. Decimal prefixes (K, M, G, T) are powers of 1000, binary ones (Ki, Mi, Gi,
Ti) powers of 1024, after IEC 80000-13; `k` is read as `K`, and no other letter changes case.
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

__all__ = [
    "LARGEST",
    "Duration",
    "Quantity",
    "QuantityError",
    "Rate",
    "Size",
    "format_duration",
    "format_rate",
    "format_size",
]

LARGEST = 2**62
"""The largest quantity in base units: sums of two still fit a signed 64-bit integer."""

_LONGEST_TEXT = 100
_TEXT = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,2}))?\s*([^\s0-9.]*)")
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_PREFIXES = _DECIMAL | _BINARY


class QuantityError(ValueError):
    """A text or number that is not the quantity asked for.

    Parameters
    ----------
    value : object
        What was given.
    allowed : str
        What would be accepted, as a sentence fragment.
    """

    def __init__(self, value: object, allowed: str) -> None:
        self.value = value
        self.allowed = allowed
        super().__init__(value, allowed)

    def __str__(self) -> str:
        return f"{self.value!r} is not allowed; expected {self.allowed}"


class Quantity(int):
    """What `Rate`, `Size` and `Duration` share; not used by itself.

    Parameters
    ----------
    value : str, int or float
        A text with a unit, or a whole number of base units.

    Raises
    ------
    QuantityError
        If the text cannot be read, or the value is negative, not whole in base units or above
        `LARGEST`.
    """

    KIND: ClassVar[str] = "a quantity"
    EXAMPLES: ClassVar[tuple[str, ...]] = ()
    BASE_UNIT: ClassVar[str] = ""
    UNITS: ClassVar[dict[str, int | Fraction]] = {}
    """Every unit that is read, in base units."""
    PRINTED: ClassVar[tuple[str, ...]] = ()
    """The units that `str()` chooses from, smallest first."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        if type(value) is cls:
            return value
        return int.__new__(cls, _checked(cls, value))

    def __str__(self) -> str:
        return _exact(type(self), int(self))

    def __repr__(self) -> str:
        return f'{type(self).__name__}("{self}")'

    @classmethod
    def describe(cls) -> str:
        """Say what is accepted, as a sentence fragment with examples."""
        return f"{cls.KIND} such as " + ", ".join(f'"{example}"' for example in cls.EXAMPLES)


class Rate(Quantity):
    """A data rate in bit/s.

    Examples
    --------
    >>> Rate("50GB/s")
    Rate("400Gbps")
    >>> Rate("1.6Tbps") // 8
    200000000000
    """

    KIND = "a rate"
    EXAMPLES = ("400Gbps", "1.6Tbps", "50GB/s")
    BASE_UNIT = "bit/s"
    UNITS: ClassVar[dict[str, int | Fraction]] = {
        prefix + unit: scale * bits
        for prefix, scale in _PREFIXES.items()
        for unit, bits in {"bps": 1, "b/s": 1, "bit/s": 1, "Bps": 8, "B/s": 8}.items()
    }
    PRINTED = ("bps", "Kbps", "Mbps", "Gbps", "Tbps")

    __slots__ = ()


class Size(Quantity):
    """A size in bytes.

    Examples
    --------
    >>> Size("64MiB") - Size("64MB")
    3108864
    >>> print(Size(9000))
    9KB
    """

    KIND = "a size"
    EXAMPLES = ("4096", "9KB", "64MiB")
    BASE_UNIT = "bytes"
    UNITS: ClassVar[dict[str, int | Fraction]] = {prefix + "B": scale for prefix, scale in _PREFIXES.items()}
    PRINTED = ("B", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")

    __slots__ = ()


class Duration(Quantity):
    """A span of time in picoseconds.

    Examples
    --------
    >>> Duration("1.5us") + Duration("3ps")
    1500003
    >>> print(Duration(250_000))
    250ns
    """

    KIND = "a duration"
    EXAMPLES = ("250ns", "1.5us", "2ms")
    BASE_UNIT = "picoseconds"
    UNITS: ClassVar[dict[str, int | Fraction]] = {
        "ps": 1,
        "ns": 10**3,
        "us": 10**6,
        "\u00b5s": 10**6,
        "\u03bcs": 10**6,
        "ms": 10**9,
        "s": 10**12,
    }
    PRINTED = ("ps", "ns", "us", "ms", "s")

    __slots__ = ()


def _checked(cls: type[Quantity], value: Any) -> int:
    """Return `value` in base units, or raise what is wrong with it."""
    if isinstance(value, bool):
        raise QuantityError(value, cls.describe())
    if isinstance(value, str):
        kind: Any = cls
        return _parsed(kind, value)
    if isinstance(value, float):
        if not value.is_integer():
            raise QuantityError(value, f"a whole number of {cls.BASE_UNIT}, or {cls.describe()}")
        number = int(value)
    elif isinstance(value, Quantity):
        raise QuantityError(value, cls.describe())
    else:
        try:
            number = operator.index(value)
        except TypeError:
            raise QuantityError(value, cls.describe()) from None
    return _in_range(cls, value, number)


@lru_cache(maxsize=4096)
def _parsed(cls: Any, text: str) -> int:
    found = _TEXT.fullmatch(text.strip())
    if found is None or len(text) > _LONGEST_TEXT:
        negative = text.strip().startswith("-")
        raise QuantityError(text, f"{cls.describe()}{', not negative' if negative else ''}")
    mantissa, exponent, unit = found.groups()
    scale = 1 if unit == "" else cls.UNITS.get(unit)
    if scale is None:
        raise QuantityError(text, f"{cls.describe()}{_unit_hint(cls, unit)}")
    exact = Fraction(mantissa.replace("_", "")) * Fraction(10) ** int(exponent or 0) * scale
    if exact.denominator != 1:
        raise QuantityError(text, f"a whole number of {cls.BASE_UNIT} (this is {float(exact):.12g})")
    return _in_range(cls, text, int(exact))


def _in_range(cls: type[Quantity], value: object, number: int) -> int:
    if number < 0:
        raise QuantityError(value, f"{cls.describe()}, not negative")
    if number > LARGEST:
        raise QuantityError(value, f"{cls.KIND} of at most {LARGEST} {cls.BASE_UNIT}")
    return number


def _unit_hint(cls: type[Quantity], unit: str) -> str:
    """Name the unit that was probably meant by an unknown one."""
    if cls is Size and unit in {prefix + "b" for prefix in _PREFIXES}:
        return f' ("{unit}" would be bits; bytes are written "{unit[:-1]}B")'
    if cls is Rate and unit in {prefix + byte for prefix in _PREFIXES for byte in "bB"}:
        return f' ("{unit}" lacks "per second": write "{unit}/s")'
    meant = [known for known in cls.UNITS if known.lower() == unit.lower()]
    if meant:
        return f' ("{unit}" is not a unit; did you mean {" or ".join(repr(known) for known in meant[:2])}?)'
    return f' ("{unit}" is not a unit; the units are {", ".join(cls.PRINTED)})'


def _exact(cls: type[Quantity], value: int) -> str:
    """Return the shortest text of `value`; of equally short ones that with the larger unit."""
    best = f"{value}{cls.PRINTED[0]}"
    for unit in cls.PRINTED[1:]:
        scale = int(cls.UNITS[unit])
        if value < scale:
            continue
        whole, rest = divmod(value, scale)
        text = f"{whole}{_fraction_digits(rest, scale)}{unit}"
        if len(text) <= len(best):
            best = text
    return best


def _fraction_digits(rest: int, scale: int) -> str:
    """Return `rest / scale` as exact decimal digits with their point; nothing for 0.

    The scales have no prime factors but 2 and 5, so the digits end.
    """
    if rest == 0:
        return ""
    places = max(scale.bit_length() - 1, 1)
    return "." + str(rest * 10**places // scale).zfill(places).rstrip("0")


def format_rate(value: float, *, digits: int = 3) -> str:
    """Return a rate in bit/s rounded to `digits` significant digits, for people.

    Examples
    --------
    >>> format_rate(48_765_432_100)
    '48.8Gbps'
    """
    return _rounded(value, digits, Rate)


def format_size(value: float, *, digits: int = 3) -> str:
    """Return a size in bytes rounded to `digits` significant digits, with a decimal unit.

    Examples
    --------
    >>> format_size(1_048_576)
    '1.05MB'
    """
    return _rounded(value, digits, Size)


def format_duration(value: float, *, digits: int = 3) -> str:
    """Return a duration in picoseconds rounded to `digits` significant digits.

    Examples
    --------
    >>> format_duration(1_234_567_890)
    '1.23ms'
    """
    return _rounded(value, digits, Duration)


def _rounded(value: float, digits: int, cls: type[Quantity]) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return str(float(value))
    units = [unit for unit in cls.PRINTED if "i" not in unit]
    exact = Decimal(int(value) if isinstance(value, int) else float(value))
    text = f"{exact:.{digits - 1}e}"
    rounded = Decimal(text)
    scale, unit = max(
        ((int(cls.UNITS[unit]), unit) for unit in units if abs(rounded) >= cls.UNITS[unit]),
        default=(1, units[0]),
    )
    number = f"{rounded / scale:f}"
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{unit}"
