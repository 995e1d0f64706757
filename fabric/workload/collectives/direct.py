"""Direct: everybody sends to everybody.

As reduce-scatter, every rank sends each other rank its block; as all-gather, its own block to all. An
all-reduce is one and then the other: two steps, however many ranks, and the incast of n-1 senders at every
receiver. A window bounds how many are under way: the send at distance j waits for what arrives from
distance j - window.

ASTRA-sim calls it "direct", with a window "direct4".
"""

from __future__ import annotations

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.sequence import backwards, then
from fabric.workload.collectives.template import Template

__all__ = ["check_window", "direct_all_gather", "direct_all_reduce", "direct_reduce_scatter", "rounds"]


@algorithm("all_gather", "direct")
def direct_all_gather(n_ranks: int, *, window: int | None = None) -> Template:
    """All-gather in which every rank sends its block to every other.

    Parameters
    ----------
    n_ranks : int
    window : int, optional
        Sends of a rank that are under way at once; all.
    """
    source, destination, step, after = rounds(n_ranks, window=check_window(window, n_ranks))
    rows = Rows()
    rows.add(source, destination, piece=source, step=step, after=[after])
    return rows.build("direct", "all_gather", n_ranks=n_ranks, n_pieces=n_ranks)


@algorithm("reduce_scatter", "direct")
def direct_reduce_scatter(n_ranks: int, *, window: int | None = None) -> Template:
    """Reduce-scatter in which every rank sends each other its block; `window` as of the all-gather."""
    return backwards(direct_all_gather(n_ranks, window=window), collective="reduce_scatter")


@algorithm("all_reduce", "direct")
def direct_all_reduce(n_ranks: int, *, window: int | None = None) -> Template:
    """All-reduce in two steps; `window` as of the all-gather."""
    return then(
        direct_reduce_scatter(n_ranks, window=window),
        direct_all_gather(n_ranks, window=window),
        collective="all_reduce",
        name="direct",
    )


def rounds(n_ranks: int, *, window: int) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Everybody to everybody, by distance: source, destination, step, and the row to wait for (-1: none)."""
    source = np.tile(np.arange(n_ranks, dtype=np.int64), n_ranks - 1)
    distance = np.repeat(np.arange(1, n_ranks, dtype=np.int64), n_ranks)
    earlier = distance - window
    after = np.where(earlier > 0, (earlier - 1) * n_ranks + (source - earlier) % n_ranks, -1)
    return source, (source + distance) % n_ranks, (distance - 1) // window, after


def check_window(window: int | None, n_ranks: int) -> int:
    """Return a window, all for None.

    Raises
    ------
    SpecError
        If it is less than 1.
    """
    if window is None:
        return max(n_ranks - 1, 1)
    if not isinstance(window, int) or window < 1:
        raise SpecError("window", window, "at least 1 send under way")
    return window
