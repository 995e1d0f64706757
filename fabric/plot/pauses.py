"""How pauses spread over time: a row for each paused link, below the one that was the reason.

Bars are the times in which a link was paused. A line leads from the row of the link that was paused before
to the beginning of the first pause that followed from it (`fabric.analysis.pauses`); roots, where pauses
began, stand at the left, what they caused is set in. A vertical line is a deadlock that forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.pauses import Pause, PausedLink, spread_of_pauses
from fabric.errors import FabricError
from fabric.result import Result
from fabric.result.text import counted, time_text

from .style import ACCENT, COLOURS, GREY, INK, NOTE_SIZE, arrows, spaced, styled, time_axis, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pause_tree"]

MOST_ROWS = 40
ROW_INCHES = 0.2
SET_IN = "   "


def pause_tree(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draw who was paused because of whom.

    Parameters
    ----------
    result : Result
        Of a scenario with `record.pauses`.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If pauses were not recorded, or there were none.
    """
    if "pauses" not in result.recorded:
        raise FabricError("pauses were not recorded; set record.pauses")
    if not len(result.pauses):
        raise FabricError("there were no pauses")
    spread = spread_of_pauses(_pauses(result))
    shown = spread[:MOST_ROWS]
    end_ps = max(result.duration_ps, 1)
    first_ps = min(link.pauses[0].begin_ps for link in shown)
    with styled(ax, size=(8.6, 1.3 + ROW_INCHES * len(shown))) as axes:
        axes.grid(False)
        scale = time_axis(axes, end_ps)
        for row, link in enumerate(shown):
            _draw_row(axes, row, link, end_ps, scale)
        for one in result.deadlocks:
            axes.axvline(one.formed_ps / scale, color=ACCENT, lw=1.2, zorder=4)
        axes.set(
            xlim=((first_ps - 0.02 * (end_ps - first_ps)) / scale, end_ps / scale),
            ylim=(len(shown) - 0.4, -0.6),
        )
        names = [f"{SET_IN * link.depth}{_name(link)}" for link in shown]
        axes.set_yticks(range(len(shown)), names, fontsize=NOTE_SIZE, ha="left")
        axes.tick_params(axis="y", length=0, pad=6 + 5.2 * max(map(len, names)))
        axes.spines["left"].set_visible(False)
        text, note = _texts(result, spread, len(shown))
        title(axes, text, note=note)
    return axes


def _texts(result: Result, spread: list[PausedLink], shown: int) -> tuple[str, str]:
    roots = sum(link.cause is None for link in spread)
    text = f"{counted(len(spread), 'paused link')}, {counted(roots, 'root')}"
    name = f"{result.provenance.name}: " if result.provenance.name else ""
    note = (
        "Set in below a link: what was first paused while that link was, by the switch that it leads out of."
    )
    if result.deadlocks:
        when = ", ".join(spaced(time_text(one.formed_ps)) for one in result.deadlocks[:3])
        note += f" Orange: a deadlock forms ({when})."
    if shown < len(spread):
        note += f" {len(spread) - shown} more links are not shown."
    return f"{name}{text}", note


def _pauses(result: Result) -> list[Pause]:
    table = result.pauses
    columns = (table[name].tolist() for name in ("link", "traffic_class", "begin_ps", "end_ps"))
    pauses = []
    for link, name, begin_ps, end_ps in zip(*columns, strict=True):
        sender, receiver = link.split("->")
        pauses.append(Pause(sender, receiver, name, begin_ps, None if end_ps < 0 else end_ps))
    return pauses


def _name(link: PausedLink) -> str:
    first = link.pauses[0]
    return arrows(f"{first.sender}->{first.receiver}")


def _draw_row(ax: Axes, row: int, link: PausedLink, end_ps: int, scale: float) -> None:
    spans = [
        (
            pause.begin_ps / scale,
            ((end_ps if pause.end_ps is None else pause.end_ps) - pause.begin_ps) / scale,
        )
        for pause in link.pauses
    ]
    colour = COLOURS[0] if link.cause is None else COLOURS[4]
    ax.broken_barh(spans, (row - 0.34, 0.68), facecolors=colour, edgecolor="none", zorder=2)
    if link.cause is not None:
        begin = spans[0][0]
        ax.plot([begin, begin], [link.cause, row], color=GREY, lw=0.9, zorder=3)
        ax.plot(begin, row, marker=">", ms=3.5, color=INK, zorder=3)
