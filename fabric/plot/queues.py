"""Queue depth over time, with the ECN thresholds and what PFC and congestion control did meanwhile.

Each curve is one egress queue (a port and a traffic class). Dashed lines are the thresholds between
which ECN marks; those far above the data are named below the title instead of squeezing the curves.
Pauses, marks and sending rates that were recorded are strips below, on the same time axis
(`fabric.plot.strips`). The picture ends soon after the last of its queues has emptied, and says so.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabric.errors import FabricError
from fabric.result import Result, Table
from fabric.result.table import Array
from fabric.result.text import size_text, time_text

from .steps import envelope
from .strips import STRIP_INCHES, draw_strips, strips_of
from .style import (
    COLOURS,
    GREY,
    SIZE_INCHES,
    arrows,
    label_lines,
    size_axis,
    spaced,
    styled,
    time_axis,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["matching_links", "queues"]

BUSIEST = 4
"""Queues that are drawn when none are chosen."""

MOST = len(COLOURS)
"""Queues that one picture can tell apart."""

REACH = 1.6
"""Thresholds up to this multiple of the deepest queue are drawn."""

LONG_IDLE = 0.6
"""If all is over before this share of the run, the rest is not drawn."""

Queue = tuple[str, str]
"""Link and traffic class."""


def queues(result: Result, *, ports: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw recorded queues over time.

    Parameters
    ----------
    result : Result
        Of a scenario with ``[record.queues]``.
    ports : str
        Pattern of ports ("leaf0->*", "leaf0:3", "leaf0"); by default all. The fullest are drawn.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If no queue was recorded, or none matches.
    """
    chosen = _fullest(result, ports)
    links = [link for link, _ in chosen]
    peaks = _exact_peaks(result.classes, chosen)
    rows = {queue: _rows_of(result.queue, *queue) for queue in chosen}
    end_ps = _end_of_picture(result, rows.values())
    top = max(chosen.values())
    strips = strips_of(result)
    width, height = SIZE_INCHES
    with styled(ax, size=(width, height + STRIP_INCHES * len(strips))) as axes:
        time_scale, size_scale = time_axis(axes, end_ps), size_axis(axes, top)
        draw_strips(axes, strips, result, links=links, end_ps=end_ps, scale=time_scale)
        labels = []
        one_class = len({name for _, name in chosen}) == 1
        for colour, (queue, peak) in zip(COLOURS, chosen.items(), strict=False):
            times, depth = envelope(rows[queue]["time_ps"], rows[queue]["queue_bytes"], end_ps=end_ps)
            _draw_curve(axes, times / time_scale, depth / size_scale, colour)
            name = arrows(queue[0]) if one_class else f"{arrows(queue[0])} {queue[1]}"
            labels.append((f"{name}\npeak {_size(peaks[queue])}", colour, peak / size_scale))
        thresholds = _draw_thresholds(axes, _thresholds(result.classes, list(chosen)), top, size_scale)
        drawn = max([top / size_scale, *(height for _, _, height in thresholds)])
        axes.set(xlim=(0, end_ps / time_scale), ylim=(0, 1.06 * drawn))
        label_lines(axes, labels + thresholds)
        title(
            axes,
            _headline(peaks),
            note="\n".join(_notes(result, chosen, peaks, end_ps)),
        )
    return axes


def _exact_peaks(classes: Table, recorded: Mapping[Queue, int]) -> dict[Queue, int]:
    """Return the peak of each shown queue, which samples of its depth may miss."""
    columns = (classes[name].tolist() for name in ("link", "traffic_class", "queue_peak_bytes"))
    exact = {(link, name): peak for link, name, peak in zip(*columns, strict=True)}
    return {queue: max(exact[queue], peak) for queue, peak in recorded.items()}


def _headline(peaks: Mapping[Queue, int]) -> str:
    fullest = max(peaks, key=lambda queue: peaks[queue])
    return f"The queue of {arrows(fullest[0])} reaches {_size(peaks[fullest])}"


def _draw_curve(ax: Axes, times: Array, depth: Array, colour: str) -> None:
    ax.plot(times, depth, color=colour, lw=1.3, drawstyle="steps-post")
    ax.fill_between(times, depth, step="post", color=colour, alpha=0.07, lw=0)


def matching_links(result: Result, pattern: str) -> set[str]:
    """Return the links of the ports that match a pattern.

    Raises
    ------
    FabricError
        If there is none.
    """
    names, links = result.ports["name"].tolist(), result.ports["link"].tolist()
    if "->" in pattern:
        hits = {link for link in links if fnmatch.fnmatchcase(link, pattern) or _is_parallel(link, pattern)}
    else:
        wanted = pattern if ":" in pattern else f"{pattern}:*"
        hits = {link for name, link in zip(names, links, strict=True) if fnmatch.fnmatchcase(name, wanted)}
    if not hits:
        raise FabricError(f"no port matches {pattern!r}; ports are named like {names[0]!r} or {links[0]!r}")
    return hits


