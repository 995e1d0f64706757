"""A deadlock drawn on the switches that it stops: who waits for whom, with how much, since when.

Switches stand by tiers, or in a circle where switches of a tier are joined. An arrow goes the way of the
frames that wait: thick where the link is on the shortest cycle, thin where it only waits for one that is. A
dotted arrow beside it goes the other way: the PAUSE that holds it. Of a large fabric only the switches are
drawn that the deadlock touches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fabric.errors import FabricError
from fabric.result import Result
from fabric.result.deadlocks import Deadlock
from fabric.result.text import counted, size_text, time_text

from .style import ACCENT, COLOURS, GREY, INK, arrows, spaced, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["deadlock"]

Place = tuple[float, float]

FEW_SWITCHES = 24
"""Switches up to which all are drawn."""

PAUSE_COLOUR = COLOURS[0]
BEND, PAUSE_BEND = 0.14, 0.24
"""Of arrows, so that the two directions of a cable stand apart, and a PAUSE beside what it holds."""

ALONG = (0.5, 0.36, 0.64, 0.26, 0.74)
"""Places of a text along its arrow, the best first."""

TEXT_ROOM = (0.62, 0.24)
"""Width and height that a text needs."""

SHORT = 20
"""Points that an arrow keeps away from the middle of a switch."""


def deadlock(result: Result, *, number: int = 0, ax: Axes | None = None) -> Axes:
    """Draw a deadlock of a run.

    Parameters
    ----------
    result : Result
    number : int
        Which of `result.deadlocks`. Default the first.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If there is no such deadlock.
    """
    found = result.deadlocks
    if not 0 <= number < len(found):
        raise FabricError(
            f"deadlock {number} is not in this result, which has {counted(len(found), 'deadlock')}"
        )
    chosen = found[number]
    place = _places(result, chosen)
    with styled(ax, size=(8.6, 5.6)) as axes:
        axes.grid(False)
        axes.set_axis_off()
        axes.set_aspect("equal")
        _draw_cables(axes, result, place)
        _draw_links(axes, chosen, place)
        for name, (x, y) in place.items():
            axes.text(
                x, y, name, ha="center", va="center", color="white", fontsize=9, zorder=4,
                bbox={"boxstyle": "round,pad=0.4", "facecolor": INK, "edgecolor": "white"},
            )  # fmt: skip
        xs, ys = zip(*place.values(), strict=True)
        axes.set(xlim=(min(xs) - 0.35, max(xs) + 0.35), ylim=(min(ys) - 0.25, max(ys) + 0.25))
        _write_title(axes, result, chosen)
    return axes


def _write_title(ax: Axes, result: Result, chosen: Deadlock) -> None:
    name = f"{result.provenance.name}: " if result.provenance.name else ""
    ends = "it stands" if chosen.broken_ps < 0 else f"broken at {time_text(chosen.broken_ps)}"
    note = (
        f"{counted(len(chosen.links), 'link')} wait for ever with {counted(len(chosen.frames), 'frame')}, "
        f"{size_text(chosen.queue_bytes)} of {counted(len(chosen.flows), 'flow')}; {ends}\n"
        f"closed by flow {arrows(chosen.closing_flow)} at {arrows(chosen.closing_link)}. "
        "Solid: frames that wait for the link, thick on the shortest cycle. Dotted: who paused whom."
    )
    title(ax, f"{name}deadlock at {spaced(time_text(chosen.formed_ps))}", note=spaced(note))


def _ends(link: str) -> tuple[str, str]:
    """Both ends of a link; parallel cables have their number behind a hash."""
    sender, receiver = link.split("->")
    return sender, receiver.split("#")[0]


def _places(result: Result, chosen: Deadlock) -> dict[str, Place]:
    """Where each switch that is drawn stands."""
    switches = result.nodes[result.nodes["kind"] == "switch"]
    touched = {name for link in chosen.links["link"] for name in _ends(str(link))}
    names = [str(name) for name in switches["name"]]
    tiers = dict(zip(names, map(str, switches["tier"]), strict=True))
    if len(names) > FEW_SWITCHES:
        names = [name for name in names if name in touched]
    cables = {_ends(str(link)) for link in result.ports["link"]}
    if any(a in tiers and b in tiers and tiers[a] == tiers[b] for a, b in cables):
        return _circle(_in_order(names, chosen))
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(tiers[name], []).append(name)
    return {
        name: ((k + 0.5) * 3.2 / len(row), 1.5 * height)
        for height, row in enumerate(rows.values())
        for k, name in enumerate(row)
    }


def _in_order(names: list[str], chosen: Deadlock) -> list[str]:
    """Switches of the cycle first, in its order."""
    cycle = [_ends(link)[0] for link in chosen.cycle]
    start = cycle.index(min(cycle, key=names.index))
    cycle = cycle[start:] + cycle[:start]
    return [*cycle, *(name for name in names if name not in cycle)]


def _circle(names: list[str]) -> dict[str, Place]:
    angles = [math.pi / 2 - 2 * math.pi * k / len(names) for k in range(len(names))]
    return {name: (1.25 * math.cos(a), math.sin(a)) for name, a in zip(names, angles, strict=True)}


def _draw_cables(ax: Axes, result: Result, place: dict[str, Place]) -> None:
    for a, b in {tuple(sorted(_ends(str(link)))) for link in result.ports["link"]}:
        if a in place and b in place:
            ax.plot(*zip(place[a], place[b], strict=True), color=GREY, lw=0.8, alpha=0.5, zorder=1)


def _draw_links(ax: Axes, chosen: Deadlock, place: dict[str, Place]) -> None:
    from matplotlib.patches import FancyArrowPatch

    texts: list[Place] = []
    for row in chosen.links:
        link = str(row["link"])
        sender, receiver = (place[name] for name in _ends(link))
        on_cycle = link in chosen.cycle
        style: dict[str, Any] = {"shrinkA": SHORT, "shrinkB": SHORT, "zorder": 3 if on_cycle else 2}
        ax.add_patch(
            FancyArrowPatch(
                sender,
                receiver,
                connectionstyle=f"arc3,rad={BEND}",
                arrowstyle="-|>",
                mutation_scale=16,
                color=ACCENT,
                lw=3.2 if on_cycle else 1.2,
                **style,
            )
        )
        ax.add_patch(
            FancyArrowPatch(
                receiver,
                sender,
                connectionstyle=f"arc3,rad={-PAUSE_BEND}",
                arrowstyle="->",
                mutation_scale=10,
                color=PAUSE_COLOUR,
                lw=1.2,
                linestyle=":",
                **style,
            )
        )
        x, y = _free_place(sender, receiver, texts)
        texts.append((x, y))
        waits, since = size_text(int(row["queue_bytes"])), time_text(int(row["paused_ps"]))
        text = f"{waits} wait" if int(row["queue_bytes"]) else "nothing waits"
        ax.text(
            x, y, spaced(f"{text}\npaused at {since}"), ha="center", va="center", fontsize=7.5, zorder=5,
            color=ACCENT if on_cycle else INK, linespacing=1.3,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )  # fmt: skip


def _free_place(sender: Place, receiver: Place, texts: list[Place]) -> Place:
    """Where the text of an arrow stands on it: in its middle, unless another text is there."""
    return max((_on_arrow(sender, receiver, along) for along in ALONG), key=lambda at: _room(at, texts))


def _room(at: Place, texts: list[Place]) -> float:
    """How far the nearest text is, in texts; more than one is as good as one."""
    width, height = TEXT_ROOM
    return min([1.0, *(max(abs(at[0] - x) / width, abs(at[1] - y) / height) for x, y in texts)])


def _on_arrow(sender: Place, receiver: Place, along: float) -> Place:
    """A point of a quadratic Bezier curve, as matplotlib bends arrows."""
    dx, dy = receiver[0] - sender[0], receiver[1] - sender[1]
    bend = 2 * along * (1 - along) * BEND
    return sender[0] + along * dx + bend * dy, sender[1] + along * dy - bend * dx
