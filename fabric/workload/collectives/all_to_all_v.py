"""All-to-all-v: every rank has a different number of bytes for every other.

The matrix says who sends how much to whom; only pairs with something to send are in the template, with
what stays on a rank as a piece that does not move. Sizes are the entries of the matrix
(`Template.piece_bytes(matrix)`). By distance, as the all-to-all.

The default pattern is nccl-tests' (`src/alltoallv.cu`): rank i sends to rank j in proportion to
(j - i) mod n, blended with uniform.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.direct import check_window
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["blended_matrix", "check_matrix", "direct_all_to_all_v", "pairwise_all_to_all_v"]

GRAIN_BYTES = 16
"""nccl-tests rounds entries down to this."""


@algorithm("all_to_all_v", "direct")
def direct_all_to_all_v(
    n_ranks: int, *, matrix: npt.ArrayLike | None = None, window: int | None = None
) -> Template:
    """All-to-all-v with a window.

    Parameters
    ----------
    n_ranks : int
    matrix : array_like of int [ranks, ranks], optional
        Bytes by sender and receiver; only whether they are 0 matters here. Every pair sends unless given.
    window : int, optional
        The send at distance j waits for the last that arrives from a distance up to j - window; all at once.
    """
    return _ragged(n_ranks, matrix, window=check_window(window, n_ranks), name="direct")


@algorithm("all_to_all_v", "pairwise")
def pairwise_all_to_all_v(n_ranks: int, *, matrix: npt.ArrayLike | None = None) -> Template:
    """All-to-all-v one distance after the other; `matrix` as of "direct"."""
    return _ragged(n_ranks, matrix, window=1, name="pairwise")


def blended_matrix(n_ranks: int, *, size_bytes: int, spread: float) -> Int64Array:
    """Return the default pattern of nccl-tests.

    Parameters
    ----------
    n_ranks : int
    size_bytes : int
        S: about what each rank sends.
    spread : float
        From 0, all alike, to 1, in proportion to the distance.

    Returns
    -------
    ndarray of int64 [ranks, ranks]

    Raises
    ------
    SpecError
        If the spread is outside [0, 1] or the size negative.

    Examples
    --------
    >>> blended_matrix(4, size_bytes=2**20, spread=1.0)[0].tolist()
    [0, 174752, 349520, 524288]
    """
    if not 0 <= spread <= 1:
        raise SpecError("spread", spread, "0 to 1")
    if size_bytes < 0:
        raise SpecError("size", size_bytes, "at least 0 bytes")
    rank = np.arange(n_ranks)
    distance = (rank[np.newaxis, :] - rank[:, np.newaxis]) % n_ranks
    slope = size_bytes / max(n_ranks * (n_ranks - 1) / 2, 1)
    even = size_bytes / n_ranks if n_ranks > 1 else float(size_bytes)
    exact = (1 - spread) * even + spread * distance * slope
    return np.floor(exact / GRAIN_BYTES).astype(np.int64) * GRAIN_BYTES


def check_matrix(matrix: npt.ArrayLike, *, n_ranks: int, path: str = "matrix") -> Int64Array:
    """Return a matrix of bytes as an array.

    Raises
    ------
    SpecError
        If it is not square, of that many ranks, with whole numbers of at least 0.
    """
    given = np.asarray(matrix)
    if given.shape != (n_ranks, n_ranks) or not np.issubdtype(given.dtype, np.integer):
        raise SpecError(path, f"{given.dtype} {given.shape}", f"whole numbers in {n_ranks} rows and columns")
    low = np.argwhere(given < 0)
    if len(low):
        sender, receiver = (int(each) for each in low[0])
        raise SpecError(f"{path}[{sender}][{receiver}]", int(given[sender, receiver]), "at least 0 bytes")
    return given.astype(np.int64)


def _ragged(n_ranks: int, matrix: npt.ArrayLike | None, *, window: int, name: str) -> Template:
    if matrix is None:
        block = np.arange(n_ranks * n_ranks, dtype=np.int64)
    else:
        block = np.flatnonzero(check_matrix(matrix, n_ranks=n_ranks))
    sender, receiver = np.divmod(block, n_ranks)
    distance = (receiver - sender) % n_ranks
    order = np.lexsort((sender, distance))
    piece = order[distance[order] > 0]
    source, destination, reach = sender[piece], receiver[piece], distance[piece]
    rows = Rows()
    rows.add(
        source,
        destination,
        piece=piece,
        step=(reach - 1) // window,
        after=[_last_arrivals(source, destination, reach, window=window, n_ranks=n_ranks)],
    )
    pieces = max(len(block), 1)
    return rows.build(
        name,
        "all_to_all_v",
        n_ranks=n_ranks,
        n_pieces=pieces,
        n_blocks=n_ranks * n_ranks,
        block_base=np.minimum(np.arange(pieces + 1), len(block)).astype(np.uint32),
        block=block.astype(np.uint32),
    )


def _last_arrivals(
    source: Int64Array, destination: Int64Array, distance: Int64Array, *, window: int, n_ranks: int
) -> Int64Array:
    """For each row, the last that arrives at its source from a distance up to its own less the window."""
    arrival_key = destination * n_ranks + distance
    order = np.argsort(arrival_key, kind="stable")
    wanted = source * n_ranks + np.maximum(distance - window, 0)
    place = np.searchsorted(arrival_key[order], wanted, side="right") - 1
    row = order[np.maximum(place, 0)] if len(order) else order
    there = (place >= 0) & (destination[row] == source) & (distance > window)
    return np.where(there, row, -1)
