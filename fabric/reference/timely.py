"""TIMELY: the rate follows the round-trip time, and how it changes.

Once a window the time from the beginning of a frame to its ACK moves the rate: below a low threshold a step
up, above a high one down, and between them by the averaged change of the round-trip time over the smallest
one: a step up if it falls, down in proportion if it rises. After some steps up in a row they are larger.
Source: Mittal et al., *TIMELY: RTT-based Congestion Control for the Datacenter*, SIGCOMM 2015,
algorithm 1; once a window, and how steps grow, as in the simulator of Li et al., *HPCC*, SIGCOMM 2019
(`rdma-hw.cc`). NACKs and ACKs of frames that were sent twice change nothing.
"""

from __future__ import annotations

from .control import Acknowledgement, CongestionControl, RateListener
from .tables import Transport

__all__ = ["Timely"]

PS_PER_NS = 1000


class Timely(CongestionControl):
    """The rate of one flow.

    Parameters
    ----------
    transport : Transport
        `g` (weight of a new difference), `beta`, `base_rtt_ps` (the smallest round-trip time), `rtt_low_ps`,
        `rtt_high_ps`, `max_stage` (small steps in a row), `ai_bps`, `hai_bps`, `min_rate_bps`.
    line_bps : float
        Rate of the flow's port; the rate never exceeds it.
    on_change : callable
        Told (time_ps, rate_bps) whenever the rate has changed.
    """

    __slots__ = (
        "_last",
        "_line_bps",
        "_on_change",
        "_rises",
        "_transport",
        "difference_ps",
        "rate_bps",
        "rtt_ps",
    )

    def __init__(self, transport: Transport, *, line_bps: float, on_change: RateListener) -> None:
        self._transport = transport
        self._line_bps = line_bps
        self._on_change = on_change
        self._last = 0
        self._rises = 0
        self.rate_bps = line_bps
        self.difference_ps = 0.0
        self.rtt_ps: int | None = None

    def rate_at(self, now_ps: int) -> float:
        """The rate; it changes with ACKs only."""
        return self.rate_bps

    def on_acknowledgement(self, ack: Acknowledgement) -> None:
        """Take the round-trip time of the first frame beyond the last window."""
        if ack.memory is None or ack.sequence <= self._last:
            return
        sent_ps = ack.memory.sent_ps
        if self._transport.whole_rates:
            sent_ps -= sent_ps % PS_PER_NS
        rtt_ps = ack.now_ps - sent_ps
        if self.rtt_ps is not None:
            before_bps = self.rate_bps
            self.update(rtt_ps, before_ps=self.rtt_ps)
            if self.rate_bps != before_bps:
                self._on_change(ack.now_ps, self.rate_bps)
        if ack.next_frame > self._last:
            self._last = ack.next_frame
            self.rtt_ps = rtt_ps

    def update(self, rtt_ps: int, *, before_ps: int) -> None:
        """Move the rate by a sample and the one before."""
        transport = self._transport
        g, beta = transport.g, transport.beta
        self.difference_ps = (1.0 - g) * self.difference_ps + g * float(rtt_ps - before_ps)
        gradient = self.difference_ps / float(transport.base_rtt_ps)
        if rtt_ps < transport.rtt_low_ps:
            self._rise()
        elif rtt_ps > transport.rtt_high_ps:
            self._fall(1.0 - beta * (1.0 - float(transport.rtt_high_ps) / float(rtt_ps)))
        elif gradient <= 0.0:
            self._rise()
        else:
            self._fall(max(0.0, 1.0 - beta * gradient))

    def _rise(self) -> None:
        transport = self._transport
        step_bps = transport.ai_bps if self._rises < transport.max_stage else transport.hai_bps
        self.rate_bps = min(self._line_bps, self.rate_bps + step_bps)
        self._rises += 1

    def _fall(self, factor: float) -> None:
        self.rate_bps = max(self._transport.min_rate_bps, self._transport.kept_rate(self.rate_bps * factor))
        self._rises = 0
