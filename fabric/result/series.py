"""From an engine's recorded rows to tables over time.

Rows of all streams have one layout and say `value` and `aux`; here each stream gets columns of its
own, with names and units. Tables keep the engine's order: by port, class and flow, then by time, so
that the rows of one queue or one flow are together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fabric.lowered import DropReason, Lowered

from .labels import Labels
from .table import Array, Category, Table

__all__ = ["FRAME_KINDS", "SERIES", "STREAM_OF", "series_table"]

FRAME_KINDS = ("DATA", "ACK", "NACK", "CNP", "PFC")
"""Names of the kinds of frames, by number."""

STREAM_OF = {
    "queue": "queue",
    "throughput": "throughput",
    "pauses": "pause",
    "rates": "rate",
    "marks": "mark",
    "drops": "drop",
    "packets": "packet",
}
"""The engine's stream behind each table."""

NO_FLOW = 0xFFFFFFFF
"""Flow number of a PFC frame, which belongs to none."""

BITS_PER_BYTE = 8
PS_PER_S = 10**12


def series_table(name: str, rows: Array, *, lowered: Lowered, labels: Labels) -> Table:
    """Return one recorded stream as a table.

    Parameters
    ----------
    name : str
        Name of the table, a key of :data:`STREAM_OF`.
    rows : numpy.ndarray of ROW
        What the engine recorded.
    lowered : Lowered
        The scenario that it ran.
    labels : Labels
        Names.
    """
    return SERIES[name](rows, lowered, labels)


def _links(rows: Array, labels: Labels) -> Category:
    return Category(rows["port"], labels.links)


def _classes(rows: Array, labels: Labels) -> Category:
    return Category(rows["class"], labels.classes)


def _flows(rows: Array, labels: Labels) -> Category:
    """Return the flows' names, and an empty name for frames that belong to no flow."""
    names = np.append(labels.flows, "") if len(labels.flows) else np.array([""])
    return Category(np.where(rows["flow"] == NO_FLOW, len(labels.flows), rows["flow"]), names)


def _kinds(rows: Array) -> Category:
    return Category(rows["kind"], np.array(FRAME_KINDS))


def _queue(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    return Table(
        {
            "time_ps": rows["time_ps"],
            "link": _links(rows, labels),
            "traffic_class": _classes(rows, labels),
            "queue_bytes": rows["value"],
        },
        name="queue",
    )


def _throughput(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    interval_ps = max(lowered.record_throughput_interval_ps, 1)
    return Table(
        {
            "time_ps": rows["time_ps"],
            "link": _links(rows, labels),
            "tx_bytes": rows["value"],
            "rate_bps": rows["value"] * (BITS_PER_BYTE * PS_PER_S / interval_ps),
            "interval_ps": np.full(len(rows), interval_ps, dtype=np.int64),
        },
        name="throughput",
    )


def _pauses(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    return Table(
        {
            "begin_ps": rows["time_ps"],
            "end_ps": rows["value"],
            "link": _links(rows, labels),
            "traffic_class": _classes(rows, labels),
        },
        name="pauses",
        optional=("end_ps",),
    )


def _rates(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    return Table(
        {
            "time_ps": rows["time_ps"],
            "flow": rows["flow"],
            "name": _flows(rows, labels),
            "rate_bps": rows["aux"],
            "window_frames": rows["value"],
        },
        name="rates",
    )


def _marks(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    return Table(
        {
            "time_ps": rows["time_ps"],
            "link": _links(rows, labels),
            "traffic_class": _classes(rows, labels),
            "flow": rows["flow"],
            "name": _flows(rows, labels),
            "sequence": rows["sequence"],
            "queue_bytes": rows["value"],
        },
        name="marks",
    )


def _drops(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    return Table(
        {
            "time_ps": rows["time_ps"],
            "link": _links(rows, labels),
            "traffic_class": _classes(rows, labels),
            "flow": rows["flow"],
            "name": _flows(rows, labels),
            "sequence": rows["sequence"],
            "kind": _kinds(rows),
            "reason": Category(rows["value"], np.array(DropReason.NAMES)),
        },
        name="drops",
    )


def _packets(rows: Array, lowered: Lowered, labels: Labels) -> Table:
    return Table(
        {
            "time_ps": rows["time_ps"],
            "link": _links(rows, labels),
            "traffic_class": _classes(rows, labels),
            "flow": rows["flow"],
            "name": _flows(rows, labels),
            "sequence": rows["sequence"],
            "kind": _kinds(rows),
            "marked": rows["mark"].astype(bool),
            "size_bytes": rows["value"],
        },
        name="packets",
    )


SERIES: dict[str, Callable[[Array, Lowered, Labels], Table]] = {
    "queue": _queue,
    "throughput": _throughput,
    "pauses": _pauses,
    "rates": _rates,
    "marks": _marks,
    "drops": _drops,
    "packets": _packets,
}
"""How each table is made, by name."""
