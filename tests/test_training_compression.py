"""Compressed gradients: payloads, when they pay, what they do to a step."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fabric.errors import SpecError
from fabric.training import Quantised, TopK, step_time, wire_bytes

# Compression.


def test_top_k() -> None:
    way = TopK(ratio=0.01)
    n = 10**8
    assert way.payload_bytes(n) == 8_000_000
    assert way.wire_bytes(n, n_ranks=16) == 120_000_000
    dense = wire_bytes("all_reduce", 4 * n, n_ranks=16)
    assert (dense, dense / way.wire_bytes(n, n_ranks=16)) == (750_000_000, Fraction(25, 4))
    assert way.break_even_ranks(n) == 100
    assert way.wire_bytes(n, n_ranks=100) == wire_bytes("all_reduce", 4 * n, n_ranks=100)
    assert way.state_bytes(n) == 4 * n
    assert TopK(ratio=0.01, error_feedback=False).state_bytes(n) == 0


@pytest.mark.parametrize(("ratio", "smaller"), [(0.03, False), (0.03125, None), (0.032, True)])
def test_a_bitmap_is_smaller_above_a_thirty_second(ratio: float, smaller: bool | None) -> None:
    n = 32 * 10**6
    indices, bitmap = TopK(ratio=ratio).payload_bytes(n), TopK(ratio=ratio, bitmap=True).payload_bytes(n)
    assert (bitmap < indices) is (smaller is True)
    assert (bitmap == indices) is (smaller is None)


@pytest.mark.parametrize(("value_bytes", "ratio"), [(4, 0.05), (2, 1 / 30)])
def test_a_tenth_of_the_volume(value_bytes: int, ratio: float) -> None:
    n = 3 * 10**7
    way = TopK(ratio=ratio, value_bytes=value_bytes)
    assert way.payload_bytes(n) == pytest.approx(n * value_bytes / 10, rel=1e-6)


def test_quantised_gradients() -> None:
    way = Quantised(bits=8, block=256)
    assert way.payload_bytes(10**8) == 101_562_500
    assert way.payload_bytes(10**8) / (4 * 10**8) == 0.25390625
    assert way.wire_bytes(10**8, n_ranks=16) == wire_bytes("all_reduce", 101_562_500, n_ranks=16)
    assert way.state_bytes(10) == 0
    assert Quantised(error_feedback=True).state_bytes(10) == 40


def test_step_times() -> None:
    assert (step_time(100, 60), step_time(100, 60, ratio=0.1)) == (160, 106)
    assert step_time(100, 60, hidden=0.5) == 130
    assert step_time(100, 60, ratio=0.1, hidden=0.5, encode=3) == 103
    third = step_time(100, 50, ratio=0.1) / step_time(100, 50)
    assert third == pytest.approx(1 - 0.9 / 3)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (TopK, {"ratio": 0}),
        (TopK, {"ratio": 1.5}),
        (TopK, {"ratio": 0.1, "index_bytes": 0}),
        (Quantised, {"bits": 0}),
        (Quantised, {"block": 0}),
        (Quantised, {"scale_bytes": -1}),
    ],
)
def test_compressions_that_are_none(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        kind(**given)
