"""HPCC: the rate follows the use of the most used link, as telemetry shows it.

Each ACK brings a record of every switch port that its frame left: time, bytes sent before, bytes queued.
Two records of a port give the use of its link between them; what was queued at both counts as what it
takes a base round trip T to drain. The most used link, averaged over T, is U. Where U is beyond the
target eta (or after some steps) the rate is scaled by eta/U, otherwise a step is added. Each ACK starts
from the reference rate, which becomes the rate once a round trip, so that no news is counted twice.
The window is rate x T (`Transport.window_at`). Source: Li et al., *HPCC: High Precision Congestion
Control*, SIGCOMM 2019, algorithm 1, in terms of rates as in the authors' simulator.

A pause that has begun is measured anew at a changed rate, as in the authors' simulator: else a slow flow
would hear of its new rate too late. When a frame took another path than the one before, or passed it,
the records are replaced and nothing else happens. NACKs and ACKs without telemetry change nothing.
"""

from __future__ import annotations

from .control import Acknowledgement, CongestionControl, RateListener
from .tables import Transport
from .telemetry import Hop

__all__ = ["Hpcc"]

PS_PER_NS = 1000
TIME_NS = 1 << 24
SENT_BYTES, SENT_COUNT = 128, 1 << 20
QUEUED_BYTES, QUEUED_COUNT = 80, 1 << 17
"""A record of 64 bits: 24 of time, 20 and 17 of counts, and 3 that name the rate."""


class Hpcc(CongestionControl):
    """The rate of one flow.

    Parameters
    ----------
    transport : Transport
        `base_rtt_ps` (T), `eta`, `max_stage`, `fast_reaction`, `ai_bps`, `min_rate_bps`.
    line_bps : float
        Rate of the flow's port; the rate never exceeds it.
    on_change : callable
        Told (time_ps, rate_bps) whenever the rate has changed.

    Notes
    -----
    `rate_bps` is the paper's W / T, `reference_bps` its W_c / T, `utilisation` its U, `stage` its incStage.
    """

    __slots__ = (
        "_last",
        "_line_bps",
        "_on_change",
        "_seen",
        "_transport",
        "rate_bps",
        "reference_bps",
        "stage",
        "utilisation",
    )

    moves_pauses = True

    def __init__(self, transport: Transport, *, line_bps: float, on_change: RateListener) -> None:
        self._transport = transport
        self._line_bps = line_bps
        self._on_change = on_change
        self._seen: list[Hop] = []
        self._last = 0
        self.rate_bps = line_bps
        self.reference_bps = line_bps
        self.utilisation = 1.0
        self.stage = 0

    def rate_at(self, now_ps: int) -> float:
        """The rate; it changes with ACKs only."""
        return self.rate_bps

    def on_acknowledgement(self, ack: Acknowledgement) -> None:
        """Compare what the frame met with what one before it had met."""
        if ack.memory is None or not ack.memory.hops:
            return
        hops = ack.memory.hops
        full = ack.sequence > self._last
        if not self._seen:
            self._last = ack.next_frame
        elif _same_links(self._seen, hops):
            if not full and not self._transport.fast_reaction:
                return
            self.average(*self._most_used(hops))
            before_bps = self.rate_bps
            self.update(full=full)
            if full:
                self._last = max(self._last, ack.next_frame)
            if self.rate_bps != before_bps:
                self._on_change(ack.now_ps, self.rate_bps)
        self._seen = hops

    def _most_used(self, hops: list[Hop]) -> tuple[float, int]:
        transport = self._transport
        if transport.telemetry_unit:
            return most_used_compact(
                self._seen,
                hops,
                unit=transport.telemetry_unit,
                window_bytes=transport.window_bytes,
                line_bps=self._line_bps,
            )
        return most_used(self._seen, hops, base_rtt_ps=transport.base_rtt_ps)

    def average(self, use: float, elapsed_ps: int) -> None:
        """Let the use of a link over some time, at most T, enter U."""
        base_ps = self._transport.base_rtt_ps
        tau_ps = min(elapsed_ps, base_ps)
        self.utilisation = (self.utilisation * float(base_ps - tau_ps) + use * float(tau_ps)) / float(base_ps)

    def update(self, *, full: bool) -> None:
        """Set the rate by U; a full update makes it the reference."""
        transport = self._transport
        over = self.utilisation / transport.eta
        if over >= 1.0 or self.stage >= transport.max_stage:
            rate_bps, stage = transport.kept_rate(self.reference_bps / over) + transport.ai_bps, 0
        else:
            rate_bps, stage = self.reference_bps + transport.ai_bps, self.stage + 1
        self.rate_bps = max(transport.min_rate_bps, min(rate_bps, self._line_bps))
        if full:
            self.reference_bps, self.stage = self.rate_bps, stage


def most_used(then: list[Hop], now: list[Hop], *, base_rtt_ps: int) -> tuple[float, int]:
    """The highest use of a link between two frames (1: all of it), and the time between them there.

    Examples
    --------
    >>> then, now = Hop(0, 0, 0, 0, 10**9), Hop(10**6, 100, 0, 0, 10**9)
    >>> most_used([then], [now], base_rtt_ps=10**6)
    (0.8, 1000000)
    """
    per_rtt = 8e12 / float(base_rtt_ps)
    highest, highest_ps = -1.0, 0
    for old, new in zip(then, now, strict=True):
        elapsed_ps = new.time_ps - old.time_ps
        sent_bps = float(new.tx_bytes - old.tx_bytes) * 8e12 / float(elapsed_ps)
        queued_bps = float(min(new.queue_bytes, old.queue_bytes)) * per_rtt
        use = (sent_bps + queued_bps) / float(new.rate_bps)
        if use > highest:
            highest, highest_ps = use, elapsed_ps
    return highest, highest_ps


def most_used_compact(
    then: list[Hop], now: list[Hop], *, unit: int, window_bytes: int, line_bps: float
) -> tuple[float, int]:
    """`most_used`, by what fits a record of 64 bits.

    Times are nanoseconds modulo 2^24, bytes sent multiples of 128 units modulo 2^20, bytes queued multiples
    of 80 units modulo 2^17; and the queue counts as what it takes one window, at line rate, to drain.
    """
    highest, highest_ps = -1.0, 0
    for old, new in zip(then, now, strict=True):
        elapsed_ns = (new.time_ps // PS_PER_NS - old.time_ps // PS_PER_NS) % TIME_NS
        sent = (new.tx_bytes // (SENT_BYTES * unit) - old.tx_bytes // (SENT_BYTES * unit)) % SENT_COUNT
        queued = min(hop.queue_bytes // (QUEUED_BYTES * unit) % QUEUED_COUNT for hop in (old, new))
        rate_bps = float(new.rate_bps)
        if elapsed_ns == 0:
            continue
        sent_bps = float(sent * SENT_BYTES * unit * 8) / (float(elapsed_ns) * 1e-9)
        drain = float(queued * QUEUED_BYTES * unit) * line_bps / rate_bps / float(window_bytes)
        use = sent_bps / rate_bps + drain
        if use > highest:
            highest, highest_ps = use, elapsed_ns * PS_PER_NS
    return highest, highest_ps


def _same_links(then: list[Hop], now: list[Hop]) -> bool:
    """Whether a frame took the path of the one before, and came later everywhere."""
    return len(then) == len(now) and all(
        old.port == new.port and old.time_ps < new.time_ps for old, new in zip(then, now, strict=True)
    )
