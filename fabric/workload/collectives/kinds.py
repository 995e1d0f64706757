"""The collectives, the one convention for their sizes, and what their bandwidth is compared with.

**Size** is the bytes of the full logical vector of one rank, as nccl-tests prints it: of an all-gather the
gathered output, of a reduce-scatter the input vector, of an all-to-all the whole send buffer with the
rank's own block, of an all-to-all-v the row sum of its matrix, of a message the message. What other tools
call size is converted by `full_bytes` where it comes in.

`algbw = size / time`; `busbw = algbw * factor`, with the factors of nccl-tests (`doc/PERFORMANCE.md` and
the `GetBw` functions). The factor makes busbw comparable with the rate of a link for algorithms in which
every rank sends and receives the least that it must; trees on two nodes and reduction in the network
exceed it by design, and nothing is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError

__all__ = ["COLLECTIVES", "CONVENTIONS", "Kind", "busbw_factor", "full_bytes", "kind_of", "ragged_size"]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What distinguishes a collective.

    Attributes
    ----------
    factor : str
        Of busbw: "all_reduce" is 2(n-1)/n, "share" (n-1)/n, "one" 1.
    reduces : bool
        Contributions are added up.
    rooted : bool
        One rank has or gets the whole.
    owned : bool
        Block r of the vector belongs to rank r.
    per_rank_count : bool
        nccl-tests and NCCL count the elements of one rank's block, not of the vector.
    """

    factor: str
    reduces: bool = False
    rooted: bool = False
    owned: bool = False
    per_rank_count: bool = False


COLLECTIVES: dict[str, Kind] = {
    "all_reduce": Kind(factor="all_reduce", reduces=True),
    "reduce_scatter": Kind(factor="share", reduces=True, owned=True, per_rank_count=True),
    "all_gather": Kind(factor="share", owned=True, per_rank_count=True),
    "all_to_all": Kind(factor="share", per_rank_count=True),
    "all_to_all_v": Kind(factor="share"),
    "broadcast": Kind(factor="one", rooted=True),
    "reduce": Kind(factor="one", reduces=True, rooted=True),
    "gather": Kind(factor="share", rooted=True, owned=True, per_rank_count=True),
    "scatter": Kind(factor="share", rooted=True, owned=True, per_rank_count=True),
    "barrier": Kind(factor="one", reduces=True),
    "send_recv": Kind(factor="one"),
}
"""Every collective by its name."""

CONVENTIONS = ("full", "nccl_count", "nccl_api", "chakra", "simai")
"""Whose sizes `full_bytes` understands."""


def kind_of(collective: str, *, path: str = "collective") -> Kind:
    """Return the kind of a collective.

    Raises
    ------
    SpecError
        If there is none of that name.
    """
    kind = COLLECTIVES.get(collective)
    if kind is None:
        raise SpecError(path, collective, f"one of {', '.join(COLLECTIVES)}")
    return kind


def full_bytes(given: int, *, collective: str, n_ranks: int, convention: str, element_bytes: int = 1) -> int:
    """Convert a size of another tool to bytes of the full logical vector.

    Parameters
    ----------
    given : int
        The number that stands there.
    collective : str
    n_ranks : int
        Ranks of the group.
    convention : str
        "full": as here (SimAI, AICB, the size column of nccl-tests: also "simai"). "nccl_count": the count
        column of nccl-tests, "nccl_api": the count of NCCL's functions; of all-gather, reduce-scatter,
        all-to-all, gather and scatter both are of one rank's block. "chakra": `comm_size` of Chakra and
        ASTRA-sim, of an all-gather one rank's shard and otherwise the vector.
    element_bytes : int
        Bytes of what is counted (STAGE writes Chakra traces that count elements).

    Returns
    -------
    int

    Raises
    ------
    SpecError
        If the convention, the collective or a number is not allowed.

    Examples
    --------
    >>> full_bytes(1048576, collective="all_gather", n_ranks=8, convention="chakra")
    8388608
    >>> full_bytes(1048576, collective="all_reduce", n_ranks=8, convention="chakra")
    1048576
    """
    kind = kind_of(collective)
    if convention not in CONVENTIONS:
        raise SpecError("convention", convention, f"one of {', '.join(CONVENTIONS)}")
    for name, value, low in (
        ("size", given, 0),
        ("n_ranks", n_ranks, 1),
        ("element_bytes", element_bytes, 1),
    ):
        if value < low:
            raise SpecError(name, value, f"at least {low}")
    blocks = 1
    if (convention.startswith("nccl") and kind.per_rank_count) or (
        convention == "chakra" and collective == "all_gather"
    ):
        blocks = n_ranks
    return given * element_bytes * blocks


def busbw_factor(collective: str, *, n_ranks: int) -> float:
    """Return what turns algbw into busbw.

    Examples
    --------
    >>> busbw_factor("all_reduce", n_ranks=8), busbw_factor("all_gather", n_ranks=8)
    (1.75, 0.875)
    """
    share = (n_ranks - 1) / n_ranks
    return {"all_reduce": 2 * share, "share": share, "one": 1.0}[kind_of(collective).factor]


def ragged_size(matrix: npt.ArrayLike) -> int:
    """Return the size of an all-to-all-v as nccl-tests has it: the largest sum of a row or a column.

    Parameters
    ----------
    matrix : array_like of int [ranks, ranks]
        `matrix[s, d]`: bytes that s has for d; what stays on a rank counts too.

    Examples
    --------
    >>> ragged_size([[0, 5], [1, 2]])
    7
    """
    entries = np.asarray(matrix, dtype=np.int64)
    return int(max(entries.sum(axis=0).max(), entries.sum(axis=1).max()))
