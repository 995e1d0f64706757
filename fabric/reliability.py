"""How often a cluster fails, and what checkpoints save: closed forms, and the same by Monte Carlo.

Parts fail independently, each with a constant rate, so the failures of a whole are a Poisson process with
the sum of the rates, and everything below is exact for it. A job on all parts stops with any of them. It
saves a checkpoint after every `interval` of work, which takes `checkpoint`; after a failure it needs
`restart` and begins again at the last checkpoint. A failure during the restart begins that again. With M
the mean time between failures, tau the interval, delta the checkpoint and R the restart, a segment of tau
takes on average

    M exp(R/M) (exp((tau+delta)/M) - 1)

(Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22, 2006). Its
best interval has tau/M = 1 - exp(-(tau+delta)/M); Young's (CACM 17, 1974) and Daly's are approximations of
it.

Times have the unit in their name; rates are per device and hour, a year has 8,760 hours. Not modelled:
wear-out and infant mortality, failures that come in groups, degraded parts that stay up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "DEVICES",
    "HOURS_PER_YEAR",
    "Checkpointing",
    "Device",
    "DrawnFailures",
    "cluster_rate_per_hour",
    "draw_failures",
    "failure_probability",
    "mean_down",
    "rate_of_annual_share",
    "simulate_goodput",
]

HOURS_PER_YEAR = 8760.0
MONTHS_PER_YEAR = 12
BISECTION_STEPS = 200


@dataclass(frozen=True)
class Device:
    """A kind of part.

    Attributes
    ----------
    rate_per_hour : float
        Failures of one device.
    source : str
        Where the rate comes from, and its range elsewhere.
    """

    rate_per_hour: float
    source: str


def rate_of_annual_share(share: float) -> float:
    """Failures per hour of a device of which a share fails within a year: -ln(1-A)/8760.

    Examples
    --------
    >>> round(1 / rate_of_annual_share(0.0175))
    496179
    """
    if not 0 <= share < 1:
        raise ValueError(f"the share must lie in [0, 1), not {share}")
    return -math.log1p(-share) / HOURS_PER_YEAR


def _monthly(share: float) -> float:
    return share * MONTHS_PER_YEAR / HOURS_PER_YEAR


DEVICES: Mapping[str, Device] = {
    "accelerator": Device(
        1 / 500_000,
        "MTBF of 500,000 h, 1.75 % a year, as vendors state 1 to 2 %; The Llama 3 Herd of Models "
        "(arXiv 2407.21783) "
        "counts 268 interruptions by GPUs in 16,384 x 54 days, 11 % a year",
    ),
    "nic": Device(
        7 / (16_384 * 54 * 24),
        "7 in 16,384 GPUs x 54 days (arXiv 2407.21783), 0.29 % a year; the trace of github.com/stepfun-ai/"
        "InfiniteHBD-Trace has 30 in 400 servers of 8 x 348 days, 0.98 % a year",
    ),
    "link": Device(
        35 / (16_384 * 54 * 24),
        "35 failures of a switch or cable in 16,384 GPUs x 54 days (arXiv 2407.21783), 1.2e-3 a "
        "month; Alibaba HPN "
        "(SIGCOMM 2024) has 5.7e-4 a month between NIC and leaf",
    ),
    "leaf": Device(_monthly(5.1e-4), "0.051 % a month: Alibaba HPN, SIGCOMM 2024"),
    "spine": Device(_monthly(5.1e-4), "as a leaf; no figure of its own is public"),
    "core": Device(_monthly(5.1e-4), "as a leaf; no figure of its own is public"),
}
"""Rates of hard failures by kind of part."""


def cluster_rate_per_hour(counts: Mapping[str, int], *, rates: Mapping[str, float] | None = None) -> float:
    """Failures per hour of a cluster; its mean time between failures is one over that.

    Parameters
    ----------
    counts : mapping of str to int
        Parts by kind.
    rates : mapping of str to float, optional
        Failures per hour of one part, instead of or besides those of `DEVICES`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        A kind without a rate, or a negative number.

    Examples
    --------
    >>> round(cluster_rate_per_hour({"accelerator": 160_000}), 4)
    0.32
    """
    known = {name: device.rate_per_hour for name, device in DEVICES.items()} | dict(rates or {})
    for name, count in counts.items():
        if name not in known:
            raise ValueError(f"no rate for {name!r}; there are {', '.join(sorted(known))}")
        if count < 0 or known[name] < 0:
            raise ValueError(f"counts and rates must not be negative: {name}")
    return float(sum(count * known[name] for name, count in counts.items()))


def failure_probability(rate_per_hour: float, *, hours: float) -> float:
    """Probability of at least one failure within a time: 1 - exp(-rate t).

    Examples
    --------
    >>> round(failure_probability(0.32, hours=1), 4)
    0.2739
    """
    if rate_per_hour < 0 or hours < 0:
        raise ValueError("rate_per_hour and hours must not be negative")
    return -math.expm1(-rate_per_hour * hours)


def mean_down(rate_per_hour: float, *, repair_hours: float) -> float:
    """Mean number of parts under repair at once, `rate * repair`, whatever the spread of repair times.

    Examples
    --------
    >>> mean_down(0.32, repair_hours=24)
    7.68
    """
    if rate_per_hour < 0 or repair_hours < 0:
        raise ValueError("rate_per_hour and repair_hours must not be negative")
    return rate_per_hour * repair_hours


@dataclass(frozen=True, kw_only=True)
class Checkpointing:
    """A job that saves its state.

    Attributes
    ----------
    mtbf_s : float
        Mean time between failures of all that the job needs, in seconds; positive.
    checkpoint_s : float
        What saving takes, while no work is done; positive.
    restart_s : float
        From a failure to work again, detection included; not negative.

    Raises
    ------
    ValueError
        A time is out of range.

    Examples
    --------
    >>> job = Checkpointing(mtbf_s=11_250, checkpoint_s=60, restart_s=300)
    >>> round(job.best_interval_s(), 2), round(job.goodput(job.best_interval_s()), 5)
    (1122.24, 0.87656)
    """

    mtbf_s: float
    checkpoint_s: float
    restart_s: float

    def __post_init__(self) -> None:
        if not (self.mtbf_s > 0 and self.checkpoint_s > 0 and self.restart_s >= 0):
            raise ValueError(f"mtbf_s and checkpoint_s must be positive, restart_s not negative: {self}")

    @classmethod
    def of_parts(
        cls, parts: int, *, part_mtbf_s: float, checkpoint_s: float, restart_s: float
    ) -> Checkpointing:
        """A job on `parts` equal parts, any of which stops it."""
        if parts < 1:
            raise ValueError(f"a job needs at least one part, not {parts}")
        return cls(mtbf_s=part_mtbf_s / parts, checkpoint_s=checkpoint_s, restart_s=restart_s)

    def segment_s(self, interval_s: float) -> float:
        """Expected time for `interval_s` of work and its checkpoint, failures included.

        Infinite where it would take longer than any number can say.
        """
        if interval_s <= 0:
            raise ValueError(f"interval_s must be positive, not {interval_s}")
        try:
            grown = math.expm1((interval_s + self.checkpoint_s) / self.mtbf_s)
            return self.mtbf_s * math.exp(self.restart_s / self.mtbf_s) * grown
        except OverflowError:
            return math.inf

    def goodput(self, interval_s: float) -> float:
        """Share of time that is work which is kept."""
        return interval_s / self.segment_s(interval_s)

    def lost_s(self, work_s: float, *, interval_s: float) -> float:
        """Expected time beyond `work_s` of work: checkpoints, restarts, and work done twice."""
        if work_s < 0:
            raise ValueError(f"work_s must not be negative, not {work_s}")
        return work_s / self.goodput(interval_s) - work_s

    def young_s(self) -> float:
        """Young's interval, sqrt(2 delta M)."""
        return math.sqrt(2 * self.checkpoint_s * self.mtbf_s)

    def daly_s(self) -> float:
        """Daly's interval, of higher order; M where a checkpoint takes 2 M or more."""
        ratio = self.checkpoint_s / (2 * self.mtbf_s)
        if ratio >= 1:
            return self.mtbf_s
        return self.young_s() * (1 + math.sqrt(ratio) / 3 + ratio / 9) - self.checkpoint_s

    def best_interval_s(self) -> float:
        """The interval of the highest goodput, exact: the root of tau/M = 1 - exp(-(tau+delta)/M)."""
        low, high = 0.0, 1.0
        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2
            if -math.expm1(-(middle + self.checkpoint_s / self.mtbf_s)) > middle:
                low = middle
            else:
                high = middle
        return self.mtbf_s * (low + high) / 2


