"""Open-loop arrivals: every host starts flows as a Poisson process, with sizes from a distribution.

At load rho, the gaps of a host are exponential with mean 8 * mean size / (rho * rate of the host), the
destination is uniform over the other hosts, and size, gap and destination are independent. The load
counts payload; headers come on top. This is the traffic generator of
github.com/alibaba-edu/High-Precision-Congestion-Control (`traffic_gen/traffic_gen.py`), as used for
HPCC (Li et al., SIGCOMM 2019). The first gap starts with the entry, so the process is stationary.

The k-th flow of a host is a function of (seed, entry, host, k): a longer duration, another number of
flows or another host's rate adds flows and changes none.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.traffic import LARGEST_START_PS, Poisson
from fabric.topology.network import Network
from fabric.units import format_duration
from fabric.workload.distributions import SizeDistribution, load_distribution
from fabric.workload.draws import EntryDraws, Stream, exponential_of_bits
from fabric.workload.pattern_flows import PatternFlows, check_flow_count, check_two_hosts, other_host
from fabric.workload.placement import host_rates_bps

__all__ = ["mean_gap_ps", "poisson_flows"]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

BITS_PER_BYTE = 8
PS_PER_SECOND = 10**12
LATEST_PS = 2.0**62
"""Later arrivals, which are refused, are taken for this, so that they fit an integer."""
BLOCK_DRAWS = 1 << 20
"""Draws made at a time; it bounds memory and is not observable."""


def mean_gap_ps(mean_bytes: float, *, load: float, rate_bps: npt.ArrayLike) -> FloatArray:
    """Mean time between two flows of a host.

    Parameters
    ----------
    mean_bytes : float
        Mean flow size.
    load : float
        Offered payload over the host's rate.
    rate_bps : array_like
        Rate of each host in bit/s.

    Returns
    -------
    ndarray of float64
        Picoseconds.

    Examples
    --------
    >>> float(mean_gap_ps(120420.75, load=0.5, rate_bps=100 * 10**9)) / 1e6
    19.26732
    """
    rate = np.asarray(rate_bps, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(BITS_PER_BYTE * PS_PER_SECOND * mean_bytes / (load * rate))


def poisson_flows(spec: Poisson, *, network: Network, draws: EntryDraws, path: str) -> list[PatternFlows]:
    """Flows of a `Poisson` entry, in order of start, then of source.

    Parameters
    ----------
    spec : Poisson
    network : Network
    draws : EntryDraws
    path : str
        Of the entry, for errors.

    Returns
    -------
    list of PatternFlows
        One element.

    Raises
    ------
    SpecError
        If there are fewer than two hosts, a host has no link, the distribution is wrong, no flow
        arrives in `duration`, or flows arrive later than 2^60 ps.
    """
    hosts = network.n_end_hosts
    check_two_hosts(hosts, path=path)
    sizes = load_distribution(spec.distribution, path=f"{path}.distribution")
    rates = host_rates_bps(network)[:hosts]
    if rates.min() == 0:
        raise SpecError(path, network.names[int(rates.argmin())], "hosts that all have a link")
    gaps = mean_gap_ps(sizes.mean_bytes, load=spec.load, rate_bps=rates)
    if gaps.max() > LARGEST_START_PS:
        allowed = f"a load at which a host starts a flow in 2^60 ps (mean gap {gaps.max() / 1e12:.4g} s)"
        raise SpecError(f"{path}.load", spec.load, allowed)
    if spec.duration is not None:
        expected = spec.duration * float(np.sum(1 / gaps))
        check_flow_count(expected, path=f"{path}.duration", value=spec.duration)
        start, source, number = _arrivals_until(float(spec.duration), gaps=gaps, draws=draws)
        if not start.size:
            gap = format_duration(float(1 / np.sum(1 / gaps)))
            raise SpecError(f"{path}.duration", spec.duration, f"long enough for one flow (mean gap {gap})")
    else:
        assert spec.flows is not None
        check_flow_count(spec.flows, path=f"{path}.flows", value=spec.flows)
        start, source, number = _first_arrivals(spec.flows, gaps=gaps, draws=draws)
        if start[-1] > LARGEST_START_PS:
            allowed = f"flows that arrive within 2^60 ps (the last one at {format_duration(int(start[-1]))})"
            raise SpecError(f"{path}.flows", spec.flows, allowed)
    return [_flows(start, source=source, number=number, sizes=sizes, draws=draws, hosts=hosts)]


def _flows(
    start: Int64Array,
    *,
    source: Int64Array,
    number: Int64Array,
    sizes: SizeDistribution,
    draws: EntryDraws,
    hosts: int,
) -> PatternFlows:
    pick = draws.below(hosts - 1, Stream.DESTINATION, source, number)
    return PatternFlows(
        source=source,
        destination=other_host(source, pick=pick),
        size_bytes=sizes.sizes(draws.uniform(Stream.SIZE, source, number)),
        offset_ps=start,
    )


def _first_arrivals(
    flows: int, *, gaps: FloatArray, draws: EntryDraws
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Start, source and number of the first `flows` arrivals over all hosts."""
    per_ps = float(np.sum(1 / gaps))
    horizon = (flows + 4 * math.sqrt(flows) + 4) / per_ps
    while True:
        start, source, number = _arrivals_until(horizon, gaps=gaps, draws=draws)
        if start.size >= flows:
            return start[:flows], source[:flows], number[:flows]
        horizon *= 2


def _arrivals_until(
    horizon_ps: float, *, gaps: FloatArray, draws: EntryDraws
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Start, source and number of every arrival before `horizon_ps`, in order of start, then source."""
    active = np.arange(len(gaps), dtype=np.int64)
    reached = np.zeros(len(gaps))
    pieces: list[tuple[Int64Array, Int64Array, Int64Array]] = []
    first = 0
    while active.size:
        wanted = horizon_ps / float(gaps.min()) - first
        width = int(min(max(wanted + 4 * math.sqrt(abs(wanted)), 16), max(BLOCK_DRAWS // active.size, 1)))
        number = np.arange(first, first + width, dtype=np.int64)
        bits = draws.bits(Stream.GAP, active[:, None], number[None, :])
        times = exponential_of_bits(bits) * gaps[active, None]
        times[:, 0] += reached[active]
        np.cumsum(times, axis=1, out=times)
        row, column = np.nonzero(times < horizon_ps)
        arrivals = np.minimum(times[row, column], LATEST_PS).astype(np.int64)
        pieces.append((arrivals, active[row], number[column]))
        reached[active] = times[:, -1]
        active = active[times[:, -1] < horizon_ps]
        first += width
    start, source, order = (np.concatenate(column) for column in zip(*pieces, strict=True))
    sequence = np.lexsort((order, source, start))
    return start[sequence], source[sequence], order[sequence]
