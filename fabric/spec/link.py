"""Links: one cable, both of its directions alike, and exceptions for some of them.

A frame of `w` bytes occupies a direction for `(w + gap) * 8 / rate`, then travels for `delay`. The
receiver's fixed processing latency is not here but with the switch or NIC (`Switch.latency`,
`Nic.latency`); the sum of both must be at least 1 ns, because it bounds how far nodes can be
simulated independently of each other. Loss is drawn per frame and direction, independently.
How links fail and recover: `fabric.spec.failures`. Not modelled: forward error correction, different rates
by direction (but of a link that is degraded).
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.spec.base import Problem, Spec, quantity
from fabric.units import Duration, Rate, Size

__all__ = ["LARGEST_BIT_ERROR_RATE", "LARGEST_FRAME_BYTES", "SLOWEST_RATE_BPS", "Link", "LinkOverride"]

LARGEST_FRAME_BYTES = 65_535
"""The largest frame on the wire, gap included."""
LARGEST_BIT_ERROR_RATE = 1e-6
"""Above this the series by which frames are lost (`docs/design.md`, section 4) is not exact enough."""
LARGEST_LINK_DELAY_PS = 10**12
"""1 s; a signal to a geostationary satellite and back takes a quarter of it."""
SLOWEST_RATE_BPS = 1_000
"""The slowest link: below it one frame could outlast the clock's range."""


class Link(Spec, frozen=True, kw_only=True):
    """A full-duplex link.

    Parameters
    ----------
    rate : Rate
        Line rate of each direction in bit/s. Default 400Gbps, today's accelerator NIC.
    delay : Duration
        Propagation, one way; at most 1s. Default 500ns: 100 m of fibre at 5 ns/m.
    loss : float
        Probability that a frame is lost, in [0, 1). Default 0.
    bit_error_rate : float
        Probability that a bit is flipped, which loses its frame; at most 1e-6. Default 0.
    gap : Size
        Bytes on the wire per frame that no buffer holds. Default 20: preamble and start delimiter
        8, smallest inter-packet gap 12 (IEEE 802.3, clauses 3.1 and 4.4.2).

    Examples
    --------
    >>> Link(rate="800Gbps", delay="1us").rate
    Rate("800Gbps")
    """

    rate: Rate = quantity("400Gbps")
    delay: Duration = quantity("500ns")
    loss: float = 0.0
    bit_error_rate: float = 0.0
    gap: Size = quantity(20)

    def problems(self) -> Iterator[Problem]:
        yield from _link_problems(self)
        if self.gap > LARGEST_FRAME_BYTES:
            yield "gap", self.gap, f"a size of at most {LARGEST_FRAME_BYTES} bytes, gap and frame together"


class LinkOverride(Spec, frozen=True, kw_only=True):
    """What differs on some links of a generated topology.

    Later overrides win over earlier ones. One that matches no link is an error.

    Parameters
    ----------
    match : str
        The two ends with a hyphen between them, in either order ("leaf0-spine3"); `*`, `?` and
        `[...]` stand for parts of a name, as in file names ("leaf*-spine0").
    rate, delay, loss, bit_error_rate : optional
        As in `Link`; None (left out) keeps the link's own. At least one is given, or `down`.
    down : bool
        Whether the links are out of order, from the beginning to the end: routes go around them.
        Default False.
    """

    match: str
    rate: Rate | None = None
    delay: Duration | None = None
    loss: float | None = None
    bit_error_rate: float | None = None
    down: bool = False

    def problems(self) -> Iterator[Problem]:
        if "-" not in self.match.strip("-"):
            yield "match", self.match, 'the two ends with a hyphen between, such as "leaf0-spine3"'
        given = (self.rate, self.delay, self.loss, self.bit_error_rate)
        if all(value is None for value in given) and not self.down:
            yield "match", self.match, "beside it at least one of rate, delay, loss, bit_error_rate, down"
        yield from _link_problems(self)


def _link_problems(link: Link | LinkOverride) -> Iterator[Problem]:
    rate, delay, loss, bit_error_rate = link.rate, link.delay, link.loss, link.bit_error_rate
    if rate is not None and rate < SLOWEST_RATE_BPS:
        yield "rate", rate, "a rate of at least 1Kbps"
    if delay is not None and delay > LARGEST_LINK_DELAY_PS:
        yield "delay", delay, "a duration of at most 1s"
    if loss is not None and not 0 <= loss < 1:
        yield "loss", loss, "a probability: at least 0 and below 1"
    if bit_error_rate is not None and not 0 <= bit_error_rate <= LARGEST_BIT_ERROR_RATE:
        yield "bit_error_rate", bit_error_rate, "a probability between 0 and 1e-6"
