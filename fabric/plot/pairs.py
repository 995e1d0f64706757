"""Time series beside each other: what one program did on the left, another on the right, on one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.errors import FabricError
from fabric.result.table import Array

from .style import COLOURS, GREY, NOTE_SIZE, TITLE_SIZE, label_lines, styled, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curves", "side_by_side"]

Curves = Mapping[str, tuple[Array, Array]]
"""By name: instants in picoseconds, and values, each of which holds until the next instant."""

SIZE = (10.4, 3.9)
GAP = 0.06
"""Space between the panels, in their widths, for the first and last number of their axes."""


def side_by_side(
    left: Curves,
    right: Curves,
    *,
    titles: tuple[str, str],
    ylabel: str,
    headline: str = "",
    instants_ps: Sequence[int] = (),
) -> list[Axes]:
    """Draw two sets of curves beside each other.

    Parameters
    ----------
    left, right : mapping of str to (times, values)
        Curves of one name have one colour.
    titles : (str, str)
        Over the two panels.
    ylabel : str
        With the unit.
    headline : str
        Over the picture.
    instants_ps : sequence of int
        Marked in both by a line.

    Returns
    -------
    list of Axes
        The two panels of a new figure.

    Raises
    ------
    FabricError
        If there is no curve on one of the sides.
    """
    if not left or not right:
        raise FabricError("nothing to draw: one side has no curve")
    names = list(dict.fromkeys([*left, *right]))
    colour = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}
    end_ps = max(float(times[-1]) for side in (left, right) for times, _ in side.values())
    top = max(float(values.max()) for side in (left, right) for _, values in side.values())
    with styled(None, size=SIZE) as first:
        figure = first.figure
        first.remove()
        panels: list[Axes] = list(np.ravel(figure.subplots(1, 2, sharex=True, sharey=True)))
        for panel, side, title in zip(panels, (left, right), titles, strict=True):
            scale = time_axis(panel, end_ps)
            panel.set(xlim=(0, end_ps / scale), ylim=(0, 1.06 * max(top, 1e-12)))
            for name, (times, values) in side.items():
                panel.plot(times / scale, values, color=colour[name], lw=1.2, drawstyle="steps-post")
            for instant in instants_ps:
                panel.axvline(instant / scale, color=GREY, lw=0.8, ls=(0, (4, 3)))
            panel.set_title(title, loc="left", fontsize=NOTE_SIZE + 1, color=GREY)
        panels[0].set_ylabel(ylabel)
        figure.suptitle(headline, x=0.01, ha="left", fontsize=TITLE_SIZE, fontweight="bold")
        engine: Any = figure.get_layout_engine()
        engine.set(wspace=GAP)
        figure.canvas.draw()
        last = [(name, colour[name], float(values[-1])) for name, (_, values) in right.items()]
        label_lines(panels[1], last)
    return panels
