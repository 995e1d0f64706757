"""Where failures come from that are not given one by one: rates of parts, and logs of what happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from fabric.spec.base import Problem, Spec, quantity
from fabric.spec.link import LARGEST_BIT_ERROR_RATE
from fabric.units import Duration

__all__ = ["LARGEST_TIME_PS", "DrawnFailures", "FailureLog", "FailureRates"]

LARGEST_TIME_PS = 2**60
"""About 13 days, as for starts of traffic."""


class FailureRates(Spec, frozen=True, kw_only=True):
    """How often parts fail, each by itself, per unit and year; 0: never.

    Defaults are the figures of `docs/failures.md`, with their sources.

    Parameters
    ----------
    accelerator : float
        Its host hangs. Default 0.01752: a mean time between failures of 500,000 hours.
    nic : float
        All links of its host go down. Default 0.0029.
    optic : float
        A link starts to corrupt. Default 0.0072.
    link : float
        A link goes down. Default 0.0144.
    leaf, spine, core : float
        A switch goes down. Default 0.00612.
    """

    accelerator: float = 0.01752
    nic: float = 0.0029
    optic: float = 0.0072
    link: float = 0.0144
    leaf: float = 0.00612
    spine: float = 0.00612
    core: float = 0.00612

    def problems(self) -> Iterator[Problem]:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                yield name, value, "failures per unit and year: a number from 0"


class DrawnFailures(Spec, frozen=True, kw_only=True, tag_field="kind", tag="drawn"):
    """Failures by chance: every part fails at its rate, drawn by the seed of the run.

    Parameters
    ----------
    at, lasts : Duration
        The time in which failures begin.
    rates : FailureRates
        By class of part.
    acceleration : float
        How much faster than in reality parts fail, so that something does within milliseconds; above 0.
        Default 1.
    repair : Duration
        Until each failure is repaired. Default 10ms.
    bit_error_rate : float
        Of an optic that has begun to corrupt. Default 1e-7.
    """

    at: Duration = quantity("0ns")
    lasts: Duration
    rates: FailureRates = msgspec.field(default_factory=FailureRates)
    acceleration: float = 1.0
    repair: Duration = quantity("10ms")
    bit_error_rate: float = 1e-7

    def problems(self) -> Iterator[Problem]:
        for name in ("at", "lasts", "repair"):
            if getattr(self, name) > LARGEST_TIME_PS:
                yield name, getattr(self, name), "a duration of at most 2^60 ps (about 13 days)"
        for name in ("lasts", "repair"):
            if getattr(self, name) == 0:
                yield name, getattr(self, name), "a duration above 0"
        if not 0 < self.acceleration < float("inf"):
            yield "acceleration", self.acceleration, "a number above 0"
        if not 0 < self.bit_error_rate <= LARGEST_BIT_ERROR_RATE:
            yield "bit_error_rate", self.bit_error_rate, "a probability above 0 and at most 1e-6"


class FailureLog(Spec, frozen=True, kw_only=True, tag_field="kind", tag="log"):
    """Failures from a CSV file, to replay what happened.

    Parameters
    ----------
    file : str
        CSV with the columns `at`, `lasts`, `kind`, `target`, `value`: durations ("1.5ms"; empty `lasts`:
        never repaired), the kind of an entry ("link_down"), the link, switch or host, and the rate or the
        bit error rate where the kind needs one.
    """

    FILES: ClassVar[tuple[str, ...]] = ("file",)

    file: str
