"""`Collective`: an algorithm with a size, and what it will do.

    told = Collective(kind="all_reduce", n_ranks=64, size_bytes=2**30, algorithm="ring").explain()

`algorithm="auto"` takes what NCCL's published model would take (`fabric.workload.collectives.tuning`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.all_to_all_v import check_matrix
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.explain import Explanation, Links, explain
from fabric.workload.collectives.kinds import busbw_factor, kind_of, ragged_size
from fabric.workload.collectives.registry import build_template
from fabric.workload.collectives.template import Template
from fabric.workload.collectives.tuning import NcclMachine, choose

__all__ = ["Collective"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Collective:
    """One collective operation.

    Attributes
    ----------
    kind : str
        Key of `COLLECTIVES`.
    n_ranks : int
    size_bytes : int
        Of the full logical vector of a rank; of an all-to-all-v given by the matrix.
    algorithm : str
        "auto": by NCCL's model.
    options : mapping
        Of the algorithm.
    matrix : array_like of int [ranks, ranks], optional
        Bytes by sender and receiver of an all-to-all-v.
    machine : NcclMachine, optional
        For "auto"; one node of Hopper GPUs unless given.

    Raises
    ------
    SpecError
        If the collective does not exist, or the size is negative or does not fit it.

    Examples
    --------
    >>> print(Collective(kind="all_reduce", n_ranks=8, size_bytes=8192, algorithm="ring").explain())
    all_reduce, ring: 8 ranks, 8192 B
      steps             14, the longest chain has 14 messages
      messages          112 on 8 connections, 1024 B at most
      sent per rank     14336 to 14336 B
      received per rank 14336 to 14336 B
      alpha-beta        70.287 us, busbw 0.204 GB/s
      streamed          70.287 us, lower bound 70.287 us
    """

    kind: str
    n_ranks: int
    size_bytes: int = 0
    algorithm: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    matrix: npt.ArrayLike | None = None
    machine: NcclMachine | None = None

    def __post_init__(self) -> None:
        kind_of(self.kind, path="kind")
        if self.size_bytes < 0:
            raise SpecError("size", self.size_bytes, "at least 0 bytes")
        if (self.matrix is None) != (self.kind != "all_to_all_v"):
            raise SpecError("matrix", self.matrix, "a matrix for all_to_all_v, and only for it")
        if self.kind == "barrier" and self.size_bytes:
            raise SpecError("size", self.size_bytes, "0 for a barrier")
        if self.matrix is not None:
            matrix = check_matrix(self.matrix, n_ranks=self.n_ranks)
            if self.size_bytes not in (0, ragged_size(matrix)):
                raise SpecError(
                    "size", self.size_bytes, f"what the matrix says, {ragged_size(matrix)}, or nothing"
                )
            object.__setattr__(self, "matrix", matrix)
            object.__setattr__(self, "size_bytes", ragged_size(matrix))

    @property
    def sizes(self) -> int | npt.ArrayLike:
        """What `Template.piece_bytes` takes: the size, or the matrix."""
        return self.size_bytes if self.matrix is None else self.matrix

    def chosen(self) -> str:
        """Name of the algorithm, with "auto" decided."""
        if self.algorithm != "auto":
            return self.algorithm
        machine = self.machine or NcclMachine(nodes=1, ranks=self.n_ranks)
        return choose(self.kind, size_bytes=self.size_bytes, machine=machine).algorithm

    def template(self) -> Template:
        """The algorithm as a template.

        Raises
        ------
        SpecError
            If there is no such algorithm or option.
        """
        options = dict(self.options)
        if self.matrix is not None:
            options.setdefault("matrix", self.matrix)
        return build_template(self.kind, algorithm=self.chosen(), n_ranks=self.n_ranks, **options)

    def piece_bytes(self) -> Int64Array:
        """Size of every piece of the template."""
        return self.template().piece_bytes(self.sizes)

    def explain(self, *, links: Links | None = None) -> Explanation:
        """Say what it will do; nothing runs.

        Parameters
        ----------
        links : Links, optional
            For the times: 5 us and 400 Gbit/s unless given.
        """
        return explain(self.template(), self.sizes, links=links, size_bytes=self.size_bytes)

    def algbw(self, seconds: float) -> float:
        """Algorithm bandwidth in bytes per second: size / time."""
        return self.size_bytes / seconds

    def busbw(self, seconds: float) -> float:
        """Bus bandwidth in bytes per second: algbw times the factor of nccl-tests."""
        return self.algbw(seconds) * busbw_factor(self.kind, n_ranks=self.n_ranks)
