"""What links carry before a failure, and once everybody knows of it: means of the recorded throughput.

*Before* is from the beginning to the first failure; *after* from the instant at which routes have changed
because of the last one (or at which it fails, where no route changes) to the first repair, or the end. Only
whole intervals of the recorder count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabric.errors import FabricError
from fabric.failures.timeline import Milestones
from fabric.result import Result

__all__ = ["LinkRates", "link_rates"]


@dataclass(frozen=True, kw_only=True)
class LinkRates:
    """Of all links that match a pattern together; -1 where no whole interval was recorded.

    Attributes
    ----------
    links : str
    before_bps, after_bps : float
        On the wire, headers and gaps included.
    """

    links: str
    before_bps: float
    after_bps: float

    @property
    def left(self) -> float:
        """Share of the rate that is left."""
        known = self.before_bps > 0 and self.after_bps >= 0
        return self.after_bps / self.before_bps if known else float("nan")


def link_rates(result: Result, milestones: Sequence[Milestones], *, links: Sequence[str]) -> list[LinkRates]:
    """Compare what links carry before and after failures.

    Parameters
    ----------
    result : Result
        With recorded throughput.
    milestones : sequence of Milestones
        What :func:`fabric.failures.timeline.milestones` says of its failures; at least one.
    links : sequence of str
        Patterns, such as ``"leaf0->host*"``.

    Returns
    -------
    list of LinkRates

    Raises
    ------
    FabricError
        Nothing fails, or nothing was recorded of such links.

    Examples
    --------
    >>> import fabric
    >>> from fabric.failures import find_occurrences
    >>> from fabric.failures.timeline import milestones
    >>> from fabric.spec import DegradedLink, NoCongestionControl, Permutation, Record, Run, Scenario
    >>> from fabric.spec import SingleSwitch, ThroughputRecord, Transport
    >>> from fabric.topology import build_network
    >>> scenario = Scenario(
    ...     topology=SingleSwitch(hosts=2),
    ...     traffic=[Permutation(size="4MB")],
    ...     transport=Transport(congestion=NoCongestionControl()),
    ...     failures=[DegradedLink(link="switch0->host1", rate="100Gbps", at="20us")],
    ...     record=Record(throughput=ThroughputRecord(ports=["switch0->*"], interval="10us")),
    ...     run=Run(until="1ms"),
    ... )
    >>> found = milestones(find_occurrences(scenario, build_network(scenario.topology)), scenario.recovery)
    >>> (rates,) = link_rates(fabric.run(scenario, progress=False), found, links=["*->host1"])
    >>> f"{rates.after_bps / 1e9:.0f} Gbit/s"
    '100 Gbit/s'
    """
    if not milestones:
        raise FabricError("nothing fails, so there is no before and after")
    first_ps = min(each.began_ps for each in milestones)
    known_ps = max(max(each.began_ps, each.isolated_ps, each.converged_ps) for each in milestones)
    repaired_ps = [each.ended_ps for each in milestones if each.ended_ps > known_ps]
    last_ps = min([int(result.counters["end_ps"]), *repaired_ps])
    return [
        LinkRates(
            links=pattern,
            before_bps=_mean_bps(result, pattern, 0, first_ps),
            after_bps=_mean_bps(result, pattern, known_ps, last_ps),
        )
        for pattern in links
    ]


def _mean_bps(result: Result, pattern: str, begin_ps: int, end_ps: int) -> float:
    """Over the whole intervals between two instants."""
    rows = result.throughput.where(link=pattern)
    if len(rows) == 0:
        raise FabricError(f"no throughput of links {pattern} was recorded (record.throughput)")
    interval_ps = int(rows["interval_ps"][0])
    begin, end = -(-begin_ps // interval_ps), end_ps // interval_ps
    if begin >= end:
        return -1.0
    times = rows["time_ps"] // interval_ps
    carried = int(rows["tx_bytes"][(times >= begin) & (times < end)].sum())
    return carried * 8e12 / ((end - begin) * interval_ps)
