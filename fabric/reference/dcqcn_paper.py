"""DCQCN's sender as published: cut at every notification, recover in three phases.

A flow runs at line rate until its first mark. A mark sets the target to the current rate, cuts the
current rate by alpha/2, raises alpha, and restarts both clocks. Alpha decays with every period without
a mark. Increase events come from a timer and from a byte counter; both first halve the distance to the
target (fast recovery), then move the target by a step (additive), and when both are far along, by
growing steps (hyper). Source: Zhu et al., *Congestion Control for Large-Scale RDMA Deployments*,
SIGCOMM 2015, section 3.1 and figure 7. How often marks are reported is the receiver's.

Without a byte counter (0) only the timer counts events. Timers are caught up with lazily; a mark or a
send at t sees everything that expired strictly before t.
"""

from __future__ import annotations

from .control import CongestionControl, RateListener
from .rng import pow_int
from .tables import Transport

__all__ = ["DcqcnPaper"]


class DcqcnPaper(CongestionControl):
    """The rate of one flow.

    Parameters
    ----------
    transport : Transport
        Periods, steps and gain.
    line_bps : float
        Rate of the flow's port; neither rate ever exceeds it.
    on_change : callable
        Told (time_ps, rate_bps) whenever the current rate has changed.

    Notes
    -----
    `current_bps` and `target_bps` are the paper's R_C and R_T, `timer_events` and `byte_events` its T
    and BC. Before the first mark the object is inactive and both rates are the line's.
    """

    __slots__ = (
        "_alpha_base_ps",
        "_bytes",
        "_increase_base_ps",
        "_line_bps",
        "_on_change",
        "_transport",
        "active",
        "alpha",
        "byte_events",
        "current_bps",
        "target_bps",
        "timer_events",
    )

    def __init__(self, transport: Transport, *, line_bps: float, on_change: RateListener) -> None:
        self._transport = transport
        self._line_bps = line_bps
        self._on_change = on_change
        self.active = False
        self.current_bps = line_bps
        self.target_bps = line_bps
        self.alpha = 1.0
        self.timer_events = 0
        self.byte_events = 0
        self._bytes = 0
        self._alpha_base_ps = 0
        self._increase_base_ps = 0

    def on_send(self, now_ps: int, *, wire_bytes: int) -> float:
        """The rate for a frame that begins now; the byte counter acts after it was taken."""
        self.catch_up(now_ps)
        rate_bps = self.current_bps
        byte_counter = self._transport.byte_counter
        if self.active and byte_counter:
            self._bytes += wire_bytes
            if self._bytes >= byte_counter:
                self._bytes -= byte_counter
                self.byte_events += 1
                self._increase(now_ps)
        return rate_bps

    def rate_at(self, now_ps: int) -> float:
        """The rate after everything that expired strictly before now."""
        self.catch_up(now_ps)
        return self.current_bps

    def on_mark(self, now_ps: int) -> None:
        """Cut, and start the recovery anew."""
        if self.active:
            self.catch_up(now_ps)
            self._decay_alpha(now_ps)
        else:
            self.active = True
        self._cut(now_ps)

    def catch_up(self, now_ps: int) -> None:
        """Let the increase timer act as often as it expired strictly before `now_ps`."""
        if not self.active:
            return
        period_ps = self._transport.increase_period_ps
        while self._increase_base_ps + period_ps < now_ps:
            self._increase_base_ps += period_ps
            self.timer_events += 1
            self._increase(self._increase_base_ps)

    def _decay_alpha(self, now_ps: int) -> None:
        """Alpha after the periods that ended strictly before `now_ps`, none of which had a mark."""
        periods = max(0, now_ps - self._alpha_base_ps - 1) // self._transport.alpha_period_ps
        self.alpha *= pow_int(1.0 - self._transport.g, periods)

    def _cut(self, now_ps: int) -> None:
        g = self._transport.g
        before_bps = self.current_bps
        self.target_bps = self.current_bps
        cut_bps = self._transport.kept_rate(self.current_bps * (1.0 - self.alpha / 2.0))
        self.current_bps = max(self._transport.min_rate_bps, cut_bps)
        self.alpha = (1.0 - g) * self.alpha + g
        self.timer_events = self.byte_events = self._bytes = 0
        self._alpha_base_ps = self._increase_base_ps = now_ps
        self._report(before_bps, now_ps)

    def _increase(self, at_ps: int) -> None:
        transport = self._transport
        least, most = self._progress()
        before_bps = self.current_bps
        if most >= transport.fast_recovery:
            if least > transport.fast_recovery:
                self.target_bps += float(least - transport.fast_recovery + 1) * transport.hai_bps
            else:
                self.target_bps += transport.ai_bps
        self.target_bps = min(self.target_bps, self._line_bps)
        self.current_bps = transport.mean_rate(self.current_bps, self.target_bps)
        self._report(before_bps, at_ps)

    def _progress(self) -> tuple[int, int]:
        """min and max of both event counts; without a byte counter there is only one."""
        if not self._transport.byte_counter:
            return self.timer_events, self.timer_events
        return min(self.timer_events, self.byte_events), max(self.timer_events, self.byte_events)

    def _report(self, before_bps: float, at_ps: int) -> None:
        if self.current_bps != before_bps:
            self._on_change(at_ps, self.current_bps)
