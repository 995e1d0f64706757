"""All-to-all: every rank sends every other its block, by distance.

In step k, rank r sends to r + k: a permutation, in which no rank is hit twice. "pairwise" has one step
under way, "direct" a window of several, or all: then nothing waits, and how the fabric and the NICs share
is what one sees.

Source: Thakur, Rabenseifner and Gropp, doi 10.1177/1094342005051521.
"""

from __future__ import annotations

from fabric.workload.collectives.direct import check_window, rounds
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["direct_all_to_all", "pairwise_all_to_all"]


@algorithm("all_to_all", "direct")
def direct_all_to_all(n_ranks: int, *, window: int | None = None) -> Template:
    """All-to-all with a window.

    Parameters
    ----------
    n_ranks : int
    window : int, optional
        The send at distance j waits for what arrives from distance j - window; all at once.
    """
    return _by_distance(n_ranks, window=check_window(window, n_ranks), name="direct")


@algorithm("all_to_all", "pairwise")
def pairwise_all_to_all(n_ranks: int) -> Template:
    """All-to-all in n-1 steps of S/n."""
    return _by_distance(n_ranks, window=1, name="pairwise")


def _by_distance(n_ranks: int, *, window: int, name: str) -> Template:
    source, destination, step, after = rounds(n_ranks, window=window)
    rows = Rows()
    rows.add(source, destination, piece=(destination - source) % n_ranks, step=step, after=[after])
    return rows.build(name, "all_to_all", n_ranks=n_ranks, n_pieces=n_ranks)
