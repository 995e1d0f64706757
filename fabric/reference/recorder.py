"""Rows: what is written down while a run goes on, if it was asked for.

There are eight streams with one row layout (`fabric.lowered.ROW`). A field that a stream does not use is
0. Rows are collected as they happen and sorted by all their fields when asked for, so that the order
in which an engine handles nodes cannot be seen. What is still open when the rows are asked for (a pause
without its resume, the last depth of a queue) is added to the answer, not to the record, so a run can be
looked at and continued.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fabric.lowered import ROW, ROW_ORDER, STREAMS, Lowered

from .frame import Frame
from .port import Port
from .queue_trace import OnChange, OnInterval

__all__ = ["Recorder"]

STILL_PAUSED = -1
"""End of a pause that is open at the end of the run."""


class PortRecord:
    """Bits of `Lowered.port_record`."""

    QUEUE, THROUGHPUT, PACKETS = 1, 2, 4


class FlowRecord:
    """Bits of `Lowered.flow_record`."""

    RATE, PACKETS = 1, 2


class RunRecord:
    """Bits of `Lowered.record`."""

    PAUSES, MARKS, DROPS = 1, 2, 4


_Row = tuple[int, int, float, int, int, int, int, int, int, int]


def _row(
    time_ps: int,
    value: int,
    *,
    port: int = 0,
    flow: int = 0,
    sequence: int = 0,
    kind: int = 0,
    traffic_class: int = 0,
    mark: int = 0,
    aux: float = 0.0,
) -> _Row:
    return (time_ps, value, aux, port, flow, sequence, kind, traffic_class, mark, 0)


class Recorder:
    """The rows of one run.

    Parameters
    ----------
    lowered : Lowered
        Says what is recorded, and where.
    """

    def __init__(self, lowered: Lowered) -> None:
        self._rows: dict[str, list[_Row]] = {stream: [] for stream in STREAMS}
        self._wire_bytes: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._record = lowered.record
        self._port_record: list[int] = lowered.port_record.tolist()
        self._flow_record: list[int] = lowered.flow_record.tolist()
        self._bin_ps = lowered.record_throughput_interval_ps
        interval_ps = lowered.record_queue_interval_ps
        self._depths: OnInterval | OnChange = (
            OnInterval(interval_ps, self._add_depth)
            if interval_ps > 0
            else OnChange(lowered.record_queue_delta, self._add_depth)
        )

    def on_start(self, frame: Frame, *, port: int, wire_bytes: int, now_ps: int) -> None:
        """A frame has begun to leave `port`."""
        wanted = self._port_record[port]
        if wanted & PortRecord.THROUGHPUT:
            self._wire_bytes[port, now_ps // self._bin_ps] += wire_bytes
        if wanted & PortRecord.PACKETS or self._wants_flow(frame.flow, FlowRecord.PACKETS):
            self._rows["packet"].append(
                _row(
                    now_ps,
                    frame.size_bytes,
                    port=port,
                    flow=frame.flow,
                    sequence=frame.sequence,
                    kind=frame.kind,
                    traffic_class=frame.traffic_class,
                    mark=frame.mark,
                )
            )

    def on_depth(self, depth_bytes: int, *, port: int, traffic_class: int, now_ps: int) -> None:
        """An egress queue has grown or shrunk."""
        if self._port_record[port] & PortRecord.QUEUE:
            self._depths.on_depth(now_ps, depth_bytes, port, traffic_class)

    def on_pause_end(self, *, port: int, traffic_class: int, began_ps: int, now_ps: int) -> None:
        """A class of `port` may send again."""
        if self._record & RunRecord.PAUSES:
            self._rows["pause"].append(_row(began_ps, now_ps, port=port, traffic_class=traffic_class))

    def on_rate(self, rate_bps: float, *, flow: int, window_frames: int, now_ps: int) -> None:
        """A flow has got a rate: the first one at its start, then another."""
        if self._wants_flow(flow, FlowRecord.RATE):
            self._rows["rate"].append(_row(now_ps, window_frames, flow=flow, aux=rate_bps))

    def on_mark(self, frame: Frame, *, port: int, queue_bytes: int, now_ps: int) -> None:
        """A frame was marked at egress `port`."""
        if self._record & RunRecord.MARKS:
            self._rows["mark"].append(
                _row(
                    now_ps,
                    queue_bytes,
                    port=port,
                    flow=frame.flow,
                    sequence=frame.sequence,
                    traffic_class=frame.traffic_class,
                )
            )

    def on_drop(self, frame: Frame, *, port: int, reason: int, now_ps: int) -> None:
        """A frame vanished, counted at `port`."""
        if self._record & RunRecord.DROPS:
            self._rows["drop"].append(
                _row(
                    now_ps,
                    reason,
                    port=port,
                    flow=frame.flow,
                    sequence=frame.sequence,
                    kind=frame.kind,
                    traffic_class=frame.traffic_class,
                )
            )

    def on_watchdog(
        self, *, port: int, traffic_class: int, kind: int, frames: int, size_bytes: int, now_ps: int
    ) -> None:
        """A watchdog has mitigated a queue that held so much, or restored it."""
        self._rows["watchdog"].append(
            _row(now_ps, size_bytes, port=port, sequence=frames, kind=kind, traffic_class=traffic_class)
        )

    def rows(self, stream: str, *, ports: list[Port], end_ps: int) -> npt.NDArray[np.void]:
        """All rows of a stream if the run ends now, its last arrival at `end_ps`; sorted."""
        rows = np.array([*self._rows[stream], *self._open_rows(stream, ports, end_ps)], dtype=ROW)
        return rows[np.lexsort([rows[name] for name in reversed(ROW_ORDER)])]

    def _wants_flow(self, flow: int, bit: int) -> bool:
        return flow < len(self._flow_record) and bool(self._flow_record[flow] & bit)

    def _add_depth(self, time_ps: int, depth: int, port: int, traffic_class: int) -> None:
        self._rows["queue"].append(_row(time_ps, depth, port=port, traffic_class=traffic_class))

    def _open_rows(self, stream: str, ports: list[Port], end_ps: int) -> Iterator[_Row]:
        if stream == "queue":
            for time_ps, depth, port, traffic_class in self._depths.pending(end_ps):
                yield _row(time_ps, depth, port=port, traffic_class=traffic_class)
        elif stream == "throughput":
            for (port, k), wire_bytes in self._wire_bytes.items():
                yield _row(k * self._bin_ps, wire_bytes, port=port)
        elif stream == "pause" and self._record & RunRecord.PAUSES:
            for paused in ports:
                for traffic_class, pause in enumerate(paused.pauses):
                    if pause.since_ps is not None:
                        yield _row(
                            pause.since_ps, STILL_PAUSED, port=paused.number, traffic_class=traffic_class
                        )
