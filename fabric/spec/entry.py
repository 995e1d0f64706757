"""What every kind of traffic has."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.spec.base import Problem, Spec, quantity
from fabric.spec.transport import Transport
from fabric.units import Duration

__all__ = ["LARGEST_START_PS", "Entry", "bounded_time"]

LARGEST_START_PS = 2**60
"""About 13 days: starts and what is added to them stay far from the end of the 64-bit clock."""


class Entry(Spec, frozen=True, kw_only=True):
    """What every kind of traffic has.

    Parameters
    ----------
    name : str
        A label for reports and patterns of flows. Default: the kind.
    transport : Transport, optional
        None (default): that of the scenario.
    traffic_class : str, optional
        The class of its data frames. None (default): the transport's `data_class`.
    start : Duration
        When it begins; at most 2^60 ps (about 13 days). Default 0.
    jitter : Duration
        Each flow starts later by a uniform draw from [0, jitter); at most 2^60 ps. Default 0.
    """

    name: str = ""
    transport: Transport | None = None
    traffic_class: str | None = None
    start: Duration = quantity("0ns")
    jitter: Duration = quantity("0ns")

    def problems(self) -> Iterator[Problem]:
        yield from bounded_time(self.start, "start")
        yield from bounded_time(self.jitter, "jitter")


def bounded_time(value: Duration, name: str) -> Iterator[Problem]:
    """Yield what is wrong with a time of a scenario."""
    if value > LARGEST_START_PS:
        yield name, value, "a duration of at most 2^60 ps (about 13 days)"
