"""Congestion controls other than DCQCN: HPCC, DCTCP, TIMELY.

Each states what its sender does with ACKs (`docs/design.md`, section 7) and every parameter of it, with
defaults from a public source. All begin at line rate. What a frame collects on its way (telemetry, a
time stamp) is exact and of any length, unless HPCC's is to be compact; it adds to the frame's size only what
`telemetry_header` says. Not modelled: slow start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from fabric.spec.base import Problem, Spec, outside, quantity
from fabric.units import Duration, Rate, Size

__all__ = ["Dctcp", "Hpcc", "Timely"]

LARGEST_COUNT = 2**32 - 1
LARGEST_UNIT = 1024


class Hpcc(Spec, frozen=True, kw_only=True, tag_field="kind", tag="hpcc"):
    """HPCC (Li et al., SIGCOMM 2019): rate and window follow the use of the most used link.

    Switches write down time, bytes sent, bytes queued and rate of the port when a data frame leaves;
    the ACK brings it back. The window is rate times `base_rtt`. Defaults are those of the paper and of
    its simulator (github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/run.py`).

    Parameters
    ----------
    base_rtt : Duration
        T, a little more than the largest round-trip time of an idle fabric. Default 12us
        (github.com/Broadcom/csg-htsim, `sim/hpcc.cpp`).
    eta : float
        Target use of a link, in (0, 1]. Default 0.95.
    max_stage : int
        Additive updates in a row before a multiplicative one. Default 5 (paper; the simulator: 0).
    fast_reaction : bool
        React to every ACK, and not once a round trip. Default True.
    ai : Rate
        The additive step. Default 10Mbps.
    scale_from : Rate or None
        The line rate for which ai holds; for a flow on a port of another rate it is scaled in
        proportion. Default 25Gbps. None (in a file: 0): the same at every rate.
    min_rate : Rate
        No flow is slower. Default 1Gbps (the simulator).
    telemetry_header : Size
        What telemetry adds to each data frame. Default 0. The simulator: 42 bytes, for five hops.
    telemetry_unit : int, optional
        Records of 64 bits, as in the simulator (its INT_MULTI): times in ns modulo 2^24, bytes sent in
        units of 128 times this modulo 2^20, bytes queued in units of 80 times this modulo 2^17; 1 to 1024.
        At 100 Gbit/s the simulator has 4. None (default): exact ones.

    Examples
    --------
    >>> Hpcc().at_line_rate(100_000_000_000).ai
    Rate("40Mbps")
    """

    base_rtt: Duration = quantity("12us")
    eta: float = 0.95
    max_stage: int = 5
    fast_reaction: bool = True
    ai: Rate = quantity("10Mbps")
    scale_from: Rate | None = quantity("25Gbps")
    min_rate: Rate = quantity("1Gbps")
    telemetry_header: Size = quantity(0)
    telemetry_unit: int | None = None

    def settle(self) -> None:
        _zero_is_off(self, "scale_from")

    def problems(self) -> Iterator[Problem]:
        yield from _must_be_above_0(self, "base_rtt", "min_rate")
        if not 0 < self.eta <= 1:
            yield "eta", self.eta, "a number above 0 and at most 1"
        yield from outside("max_stage", self.max_stage, low=0, high=LARGEST_COUNT)
        if self.telemetry_unit is not None:
            yield from outside("telemetry_unit", self.telemetry_unit, low=1, high=LARGEST_UNIT)

    @property
    def window(self) -> None:
        """No bound that is the same at every line rate: it is rate times `base_rtt`."""

    def at_line_rate(self, rate_bps: int) -> Self:
        """Return these parameters for a port of `rate_bps`, with `ai` scaled, rounded down."""
        if self.scale_from is None:
            return self
        return self.replace(ai=Rate(self.ai * rate_bps // self.scale_from), scale_from=None)


class Dctcp(Spec, frozen=True, kw_only=True, tag_field="kind", tag="dctcp"):
    """DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) as a rate, cut by the share of marked frames.

    Marks return in the ACK of each frame. It is meant for step marking: an `Ecn` with kmin = kmax and
    pmax = 1. With a window that follows the rate, of one bandwidth-delay product at line rate, and
    `ai` of one frame a round trip, it is DCTCP's window. Defaults: `simulation/run.py` of the HPCC
    simulator (see `Hpcc`).

    Parameters
    ----------
    g : float
        Gain of alpha, in (0, 1]. Default 1/16.
    ai : Rate
        The step a window. Default 615Mbps: 1000 bytes in 13 us, at every line rate.
    min_rate : Rate
        No flow is slower. Default 1Gbps.
    window : Size or None
        As `FixedWindow.window`, beside the rate. Default None (in a file: 0): no bound.
    variable_window : bool
        Whether the window is that at line rate, and smaller in proportion at other rates. Default True.
    """

    g: float = 1 / 16
    ai: Rate = quantity("615Mbps")
    min_rate: Rate = quantity("1Gbps")
    window: Size | None = None
    variable_window: bool = True

    def settle(self) -> None:
        _zero_is_off(self, "window")

    def problems(self) -> Iterator[Problem]:
        yield from _must_be_above_0(self, "min_rate")
        if not 0 < self.g <= 1:
            yield "g", self.g, "a number above 0 and at most 1"


class Timely(Spec, frozen=True, kw_only=True, tag_field="kind", tag="timely"):
    """TIMELY (Mittal et al., SIGCOMM 2015): the rate follows the round-trip time and its gradient.

    Defaults: `simulation/run.py` and `rdma-hw.cc` of the HPCC simulator (see `Hpcc`).

    Parameters
    ----------
    gain : float
        Weight of the newest difference of round-trip times, in (0, 1]. Default 0.875.
    beta : float
        Strength of a decrease, in (0, 1]. Default 0.8.
    min_rtt : Duration
        What differences are relative to. Default 20us.
    rtt_low, rtt_high : Duration
        Below the one the rate always grows, above the other it always falls. Defaults 50us and 500us.
    hyper_after : int
        Increases in a row that are by ai; later ones are by hai. Default 5.
    ai, hai : Rate
        Steps, additive and hyper. Defaults 10Mbps and 50Mbps.
    scale_from : Rate or None
        The line rate for which ai and hai hold; for a flow on a port of another rate they are
        scaled in proportion. Default 10Gbps. None (in a file: 0): the same at every rate.
    min_rate : Rate
        No flow is slower. Default 1Gbps.
    window : Size or None
        As `FixedWindow.window`, beside the rate. Default None (in a file: 0): no bound.
    variable_window : bool
        Whether the window is that at line rate, and smaller in proportion at other rates. Default False.
    telemetry_header : Size
        What the time stamp adds to each data frame. Default 0. The simulator: 8 bytes.

    Examples
    --------
    >>> Timely().at_line_rate(100_000_000_000).hai
    Rate("500Mbps")
    """

    gain: float = 0.875
    beta: float = 0.8
    min_rtt: Duration = quantity("20us")
    rtt_low: Duration = quantity("50us")
    rtt_high: Duration = quantity("500us")
    hyper_after: int = 5
    ai: Rate = quantity("10Mbps")
    hai: Rate = quantity("50Mbps")
    scale_from: Rate | None = quantity("10Gbps")
    min_rate: Rate = quantity("1Gbps")
    window: Size | None = None
    variable_window: bool = False
    telemetry_header: Size = quantity(0)

    def settle(self) -> None:
        _zero_is_off(self, "scale_from", "window")

    def problems(self) -> Iterator[Problem]:
        yield from _must_be_above_0(self, "min_rtt", "min_rate")
        for name in ("gain", "beta"):
            if not 0 < getattr(self, name) <= 1:
                yield name, getattr(self, name), "a number above 0 and at most 1"
        if self.rtt_high < self.rtt_low:
            yield "rtt_high", self.rtt_high, f"a duration of at least rtt_low ({self.rtt_low})"
        yield from outside("hyper_after", self.hyper_after, low=0, high=LARGEST_COUNT)

    def at_line_rate(self, rate_bps: int) -> Self:
        """Return these parameters for a port of `rate_bps`, with `ai` and `hai` scaled, rounded down."""
        if self.scale_from is None:
            return self
        return self.replace(
            ai=Rate(self.ai * rate_bps // self.scale_from),
            hai=Rate(self.hai * rate_bps // self.scale_from),
            scale_from=None,
        )


def _zero_is_off(spec: Spec, *names: str) -> None:
    for name in names:
        if getattr(spec, name) == 0:
            msgspec.structs.force_setattr(spec, name, None)


def _must_be_above_0(spec: Spec, *names: str) -> Iterator[Problem]:
    for name in names:
        if getattr(spec, name) == 0:
            yield name, getattr(spec, name), f"a {type(getattr(spec, name)).__name__.lower()} above 0"
