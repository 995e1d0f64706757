"""Bus bandwidth over size: a line an algorithm, below the line rate.

Sizes are logarithmic, as they are benchmarked; bandwidths are not, because what is left of the line rate is
what counts. The line rate is that of the links of the slowest rank's host: for algorithms in which every rank
sends the least that it must nothing is above it, reduction in the network can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabric.errors import FabricError
from fabric.result import Table
from fabric.result.text import rate_text, size_text

from .style import COLOURS, GREY, NOTE_SIZE, label_lines, log_axis, spaced, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bandwidth"]

HEADROOM = 1.12
"""Height of the axes, in line rates."""

BITS_PER_GB = 8 * 10**9
MARKER_SIZE = 3.5


def bandwidth(table: Table, *, ax: Axes | None = None) -> Axes:
    """Draw the bus bandwidth of a benchmark over its sizes.

    Parameters
    ----------
    table : Table
        Of `fabric.bench.run_bench`: its columns `algorithm`, `collective`, `ranks`, `size_bytes`, `busbw_bps`
        and `line_rate_bps`.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    FabricError
        If no run moved anything.
    """
    table = table[(table["size_bytes"] > 0) & np.isfinite(table["busbw_bps"])]
    if not len(table):
        raise FabricError("nothing was moved: there is no bandwidth to draw")
    first, rate_bps = table[0], float(table["line_rate_bps"].min())
    with styled(ax) as drawn:
        labels = []
        names = list(dict.fromkeys(table["algorithm"].tolist()))
        for number, name in enumerate(names):
            part = table[table["algorithm"] == name].sort("size_bytes")
            height = part["busbw_bps"] / BITS_PER_GB
            colour = COLOURS[number % len(COLOURS)]
            drawn.plot(part["size_bytes"], height, color=colour, marker="o", markersize=MARKER_SIZE)
            labels.append((name.replace("_", " "), colour, float(height[-1])))
        ceiling = rate_bps / BITS_PER_GB
        drawn.axhline(ceiling, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
        labels.append((f"line rate\n{spaced(rate_text(rate_bps))}", GREY, ceiling))
        top = max(ceiling, float(table["busbw_bps"].max()) / BITS_PER_GB)
        drawn.set(xlabel="Size of a rank's vector", ylabel="Bus bandwidth (GB/s)", ylim=(0, HEADROOM * top))
        log_axis(drawn, lambda size: spaced(size_text(size)))
        drawn.tick_params(axis="x", labelsize=NOTE_SIZE)
        title(
            drawn,
            f"{str(first['collective']).replace('_', '-').capitalize()} of {first['ranks']} ranks",
            note="As nccl-tests defines it, from the first rank that enters to the last that leaves",
        )
        label_lines(drawn, labels)
    return drawn