def simulate_goodput(
    job: Checkpointing, *, interval_s: float, segments: int, seed: int
) -> tuple[float, float]:
    """Goodput by Monte Carlo: every segment is tried until no failure falls into it.

    Parameters
    ----------
    job : Checkpointing
    interval_s : float
    segments : int
        Independent segments, at least 2.
    seed : int

    Returns
    -------
    (float, float)
        Goodput, and its standard error.

    Raises
    ------
    ValueError
        A parameter is out of range.

    Examples
    --------
    >>> job = Checkpointing(mtbf_s=3600, checkpoint_s=30, restart_s=300)
    >>> goodput, error = simulate_goodput(job, interval_s=600, segments=100_000, seed=1)
    >>> abs(goodput - job.goodput(600)) < 4 * error
    True
    """
    if interval_s <= 0 or segments < 2:
        raise ValueError("interval_s must be positive and there must be at least two segments")
    random = np.random.default_rng(seed)
    spent = np.zeros(segments)
    trying = np.arange(segments)
    needed = interval_s + job.checkpoint_s
    while len(trying):
        failure = random.exponential(job.mtbf_s, len(trying))
        done = failure >= needed
        spent[trying] += np.where(done, needed, failure)
        trying = trying[~done]
        needed = job.restart_s + interval_s + job.checkpoint_s
    goodput = interval_s / spent.mean()
    return float(goodput), float(goodput * spent.std(ddof=1) / math.sqrt(segments) / spent.mean())


