"""Ranks and time: what every rank does in the steps of a training job.

A row is a rank. Its upper part shows what it does: passes in colours of compute, exposed communication in
colours of dimensions, nothing where it waits. A thin strip below shows what runs aside: gradients and
storage. Few ranks are drawn as shapes, with the numbers of micro-batches where there is room; many as an
image of pixels, in which what takes most of a pixel's time has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.errors import FabricError
from fabric.result import Result, Table
from fabric.result.table import Array
from fabric.result.text import count_text, time_text

from .style import GREY, INK, NOTE_SIZE, spaced, styled, time_axis, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["timeline"]

KINDS: Mapping[str, tuple[str, str]] = {
    "F": ("forward", "#3B7DB8"),
    "B": ("backward", "#1B9E77"),
    "I": ("backward, inputs", "#1B9E77"),
    "W": ("backward, weights", "#8CCFB7"),
    "R": ("forward again", "#9CC4E4"),
    "update": ("update", "#5B5B5B"),
    "other": ("encode, decode, copy", "#A6A6A6"),
    "pause": ("paused", "#000000"),
    "tp": ("TP", "#E69F00"),
    "cp": ("CP", "#F2D64B"),
    "ep": ("EP", "#D55E00"),
    "etp": ("expert TP", "#A34700"),
    "pp": ("PP", "#B79BD6"),
    "dp": ("DP", "#CC79A7"),
    "edp": ("expert DP", "#8E3B6E"),
    "embedding": ("embedding", "#7A5195"),
    "storage": ("storage", "#8B6D43"),
}
"""Name and colour of what a rank can do, in the order of the legend. Blues and greens compute; warm colours
communicate."""

MOST_SHAPES = 40
"""Ranks up to which shapes are drawn."""

PIXELS = 1600
MOST_SHARP = 512
"""Rows of an image that are at least a pixel high each."""

BEHIND = 0.55
"""How strongly an image shows what runs aside while a rank does nothing else."""

LETTER_POINTS = 3.9
WIDE_POINTS = 4.0
"""Width from which on passes have an edge."""

STRIP = 0.16
"""Height of the strip of what runs aside, of a row."""

GROUND = "#F4F4F2"


def timeline(
    result: Result,
    *,
    job: str | None = None,
    steps: tuple[int, int] | None = None,
    ranks: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what ranks do over time.

    Parameters
    ----------
    result : Result
        With a training job.
    job : str, optional
        The first one unless given.
    steps : (int, int), optional
        First and last; all unless given.
    ranks : sequence of int, optional
        All unless given.
    ax : Axes, optional

    Raises
    ------
    FabricError
        If the result has no such job, steps or ranks.
    """
    if "tasks" not in result.tables:
        raise FabricError("the result has no training job to draw")
    tasks = result.tables["tasks"]
    names = list(dict.fromkeys(tasks["job"].tolist()))
    chosen = job if job is not None else (names[0] if names else "")
    if chosen not in names:
        raise FabricError(f"no training job {chosen!r}; there are: {', '.join(names) or 'none'}")
    own = tasks[(tasks["job"] == chosen) & (tasks["left_ps"] >= 0)]
    bounds = _bounds(result.tables["steps"], chosen, steps, own)
    shown = np.unique(own["rank"]) if ranks is None else np.asarray(ranks, dtype=np.int64)
    if not len(shown):
        raise FabricError("no rank to draw")
    pieces = _pieces(own, shown, bounds)
    tall = min(max(2.2 + 0.26 * len(shown), 3.0), 8.5) if len(shown) <= MOST_SHAPES else 7.5
    with styled(ax, size=(11.0, tall)) as drawn:
        scale = time_axis(drawn, float(bounds[1]), what="Time")
        draw = _shapes if len(shown) <= MOST_SHAPES else _image
        draw(drawn, pieces, n_rows=len(shown), bounds=bounds, scale=scale)
        drawn.set_xlim(bounds[0] / scale, bounds[1] / scale)
        drawn.set_ylim(len(shown), 0)
        drawn.grid(visible=False)
        drawn.spines["left"].set_visible(False)
        drawn.tick_params(axis="y", length=0)
        _rank_ticks(drawn, shown)
        _legend(drawn, pieces, as_image=draw is _image)
        title(drawn, _title(result, chosen), note=_note(result, chosen))
        return drawn


def _bounds(table: Table, job: str, steps: tuple[int, int] | None, tasks: Table) -> tuple[int, int]:
    own = table[table["job"] == job]
    if steps is None:
        end = int(tasks["left_ps"].max(initial=0))
        return int(own["begin_ps"].min(initial=end)), end
    chosen = own[(own["step"] >= steps[0]) & (own["step"] <= steps[1])]
    if not len(chosen):
        raise FabricError(f"no steps {steps[0]} to {steps[1]}; {len(own)} were done")
    return int(chosen["begin_ps"].min()), int(chosen["end_ps"].max())


class _Drawn:
    """Stretches to draw: row, kind, begin, end, whether aside, micro-batch (or -1)."""

    def __init__(
        self, row: Array, kind: Array, begin: Array, end: Array, aside: Array, number: Array
    ) -> None:
        self.row, self.kind, self.begin, self.end = row, kind, begin, end
        self.aside, self.number = aside, number


