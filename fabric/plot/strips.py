"""Strips below a picture of queues, on its time axis: what was paused, marked, dropped, slowed down.

A strip shows what was recorded and happened: the ports that PFC paused, the frames that ECN marked, the
frames that were dropped, the mean rate that congestion control allowed. Pauses and marks are areas, each
link in the colour of its queue above and all others together in grey. All are averages over stretches of
time that are a few pixels wide, so a port that is paused half of such a stretch counts as half a port.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabric.result import Result
from fabric.result.table import Array
from fabric.result.text import counted

from .rates import mean_rate
from .steps import covered
from .style import COLOURS, GREY, INK, NOTE_SIZE, label_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["STRIP_INCHES", "draw_strips", "strips_of"]

STRETCHES = 250
"""Stretches of time over which a strip is averaged."""

STRIP_INCHES = 0.8
"""Height that a strip adds to a picture."""

STRIP_SHARE = 0.17
"""Height of a strip, in heights of the picture of queues."""

OTHERS = "#C8C8C8"
"""Colour of the links that are not shown above."""

ROUND_DIGITS = (8, 5, 4, 2, 1)
"""First digits of the numbers at which strips have a tick."""

PS_PER_US = 1e6
BITS_PER_GBIT = 1e9

Strip = Callable[["Axes", Result, Sequence[str], int, float], None]


def strips_of(result: Result) -> list[Strip]:
    """Return the strips for which something was recorded and happened."""
    strips: list[Strip] = []
    if len(result.pauses):
        strips.append(_draw_pauses)
    if len(result.marks):
        strips.append(_draw_marks)
    if len(result.drops):
        strips.append(_draw_drops)
    if len(result.rates) and len(np.unique(result.rates["rate_bps"])) > 1:
        strips.append(_draw_rates)
    return strips


def draw_strips(
    ax: Axes, strips: Sequence[Strip], result: Result, *, links: Sequence[str], end_ps: int, scale: float
) -> None:
    """Draw strips below `ax`, in the room that it has in its figure.

    Parameters
    ----------
    ax : Axes
        The queues. Axes that are not part of a grid, as `pyplot.subplots` makes it, get no strips.
    strips : sequence
        What :func:`strips_of` returned.
    result : Result
        What is drawn.
    links : sequence of str
        Links of the queues, in the order of their colours.
    end_ps : int
        End of the picture.
    scale : float
        Picoseconds per unit of the time axis.
    """
    place = ax.get_subplotspec()
    figure = ax.get_figure()
    if place is None or figure is None or not strips:
        return
    grid = place.subgridspec(1 + len(strips), 1, height_ratios=[1, *[STRIP_SHARE] * len(strips)])
    ax.set_subplotspec(grid[0])
    below = [figure.add_subplot(grid[1 + k], sharex=ax) for k in range(len(strips))]
    for strip, axes in zip(strips, below, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        strip(axes, result, links, end_ps, scale)
        axes.set(ylim=(0, 1.1 * axes.dataLim.ymax), yticks=(0, _round_below(axes.dataLim.ymax)))
    below[-1].set_xlabel(ax.get_xlabel())
    ax.set_xlabel("")
    for axes in (ax, *below[:-1]):
        axes.tick_params(labelbottom=False)


def _round_below(top: float) -> float:
    """Return the largest number of one digit, a round one, that is not above `top`."""
    power = 10.0 ** math.floor(math.log10(top))
    return power * next(digit for digit in ROUND_DIGITS if digit * power <= top * (1 + 1e-9))


def _name(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=NOTE_SIZE, color=INK, pad=3)


def _edges(end_ps: int) -> Array:
    return np.linspace(0, end_ps, STRETCHES + 1)


def _draw_pauses(ax: Axes, result: Result, links: Sequence[str], end_ps: int, scale: float) -> None:
    pauses = result.pauses
    edges = _edges(end_ps)
    stop = np.where(pauses["end_ps"] < 0, result.duration_ps, pauses["end_ps"])

    def share(rows: Array) -> Array:
        return covered(pauses["begin_ps"][rows], stop[rows], edges_ps=edges)

    _stack(ax, edges / scale, [share(rows) for rows in _rows_by_link(pauses["link"], links)])
    _name(ax, "Ports paused by PFC")


def _draw_marks(ax: Axes, result: Result, links: Sequence[str], end_ps: int, scale: float) -> None:
    marks = result.marks
    edges = _edges(end_ps)
    rows_by_link = _rows_by_link(marks["link"], links)
    _stack(ax, edges / scale, [_per_us(marks["time_ps"][rows], edges) for rows in rows_by_link])
    _name(ax, "Frames marked by ECN, per µs")


def _draw_drops(ax: Axes, result: Result, links: Sequence[str], end_ps: int, scale: float) -> None:
    edges = _edges(end_ps)
    ax.stairs(_per_us(result.drops["time_ps"], edges), edges / scale, fill=True, color=INK, lw=0)
    _name(ax, "Frames dropped, per µs")


def _per_us(times_ps: Array, edges_ps: Array) -> Array:
    """Return how many of some instants fall into each stretch of time, per microsecond."""
    rate: Array = np.histogram(times_ps, edges_ps)[0] * (PS_PER_US / (edges_ps[1] - edges_ps[0]))
    return rate


def _draw_rates(ax: Axes, result: Result, links: Sequence[str], end_ps: int, scale: float) -> None:
    times, mean = mean_rate(result, end_ps=end_ps)
    ax.plot(times / scale, mean / BITS_PER_GBIT, color=INK, lw=1.3)
    flows = counted(len(np.unique(result.rates["flow"])), "flow")
    _name(ax, f"Rate allowed by congestion control, mean of {flows} (Gbit/s)")


def _rows_by_link(link: Array, links: Sequence[str]) -> list[Array]:
    """Return the rows of each link, and at last those of all others."""
    rows = [link == name for name in dict.fromkeys(links)]
    return [*rows, ~np.logical_or.reduce(rows)]


def _stack(ax: Axes, edges: Array, layers: Sequence[Array]) -> None:
    """Draw areas on top of each other, the last one for all that is not shown above."""
    colours = [*COLOURS[: len(layers) - 1], OTHERS]
    steps = [np.append(layer, layer[-1]) for layer in layers]
    ax.stackplot(edges, steps, colors=colours, step="post", lw=0)
    if layers[-1].any():
        label_lines(ax, [("other ports", GREY, float(np.sum(steps, axis=0).max()) / 2)])
