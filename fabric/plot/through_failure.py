"""Throughput through a failure: what hosts receive over time, with what fails and what is done about it.

Bins are those of the throughput recorder, several together where a run is long. Bands are failures, from
their beginning to their repair; lines are the instants at which routes change next to them and everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabric.errors import FabricError
from fabric.result import Result
from fabric.result.table import Array
from fabric.result.text import time_text

from .style import COLOURS, GREY, arrows, label_lines, styled, time_axis, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.failures.timeline import Milestones

__all__ = ["through_failure"]

FAILED = COLOURS[1]
BINS = 160
"""Steps that a curve has at most."""
MOST_NAMED = 2
"""Failures whose levels are drawn; of more only the bands are."""
TERA_FROM_GBPS = 10_000
ROOM = 1.22
"""Height of the axes, in heights of the highest curve; what fails stands above it."""
LEVELS = (("isolated_ps", "isolated"), ("converged_ps", "known everywhere"), ("restored_ps", "used again"))


def through_failure(
    result: Result,
    milestones: Sequence[Milestones],
    *,
    links: Sequence[str] = ("*->host*",),
    ax: Axes | None = None,
) -> Axes:
    """Draw throughput over time, and failures.

    Parameters
    ----------
    result : Result
        With recorded throughput.
    milestones : sequence of Milestones
        What :func:`fabric.failures.timeline.milestones` says of its failures.
    links : sequence of str
        Each pattern of links is a curve, the sum of those that match. Default: all that end at hosts.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        Nothing was recorded of such links.
    """
    end_ps = int(result.counters["end_ps"])
    with styled(ax) as axes:
        scale = time_axis(axes, end_ps)
        labels = []
        curves = []
        for number, pattern in enumerate(links):
            times, gbps = _summed(result, pattern, end_ps)
            colour = COLOURS[number % len(COLOURS)]
            curves.append((times, gbps, colour))
            labels.append((arrows(pattern), colour, float(gbps[len(gbps) // 2])))
        top = max(float(gbps.max()) for _, gbps, _ in curves)
        unit, gbps_a_unit = ("Tbit/s", 1000.0) if top >= TERA_FROM_GBPS else ("Gbit/s", 1.0)
        for times, gbps, colour in curves:
            axes.step(times / scale, gbps / gbps_a_unit, where="post", color=colour, lw=1.3)
        axes.set(
            ylabel=f"Throughput ({unit})",
            ylim=(0, ROOM * top / gbps_a_unit),
            xlim=(0, end_ps / scale),
        )
        labels = [(text, colour, height / gbps_a_unit) for text, colour, height in labels]
        _mark_failures(axes, milestones, scale=scale, end_ps=end_ps)
        label_lines(axes, labels if len(links) > 1 else [])
        what = "received by all hosts" if tuple(links) == ("*->host*",) else "of links"
        note = result.summary.title() if result.provenance.name else ""
        title(axes, f"Throughput {what}, through {_named(milestones)}", note=note)
    return axes


def _summed(result: Result, pattern: str, end_ps: int) -> tuple[Array, Array]:
    """Edges of bins, and the rate in each in Gbit/s, of all links that match."""
    rows = result.throughput.where(link=pattern)
    if len(rows) == 0:
        raise FabricError(f"no throughput of links {pattern} was recorded (record.throughput)")
    interval_ps = int(rows["interval_ps"][0])
    each_ps = interval_ps * max(1, -(-end_ps // (interval_ps * BINS)))
    count = end_ps // each_ps + 1
    sent = np.bincount(rows["time_ps"] // each_ps, weights=rows["tx_bytes"], minlength=count)[:count]
    gbps = sent * 8e3 / each_ps
    times = np.arange(count + 1) * float(each_ps)
    return times, np.append(gbps, gbps[-1])


def _mark_failures(ax: Axes, milestones: Sequence[Milestones], *, scale: float, end_ps: int) -> None:
    for each in milestones:
        end = each.ended_ps if 0 <= each.ended_ps < end_ps else end_ps
        ax.axvspan(each.began_ps / scale, end / scale, color=FAILED, alpha=0.13, lw=0)
    if len(milestones) > MOST_NAMED:
        return
    for number, each in enumerate(milestones):
        reached = [(said, getattr(each, name)) for name, said in LEVELS if 0 <= getattr(each, name) < end_ps]
        for _, time_ps in reached:
            ax.axvline(time_ps / scale, color=GREY, lw=0.9, ls=":")
        words = [f"{each.target} fails at {time_text(each.began_ps)}"]
        words += [f"{said} {time_text(time_ps)}" for said, time_ps in reached]
        height = 0.965 - 0.055 * number
        text = ax.text(0.99, height, ", ".join(words), transform=ax.transAxes, fontsize=8.5, color=FAILED)
        text.set(ha="right", va="top")


def _named(milestones: Sequence[Milestones]) -> str:
    kinds = dict.fromkeys(each.kind.replace("_", " ") for each in milestones)
    return " and ".join(kinds) or "no failure"
