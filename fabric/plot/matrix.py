"""Communication matrices: who sends how much to whom, as colour; senders down, receivers across."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.errors import SpecError
from fabric.plot.style import GREY, NOTE_SIZE, STYLE, TITLE_SIZE, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["matrices", "matrix"]

COLOURS_OF_BYTES = "viridis_r"
"""Light is little, dark is much, monotonous in lightness; nothing is white."""

PANEL_INCHES = 3.3
COLUMNS = 3
DECADES = 6
"""What is smaller than the largest by more than this has the lightest colour."""

MOST_ROWS = 200
"""Of a panel; of a larger matrix each square shows the largest of its entries, so that none is lost."""

_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB"), (1, "B"))


def matrix(
    sent_bytes: Any,
    *,
    name: str = "",
    of: str = "rank",
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one matrix.

    Parameters
    ----------
    sent_bytes : array_like [rows, rows]
        Senders down, receivers across.
    name : str
        Written above.
    of : str
        What a row is.
    limits : (float, float), optional
        Bytes of the lightest and the darkest colour; those of the matrix unless given.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    SpecError
        If it is no square matrix of bytes.
    """
    from matplotlib.colors import LogNorm

    given = np.asarray(sent_bytes, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size or not (given >= 0).all():
        raise SpecError("matrix", str(given.shape), "a square matrix of at least 0 bytes")
    low, high = limits or _limits([given])
    with styled(ax, size=(PANEL_INCHES * 1.3, PANEL_INCHES)) as axes:
        axes.grid(False)
        shown = np.ma.masked_equal(_largest(given), 0)
        axes.imshow(
            np.ma.maximum(shown, low),
            cmap=COLOURS_OF_BYTES,
            norm=LogNorm(low, high),
            interpolation="nearest",
            aspect="equal",
            extent=(-0.5, len(given) - 0.5, len(given) - 0.5, -0.5),
        )
        axes.spines[["top", "right"]].set_visible(True)
        axes.spines[:].set_color(GREY)
        axes.set_xlabel(f"Receiving {of}")
        axes.set_ylabel(f"Sending {of}")
        axes.set_title(name, loc="left", fontsize=NOTE_SIZE + 1)
        axes.locator_params(integer=True, nbins=5)
    return axes


def matrices(
    panels: Mapping[str, Any], *, of: str = "rank", title: str = "", note: str = ""
) -> tuple[Axes, ...]:
    """Draw several matrices side by side, in one scale of colours.

    Parameters
    ----------
    panels : mapping of str to array_like [rows, rows]
        By name.
    of : str
        What a row is.
    title, note : str

    Returns
    -------
    tuple of matplotlib Axes
        One for each.

    Raises
    ------
    SpecError
        If there are none.
    """
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if not panels:
        raise SpecError("matrix", "nothing", "at least one matrix: a job of several ranks")
    limits = _limits([np.asarray(each, dtype=np.float64) for each in panels.values()])
    columns = min(len(panels), COLUMNS)
    rows = math.ceil(len(panels) / columns)
    with plt.rc_context(STYLE):  # type: ignore[arg-type]
        size = (columns * PANEL_INCHES + 0.9, rows * PANEL_INCHES + 0.7)
        figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        cells = grid.ravel()
        for cell in cells[len(panels) :]:
            cell.set_visible(False)
        for cell, (name, each) in zip(cells, panels.items(), strict=False):
            matrix(each, name=name, of=of, limits=limits, ax=cell)
        used = cells[: len(panels)]
        bar = figure.colorbar(
            ScalarMappable(LogNorm(*limits), COLOURS_OF_BYTES), ax=list(used), shrink=0.8, pad=0.02
        )
        steps = (1.0, 2.0, 5.0) if limits[1] < limits[0] * 300 else (1.0,)
        bar.ax.yaxis.set_major_locator(LogLocator(subs=steps))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _bytes_text(value)))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
        bar.ax.set_title("per step", fontsize=NOTE_SIZE, color=GREY, loc="left")
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE_SIZE, fontweight="bold")
        if note:
            figure.supxlabel(note, x=0.01, ha="left", fontsize=NOTE_SIZE, color=GREY)
    return tuple(used)


def _largest(given: Any) -> Any:
    """Largest entry of each square, of so many that there are at most `MOST_ROWS`."""
    width = -(-len(given) // MOST_ROWS)
    rows = -(-len(given) // width)
    room = np.zeros((rows * width, rows * width))
    room[: len(given), : len(given)] = given
    return room.reshape(rows, width, rows, width).max(axis=(1, 3))


def _limits(each: list[Any]) -> tuple[float, float]:
    sent = np.concatenate([one[one > 0] for one in each])
    if not sent.size:
        return 1.0, 10.0
    high = float(sent.max())
    low = max(float(sent.min()), high / 10**DECADES)
    return (low, high) if low < high else (low / 10**0.5, high * 10**0.5)


def _bytes_text(value: float) -> str:
    scale, unit = next((each for each in _UNITS if value >= each[0] * 0.9995), _UNITS[-1])
    return f"{value / scale:.3g} {unit}"
