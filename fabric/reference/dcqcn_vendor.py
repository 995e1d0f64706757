"""DCQCN's sender as adapters implement it: marks are sampled, cuts happen on a clock.

Three clocks run from the first mark. Every alpha period alpha moves towards 1 if a mark came in that
period, towards 0 if not. Every cut period the rate is cut by alpha/2 if a mark came since the last
cut; the target is taken over only if an increase came in between (or if it is clamped always). After a
cut the increase clock starts anew: halve the distance to the target (fast recovery), then one additive
step, then hyper steps of fixed size. The cut clock runs 1 ns late, so that a cut follows the alpha
update of its instant. The first mark sets the rate to a fraction of the line rate and asks for a cut,
but does not count for alpha. Source: the "Mellanox" variant in `rdma-hw.cc` of the simulator of Li et
al., *HPCC: High Precision Congestion Control*, SIGCOMM 2019
(github.com/alibaba-edu/High-Precision-Congestion-Control).

Clocks are caught up with lazily. Alpha is evaluated only where it is used (a cut) or changed (a mark).
"""

from __future__ import annotations

from .control import CongestionControl, RateListener
from .rng import pow_int
from .tables import Transport

__all__ = ["DcqcnVendor"]

CUT_LAG_PS = 1000
"""How much later than the alpha clock the cut clock runs."""


class DcqcnVendor(CongestionControl):
    """The rate of one flow.

    Parameters
    ----------
    transport : Transport
        Periods, steps and gain.
    line_bps : float
        Rate of the flow's port; the target never exceeds it by an increase.
    on_change : callable
        Told (time_ps, rate_bps) whenever the current rate has changed.

    Notes
    -----
    `mark_for_alpha` holds if a mark came in the current alpha period, `mark_for_cut_ps` is the time of
    the first mark since the last cut (None: none came), `stage` counts increases since the last cut.
    """

    __slots__ = (
        "_alpha_base_ps",
        "_cut_base_ps",
        "_increase_base_ps",
        "_line_bps",
        "_on_change",
        "_transport",
        "active",
        "alpha",
        "current_bps",
        "mark_for_alpha",
        "mark_for_cut_ps",
        "stage",
        "target_bps",
    )

    def __init__(self, transport: Transport, *, line_bps: float, on_change: RateListener) -> None:
        self._transport = transport
        self._line_bps = line_bps
        self._on_change = on_change
        self.active = False
        self.current_bps = line_bps
        self.target_bps = line_bps
        self.alpha = 1.0
        self.stage = 0
        self.mark_for_alpha = False
        self.mark_for_cut_ps: int | None = None
        self._alpha_base_ps = 0
        self._cut_base_ps = 0
        self._increase_base_ps: int | None = None

    def on_send(self, now_ps: int, *, wire_bytes: int) -> float:
        """The rate for a frame that begins now; bytes are not counted in this form."""
        self.catch_up(now_ps)
        return self.current_bps

    def rate_at(self, now_ps: int) -> float:
        """The rate after everything that expired strictly before now."""
        self.catch_up(now_ps)
        return self.current_bps

    def on_mark(self, now_ps: int) -> None:
        """Note the mark for the clocks; the first one starts them."""
        if not self.active:
            self._start(now_ps)
            return
        self.catch_up(now_ps)
        self._advance_alpha(now_ps - 1)
        self.mark_for_alpha = True
        if self.mark_for_cut_ps is None:
            self.mark_for_cut_ps = now_ps

    def catch_up(self, now_ps: int) -> None:
        """Let increases and cuts act whose ticks lie strictly before `now_ps`."""
        while True:
            cut_ps = self._next_cut_ps()
            self._increase_until(now_ps if cut_ps is None else min(now_ps, cut_ps + 1))
            if cut_ps is None or cut_ps >= now_ps:
                return
            self._advance_alpha(cut_ps)
            self._cut(cut_ps)

    def _start(self, now_ps: int) -> None:
        before_bps = self.current_bps
        self.active = True
        first_bps = self._transport.kept_rate(self._line_bps * self._transport.first_cut)
        self.current_bps = self.target_bps = first_bps
        self.mark_for_cut_ps = now_ps
        self._alpha_base_ps = now_ps
        self._cut_base_ps = now_ps + CUT_LAG_PS
        self._report(before_bps, now_ps)

    def _next_cut_ps(self) -> int | None:
        """The first tick of the cut clock at or after the mark that asked for a cut."""
        if self.mark_for_cut_ps is None:
            return None
        period_ps = self._transport.cut_period_ps
        ticks = max(1, -(-(self.mark_for_cut_ps - self._cut_base_ps) // period_ps))
        return self._cut_base_ps + ticks * period_ps

    def _advance_alpha(self, last_ps: int) -> None:
        """Let all alpha ticks up to and including `last_ps` act; only the first can see a mark."""
        g, period_ps = self._transport.g, self._transport.alpha_period_ps
        ticks = max(0, last_ps - self._alpha_base_ps) // period_ps
        if ticks:
            self.alpha = (1.0 - g) * self.alpha + (g if self.mark_for_alpha else 0.0)
            self.mark_for_alpha = False
            self.alpha *= pow_int(1.0 - g, ticks - 1)
            self._alpha_base_ps += ticks * period_ps

    def _cut(self, at_ps: int) -> None:
        before_bps = self.current_bps
        if self._transport.clamp_target or self.stage > 0:
            self.target_bps = self.current_bps
        cut_bps = self._transport.kept_rate(self.current_bps * (1.0 - self.alpha / 2.0))
        self.current_bps = max(self._transport.min_rate_bps, cut_bps)
        self.stage = 0
        self.mark_for_cut_ps = None
        self._increase_base_ps = at_ps
        self._report(before_bps, at_ps)

    def _increase_until(self, end_ps: int) -> None:
        """Let the increase ticks strictly before `end_ps` act."""
        period_ps = self._transport.increase_period_ps
        while self._increase_base_ps is not None and self._increase_base_ps + period_ps < end_ps:
            self._increase_base_ps += period_ps
            self._increase(self._increase_base_ps)

    def _increase(self, at_ps: int) -> None:
        transport = self._transport
        before_bps = self.current_bps
        if self.stage == transport.fast_recovery:
            self.target_bps = min(self.target_bps + transport.ai_bps, self._line_bps)
        elif self.stage > transport.fast_recovery:
            self.target_bps = min(self.target_bps + transport.hai_bps, self._line_bps)
        self.current_bps = transport.mean_rate(self.current_bps, self.target_bps)
        self.stage += 1
        self._report(before_bps, at_ps)

    def _report(self, before_bps: float, at_ps: int) -> None:
        if self.current_bps != before_bps:
            self._on_change(at_ps, self.current_bps)
