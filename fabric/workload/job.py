"""`Job`: a program on the hosts of a network.

The program says what ranks do, the job where they are and what their connections are like. Several jobs
share a network without knowing of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.workload.program import Program

if TYPE_CHECKING:
    from fabric.spec.transport import Transport

__all__ = ["Job", "Purpose"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Purpose:
    """What the operations of a program are for.

    Attributes
    ----------
    dimension : tuple of str [operations]
        "compute", a dimension of parallelism, or "storage".
    what : tuple of str [operations]
        The collective, or the pass of compute and messages.
    step : ndarray of int64 [operations]
        Training step.
    aside : ndarray of bool [operations]
        Whether it runs beside what a rank does next. Of a message to the next stage only the sender goes on.
    n_ranks : int or None
        Ranks whose steps these are, the first ones of the program; None: all.
    facts : mapping of str to float
        What the steps are measured against: "flops" of a step, "peak_flops" of a rank a second, if known.
    """

    dimension: tuple[str, ...]
    what: tuple[str, ...]
    step: npt.NDArray[np.int64]
    aside: npt.NDArray[np.bool_]
    n_ranks: int | None = None
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A program and its place.

    Attributes
    ----------
    program : Program
    hosts : array_like of int
        Host number of each rank (and of each reducer, from `n_ranks` on); several ranks may share a host.
    name : str
        What its connections are called in results.
    traffic_class : str or None
        Of their data frames; None: as the transport says.
    transport : Transport or None
        None: the scenario's.
    entry : int or None
        Number of the traffic entry that it comes from; None: from no scenario.
    purpose : Purpose or None
        What its operations are for, of a training job.
    slow : tuple of (int, int, int, float)
        Rank, begin and end in picoseconds, and the factor, at least 1, by which the rank computes longer
        meanwhile; stretches of a rank that overlap multiply.
    rank_classes : mapping of int to str
        Traffic class of the connections from and to some of its ranks, instead of `traffic_class`.

    Examples
    --------
    >>> from fabric.workload.program import ProgramBuilder
    >>> work = ProgramBuilder(n_ranks=2)
    >>> message = work.message(0, 1, size_bytes=100)
    >>> Job(program=work.build(), hosts=[3, 7]).host_of.tolist()
    [3, 7]
    """

    program: Program
    hosts: npt.ArrayLike
    name: str = "program"
    traffic_class: str | None = None
    transport: Transport | None = None
    entry: int | None = None
    purpose: Purpose | None = None
    slow: tuple[tuple[int, int, int, float], ...] = ()
    rank_classes: Mapping[int, str] = field(default_factory=dict)

    @property
    def host_of(self) -> npt.NDArray[np.int64]:
        """Host number of each rank."""
        return np.asarray(self.hosts, dtype=np.int64)

    @property
    def path(self) -> str:
        """Where it is described."""
        return f'program "{self.name}"' if self.entry is None else f"traffic[{self.entry}]"

    def check_hosts(self, n_hosts: int) -> None:
        """Refuse ranks that have no place, or none of the network's.

        Raises
        ------
        SpecError
        """
        hosts = self.host_of
        places = int(self.program.task_rank.max(initial=self.program.n_ranks - 1)) + 1
        if hosts.ndim != 1 or len(hosts) < places:
            raise SpecError(
                f"{self.path}.hosts", Said(f"{hosts.size} hosts"), f"one for each of {places} ranks"
            )
        wrong = np.flatnonzero((hosts < 0) | (hosts >= n_hosts))
        if wrong.size:
            rank = int(wrong[0])
            raise SpecError(
                f"{self.path}.hosts[{rank}]", int(hosts[rank]), f"a host number from 0 to {n_hosts - 1}"
            )
