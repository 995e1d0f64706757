"""The one style of every picture, and the parts that pictures share.

Colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with every kind of
colour vision tell apart and which keep their order of lightness in print. Titles say what is seen and
stand left; units stand on the axes; names stand beside the data in the colour of their line, to the
right of the axes and never on top of the data.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ACCENT",
    "COLOURS",
    "GREY",
    "HEAT",
    "INK",
    "NOTE_SIZE",
    "SIZE_INCHES",
    "arrows",
    "label_lines",
    "log_axis",
    "size_axis",
    "spaced",
    "styled",
    "time_axis",
    "title",
    "to_image",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Colours of lines, in the order of use (Okabe and Ito)."""

ACCENT = COLOURS[1]
INK = "#222222"
GREY = "#767676"
FAINT = "#DDDDDD"

HEAT = "YlGnBu"
"""Colour map of shares of one: light is idle, dark is busy, monotonous in lightness."""

SIZE_INCHES = (8.6, 4.4)
DPI = 160

STYLE: dict[str, Any] = {
    "figure.figsize": SIZE_INCHES,
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.5,
    "lines.solid_joinstyle": "round",
}

MISSING_GLYPH = r"Glyph \d+ .*missing from"
"""matplotlib's warning about a letter that its font does not have, such as those of a scenario's name in
another script; the picture shows a box in its place."""

TITLE_SIZE = 12
NOTE_SIZE = 8.5

LETTER_WIDTH = 0.5
"""Width of a letter on average, in its size."""

SHORTEST_LINE = 40
"""Letters at which a note is broken at the earliest."""


@contextmanager
def styled(ax: Axes | None, *, size: tuple[float, float] = SIZE_INCHES) -> Iterator[Axes]:
    """Give the axes to draw on, in the project's style: the given ones, or those of a new figure."""
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):  # type: ignore[arg-type]
        if ax is None:
            _, ax = plt.subplots(figsize=size, layout="constrained")
        else:
            _dress(ax)
        yield ax


def _dress(ax: Axes) -> None:
    """Give axes that were made in another style the spines and the grid of this one."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK)
    ax.set_axisbelow(True)
    ax.grid(axis="y", color=FAINT, linewidth=0.7)


def title(ax: Axes, text: str, *, note: str = "") -> None:
    """Write what the picture shows above it, and below that a note in grey, its long lines broken."""
    points = ax.get_window_extent().width * 72 / ax.figure.dpi
    letters = max(int(points / (LETTER_WIDTH * NOTE_SIZE)), SHORTEST_LINE)
    note = "\n".join(fill(line, letters) for line in note.splitlines())
    pad = 9 + (1.35 * NOTE_SIZE * (1 + note.count("\n")) if note else 0)
    ax.set_title(text, loc="left", fontsize=TITLE_SIZE, fontweight="bold", pad=pad)
    if note:
        ax.annotate(
            note,
            (0, 1),
            xytext=(0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=NOTE_SIZE,
            color=GREY,
            va="bottom",
        )


def arrows(name: str) -> str:
    """Return the name of a link with a real arrow: "leaf0->host1" becomes "leaf0→host1"."""
    return name.replace("->", "→")


def spaced(quantity: str) -> str:
    """Return a quantity as it is set in print: "36.12us" becomes "36.12 µs"."""
    return re.sub(r"(?<=\d)(?=[A-Za-z])", " ", quantity).replace(" us", " µs")


WIDE_DECADES = 2.5
"""Logarithmic axes over more than this have numbers at powers of ten only."""


def log_axis(ax: Axes, text: Callable[[float], str], *, axis: str = "x") -> None:
    """Make an axis logarithmic, its ticks at 1, 2, 5, 10 (or 1, 10) and written by `text`.

    The limits of the axis must be final, or those of the data.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set(**{f"{axis}scale": "log"})
    low, high = getattr(ax, f"get_{axis}lim")()
    wide = high > low * 10**WIDE_DECADES
    one = getattr(ax, f"{axis}axis")
    one.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=15))
    one.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    one.set_minor_formatter(NullFormatter())


_TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"))
_SIZE_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"), (1, "B"))


