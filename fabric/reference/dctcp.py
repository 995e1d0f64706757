"""DCTCP as a rate: cut by as much as was marked, at most once a window.

Once a window alpha moves towards the share of acknowledged frames whose ACK carried a mark. The first
mark cuts the rate by alpha/2, and no other does before everything that was in flight at the cut has been
acknowledged. A window without a cut in it ends with a step up. With a window that follows the rate this
is DCTCP's window, sent at window / base round trip. Source: Alizadeh et al., *Data Center TCP (DCTCP)*,
SIGCOMM 2010; RFC 8257; as a rate: the simulator of Li et al., *HPCC*, SIGCOMM 2019 (`rdma-hw.cc`).

NACKs count as ACKs that acknowledge nothing new. There is no slow start: flows begin at line rate.
"""

from __future__ import annotations

from .control import Acknowledgement, CongestionControl, RateListener
from .tables import Transport

__all__ = ["Dctcp"]


class Dctcp(CongestionControl):
    """The rate of one flow.

    Parameters
    ----------
    transport : Transport
        `g`, `ai_bps`, `min_rate_bps`.
    line_bps : float
        Rate of the flow's port; the rate never exceeds it.
    on_change : callable
        Told (time_ps, rate_bps) whenever the rate has changed.
    """

    __slots__ = (
        "_batch",
        "_high",
        "_last",
        "_line_bps",
        "_marked",
        "_on_change",
        "_reduced",
        "_started",
        "_transport",
        "alpha",
        "rate_bps",
    )

    def __init__(self, transport: Transport, *, line_bps: float, on_change: RateListener) -> None:
        self._transport = transport
        self._line_bps = line_bps
        self._on_change = on_change
        self._started = False
        self._reduced = False
        self._last = self._high = 0
        self._marked = self._batch = 0
        self.alpha = 1.0
        self.rate_bps = line_bps

    def rate_at(self, now_ps: int) -> float:
        """The rate; it changes with ACKs only."""
        return self.rate_bps

    def on_acknowledgement(self, ack: Acknowledgement) -> None:
        """Count marks; cut at the first of a window; at the end of one, average and step."""
        transport, before_bps = self._transport, self.rate_bps
        window_begins = ack.sequence > self._last
        if ack.mark:
            self._marked += ack.acknowledged
        if window_begins:
            self._begin_window(ack)
        if self._reduced and ack.sequence > self._high:
            self._reduced = False
        if ack.mark and not self._reduced:
            cut_bps = transport.kept_rate(self.rate_bps * (1.0 - self.alpha / 2.0))
            self.rate_bps = max(transport.min_rate_bps, cut_bps)
            self._reduced, self._high = True, ack.next_frame
        if window_begins and not self._reduced:
            self.rate_bps = min(self._line_bps, self.rate_bps + transport.ai_bps)
        if self.rate_bps != before_bps:
            self._on_change(ack.now_ps, self.rate_bps)

    def on_notification(self, now_ps: int) -> None:
        """Deaf to CNPs: marks come in ACKs."""

    def _begin_window(self, ack: Acknowledgement) -> None:
        """Everything that was in flight when the last window began has been acknowledged."""
        if self._started:
            g = self._transport.g
            share = min(1.0, float(self._marked) / float(self._batch))
            self.alpha = (1.0 - g) * self.alpha + g * share
            self._marked = 0
            self._batch = ack.next_frame - ack.sequence + 1
        else:
            self._started = True
            self._batch = ack.next_frame + 1
        self._last = ack.next_frame
