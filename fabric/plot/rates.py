"""Sending rates of flows over time, as congestion control set them.

Up to as many flows as colours can be told apart are drawn by name; of more, every flow is a thin grey
line and the mean of all a thick one.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

import numpy as np

from fabric.errors import FabricError
from fabric.result import Result
from fabric.result.table import Array
from fabric.result.text import count_text

from .steps import envelope
from .style import COLOURS, GREY, arrows, label_lines, styled, time_axis, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mean_rate", "rates"]

BITS_PER_GBIT = 1e9
SAMPLES = 600
"""Instants at which the mean of many flows is taken."""

Curve = tuple[Array, Array]


def rates(result: Result, *, flows: str = "*", ax: Axes | None = None) -> Axes:
    """Draw the recorded sending rates of flows.

    Parameters
    ----------
    result : Result
        Of a scenario with ``record.rates``.
    flows : str
        Pattern of flow names.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If no rate was recorded, or no flow matches.
    """
    curves = _curves(result, flows)
    with styled(ax) as axes:
        scale = time_axis(axes, max(result.duration_ps, 1))
        axes.set(ylabel="Sending rate (Gbit/s)", xlim=(0, max(result.duration_ps, 1) / scale))
        many = len(curves) > len(COLOURS)
        for k, (times, rate) in enumerate(curves.values()):
            colour, width = (GREY, 0.8) if many else (COLOURS[k], 1.5)
            axes.plot(
                times / scale,
                rate / BITS_PER_GBIT,
                color=colour,
                lw=width,
                alpha=0.5 if many else 1,
                drawstyle="steps-post",
            )
        top = max(float(rate.max()) for _, rate in curves.values()) / BITS_PER_GBIT
        axes.set_ylim(0, 1.06 * top)
        if many:
            instants, mean = _mean(curves, result.duration_ps)
            axes.plot(instants / scale, mean / BITS_PER_GBIT, color=COLOURS[0], lw=2)
            label_lines(axes, [("mean", COLOURS[0], float(mean[~np.isnan(mean)][-1]) / BITS_PER_GBIT)])
        else:
            label_lines(
                axes,
                [
                    (name, COLOURS[k], float(rate[-1]) / BITS_PER_GBIT)
                    for k, (name, (_, rate)) in enumerate(curves.items())
                ],
            )
        title(axes, _headline(curves), note=result.summary.title() if result.provenance.name else "")
    return axes


def _curves(result: Result, pattern: str) -> dict[str, Curve]:
    """Return the rate of every matching flow as a curve from its start to its end."""
    if "rates" not in result.recorded:
        raise FabricError("this result has no rates: set record.rates in the scenario and run again")
    rows = result.rates
    number, first = np.unique(rows["flow"], return_index=True)
    bounds = np.append(first, len(rows))
    curves: dict[str, Curve] = {}
    for k, flow in enumerate(number.tolist()):
        name = str(result.flows["name"][flow]) or f"flow {flow}"
        if not fnmatch.fnmatchcase(name, pattern):
            continue
        part = slice(int(bounds[k]), int(bounds[k + 1]))
        done = int(result.flows["completed_ps"][flow])
        end = result.duration_ps if done < 0 else done
        times, rate = envelope(rows["time_ps"][part], rows["rate_bps"][part], end_ps=end)
        curves[_described(result, flow, name)] = times[1:], rate[1:]
    if not curves:
        raise FabricError(f"no recorded flow matches {pattern!r}")
    return curves


def _described(result: Result, flow: int, name: str) -> str:
    ends = f"{result.flows['source'][flow]}->{result.flows['destination'][flow]}"
    return arrows(f"{name}\n{ends}" if name != ends else name)


def mean_rate(result: Result, *, end_ps: int) -> Curve:
    """Return the mean rate of all recorded flows over time.

    Parameters
    ----------
    result : Result
        Of a scenario with ``record.rates``.
    end_ps : int
        The last instant.

    Returns
    -------
    times, rate : numpy.ndarray
        Picoseconds and bit/s at equally spaced instants, over the flows that are active then; NaN if
        none is.
    """
    return _mean(_curves(result, "*"), end_ps)


def _mean(curves: dict[str, Curve], end_ps: int) -> Curve:
    instants = np.linspace(0, end_ps, SAMPLES)
    total, active = np.zeros(SAMPLES), np.zeros(SAMPLES)
    for times, rate in curves.values():
        alive = (instants >= times[0]) & (instants <= times[-1])
        total += np.where(alive, rate[np.maximum(np.searchsorted(times, instants, side="right") - 1, 0)], 0)
        active += alive
    return instants, np.divide(total, active, out=np.full(SAMPLES, np.nan), where=active > 0)


def _headline(curves: dict[str, Curve]) -> str:
    lowest = min(float(rate.min()) for _, rate in curves.values()) / BITS_PER_GBIT
    highest = max(float(rate.max()) for _, rate in curves.values()) / BITS_PER_GBIT
    who = "The flow sends" if len(curves) == 1 else f"{count_text(len(curves))} flows send"
    low, high = f"{lowest:.3g}", f"{highest:.3g}"
    return f"{who} at {low if low == high else f'{low} to {high}'} Gbit/s"
