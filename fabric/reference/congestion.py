"""Which congestion control is which: see `control.py` for what one is, and a file each for what it does."""

from __future__ import annotations

from .control import CongestionControl, RateListener, SetTimer
from .dcqcn_paper import DcqcnPaper
from .dcqcn_vendor import DcqcnVendor
from .dcqcn_vendor_timers import DcqcnVendorTimers
from .dctcp import Dctcp
from .hpcc import Hpcc
from .tables import Congestion, Transport
from .timely import Timely

__all__ = ["LineRate", "make_congestion_control"]


class LineRate(CongestionControl):
    """No congestion control: always as fast as the port."""

    __slots__ = ("_line_bps",)

    def __init__(self, line_bps: float) -> None:
        self._line_bps = line_bps

    def rate_at(self, now_ps: int) -> float:
        """The line rate."""
        return self._line_bps


def make_congestion_control(
    transport: Transport, *, line_bps: float, on_change: RateListener, set_timer: SetTimer | None = None
) -> CongestionControl:
    """The congestion control that a transport asks for, for a flow that begins now.

    With `set_timer`, timers of one that ns-3 has are events.
    """
    match transport.congestion:
        case Congestion.DCQCN_PAPER:
            return DcqcnPaper(transport, line_bps=line_bps, on_change=on_change)
        case Congestion.DCQCN_VENDOR if set_timer is not None:
            return DcqcnVendorTimers(transport, line_bps=line_bps, on_change=on_change, set_timer=set_timer)
        case Congestion.DCQCN_VENDOR:
            return DcqcnVendor(transport, line_bps=line_bps, on_change=on_change)
        case Congestion.HPCC:
            return Hpcc(transport, line_bps=line_bps, on_change=on_change)
        case Congestion.DCTCP:
            return Dctcp(transport, line_bps=line_bps, on_change=on_change)
        case Congestion.TIMELY:
            return Timely(transport, line_bps=line_bps, on_change=on_change)
        case _:
            return LineRate(line_bps)
