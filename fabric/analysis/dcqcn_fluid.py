"""Fixed point of the DCQCN fluid model: the rate, marking probability and queue it settles at.

N flows share a link of C. In the fluid model of Zhu, Ghobadi, Misra and Padhye ("ECN or Delay: Lessons
Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016; its equations as in the authors' MATLAB,
github.com/jitupadhye-zz/rdma `fluidmodel/dcqcn/dcqcn2.m`) a flow at rate R, in packets per second, that is
marked with probability p sees per CNP interval tau a mark with probability a = 1-(1-p)^(tau R), and
increases by byte counter (B packets) and timer (T seconds) at the rates

    b = p / ((1-p)^(-B) - 1)     c = b (1-p)^(F B)      d = p / ((1-p)^(-TR) - 1)     e = d (1-p)^(F T R)

At rest every flow has R = C/N and, with all derivatives zero,

    alpha = 1 - (1-p)^(tau' R)     R_T - R = tau R_AI R (c+e) / a     a^2 alpha = tau^2 R_AI R (b+d)(c+e)

The last has exactly one root in p, since its left side rises and its right side falls; it is found by
bisection. The queue follows from RED's ramp; above Pmax there is none, and the queue must oscillate.

The model knows neither hyper increase, nor how flows start, nor whether the fixed point is stable;
packet simulations sit 10 to 40 % above its queue except with many fast flows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabric.analysis.ecn import queue_at_probability

__all__ = ["DcqcnFixedPoint", "DcqcnFluid", "fixed_point", "most_flows_at_rest"]

BITS_PER_BYTE = 8
BISECTION_STEPS = 200
SMALLEST_PROBABILITY = 1e-15
LARGEST_PROBABILITY = 1 - 1e-9
MOST_EXPONENT = 700.0
"""Keeps `exp` finite; terms beyond it are zero for every purpose."""


@dataclass(frozen=True, kw_only=True)
class DcqcnFluid:
    """Parameters of the fluid model; the defaults are those of the SIGCOMM 2015 paper.

    Attributes
    ----------
    cnp_interval_s : float
        tau: least time between two cuts of a flow.
    alpha_period_s : float
        tau': period of the update of alpha.
    increase_period_s : float
        T: period of the increase timer.
    byte_counter_bytes : float or None
        B: bytes per increase by the byte counter; None where there is none.
    fast_recovery : int
        F: increases without additive steps.
    additive_bps : float
        R_AI: additive step.
    packet_bytes : int
        Size of the packets that are marked; the fixed point depends on it.
    """

    cnp_interval_s: float = 50e-6
    alpha_period_s: float = 55e-6
    increase_period_s: float = 55e-6
    byte_counter_bytes: float | None = 10e6
    fast_recovery: int = 5
    additive_bps: float = 40e6
    packet_bytes: int = 1000

    def __post_init__(self) -> None:
        positive = (self.cnp_interval_s, self.alpha_period_s, self.increase_period_s, self.additive_bps)
        if min(positive) <= 0 or self.packet_bytes <= 0 or self.fast_recovery < 0:
            raise ValueError(f"periods, steps and packet size must be positive: {self}")
        if self.byte_counter_bytes is not None and self.byte_counter_bytes <= 0:
            raise ValueError("byte_counter_bytes must be positive, or None")


@dataclass(frozen=True, kw_only=True)
class DcqcnFixedPoint:
    """Where DCQCN rests.

    Attributes
    ----------
    rate_bps : float
        Rate of each flow.
    probability : float
        Marking probability p*.
    alpha : float
        alpha*.
    target_gap_bps : float
        R_T - R_C.
    """

    rate_bps: float
    probability: float
    alpha: float
    target_gap_bps: float

    def queue_bytes(self, *, kmin_bytes: int, kmax_bytes: int, pmax: float) -> float:
        """Queue at the fixed point for given RED thresholds; NaN where it would need p above Pmax.

        Examples
        --------
        >>> point = fixed_point(DcqcnFluid(), rate_bps=40e9 / 4)
        >>> round(point.queue_bytes(kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01) / 1000, 2)
        41.81
        """
        return queue_at_probability(self.probability, kmin_bytes=kmin_bytes, kmax_bytes=kmax_bytes, pmax=pmax)


def fixed_point(fluid: DcqcnFluid, *, rate_bps: float) -> DcqcnFixedPoint:
    """Solve for the fixed point at a given rate per flow.

    Parameters
    ----------
    fluid : DcqcnFluid
        Parameters.
    rate_bps : float
        C/N in bit/s, positive; nothing else of the link matters.

    Returns
    -------
    DcqcnFixedPoint
        p* to about 1e-12 relative.

    Raises
    ------
    ValueError
        If the rate is not positive, or no probability below 1 balances the model.

    Examples
    --------
    >>> point = fixed_point(DcqcnFluid(), rate_bps=400e9 / 2)
    >>> f"{point.probability:.3e} {point.alpha:.5f} {point.target_gap_bps / 1e6:.1f}"
    '4.073e-05 0.05447 548.9'
    """
    if rate_bps <= 0:
        raise ValueError(f"rate_bps must be positive, not {rate_bps}")
    low, high = math.log(SMALLEST_PROBABILITY), math.log(LARGEST_PROBABILITY)
    if _imbalance(fluid, rate_bps, math.exp(low)) > 0 or _imbalance(fluid, rate_bps, math.exp(high)) < 0:
        raise ValueError(f"no marking probability balances {fluid} at {rate_bps} bit/s")
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if _imbalance(fluid, rate_bps, math.exp(middle)) > 0:
            high = middle
        else:
            low = middle
    p = math.exp((low + high) / 2)
    terms = _terms(fluid, rate_bps, p)
    gap = fluid.cnp_interval_s * fluid.additive_bps * terms.rate_pps * terms.additive / terms.cut
    return DcqcnFixedPoint(rate_bps=rate_bps, probability=p, alpha=terms.alpha, target_gap_bps=gap)


def most_flows_at_rest(fluid: DcqcnFluid, *, link_bps: float, pmax: float, limit: int = 1 << 20) -> int:
    """Largest number of flows on a link for which RED has a queue at the fixed point.

    p* grows with the number of flows; beyond the returned one it exceeds `pmax` and the queue has to
    swing about Kmax.

    Parameters
    ----------
    fluid : DcqcnFluid
        Parameters.
    link_bps : float
        Rate of the link.
    pmax : float
        Marking probability at Kmax.
    limit : int
        Where to stop looking.

    Returns
    -------
    int
        0 when even one flow needs more than `pmax`; `limit` when that many flows can still rest.

    Examples
    --------
    >>> most_flows_at_rest(DcqcnFluid(), link_bps=40e9, pmax=0.01)
    14
    """

    def rests(flows: int) -> bool:
        return _imbalance(fluid, link_bps / flows, min(pmax, LARGEST_PROBABILITY)) >= 0

    low, high = 0, 1
    while high <= limit and rests(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        flows = (low + high) // 2
        low, high = (flows, high) if rests(flows) else (low, flows)
    return low


@dataclass(frozen=True)
class _Terms:
    """The model's terms at one probability; rates in packets per second."""

    rate_pps: float
    cut: float
    alpha: float
    increase: float
    additive: float


