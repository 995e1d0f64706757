"""All-to-all along rails: first inside the node to the rank that sits on the rail of the destination.

With m ranks a node and N nodes, a rank gives each other rank of its node what goes to that rank's rail, on
all nodes; then every rank sends, along its own rail, one large message to each other node, in which is what
the ranks of its node have for the peer. Across nodes go N-1 messages a rank instead of (N-1) m, and no
traffic leaves its rail. NCCL's PXN does this.

Source: NCCL 2.12, "Doubling all2all performance with NVIDIA Collective Communication Library 2.12" (NVIDIA
developer blog, 2022).
"""

from __future__ import annotations

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array, bases
from fabric.workload.collectives.direct import check_window, rounds
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["rail_aligned_all_to_all"]


@algorithm("all_to_all", "rail_aligned")
def rail_aligned_all_to_all(n_ranks: int, *, ranks_per_node: int = 1, window: int | None = 1) -> Template:
    """All-to-all in two stages.

    Parameters
    ----------
    n_ranks : int
    ranks_per_node : int
        m; ranks `m k .. m k + m - 1` are a node.
    window : int, optional
        Sends of a rank and stage under way; None: all.
    """
    inside, nodes = ranks_per_node, n_ranks // max(ranks_per_node, 1)
    if inside < 1 or inside * nodes != n_ranks:
        raise SpecError("ranks_per_node", inside, f"a divisor of {n_ranks}")
    rows = Rows()
    arrived = _inside(rows, inside=inside, nodes=nodes, window=check_window(window, inside))
    _across(rows, arrived, inside=inside, nodes=nodes, window=check_window(window, nodes))
    distance = np.arange(n_ranks, dtype=np.uint32).reshape(nodes, inside)
    packed = [*distance.T[1:], *distance[1:]] or [distance.ravel()]
    return rows.build(
        "rail_aligned",
        "all_to_all",
        n_ranks=n_ranks,
        n_pieces=len(packed),
        n_blocks=n_ranks,
        block_base=bases(np.array([len(each) for each in packed])).astype(np.uint32),
        block=np.concatenate(packed),
        grid=(nodes, inside),
    )


def _inside(rows: Rows, *, inside: int, nodes: int, window: int) -> Int64Array:
    """First stage; rows that arrive at each rank [ranks, inside - 1]."""
    source, destination, step, after = rounds(inside, window=window)
    node = np.tile(np.arange(nodes, dtype=np.int64), len(source))
    source, destination, step, after = (np.repeat(each, nodes) for each in (source, destination, step, after))
    sent = rows.add(
        node * inside + source,
        node * inside + destination,
        piece=(destination - source) % inside - 1,
        step=step,
        after=[np.where(after >= 0, after * nodes + node, -1)],
    )
    by_rank = np.argsort(node * inside + destination, kind="stable")
    return sent[by_rank].reshape(nodes * inside, inside - 1)


def _across(rows: Rows, arrived: Int64Array, *, inside: int, nodes: int, window: int) -> None:
    """Second stage: everything for another node, as soon as all of the first stage has arrived."""
    ranks = np.arange(nodes * inside, dtype=np.int64)
    first_step = -(-(inside - 1) // check_window(window, inside)) if inside > 1 else 0
    if nodes == 1:
        return
    complete = rows.join(
        ranks, arrived, readers=nodes - 1, piece=inside - 1, count=nodes - 1, step=max(first_step - 1, 0)
    )
    source, destination, step, after = rounds(nodes, window=window)
    rail = np.tile(np.arange(inside, dtype=np.int64), len(source))
    source, destination, step, after = (
        np.repeat(each, inside) for each in (source, destination, step, after)
    )
    begin = len(rows)
    sender = source * inside + rail
    rows.add(
        sender,
        destination * inside + rail,
        piece=inside - 1 + (destination - source) % nodes - 1,
        step=first_step + step,
        after=[complete[sender], np.where(after >= 0, begin + after * inside + rail, -1)],
    )