def _fitting(largest: float, units: Sequence[tuple[int, str]]) -> tuple[float, str]:
    for scale, name in units:
        if largest >= scale:
            return float(scale), name
    return float(units[-1][0]), units[-1][1]


def time_axis(ax: Axes, largest_ps: float, *, axis: str = "x", what: str = "Time") -> float:
    """Label an axis with the unit that fits times up to `largest_ps`; return picoseconds per unit."""
    scale, unit = _fitting(largest_ps, _TIME_UNITS)
    ax.set(**{f"{axis}label": f"{what} ({unit})"})
    return scale


def size_axis(ax: Axes, largest_bytes: float, *, axis: str = "y", what: str = "Queue") -> float:
    """Label an axis with the unit that fits sizes up to `largest_bytes`; return bytes per unit."""
    scale, unit = _fitting(largest_bytes, _SIZE_UNITS)
    ax.set(**{f"{axis}label": f"{what} ({unit})"})
    return scale


LINE_HEIGHT = 1.3
"""Distance of two labels, in heights of their letters."""


def label_lines(ax: Axes, labels: Sequence[tuple[str, str, float]]) -> None:
    """Write names to the right of the axes, each in its colour and as near its height as there is room.

    Parameters
    ----------
    ax : Axes
        Its limits must be final.
    labels : sequence of (text, colour, height)
        Heights in data coordinates of the y axis.
    """
    if not labels:
        return
    to_axes = ax.transData + ax.transAxes.inverted()
    wanted = [float(to_axes.transform((ax.get_xlim()[0], height))[1]) for _, _, height in labels]
    axes_points = ax.get_window_extent().height * 72 / ax.figure.dpi
    gap = LINE_HEIGHT * NOTE_SIZE * max(1 + text.count("\n") for text, _, _ in labels) / max(axes_points, 1.0)
    for (text, colour, _), height in zip(labels, spread(wanted, gap=gap), strict=True):
        ax.annotate(
            text,
            (1, height),
            xytext=(7, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colour,
            fontsize=NOTE_SIZE,
            va="center",
            annotation_clip=False,
        )


def spread(wanted: Sequence[float], *, gap: float) -> list[float]:
    """Return heights near the wanted ones, at least `gap` apart and in the same order.

    None is below `gap / 2`, so that a label does not reach below the axes; many may reach above 1.

    Examples
    --------
    >>> [round(height, 2) for height in spread([0.5, 0.5, 0.0], gap=0.2)]
    [0.6, 0.4, 0.1]
    """
    order = sorted(range(len(wanted)), key=lambda k: (-wanted[k], k))
    groups: list[list[float]] = []
    for k in order:
        groups.append([min(max(wanted[k], 0.0), 1.0), 1.0])
        while len(groups) > 1 and _bottom(groups[-2], gap) - _top(groups[-1], gap) < gap - 1e-12:
            centre, count = groups.pop()
            before, many = groups[-1]
            groups[-1] = [(before * many + centre * count) / (many + count), many + count]
    heights = [_top(group, gap) - gap * k for group in groups for k in range(int(group[1]))]
    out = [0.0] * len(wanted)
    lowest = gap / 2
    for k, height in reversed(list(zip(order, heights, strict=True))):
        out[k] = max(height, lowest)
        lowest = out[k] + gap
    return out


def _top(group: Sequence[float], gap: float) -> float:
    return group[0] + gap * (group[1] - 1) / 2


def _bottom(group: Sequence[float], gap: float) -> float:
    return group[0] - gap * (group[1] - 1) / 2


def to_image(ax: Axes, *, format: str = "png", close: bool = True) -> bytes:
    """Return the figure of `ax` as the bytes of an image file.

    Parameters
    ----------
    ax : Axes
        Any axes of the figure.
    format : str
        "png", "pdf" or "svg".
    close : bool
        Whether to let go of the figure, as a script that draws many should.
    """
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=MISSING_GLYPH)
        figure.savefig(buffer, format=format, dpi=DPI, bbox_inches="tight", pad_inches=0.15)
    if close:
        plt.close(figure)
    return buffer.getvalue()