ORDER = list(KINDS)


def _pieces(tasks: Table, shown: Array, bounds: tuple[int, int]) -> _Drawn:
    row_of = np.full(int(max(shown.max(), tasks["rank"].max(initial=0))) + 1, -1)
    row_of[shown] = np.arange(len(shown))
    dimension, what = tasks["dimension"], tasks["what"]
    is_compute = dimension == "compute"
    begin = np.where(is_compute, tasks["entered_ps"], np.maximum(tasks["entered_ps"], tasks["ready_ps"]))
    end = tasks["left_ps"]
    row = row_of[tasks["rank"]]
    kind = np.full(len(tasks), ORDER.index("other"))
    for place, name in enumerate(KINDS):
        if name in ("update", "pause"):
            kind[is_compute & (what == name)] = place
        elif len(name) == 1:
            kind[is_compute & _is_pass(what, name)] = place
        else:
            kind[~is_compute & (dimension == name)] = place
    kept = (row >= 0) & (end > begin) & (end > bounds[0]) & (begin < bounds[1]) & (what != "pace")
    number = _micro_batches(what)
    return _Drawn(*(each[kept] for each in (row, kind, begin, end, tasks["aside"], number)))


def _is_pass(what: Array, letter: str) -> Array:
    return np.char.startswith(what, letter) & (np.char.find(what, ".") > 0)


def _micro_batches(what: Array) -> Array:
    """Number of the micro-batch in the name of a pass; -1 of other things."""
    found, of = np.unique(what, return_inverse=True)
    numbers = [
        int(name[1 : name.index(".")]) if "." in name and name[0] in "FBIWR" else -1
        for name in found.tolist()
    ]
    return np.array(numbers, dtype=np.int64)[of] if len(found) else np.zeros(0, dtype=np.int64)


def _shapes(ax: Axes, pieces: _Drawn, *, n_rows: int, bounds: tuple[int, int], scale: float) -> None:
    from matplotlib.collections import PolyCollection

    for row in range(n_rows):
        ax.axhspan(row + 0.06, row + 0.94, color=GROUND, zorder=0, linewidth=0)
    strip = bool(pieces.aside.any())
    top, bottom = 0.08, 0.92 - (STRIP + 0.02 if strip else 0)
    points = ax.get_window_extent().width * 72 / ax.figure.dpi / (bounds[1] - bounds[0])
    joined = _joined(pieces)
    edge = 0.5 if np.quantile((joined.end - joined.begin) * points, 0.5) > WIDE_POINTS else 0.0
    for number, (_, colour) in enumerate(KINDS.values()):
        for aside in (False, True):
            chosen = np.flatnonzero((joined.kind == number) & (joined.aside == aside))
            if not len(chosen):
                continue
            low, high = (bottom + 0.02, 0.92) if aside else (top, bottom)
            x0, x1 = joined.begin[chosen] / scale, joined.end[chosen] / scale
            y0, y1 = joined.row[chosen] + low, joined.row[chosen] + high
            corners = np.stack([x0, y0, x0, y1, x1, y1, x1, y0], axis=1).reshape(-1, 4, 2)
            line = edge if number < ORDER.index("update") else 0.0
            ax.add_collection(
                PolyCollection(
                    list(corners), facecolors=colour, edgecolors="white", linewidths=line, zorder=2
                )
            )
    _numbers(ax, joined, points=points, scale=scale, middle=(top + bottom) / 2)


def _joined(pieces: _Drawn) -> _Drawn:
    """Pieces of one pass that follow each other without a gap, as one."""
    order = np.lexsort((pieces.begin, pieces.number, pieces.kind, pieces.aside, pieces.row))
    same = np.ones(len(order), dtype=bool)
    for values in (pieces.row, pieces.aside, pieces.kind, pieces.number):
        same[1:] &= values[order][1:] == values[order][:-1]
    same[1:] &= pieces.begin[order][1:] <= pieces.end[order][:-1]
    same[:1] = False
    first = np.flatnonzero(~same)
    last = np.append(first[1:], len(order)) - 1
    at = order[first]
    ends = np.maximum.reduceat(pieces.end[order], first) if len(first) else pieces.end[order[last]]
    return _Drawn(
        pieces.row[at], pieces.kind[at], pieces.begin[at], ends, pieces.aside[at], pieces.number[at]
    )


def _numbers(ax: Axes, joined: _Drawn, *, points: float, scale: float, middle: float) -> None:
    """Write micro-batches into passes, if most are wide enough."""
    passes = np.flatnonzero((joined.number >= 0) & ~joined.aside & (joined.kind < ORDER.index("update")))
    if not len(passes):
        return
    width = (joined.end[passes] - joined.begin[passes]) * points
    fits = width > LETTER_POINTS * np.char.str_len(joined.number[passes].astype(str))
    if fits.mean() < 0.8:
        return
    for one in passes[fits].tolist():
        ax.text(
            (joined.begin[one] + joined.end[one]) / 2 / scale,
            joined.row[one] + middle,
            str(joined.number[one]),
            ha="center",
            va="center",
            fontsize=6,
            color="white",
            zorder=3,
        )


