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

WIDTH = 0.26


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
    parts = list(options[0].failed_ps)
    with styled(ax, size=(8.6, 4.4)) as axes:
        places = np.arange(len(options), dtype=np.float64)
        for number, part in enumerate(parts):
            left = [100 * each.throughput_left(part) for each in options]
            at = places + (number - (len(parts) - 1) / 2) * WIDTH
            axes.bar(at, left, width=WIDTH * 0.92, color=COLOURS[number], label=part)
            for x, share in zip(at.tolist(), left, strict=True):
                said = f"{share:.0f}" if share else "stops"
                axes.text(x, share + 1.5, said, ha="center", fontsize=8, color=GREY)
        names = [f"{each.option}\n{each.switches} switches, {each.cables} cables" for each in options]
        axes.set_xticks(places, names, fontsize=8.5)
        axes.set(ylabel="speed of the job that is left (%)", ylim=(0, 118))
        axes.grid(False, axis="x")
        axes.legend(title="what fails", frameon=False, ncols=3, loc="upper left", fontsize=8.5)
        title(axes, "what redundancy is worth when one part fails", note="over the whole job, which begins healthy")
    return axes