@dataclass(frozen=True, eq=False)
class DrawnFailures:
    """Failures of one run, in order of time.

    Attributes
    ----------
    kinds : tuple of str
    time_hours : numpy.ndarray of float64 [failures]
    kind : numpy.ndarray of int64 [failures]
        Index into `kinds`.
    device : numpy.ndarray of int64 [failures]
        Which device of the kind, from 0.
    """

    kinds: tuple[str, ...]
    time_hours: npt.NDArray[np.float64]
    kind: npt.NDArray[np.int64]
    device: npt.NDArray[np.int64]


def draw_failures(
    counts: Mapping[str, int], *, hours: float, seed: int, rates: Mapping[str, float] | None = None
) -> DrawnFailures:
    """Draw when which device fails; repaired devices are as new.

    Parameters
    ----------
    counts, rates
        As in :func:`cluster_rate_per_hour`.
    hours : float
        Length of the run.
    seed : int

    Returns
    -------
    DrawnFailures

    Examples
    --------
    >>> drawn = draw_failures({"accelerator": 160_000}, hours=1000, seed=1)
    >>> 250 < len(drawn.time_hours) < 400
    True
    """
    if hours < 0:
        raise ValueError(f"hours must not be negative, not {hours}")
    random = np.random.default_rng(seed)
    times, kinds, devices = [], [], []
    for number, (name, count) in enumerate(counts.items()):
        failures = random.poisson(cluster_rate_per_hour({name: count}, rates=rates) * hours)
        times.append(random.uniform(0, hours, failures))
        kinds.append(np.full(failures, number))
        devices.append(random.integers(0, max(count, 1), failures))
    time = np.concatenate([*times, np.empty(0)])
    order = np.argsort(time, kind="stable")
    integers = [np.concatenate([*each, np.empty(0, dtype=np.int64)])[order] for each in (kinds, devices)]
    return DrawnFailures(tuple(counts), time[order], integers[0], integers[1])
