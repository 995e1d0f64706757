"""DCQCN's sender as adapters implement it, with its clocks as events of one global list.

The equations are those of `dcqcn_vendor.py`. What differs is which of a tick and an ACK or a send of the same
instant acts first: the one that was scheduled first, where a tick is scheduled by the one before it
(the first by the first mark, an increase by the cut before it). So a mark whose ACK began 1004 ns ago
misses the cut of its instant, whose clock was set 4 us ago, but counts for the alpha update, whose clock
was set 1 us ago. A tick does not make a port try to send. Source: `rdma-hw.cc` of ns-3 as in
github.com/alibaba-edu/High-Precision-Congestion-Control.
"""

from __future__ import annotations

from .control import RateListener, SetTimer
from .dcqcn_vendor import CUT_LAG_PS, DcqcnVendor
from .tables import Transport

__all__ = ["DcqcnVendorTimers"]

ALPHA, CUT, INCREASE = range(3)


class DcqcnVendorTimers(DcqcnVendor):
    """The rate of one flow.

    Parameters
    ----------
    transport, line_bps, on_change
        As for `DcqcnVendor`.
    set_timer : callable
        Schedules the next tick of a clock.
    """

    __slots__ = ("_increase_number", "_set_timer")

    def __init__(
        self, transport: Transport, *, line_bps: float, on_change: RateListener, set_timer: SetTimer
    ) -> None:
        super().__init__(transport, line_bps=line_bps, on_change=on_change)
        self._set_timer = set_timer
        self._increase_number = 0

    def catch_up(self, now_ps: int) -> None:
        """Nothing: ticks act when their events come."""

    def on_mark(self, now_ps: int) -> None:
        """Note the mark for the next tick of each clock; the first mark starts them."""
        if self.active:
            self.mark_for_alpha = True
            self.mark_for_cut_ps = now_ps
            return
        self._start(now_ps)
        self._set_timer(ALPHA, now_ps + self._transport.alpha_period_ps)
        self._set_timer(CUT, now_ps + CUT_LAG_PS + self._transport.cut_period_ps)

    def on_timer(self, timer: int, *, number: int, now_ps: int) -> None:
        """A clock ticks; the increase clock only if it was not started anew since."""
        if timer == ALPHA:
            self._advance_alpha(now_ps)
            self._set_timer(ALPHA, now_ps + self._transport.alpha_period_ps)
        elif timer == CUT:
            self._set_timer(CUT, now_ps + self._transport.cut_period_ps)
            if self.mark_for_cut_ps is not None:
                self._cut(now_ps)
                self._start_increase(now_ps)
        elif number == self._increase_number:
            self._start_increase(now_ps)
            self._increase(now_ps)

    def _start_increase(self, now_ps: int) -> None:
        self._increase_number = self._set_timer(INCREASE, now_ps + self._transport.increase_period_ps)