def _is_parallel(link: str, pattern: str) -> bool:
    """Return whether a parallel link ("leaf0->spine0#1") matches a pattern that names no number."""
    return "#" in link and "#" not in pattern and fnmatch.fnmatchcase(link.partition("#")[0], pattern)


def _size(size_bytes: float) -> str:
    return spaced(size_text(size_bytes))


def _fullest(result: Result, pattern: str | None) -> dict[Queue, int]:
    """Return the recorded queues that match, fullest first, each with its largest recorded depth."""
    if "queue" not in result.recorded:
        raise FabricError("this result has no queue depths: set record.queues in the scenario and run again")
    allowed = None if pattern is None else matching_links(result, pattern)
    peaks: dict[Queue, int] = {}
    link, traffic_class = result.queue.category("link"), result.queue.category("traffic_class")
    pair = np.asarray(link.codes, np.int64) * len(traffic_class.labels) + traffic_class.codes
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    tops = np.maximum.reduceat(result.queue["queue_bytes"], first) if len(first) else first
    for row, top in zip(first, tops, strict=True):
        name = str(link.labels[link.codes[row]])
        if allowed is None or name in allowed:
            peaks[name, str(traffic_class.labels[traffic_class.codes[row]])] = int(top)
    if not peaks:
        what = "no queue" if pattern is None else f"no queue of {pattern!r}"
        raise FabricError(f"{what} changed while it was recorded: there is nothing to draw")
    exact = _exact_peaks(result.classes, peaks)
    ranked = sorted(peaks.items(), key=lambda item: (-exact[item[0]], item[0]))
    return dict(ranked[: BUSIEST if pattern is None else MOST])


def _rows_of(queue: Table, link: str, traffic_class: str) -> Table:
    mask = np.ones(len(queue), bool)
    for name, wanted in (("link", link), ("traffic_class", traffic_class)):
        column = queue.category(name)
        mask &= column.codes == int(np.flatnonzero(column.labels == wanted)[0])
    return queue[mask]


def _end_of_picture(result: Result, rows: Iterable[Table]) -> int:
    """Return the end of the run, or soon after the last change if the rest of the run is idle."""
    last = max(int(table["time_ps"][-1]) for table in rows)
    end_ps = max(result.duration_ps, last, 1)
    return int(1.1 * last) if last < LONG_IDLE * end_ps else end_ps


def _thresholds(classes: Table, shown: Sequence[Queue]) -> list[tuple[int, int]]:
    """Return the different pairs of ECN thresholds of the shown queues."""
    keep = np.isin(classes["link"], [link for link, _ in shown])
    keep &= np.isin(classes["traffic_class"], [name for _, name in shown])
    pairs = zip(classes["ecn_kmin_bytes"][keep], classes["ecn_kmax_bytes"][keep], strict=True)
    return sorted({(int(low), int(high)) for low, high in pairs if low >= 0})


def _draw_thresholds(
    ax: Axes, limits: Sequence[tuple[int, int]], top: float, scale: float
) -> list[tuple[str, str, float]]:
    """Draw the thresholds that are near the data; return their labels."""
    labels = []
    for pair in limits:
        for name, limit in zip(("kmin", "kmax"), pair, strict=True):
            if limit <= REACH * top:
                ax.axhline(limit / scale, color=GREY, lw=1, ls=(0, (5, 3)), zorder=1)
                labels.append((f"ECN {name}\n{_size(limit)}", GREY, limit / scale))
    return labels


def _notes(
    result: Result, recorded: Mapping[Queue, int], peaks: Mapping[Queue, int], end_ps: int
) -> list[str]:
    """Return the lines below the title: the scenario, and what the picture cannot show."""
    notes = [result.summary.title()] if result.provenance.name else []
    if any(_size(peaks[queue]) != _size(depth) for queue, depth in recorded.items()):
        notes.append("Depths are as recorded, peaks are exact: a queue was deeper between two records")
    top = max(recorded.values())
    far = [pair for pair in _thresholds(result.classes, list(recorded)) if pair[1] > REACH * top]
    notes += [f"ECN marks from {_size(low)} to {_size(high)}" for low, high in far[:1]]
    if end_ps < result.duration_ps:
        notes.append(f"No further change until the end of the run at {spaced(time_text(result.duration_ps))}")
    return notes
