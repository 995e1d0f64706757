"""A progress bar for runs, on standard error.

The bar shows the larger of two shares: of the payload that senders have put on the wire for the first
time, and of the simulated time if the run is bounded; so it moves evenly both for runs that end when
the work is done and for runs that end at a given time. Looking costs a copy of the engine's counters
and is done a few times a second.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fabric.lowered import OPEN_END_PS
from fabric.result.text import count_text, time_text

if TYPE_CHECKING:
    from fabric.lowered import Lowered
    from fabric.outcome import Engine

__all__ = ["Progress"]

INTERVAL_S = 0.25
"""Time between two looks at the engine."""

BAR = "{desc} {percentage:3.0f} % |{bar}| {elapsed}<{remaining}{postfix}"


class Progress:
    """Shows how far an engine has come; a context manager.

    Parameters
    ----------
    engine : Engine
        What runs.
    lowered : Lowered
        What it runs.
    until_ps : int
        Simulated time at which the run ends at the latest.
    show : bool or None
        None: if standard error is a terminal.
    """

    def __init__(self, engine: Engine, *, lowered: Lowered, until_ps: int, show: bool | None) -> None:
        self._engine = engine
        self._lowered = lowered
        self._until_ps = until_ps
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._next_look_s = 0.0
        self._began_s = 0.0
        self._hops_before = 0

    def __enter__(self) -> Progress:
        self._began_s = time.monotonic()
        if self._show:
            from tqdm import tqdm

            self._hops_before = self._hops()
            self._bar = tqdm(total=1.0, bar_format=BAR, desc="fabric", leave=False, file=sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def look(self) -> None:
        """Update the bar, unless that was done a moment ago."""
        now_s = time.monotonic()
        if self._bar is None or now_s < self._next_look_s:
            return
        self._next_look_s = now_s + INTERVAL_S
        columns = self._engine.columns()
        hops = int(columns["counters"]["hops"]) - self._hops_before
        self._bar.set_postfix_str(
            f"{time_text(self._engine.now_ps)} simulated, {self._done_text(columns)}, "
            f"{count_text(hops / max(now_s - self._began_s, 1e-9))} hops/s",
            refresh=False,
        )
        self._bar.n = min(self._share(columns), 1.0)
        self._bar.refresh()

    def _done_text(self, columns: dict[str, Any]) -> str:
        """Return how many flows have been delivered, and how many tasks of programs are done."""
        is_flow = self._lowered.flow_frames > 0
        parts = []
        if is_flow.any() or self._lowered.program is None:
            delivered = int((columns["flow_delivered_ps"][is_flow] >= 0).sum())
            parts.append(f"{delivered:,} of {int(is_flow.sum()):,} flows delivered")
        if self._lowered.program is not None:
            left = columns["task_left_ps"]
            parts.append(f"{int((left >= 0).sum()):,} of {len(left):,} ranks' operations done")
        return ", ".join(parts)

    def _hops(self) -> int:
        return int(self._engine.columns()["counters"]["hops"])

    def _share(self, columns: dict[str, Any]) -> float:
        """Return how much of the run is done, in [0, 1]."""
        is_flow = self._lowered.flow_frames > 0
        frames = int(self._lowered.flow_frames.sum())
        sent, again = columns["flow_sent"][is_flow], columns["flow_retransmitted"][is_flow]
        parts = [(int(sent.sum()) - int(again.sum())) / frames] if frames else []
        if self._lowered.program is not None:
            left = columns["task_left_ps"]
            parts.append(int((left >= 0).sum()) / max(len(left), 1))
        shares = [min(parts, default=0.0)]
        if self._until_ps < OPEN_END_PS:
            shares.append(self._engine.now_ps / max(self._until_ps, 1))
        return max(shares)