def _image(ax: Axes, pieces: _Drawn, *, n_rows: int, bounds: tuple[int, int], scale: float) -> None:
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour) for _, colour in KINDS.values()])
    ground = np.array(to_rgb(GROUND))
    main, behind = (
        _shares(pieces, np.flatnonzero(pieces.aside == aside), n_rows=n_rows, bounds=bounds)
        for aside in (False, True)
    )
    busy = main.sum(axis=2, keepdims=True)
    under = np.clip(behind.sum(axis=2, keepdims=True), 0, 1)
    mixed = behind @ colours / np.maximum(behind.sum(axis=2, keepdims=True), 1e-9)
    rest = ground + BEHIND * under * (mixed - ground)
    idle = np.clip(1 - busy, 0, 1)
    picture = (main @ colours + idle * rest) / np.maximum(busy + idle, 1e-9)
    ax.imshow(
        np.clip(picture, 0, 1),
        extent=(bounds[0] / scale, bounds[1] / scale, n_rows, 0),
        aspect="auto",
        interpolation="nearest" if n_rows <= MOST_SHARP else "antialiased",
        zorder=1,
    )


def _shares(
    pieces: _Drawn, chosen: Array, *, n_rows: int, bounds: tuple[int, int]
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Share of each pixel's time that each kind has [rows, pixels, kinds]."""
    shape = (n_rows, PIXELS, len(KINDS))
    time = np.zeros(shape, dtype=np.float32)
    change = np.zeros((n_rows, PIXELS + 1, len(KINDS)), dtype=np.float32)
    pixel = (bounds[1] - bounds[0]) / PIXELS
    begin = np.clip((pieces.begin[chosen] - bounds[0]) / pixel, 0, PIXELS)
    end = np.clip((pieces.end[chosen] - bounds[0]) / pixel, 0, PIXELS)
    row, kind = pieces.row[chosen], pieces.kind[chosen]
    first, last = (np.minimum(np.floor(each).astype(np.int64), PIXELS - 1) for each in (begin, end))
    single = first == last
    np.add.at(time, (row[single], first[single], kind[single]), (end - begin)[single])
    wide = ~single
    np.add.at(time, (row[wide], first[wide], kind[wide]), first[wide] + 1 - begin[wide])
    np.add.at(time, (row[wide], last[wide], kind[wide]), end[wide] - last[wide])
    np.add.at(change, (row[wide], first[wide] + 1, kind[wide]), 1)
    np.add.at(change, (row[wide], last[wide], kind[wide]), -1)
    time += np.cumsum(change, axis=1)[:, :PIXELS]
    return time


def _rank_ticks(ax: Axes, shown: Array) -> None:
    every = max(1, -(-len(shown) // 32))
    for nice in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        if nice >= every:
            every = nice
            break
    places = np.arange(0, len(shown), every)
    ax.set_yticks(places + 0.5, [str(int(shown[place])) for place in places])
    ax.set_ylabel("Rank")


def _legend(ax: Axes, pieces: _Drawn, *, as_image: bool) -> None:
    """Names of colours; an image also shows them mixed, and pale."""
    from matplotlib.patches import Patch

    present = set(pieces.kind.tolist())
    labels: dict[str, Any] = {}
    for number, (name, colour) in enumerate(KINDS.values()):
        if number in present:
            labels.setdefault(colour, Patch(facecolor=colour, label=name))
    handles = [*labels.values(), Patch(facecolor=GROUND, edgecolor=GREY, linewidth=0.4, label="waits")]
    if as_image:
        notes = ["mixed: at once", *(["pale: runs aside"] if pieces.aside.any() else [])]
        handles += [Patch(facecolor="none", label=note) for note in notes]
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        fontsize=NOTE_SIZE,
        handlelength=1.1,
        handleheight=1.1,
        labelcolor=INK,
    )


def _title(result: Result, job: str) -> str:
    steps = result.tables["steps"]
    own = steps[steps["job"] == job]
    name = result.provenance.name or job
    if not len(own):
        return f"{name}: no step was done"
    if len(own) == 1:
        return f"{name}: a step of {spaced(time_text(int(own['duration_ps'][0])))}"
    mean = float(own["duration_ps"].mean())
    return f"{name}: {count_text(len(own))} steps of {spaced(time_text(mean))} on average"


def _note(result: Result, job: str) -> str:
    steps = result.tables["steps"]
    own = steps[steps["job"] == job]
    if not len(own):
        return ""
    total = float(own["duration_ps"].sum())
    parts = (
        ("compute", "compute_ps"),
        ("exposed communication", "exposed_ps"),
        ("pipeline bubble", "bubble_ps"),
        ("waiting for ranks", "waiting_ps"),
        ("paused", "paused_ps"),
    )
    shares = [(name, float(own[key].sum()) / total) for name, key in parts]
    return "; ".join(f"{name} {100 * share:.1f} %" for name, share in shares if share >= 0.0005)
