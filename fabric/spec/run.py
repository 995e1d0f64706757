"""How long a scenario runs, and what is recorded while it does.

Totals (completion times, drops, marks, peaks, pauses) are always kept; a `Record` adds series and
events, which cost memory in proportion to what happens. Ports are named by node and number
("leaf0:3") or by the two ends of their link, sender first ("leaf0->spine1"); patterns are as in file
names ("leaf*->host7"), and one that matches nothing is an error when the network is built. The
streams are those of `docs/design.md`, section 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec, outside
from fabric.units import Duration, Size

__all__ = ["DEADLOCK_MODES", "PacketRecord", "QueueRecord", "Record", "Run", "ThroughputRecord"]

LARGEST_SEED = 2**63 - 1
PS_PER_NS = 1_000
DEADLOCK_MODES = ("off", "report", "stop")
"""What `Run.deadlock` can be, by the number that an engine knows it by."""
SHORTEST_INTERVAL_PS = 1_000
"""No frame starts and ends within 1 ns; finer samples only fill memory."""


class Run(Spec, frozen=True, kw_only=True):
    """When to stop, and with which seed.

    Parameters
    ----------
    seed : int
        0 to 2^63-1. Same scenario and seed, same result, on any machine. Default 1.
    until : Duration, optional
        Stop here. None (default): when nothing is left to happen.
    window : Duration, optional
        How far nodes are simulated at a time, at most the smallest link delay. None (default):
        that. Does not change results.
    fingerprint : bool
        Hash every arrival into one number. Default True.
    timing : "exact" or "ns3"
        How long a frame occupies a link: its bits over the rate, rounded up to a picosecond
        (default), or truncated to nanoseconds as ns-3 does, which makes links a few per cent too
        fast; to compare with runs of it. Starts of flows and pauses between frames are then truncated
        too, and rates to whole bit/s.
    ties : {"fair", "transmission_start"}
        Which frames of those that arrive at one instant at one node go first. "fair" (default): a
        keyed hash decides, so that no port always wins, and ports that come free at that instant begin
        their next frame before. "transmission_start": those whose transmission began first, then by
        port, and before ports that come free; flows start last. That is as close to the order of ns-3
        as a node can know, and needs timing = "ns3".
    waits : {"news", "instant"}
        When a flow that waits for one between other hosts hears of its end. "news" (default): when the
        message has been delivered, and news of it could have come from there. "instant": the very
        instant at which the last ACK reaches that flow's sender, wherever it is, as in simulators with
        one list of events.
    deadlock : {"off", "report", "stop"}
        Whether PFC deadlocks are looked for (`docs/deadlock.md`). "report" (default): each is in the result,
        with the instant at which it formed, its cycle, frames and flows, and the run goes on. "stop": the
        run ends at the first look that follows, some microseconds later. "off": not.
    """

    seed: int = 1
    until: Duration | None = None
    window: Duration | None = None
    fingerprint: bool = True
    timing: Literal["exact", "ns3"] = "exact"
    ties: Literal["fair", "transmission_start"] = "fair"
    waits: Literal["news", "instant"] = "news"
    deadlock: Literal["off", "report", "stop"] = "report"

    @property
    def tick_ps(self) -> int:
        """Things happen at multiples of this, in ps: 1000 with ties by transmission start, else 1."""
        return PS_PER_NS if self.ties == "transmission_start" else 1

    def problems(self) -> Iterator[Problem]:
        yield from outside("seed", self.seed, low=0, high=LARGEST_SEED)
        if self.ties == "transmission_start" and self.timing != "ns3":
            yield "ties", self.ties, '"fair", or timing = "ns3"'
        for name in ("until", "window"):
            if getattr(self, name) == 0:
                yield name, getattr(self, name), f"a duration above 0, or no {name}"


class QueueRecord(Spec, frozen=True, kw_only=True):
    """Depths of egress queues over time, per class.

    Parameters
    ----------
    ports : tuple of str
        Patterns. Default: every port of a switch.
    interval : Duration, optional
        The depth at each multiple of this; at least 1ns.
    delta : Size, optional
        Every change by at least this. Exactly one of interval and delta is given.
    """

    ports: tuple[str, ...] = ("*",)
    interval: Duration | None = None
    delta: Size | None = None

    def problems(self) -> Iterator[Problem]:
        yield from _patterns(self.ports, "ports")
        if self.interval is None and self.delta is None:
            yield "interval", self.interval, "a duration, or delta: a size"
        if self.interval is not None and self.delta is not None:
            yield "delta", self.delta, f"either interval (here {self.interval}) or delta, not both"
        if self.interval is not None and self.interval < SHORTEST_INTERVAL_PS:
            yield "interval", self.interval, "a duration of at least 1ns"
        if self.delta == 0:
            yield "delta", self.delta, "a size of at least 1 byte"


class ThroughputRecord(Spec, frozen=True, kw_only=True):
    """Bytes sent per interval.

    Parameters
    ----------
    interval : Duration
        At least 1ns.
    ports : tuple of str
        Patterns. Default: every port.
    """

    interval: Duration
    ports: tuple[str, ...] = ("*",)

    def problems(self) -> Iterator[Problem]:
        yield from _patterns(self.ports, "ports")
        if self.interval < SHORTEST_INTERVAL_PS:
            yield "interval", self.interval, "a duration of at least 1ns"


class PacketRecord(Spec, frozen=True, kw_only=True):
    """Every frame as its transmission starts.

    Parameters
    ----------
    ports : tuple of str
        Patterns of ports at which all frames are recorded.
    flows : tuple of str
        Patterns of flows, as in `Record.rates`, that are recorded at all ports. At least one of the
        two is given.
    """

    ports: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        if not self.ports and not self.flows:
            yield "ports", self.ports, "a pattern of ports, or of flows"
        yield from _patterns(self.ports, "ports", empty=True)
        yield from _patterns(self.flows, "flows", empty=True)


class Record(Spec, frozen=True, kw_only=True):
    """What is recorded besides totals.

    Parameters
    ----------
    queues : QueueRecord, optional
        Queue depths. Default: not.
    throughput : ThroughputRecord, optional
        Bytes sent per interval. Default: not.
    packets : PacketRecord, optional
        Frames one by one. Default: not.
    rates : tuple of str
        Patterns of flows whose sending rate and window are recorded at each change: names of
        flows, labels of entries ("incast"), single flows of an entry ("incast#3")
        or ends ("host3->*").
    pauses : bool
        Every PAUSE with its RESUME. Default False.
    marks : bool
        Every congestion mark. Default False.
    drops : bool
        Every drop with its reason. Default False.
    """

    queues: QueueRecord | None = None
    throughput: ThroughputRecord | None = None
    packets: PacketRecord | None = None
    rates: tuple[str, ...] = ()
    pauses: bool = False
    marks: bool = False
    drops: bool = False

    def problems(self) -> Iterator[Problem]:
        yield from _patterns(self.rates, "rates", empty=True)


def _patterns(patterns: tuple[str, ...], name: str, *, empty: bool = False) -> Iterator[Problem]:
    if not patterns and not empty:
        yield name, patterns, "at least one pattern"
    for index, pattern in enumerate(patterns):
        if not pattern:
            yield f"{name}[{index}]", pattern, 'a pattern, such as "leaf0:*"'