def _terms(fluid: DcqcnFluid, rate_bps: float, p: float) -> _Terms:
    packet_bits = BITS_PER_BYTE * fluid.packet_bytes
    rate = rate_bps / packet_bits
    unmarked = math.log1p(-p)
    timer_packets = fluid.increase_period_s * rate
    d = p / math.expm1(min(-unmarked * timer_packets, MOST_EXPONENT))
    increase, additive = d, d * math.exp(unmarked * fluid.fast_recovery * timer_packets)
    if fluid.byte_counter_bytes is not None:
        counter_packets = fluid.byte_counter_bytes / fluid.packet_bytes
        b = p / math.expm1(min(-unmarked * counter_packets, MOST_EXPONENT))
        increase += b
        additive += b * math.exp(unmarked * fluid.fast_recovery * counter_packets)
    return _Terms(
        rate_pps=rate,
        cut=-math.expm1(unmarked * fluid.cnp_interval_s * rate),
        alpha=-math.expm1(unmarked * fluid.alpha_period_s * rate),
        increase=increase,
        additive=additive,
    )


def _imbalance(fluid: DcqcnFluid, rate_bps: float, p: float) -> float:
    """a^2 alpha - tau^2 R_AI R (b+d)(c+e); negative below p*, positive above."""
    terms = _terms(fluid, rate_bps, p)
    additive_pps = fluid.additive_bps / (BITS_PER_BYTE * fluid.packet_bytes)
    climb = fluid.cnp_interval_s**2 * additive_pps * terms.rate_pps * terms.increase * terms.additive
    return terms.cut**2 * terms.alpha - climb
