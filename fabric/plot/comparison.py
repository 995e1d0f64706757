"""The runs of a sweep beside each other: a bar a run, a panel a number.

Rows are grouped by all axes of the sweep but the last, whose values stand beside their bars. Every group has
its own scale: bars compare runs within it, numbers stand beside them. A tick in the bar of the last
completion is the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.errors import FabricError
from fabric.result import Table
from fabric.result.table import Array
from fabric.result.text import by_unit, time_text

from .style import COLOURS, GREY, INK, NOTE_SIZE, TITLE_SIZE, spaced, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["comparison"]

WIDTH_INCHES, ROW_INCHES, FRAME_INCHES = 4.6, 0.23, 1.1
BAR = 0.74
GROUP_GAP = 1.5
"""Space between two groups, in rows."""

MEDIAN_OF = {"fct_max_ps": "fct_median_ps"}
WORDS = {
    "done_ps": "All done",
    "fct_max_ps": "Last flow done (tick: median)",
    "fct_p99_ps": "99 % of flows done",
    "fct_median_ps": "Half of the flows done",
    "slowdown_max": "Largest slowdown",
    "queue_peak_bytes": "Fullest queue",
    "paused_ps": "Time paused by PFC, all ports",
    "marks": "Frames marked",
    "drops": "Frames dropped",
    "retransmitted": "Frames sent again",
}
"""What a panel of each column is called."""


def comparison(
    table: Table,
    *,
    axes: Sequence[str],
    columns: Sequence[str] = ("fct_max_ps", "queue_peak_bytes"),
    note: str = "",
) -> list[Axes]:
    """Draw numbers of the runs of a sweep as bars.

    Parameters
    ----------
    table : Table
        A row a run, as `fabric.sweep.SweepResult.table` has it.
    axes : sequence of str
        Columns of labels: what differs between runs.
    columns : sequence of str
        Numbers to draw, a panel each.
    note : str
        Below the title: what was asked.

    Returns
    -------
    list of Axes
        Of one new figure.

    Raises
    ------
    FabricError
        If the table has no row, no label or no such column.
    """
    missing = [name for name in (*axes, *columns) if name not in table]
    if missing or not len(table) or not axes or not columns:
        raise FabricError(f"nothing to compare: {missing[0] if missing else 'no runs'}")
    import matplotlib.pyplot as plt

    groups = [", ".join(row) for row in zip(*(table[name].tolist() for name in axes[:-1]), strict=True)]
    groups = groups or [""] * len(table)
    heights, heads = _rows(groups)
    size = WIDTH_INCHES * len(columns), FRAME_INCHES + ROW_INCHES * (max(heights) + 2)
    with styled(None, size=size) as first:
        figure = first.figure
        first.remove()
        panels: list[Axes] = list(np.ravel(figure.subplots(1, len(columns), sharey=True)))
        for k, (panel, column) in enumerate(zip(panels, columns, strict=True)):
            _draw(panel, table, column, heights, groups, colour=COLOURS[k % len(COLOURS)])
        panels[0].set_yticks(heights, table[axes[-1]].tolist())
        panels[0].set_ylim(max(heights) + 1, min(heads.values()) - 0.8)
        for head, height in heads.items():
            panels[0].text(0, height, head, transform=panels[0].get_yaxis_transform(), **_HEAD)
        _write_title(panels[0], table.name, note="\n".join(filter(None, (note, f"By {', '.join(axes)}"))))
        plt.setp([tick for panel in panels for tick in panel.get_yticklines()], visible=False)
    return panels


def _write_title(panel: Axes, text: str, *, note: str) -> None:
    """Write a title above all panels, and in the room of its further lines a note in grey."""
    lines = 1 + note.count("\n")
    figure = panel.get_figure(root=True)
    assert figure is not None
    head = figure.suptitle(text + "\n" * lines, x=0.01, ha="left", fontsize=TITLE_SIZE, fontweight="bold")
    told = panel.annotate(note, (0, 0), xycoords=head, fontsize=NOTE_SIZE, color=GREY, va="bottom")
    told.set_in_layout(False)


_HEAD: dict[str, Any] = {"fontweight": "bold", "color": INK, "fontsize": NOTE_SIZE + 1, "va": "center"}


def _rows(groups: Sequence[str]) -> tuple[list[float], dict[str, float]]:
    """Heights of the bars from the top, and of the heads of groups."""
    order = list(dict.fromkeys(groups))
    heads: dict[str, float] = {}
    heights = [0.0] * len(groups)
    at = 0.0
    for group in order:
        if len(order) > 1:
            heads[group] = at
            at += 1
        for row in (k for k, one in enumerate(groups) if one == group):
            heights[row] = at
            at += 1
        at += GROUP_GAP - 1
    return heights, heads or {"": 0.0}


def _draw(
    ax: Axes, table: Table, column: str, heights: list[float], groups: list[str], *, colour: str
) -> None:
    values = np.asarray(table[column], float)
    share = _shares(values, groups)
    ax.barh(heights, share, height=BAR, color=colour)
    if column in MEDIAN_OF:
        at = share * np.asarray(table[MEDIAN_OF[column]], float) / np.where(values > 0, values, 1)
        ax.scatter(at, heights, marker="|", s=70, color="white", linewidths=1.6, zorder=3)
    for height, width, value in zip(heights, share, values.tolist(), strict=True):
        ax.annotate(
            _text(column, value),
            (width, height),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=NOTE_SIZE,
            color=GREY,
        )
    ax.set(xlim=(0, 1.22), xticks=[])
    ax.grid(False)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_title(
        WORDS.get(column, column.removesuffix("_ps")), loc="left", fontsize=NOTE_SIZE + 1, color=GREY, pad=4
    )


def _text(column: str, value: float) -> str:
    if column.endswith("_ps"):
        return spaced(time_text(value)) if value >= 0 else "never"
    return spaced(by_unit(column, int(value) if value == int(value) else value))


def _shares(values: Array, groups: list[str]) -> Array:
    """Values as shares of the largest in their group."""
    of = np.array(groups)
    share = np.zeros(len(values))
    for group in dict.fromkeys(groups):
        part = np.where(of == group, np.maximum(np.nan_to_num(values), 0), 0)
        share += part / (part.max() or 1)
    return share
