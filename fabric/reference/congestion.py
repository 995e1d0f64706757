"""What a congestion control is to its sender: a rate at every send, and a mark now and then.

A congestion control has no events of its own. Its timers are regular, so what they have done by an
instant is worked out when the sender next asks or hears: `on_send` and `on_mark` first let everything
act that expired strictly before. Rates are IEEE doubles in bit/s, evaluated in the order in which the
formulas of the implementing files are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .dcqcn_paper import DcqcnPaper
from .dcqcn_vendor import DcqcnVendor
from .tables import Congestion, Transport

__all__ = ["CongestionControl", "LineRate", "RateListener", "make_congestion_control"]

RateListener = Callable[[int, float], None]
"""Told (time in ps, rate in bit/s) after each change of a rate."""


class CongestionControl(Protocol):
    """The rate of one flow."""

    def on_send(self, now_ps: int, *, wire_bytes: int) -> float:
        """The rate in bit/s at which a frame that begins now is paced."""

    def on_mark(self, now_ps: int) -> None:
        """Congestion was reported: by a CNP, or by the echo in an ACK or NACK."""


class LineRate:
    """No congestion control: always as fast as the port."""

    __slots__ = ("_line_bps",)

    def __init__(self, line_bps: float) -> None:
        self._line_bps = line_bps

    def on_send(self, now_ps: int, *, wire_bytes: int) -> float:
        """The line rate."""
        return self._line_bps

    def on_mark(self, now_ps: int) -> None:
        """Deaf to congestion."""


def make_congestion_control(
    transport: Transport, *, line_bps: float, on_change: RateListener
) -> CongestionControl:
    """The congestion control that a transport asks for, for a flow that begins now."""
    if transport.congestion == Congestion.DCQCN_PAPER:
        return DcqcnPaper(transport, line_bps=line_bps, on_change=on_change)
    if transport.congestion == Congestion.DCQCN_VENDOR:
        return DcqcnVendor(transport, line_bps=line_bps, on_change=on_change)
    return LineRate(line_bps)
