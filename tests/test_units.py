"""Quantities: exact reading, shortest printing, and every way to write them wrong."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.units import (
    LARGEST,
    Duration,
    Quantity,
    QuantityError,
    Rate,
    Size,
    format_duration,
    format_rate,
    format_size,
)

KINDS = (Rate, Size, Duration)
BASE_VALUES = st.integers(0, LARGEST)
SI = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
IEC = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Rate, "400Gbps", 400 * 10**9),
        (Rate, "1.6Tbps", 1600 * 10**9),
        (Rate, "50GB/s", 400 * 10**9),
        (Rate, "50GBps", 400 * 10**9),
        (Rate, "100 Gb/s", 100 * 10**9),
        (Rate, "25Gbit/s", 25 * 10**9),
        (Rate, "1.5Bps", 12),
        (Rate, "0.125B/s", 1),
        (Rate, "1KiB/s", 8192),
        (Size, "64MB", 64 * 10**6),
        (Size, "64MiB", 64 * 2**20),
        (Size, "9KB", 9000),
        (Size, "9kB", 9000),
        (Size, "100B", 100),
        (Size, "4096", 4096),
        (Size, "1_000", 1000),
        (Size, "0.5KiB", 512),
        (Size, "1e3", 1000),
        (Size, "1.5e-3MB", 1500),
        (Duration, "1.5us", 1_500_000),
        (Duration, "250ns", 250_000),
        (Duration, "3ps", 3),
        (Duration, "2ms", 2 * 10**9),
        (Duration, "1s", 10**12),
        (Duration, "1\u00b5s", 10**6),
        (Duration, "1\u03bcs", 10**6),
        (Duration, "0.1ns", 100),
        (Duration, ".5 us", 500_000),
    ],
)
def test_reads_text(kind, text, value):
    assert kind(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Rate(400 * 10**9), "400Gbps"),
        (Rate(1_600 * 10**9), "1.6Tbps"),
        (Rate(0), "0bps"),
        (Rate(1_066_666_666_667), "1066666666667bps"),
        (Size(9000), "9KB"),
        (Size(4096), "4KiB"),
        (Size(64 * 2**20), "64MiB"),
        (Size(1500), "1.5KB"),
        (Size(65_535), "65535B"),
        (Duration(500_000), "500ns"),
        (Duration(83_886_080), "83.88608us"),
        (Duration(83_886_000), "83886ns"),
        (Duration(1), "1ps"),
    ],
)
def test_prints_the_shortest_text(value, text):
    assert str(value) == text
    assert repr(value) == f'{type(value).__name__}("{text}")'
    assert f"{value}" == text


@pytest.mark.parametrize("kind", KINDS)
@given(value=BASE_VALUES)
def test_printed_text_reads_back(kind, value):
    assert kind(str(kind(value))) == value
    assert type(kind(value)) is kind


@pytest.mark.parametrize("kind", KINDS)
@given(mantissa=st.integers(1, 99_999), exponent=st.integers(0, 12))
def test_round_values_read_back(kind, mantissa, exponent):
    value = mantissa * 10**exponent
    assert kind(str(kind(value))) == value
    assert len(str(kind(value))) <= len(f"{value}{kind.PRINTED[0]}")


@given(number=st.integers(0, 10**5), prefix=st.sampled_from([*SI, "Ki", "Mi", "Gi", "Ti"]))
def test_a_byte_is_eight_bits(number, prefix):
    assert Rate(f"{number}{prefix}B/s") == 8 * Rate(f"{number}{prefix}b/s")
    assert Rate(f"{number}{prefix}Bps") == 8 * Rate(f"{number}{prefix}bps")


@given(number=st.integers(0, 10**5), rank=st.integers(1, 4))
def test_decimal_and_binary_prefixes_differ(number, rank):
    decimal, binary = list(SI)[rank], list(IEC)[rank]
    assert Size(f"{number}{decimal}B") == number * 1000**rank
    assert Size(f"{number}{binary}B") == number * 1024**rank


@given(thousandths=st.integers(0, 10**9), unit=st.sampled_from(["KB", "MiB", "GB", "B"]))
def test_decimal_fractions_are_exact(thousandths, unit):
    exact = Fraction(thousandths, 1000) * Size.UNITS[unit]
    text = f"{thousandths // 1000}.{thousandths % 1000:03}{unit}"
    if exact.denominator == 1:
        assert Size(text) == exact
    else:
        with pytest.raises(QuantityError, match="whole number of bytes"):
            Size(text)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Size, "64Mb", ['"64MiB"', '"Mb" would be bits', '"MB"']),
        (Size, "1.5", ["whole number of bytes", "1.5"]),
        (Size, "9 kilobytes", ["not a unit", "KiB"]),
        (Size, "", ["a size such as"]),
        (Size, "MB", ["a size such as"]),
        (Size, "-1KB", ["not negative"]),
        (Size, "1.2.3KB", ["a size such as"]),
        (Size, "1e99", ["at most"]),
        (Size, "9" * 5000, ["a size such as"]),
        (Size, "٣KB", ["a size such as"]),
        (Rate, "400Gb", ["per second", '"Gb/s"']),
        (Rate, "400gbps", ["did you mean 'Gbps'"]),
        (Rate, "1.5bps", ["whole number of bit/s", "1.5"]),
        (Rate, "inf", ["a rate such as"]),
        (Duration, "0.5ps", ["whole number of picoseconds", "0.5"]),
        (Duration, "5 sec", ["not a unit", "ms"]),
        (Duration, "1MS", ["did you mean 'ms'"]),
        (Size, True, ["a size such as"]),
        (Size, None, ["a size such as"]),
        (Size, [1], ["a size such as"]),
        (Size, 0.5, ["whole number of bytes"]),
        (Size, float("nan"), ["whole number of bytes"]),
        (Size, float("inf"), ["whole number of bytes"]),
        (Size, -1, ["not negative"]),
        (Size, LARGEST + 1, ["at most", str(LARGEST)]),
        (Size, Rate(8), ["a size such as"]),
    ],
)
def test_says_what_is_wrong(kind, value, words):
    with pytest.raises(QuantityError) as caught:
        kind(value)
    assert repr(value)[:50] in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_numbers_are_base_units():
    import numpy as np

    assert Duration(1500) == Duration("1.5ns")
    assert Size(4096.0) == 4096
    assert Size(np.int64(9000)) == Size("9KB")
    assert Rate(np.float64(1e9)) == Rate("1Gbps")


def test_is_an_integer():
    assert Size("1KB") + Size("1B") == 1001
    assert type(Size("1KB") + Size("1B")) is int
    assert Size("1KB") == 1000
    assert {Size("1KB"): "same"}[1000] == "same"
    assert Size(Size("1KB")) == 1000
    assert Quantity.KIND == "a quantity"


@pytest.mark.parametrize("value", [Rate("400Gbps"), Size("9KB"), Duration("1.5us")])
def test_survives_copying_and_pickling(value):
    for twin in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value
        assert type(twin) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_duration(1_234_567_890), "1.23ms"),
        (format_duration(999_999), "1us"),
        (format_duration(0), "0ps"),
        (format_duration(12.6), "12.6ps"),
        (format_duration(0.25), "0.25ps"),
        (format_duration(-1_500), "-1.5ns"),
        (format_duration(3_600 * 10**12), "3600s"),
        (format_duration(123_456 * 10**12), "123000s"),
        (format_duration(1_234_567, digits=5), "1.2346us"),
        (format_duration(float("nan")), "nan"),
        (format_rate(400 * 10**9), "400Gbps"),
        (format_rate(48_765_432_100.5), "48.8Gbps"),
        (format_size(1_048_576), "1.05MB"),
        (format_size(999.6), "1KB"),
        (format_size(LARGEST), "4610000TB"),
    ],
)
def test_rounds_for_people(text, expected):
    assert text == expected


@given(value=st.integers(10**15, 10**18), digits=st.integers(2, 6))
def test_rounding_errs_by_half_a_digit_at_most(value, digits):
    shown = Size(format_size(value, digits=digits))
    assert abs(shown - value) <= Fraction(value, 2 * 10 ** (digits - 1))
