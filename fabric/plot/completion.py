"""Flow completion times: their distribution, and slowdown against the size of the flows.

The completion time of a flow runs from its start until the receiver has all of it; its slowdown is
that over the time in an empty network. Flows that were not delivered count in the distribution, which
then ends below 100 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.analysis import stats
from fabric.errors import FabricError
from fabric.result import Result, Table
from fabric.result.table import Array
from fabric.result.text import count_text, size_text, time_text

from .style import (
    COLOURS,
    GREY,
    INK,
    label_lines,
    log_axis,
    spaced,
    styled,
    time_axis,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["fct_cdf", "slowdown_by_size"]

LOG_ABOVE = 20
"""Values that span more than this factor stand on a logarithmic axis."""


def fct_cdf(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of flow completion times.

    Each traffic pattern is a curve; more patterns than colours can tell apart are one curve together.

    Parameters
    ----------
    result : Result
        With at least one delivered flow.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If no flow was delivered.
    """
    flows = result.flows
    done = _delivered(flows)
    low, high = float(done.min()), float(done.max())
    with styled(ax) as axes:
        axes.set(ylabel="Share of flows (%)", ylim=(0, 104), yticks=(0, 25, 50, 75, 100))
        if high > LOG_ABOVE * low:
            axes.set(xlabel="Flow completion time", xlim=(low / 1.3, high * 1.3))
            log_axis(axes, _time)
            scale = 1.0
        else:
            scale = time_axis(axes, high, what="Flow completion time")
            axes.set_xlim(0, 1.04 * high / scale)
        _draw_curves(axes, flows, scale)
        median, slow = stats.percentiles(done, q=(50, 99)).tolist()
        missing = len(flows) - len(done)
        note = [f"{count_text(len(done))} flows; slowdown {_slowdown_text(flows)}"]
        if missing:
            note.append(f"{count_text(missing)} of {count_text(len(flows))} flows were not delivered")
        title(
            axes,
            f"Half of the flows take at most {_time(median)}, 99 % at most {_time(slow)}",
            note="\n".join([*_scenario(result), *note]),
        )
    return axes


def _scenario(result: Result) -> list[str]:
    """Return the line that names the scenario, if it has a name."""
    return [result.summary.title()] if result.provenance.name else []


def _time(time_ps: float) -> str:
    return spaced(time_text(time_ps))


def _delivered(flows: Table) -> Array:
    times = flows["fct_ps"]
    done = times[times >= 0]
    if not len(done):
        raise FabricError("no flow was delivered: there are no completion times to draw")
    return np.maximum(done, 1)


def _draw_curves(ax: Axes, flows: Table, scale: float) -> None:
    of = flows["pattern"]
    patterns = list(dict.fromkeys(of.tolist()))
    if len(patterns) > len(COLOURS):
        of, patterns = np.full(len(flows), "flows"), ["flows"]
    labels = []
    for k, pattern in enumerate(patterns):
        part = flows["fct_ps"][of == pattern]
        if not (part >= 0).any():
            continue
        times, share = stats.empirical_cdf(part[part >= 0])
        height = 100 * share * (part >= 0).sum() / len(part)
        colour = COLOURS[k % len(COLOURS)]
        start = times[0] if ax.get_xscale() == "log" else 0
        ax.plot(
            np.concatenate([[start, times[0]], times]) / scale,
            np.concatenate([[0, 0], height]),
            color=colour,
            drawstyle="steps-post",
        )
        labels.append((f"{pattern} ({count_text(len(part))})", colour, float(height[-1])))
    if len(labels) > 1:
        label_lines(ax, labels)


def _slowdown_text(flows: Table) -> str:
    slowdown = flows["slowdown"]
    known = slowdown[~np.isnan(slowdown)]
    if not len(known):
        return "unknown"
    median, slow = stats.percentiles(known, q=(50, 99)).tolist()
    return f"{median:.2f} in the median, {slow:.2f} at 99 %"


def slowdown_by_size(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draw slowdown against flow size: every flow as a dot, and percentiles of groups of equal count.

    Parameters
    ----------
    result : Result
        With at least one delivered flow.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If no flow was delivered.
    """
    known = result.flows[~np.isnan(result.flows["slowdown"])]
    if not len(known):
        raise FabricError("no flow was delivered: there are no slowdowns to draw")
    sizes, slowdowns = known["size_bytes"], known["slowdown"]
    bins = stats.slowdown_by_size(slowdowns, size_bytes=sizes)
    with styled(ax) as axes:
        axes.set(xlabel="Flow size", ylabel="Slowdown against an empty network")
        axes.set_xlim(sizes.min() / 1.4, sizes.max() * 1.4)
        axes.set_ylim(*_slowdown_limits(slowdowns))
        log_axis(axes, lambda size: spaced(size_text(size)))
        if slowdowns.max() > LOG_ABOVE:
            log_axis(axes, lambda value: f"{value:g}", axis="y")
        dots: dict[str, Any] = {"ls": "", "marker": ".", "ms": 5, "mew": 0, "color": GREY}
        axes.plot(sizes, slowdowns, alpha=_dot_strength(len(known)), rasterized=True, **dots)
        labels = []
        groups = (("median", bins.p50), ("95 %", bins.p95), ("99 %", bins.p99))
        for colour, (name, values) in zip(COLOURS, groups, strict=False):
            axes.plot(bins.upper_bytes, values, color=colour, marker="o", ms=4)
            labels.append((name, colour, float(values[-1])))
        axes.axhline(1, color=INK, lw=0.8)
        _tick_few_sizes(axes, np.unique(sizes))
        label_lines(axes, labels)
        median, worst = stats.percentiles(slowdowns, q=(50, 100)).tolist()
        title(
            axes,
            f"Half of the flows take at most {median:.2f} times the ideal, the worst {worst:.3g} times",
            note="\n".join([*_scenario(result), "Lines: percentiles of groups of equally many flows"]),
        )
    return axes


def _slowdown_limits(slowdowns: Array) -> tuple[float, float]:
    """Return limits of the axis that leave space around 1 and the largest value."""
    low, high = min(1.0, float(slowdowns.min())), max(1.1, float(slowdowns.max()))
    if high > LOG_ABOVE:
        return low / 1.1, high * 1.2
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def _dot_strength(count: int) -> float:
    return float(np.clip(40 / np.sqrt(count) / 2, 0.08, 0.6))


FEW_SIZES = 6
"""Different flow sizes up to which each is named on its axis."""


def _tick_few_sizes(ax: Axes, sizes: Array) -> None:
    """Name the sizes themselves if they are few."""
    if len(sizes) <= FEW_SIZES:
        from matplotlib.ticker import NullLocator

        ax.set_xticks(sizes, [spaced(size_text(size)) for size in sizes])
        ax.xaxis.set_minor_locator(NullLocator())
