"""Utilisation of every link, as a heat map in the order in which a frame meets the tiers.

From left to right: host to leaf, leaf to spine, up to the highest tier and down again to the hosts.
One block is one tier and direction, one cell one link. Rows are the switches at the lower end of the
links (at the upper end for links of hosts), so a row of leaves reads from the uplinks of its hosts to
their downlinks. The scale marks 70 %, above which a trunk is better not run for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabric.errors import FabricError
from fabric.result import Result
from fabric.result.table import Array
from fabric.result.text import percent_text

from .style import GREY, HEAT, INK, arrows, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

__all__ = ["utilisation"]

ORDER = ("host", "leaf", "spine", "core")
"""Tiers from the bottom up; other switches come after them."""

TRUNK_LIMIT = 0.7
"""Share up to which operators load trunks in the long run."""

GAP = 0.22
"""Space between two blocks, in widths of a block."""

NUMBERED_COLUMNS, NUMBERED_ROWS = 8, 16
"""Size of a block up to which its numbers are written into its cells."""

DARK_CELL = 0.55
"""Share above which a cell is dark."""

EDGED_ROWS = 32
"""Rows up to which cells have white edges."""

NAMED_ROWS = 32
"""Rows up to which every one is named."""


@dataclass(frozen=True)
class Block:
    """The links of one tier and direction.

    Attributes
    ----------
    tier : str
        "leaf->spine".
    rows : list of str
        Names of the switches.
    cells : numpy.ndarray, [rows, columns]
        Utilisation; NaN where a switch has fewer links than others.
    """

    tier: str
    rows: list[str]
    cells: Array


def utilisation(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draw the utilisation of all links over the whole run.

    Parameters
    ----------
    result : Result
        Of any scenario.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If the network has no links.
    """
    blocks = _blocks(result)
    if not blocks:
        raise FabricError("the network has no links to draw")
    with styled(ax, size=(max(5.5, 2.1 * len(blocks) + 1.2), 4.6)) as axes:
        for k, block in enumerate(blocks):
            mesh = _draw_block(axes, block, left=k * (1 + GAP), named=block.rows == blocks[0].rows)
        axes.set(xlim=(0, len(blocks) * (1 + GAP) - GAP), ylim=(1, 0), xticks=[], yticks=[])
        axes.grid(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        _name_rows(axes, blocks[0].rows)
        _draw_scale(axes, mesh)
        busiest = int(np.argmax(result.ports["utilisation"]))
        link, share = result.ports["link"][busiest], result.ports["utilisation"][busiest]
        note = "One cell a link, one row a switch; a frame travels from left to right"
        if result.provenance.name:
            note = f"{result.summary.title()}\n{note}"
        title(axes, f"The busiest link, {arrows(link)}, is used {percent_text(share)} of the time", note=note)
        axes.title.set_position((0, 1))
    return axes


def _blocks(result: Result) -> list[Block]:
    """Return the blocks in the order in which frames meet them."""
    ports = result.ports
    ends = [name.partition("#")[0].split("->") for name in ports["link"].tolist()]
    blocks = []
    tiers = ports["tier"]
    for tier in sorted(set(tiers.tolist()), key=_position):
        lower, upper = (_rank(part) for part in tier.split("->"))
        goes_up = lower <= upper
        of_hosts = tier.startswith("host->") or tier.endswith("->host")
        numbers = np.flatnonzero(tiers == tier)
        row_end = int(goes_up == of_hosts)
        blocks.append(_block(tier, numbers, [ends[n][row_end] for n in numbers], ports["utilisation"]))
    return blocks


def _rank(tier: str) -> int:
    return ORDER.index(tier) if tier in ORDER else len(ORDER)


def _position(tier: str) -> tuple[int, int, str]:
    """Return where a tier and direction stands on the way of a frame: up first, then down."""
    lower, upper = (_rank(part) for part in tier.split("->"))
    return (0, lower, tier) if lower <= upper else (1, -lower, tier)


def _block(tier: str, numbers: Array, rows: list[str], shares: Array) -> Block:
    order = list(dict.fromkeys(sorted(rows, key=_natural)))
    row_of = {name: k for k, name in enumerate(order)}
    filled = np.zeros(len(order), dtype=np.int64)
    width = (
        max(rows.count(name) for name in order)
        if len(order) < 2
        else int(np.bincount([row_of[name] for name in rows]).max())
    )
    cells = np.full((len(order), width), np.nan)
    for number, name in zip(numbers, rows, strict=True):
        row = row_of[name]
        cells[row, filled[row]] = shares[number]
        filled[row] += 1
    return Block(tier, order, cells)


def _natural(name: str) -> tuple[str, int]:
    digits = len(name) - len(name.rstrip("0123456789"))
    return (name[: len(name) - digits], int(name[len(name) - digits :] or 0))


def _draw_block(ax: Axes, block: Block, *, left: float, named: bool) -> QuadMesh:
    """Draw a block and what it holds; rows that the axis does not name are named below it."""
    rows, columns = block.cells.shape
    mesh = ax.pcolormesh(
        np.linspace(left, left + 1, columns + 1),
        np.linspace(0, 1, rows + 1),
        np.ma.masked_invalid(block.cells),
        cmap=HEAT,
        vmin=0,
        vmax=1,
        edgecolors="white" if rows <= EDGED_ROWS else "face",
        linewidth=0.5 if rows <= EDGED_ROWS else 0.1,
        rasterized=rows > EDGED_ROWS,
    )
    if columns <= NUMBERED_COLUMNS and rows <= NUMBERED_ROWS:
        _write_numbers(ax, block.cells, left)
    mean, top = float(np.nanmean(block.cells)), float(np.nanmax(block.cells))
    lines = [arrows(block.tier), f"mean {percent_text(mean)}", f"max {percent_text(top)}"]
    if not named:
        lines += [f"rows {block.rows[0]}", f"to {block.rows[-1]}"] if rows > 1 else [f"row {block.rows[0]}"]
    text = ax.text(left + 0.5, 1.03, "\n".join(lines), fontsize=8.5, color=INK, linespacing=1.3)
    text.set(ha="center", va="top")
    return mesh


def _write_numbers(ax: Axes, cells: Array, left: float) -> None:
    """Write the utilisation into every cell, dark on light and light on dark."""
    rows, columns = cells.shape
    for (row, column), share in np.ndenumerate(cells):
        if np.isfinite(share):
            ax.text(
                left + (column + 0.5) / columns,
                (row + 0.5) / rows,
                f"{100 * share:.0f}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if share > DARK_CELL else INK,
            )


def _name_rows(ax: Axes, names: list[str]) -> None:
    step = -(-len(names) // NAMED_ROWS)
    shown = range(0, len(names), step)
    ax.set_yticks([(k + 0.5) / len(names) for k in shown], [names[k] for k in shown], fontsize=7.5)
    ax.tick_params(axis="y", length=0)


def _draw_scale(ax: Axes, mesh: QuadMesh) -> None:
    from matplotlib.ticker import PercentFormatter

    scale = ax.figure.colorbar(mesh, ax=ax, shrink=0.8, pad=0.02, aspect=22)
    scale.set_ticks([0, 0.25, 0.5, TRUNK_LIMIT, 1])
    scale.ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    scale.ax.axhline(TRUNK_LIMIT, color=INK, lw=1)
    scale.outline.set_visible(False)
    scale.set_label("Utilisation of the link", color=GREY)
