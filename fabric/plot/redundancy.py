"""What is left of a job's speed when one part fails, by redundancy option, as groups of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .style import COLOURS, GREY, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.resilience.redundancy import Redundancy

__all__ = ["redundancy"]

WIDTH = 0.21
FAINT = "#BBBBBB"


def redundancy(options: Sequence[Redundancy], *, ax: Axes | None = None) -> Axes:
    """Draw a comparison of redundancy options.

    Parameters
    ----------
    options : sequence of Redundancy
        What :func:`fabric.resilience.compare_redundancy` found.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes
    """
    best_ps = options[0].healthy_ps
    parts = ["nothing", *options[0].failed_ps]
    with styled(ax, size=(8.6, 4.4)) as axes:
        places = np.arange(len(options), dtype=np.float64)
        for number, part in enumerate(parts):
            times = [each.failed_ps.get(part, each.healthy_ps) for each in options]
            speed = [100 * best_ps / time_ps if time_ps > 0 else 0.0 for time_ps in times]
            at = places + (number - (len(parts) - 1) / 2) * WIDTH
            colour = FAINT if number == 0 else COLOURS[number - 1]
            axes.bar(at, speed, width=WIDTH * 0.92, color=colour, label=part)
            for x, share in zip(at.tolist(), speed, strict=True):
                said = f"{share:.0f}" if share else "stops"
                axes.text(x, share + 1.5, said, ha="center", fontsize=8, color=GREY)
        names = [f"{each.option}\n{each.switches} switches, {each.cables} cables" for each in options]
        axes.set_xticks(places, names, fontsize=8.5)
        axes.set(ylabel="speed of the job (%)", ylim=(0, 115))
        axes.grid(False, axis="x")
        axes.legend(title="what fails", frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
        note = f"100 %: {options[0].option}, nothing fails; a failure comes after a tenth of the job"
        title(axes, "What redundancy is worth when one part fails", note=note)
    return axes
