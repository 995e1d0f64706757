"""Where the time of training steps goes, run beside run: a bar a run, its parts one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabric.errors import FabricError
from fabric.result import Table
from fabric.result.text import time_text

from .style import GREY, INK, NOTE_SIZE, spaced, styled, time_axis, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["scale_curve", "step_shares"]

PARTS = (
    ("compute_ps", "compute", "#3B7DB8"),
    ("paused_ps", "paused", "#000000"),
    ("exposed_ps", "exposed communication", "#D55E00"),
    ("waiting_ps", "waiting for ranks", "#E6B45C"),
    ("bubble_ps", "pipeline bubble", "#D9D9D6"),
)
BAR = 0.68


def step_shares(
    table: Table, *, axes: Sequence[str], title_text: str = "", note: str = "", ax: Axes | None = None
) -> Axes:
    """Draw the steps of the runs of a sweep.

    Parameters
    ----------
    table : Table
        A row a run, as `fabric.sweep.SweepResult.table` has it for training jobs.
    axes : sequence of str
        Columns of labels.
    title_text : str
    note : str
        Below the title: what was asked.
    ax : Axes, optional

    Raises
    ------
    FabricError
        If there is nothing to compare.
    """
    if not len(table) or "step_ps" not in table:
        raise FabricError("nothing to compare: no run with a training job")
    labels = [", ".join(row) for row in zip(*(table[name].astype(str) for name in axes), strict=True)]
    rows = np.arange(len(table))
    with styled(ax, size=(9.4, 1.7 + 0.36 * len(table))) as drawn:
        scale = time_axis(drawn, float(np.nanmax(table["step_ps"])), what="Time of a step, mean over ranks")
        left = np.zeros(len(table))
        for column, name, colour in PARTS:
            width = np.nan_to_num(table[column]) / scale
            if width.any():
                drawn.barh(rows, width, left=left, height=BAR, color=colour, label=name)
            left += width
        for row, value in enumerate(table["step_ps"].tolist()):
            drawn.annotate(
                spaced(time_text(value)) if value == value else "not done",
                (left[row], row),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=NOTE_SIZE,
                color=GREY,
            )
        drawn.set_yticks(rows, labels or [""] * len(table))
        drawn.set_ylim(len(table) - 0.4, -0.6)
        drawn.set_xlim(0, float(left.max()) * 1.12 or 1)
        drawn.grid(visible=True, axis="x")
        drawn.grid(visible=False, axis="y")
        drawn.spines["left"].set_visible(False)
        drawn.tick_params(axis="y", length=0)
        drawn.legend(
            loc="upper left",
            bbox_to_anchor=(1.0, 1.02),
            frameon=False,
            fontsize=NOTE_SIZE,
            handlelength=1.1,
            handleheight=1.1,
            labelcolor=INK,
        )
        by = ", ".join(axes)
        told = f"Where the time of a step goes, by {by}" if by else "Where the time of a step goes"
        title(drawn, title_text or table.name, note="\n".join(filter(None, (note, told))))
        return drawn


def scale_curve(table: Table, *, title_text: str = "", ax: Axes | None = None) -> Axes:
    """Draw what more ranks cost: efficiency over the number of ranks.

    Parameters
    ----------
    table : Table
        Of `fabric.step.scale_loss`.
    title_text : str
    ax : Axes, optional
    """
    if not len(table):
        raise FabricError("nothing to draw: no size was run")
    from .style import COLOURS, label_lines

    with styled(ax, size=(7.4, 4.2)) as drawn:
        ranks = table["ranks"].astype(float)
        lines = (
            ("against an infinitely\nfast network", 100 * table["efficiency"], COLOURS[0]),
            (f"against {int(ranks[0])} ranks", 100 * table["scale_efficiency"], COLOURS[1]),
        )
        for _, values, colour in lines:
            drawn.plot(ranks, values, marker="o", markersize=4, color=colour)
        drawn.set_xscale("log", base=2)
        drawn.set_xticks(ranks, [str(int(one)) for one in ranks])
        drawn.minorticks_off()
        lowest = min(float(np.nanmin(values)) for _, values, _ in lines)
        drawn.set_ylim(max(0.0, 10 * np.floor((lowest - 4) / 10)), 102)
        drawn.set(xlabel="Ranks, each with as much to do", ylabel="Efficiency (%)")
        label_lines(drawn, [(text, colour, float(values[-1])) for text, values, colour in lines])
        title(drawn, title_text or "Scale loss", note="time of a step where nothing is lost, over its time")
        return drawn
