"""Failures: what breaks at which instant, and for how long.

Every entry names a part of the network by a pattern, as recorders do, and breaks each part that matches.
`lasts` says when it is repaired; without it, it stays broken. What the fabric does about failures is
`Recovery` (`fabric.spec.recovery`). Besides entries that are given one by one there are entries that are
drawn from rates, and entries from a log (`fabric.spec.failure_sources`). Not here: failures inside a
switch that spare some of its links, and frames that arrive with wrong content.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.spec.base import Problem, Spec
from fabric.spec.failure_sources import LARGEST_TIME_PS, DrawnFailures, FailureLog
from fabric.spec.link import LARGEST_BIT_ERROR_RATE, SLOWEST_RATE_BPS
from fabric.units import Duration, Rate

__all__ = [
    "Corruption",
    "DegradedLink",
    "Failure",
    "HostHang",
    "LinkDown",
    "LinkDrain",
    "LinkFlap",
    "PfcStorm",
    "SlowNic",
    "SwitchDown",
]

MOST_FLAPS = 1_000_000


class _Failure(Spec, frozen=True, kw_only=True):
    """What every failure has.

    Parameters
    ----------
    at : Duration
        When it begins; at most 2^60 ps (about 13 days).
    lasts : Duration, optional
        How long until it is repaired, above 0. None (default): it is not.
    """

    at: Duration
    lasts: Duration | None = None

    def problems(self) -> Iterator[Problem]:
        if self.at > LARGEST_TIME_PS:
            yield "at", self.at, "a duration of at most 2^60 ps (about 13 days)"
        if self.lasts is not None and not 0 < self.lasts <= LARGEST_TIME_PS:
            yield "lasts", self.lasts, "a duration above 0 and of at most 2^60 ps, or no lasts"


def _link_problems(link: str) -> Iterator[Problem]:
    if "-" not in link.strip("-"):
        yield (
            "link",
            link,
            'two ends of a link, such as "leaf0-spine1" (or "leaf0->spine1" for one direction)',
        )


class LinkDown(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="link_down"):
    """Links go down, in both directions, and with them what they carry.

    Parameters
    ----------
    at, lasts
        As for every failure.
    link : str
        "leaf0-spine1", "leaf*-spine0", "leaf0->spine1#1": ends in either order, patterns as in file names.

    Examples
    --------
    >>> LinkDown(link="leaf0-spine1", at="1ms", lasts="5ms").lasts
    Duration("5ms")
    """

    link: str

    def problems(self) -> Iterator[Problem]:
        yield from _link_problems(self.link)
        yield from super().problems()


class LinkFlap(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="link_flap"):
    """Links go down again and again.

    Parameters
    ----------
    at, lasts
        When the first time begins, and for how long it goes on; `lasts` must be given.
    link : str
        As for `LinkDown`.
    period : Duration
        From one time to the next.
    duty : float
        Share of the period for which the link is down, above 0 and below 1. Default 0.5.
    """

    link: str
    period: Duration
    duty: float = 0.5

    def problems(self) -> Iterator[Problem]:
        yield from _link_problems(self.link)
        yield from super().problems()
        if not 0 < self.duty < 1:
            yield "duty", self.duty, "a share above 0 and below 1"
        if (
            self.period == 0
            or int(self.period * self.duty) == 0
            or int(self.period * self.duty) == self.period
        ):
            yield "period", self.period, "a duration above 0, of which the link is down for a part"
        elif self.lasts is None:
            yield "lasts", None, "how long it goes on"
        elif self.lasts // self.period > MOST_FLAPS:
            yield "period", self.period, f"a duration that lasts contains at most {MOST_FLAPS} times"


class LinkDrain(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="link_drain"):
    """Links are taken out of service without failing: maintenance that is announced. Nothing is lost.

    Parameters
    ----------
    at, lasts
        As for every failure.
    link : str
        As for `LinkDown`.
    """

    link: str

    def problems(self) -> Iterator[Problem]:
        yield from _link_problems(self.link)
        yield from super().problems()


class DegradedLink(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="degraded_link"):
    """Links run at a lower rate.

    Parameters
    ----------
    at, lasts
        As for every failure.
    link : str
        As for `LinkDown`; with "->" only the direction from the first end to the second.
    rate : Rate
        At least 1Kbps. A link is never faster than it was built.
    """

    link: str
    rate: Rate

    def problems(self) -> Iterator[Problem]:
        yield from _link_problems(self.link)
        yield from super().problems()
        if self.rate < SLOWEST_RATE_BPS:
            yield "rate", self.rate, "a rate of at least 1Kbps"


class Corruption(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="corruption"):
    """Links flip bits, which loses frames: a dirty or dying optic.

    Parameters
    ----------
    at, lasts
        As for every failure.
    link : str
        As for `LinkDown`; with "->" only the direction from the first end to the second.
    bit_error_rate : float
        After forward error correction; above 0, at most 1e-6.
    isolate : Duration, optional
        After this time the link is taken out of service, as a link that is down would be (Zhuo et al.,
        "CorrOpt", SIGCOMM 2017). None (default): it stays in.
    """

    link: str
    bit_error_rate: float
    isolate: Duration | None = None

    def problems(self) -> Iterator[Problem]:
        yield from _link_problems(self.link)
        yield from super().problems()
        if not 0 < self.bit_error_rate <= LARGEST_BIT_ERROR_RATE:
            yield "bit_error_rate", self.bit_error_rate, "a probability above 0 and at most 1e-6"


class SwitchDown(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="switch_down"):
    """Switches go down: all their links do, and what they hold is lost.

    Parameters
    ----------
    at, lasts
        As for every failure.
    switch : str
        "spine0", "leaf*".
    """

    switch: str


class HostHang(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="host_hang"):
    """Hosts take nothing in and send nothing, while their links look healthy: no route changes.

    Parameters
    ----------
    at, lasts
        As for every failure.
    host : str
        "host3", "host1?".
    """

    host: str


class SlowNic(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="slow_nic"):
    """Hosts send and take in at a lower rate, on all their links to leaves.

    Parameters
    ----------
    at, lasts
        As for every failure.
    host : str
        "host3", "host1?".
    rate : Rate
        Of each link; at least 1Kbps.
    """

    host: str
    rate: Rate

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.rate < SLOWEST_RATE_BPS:
            yield "rate", self.rate, "a rate of at least 1Kbps"


class PfcStorm(_Failure, frozen=True, kw_only=True, tag_field="kind", tag="pfc_storm"):
    """NICs pause their leaf and never stop (Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM
    2016).

    Parameters
    ----------
    at, lasts
        As for every failure.
    host : str
        "host3", "host1?".
    classes : tuple of str
        Traffic classes that are paused. Default: all lossless ones.
    """

    host: str
    classes: tuple[str, ...] = ()


Failure = (
    LinkDown
    | LinkDrain
    | LinkFlap
    | DegradedLink
    | Corruption
    | SwitchDown
    | HostHang
    | SlowNic
    | PfcStorm
    | DrawnFailures
    | FailureLog
)
"""Any entry of `Scenario.failures`."""
