"""`CommunicationMatrix`: who sends how many bytes to whom in a training step, dimension by dimension.

Draw it before you choose a topology: the diagonal band of tensor groups wants a server's network, the
comb of pipelines little, the far stripes of data groups all of the fabric's width.

Collectives go along a ring of the group's members in order, or directly to all of them in equal parts; an
all-to-all is always direct, what a rank sends to itself left out; messages of the pipeline go to the
neighbours (from the last stage to the first between chunks). Bytes are float64: a part of a vector need
not be whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.training.job import TrainingJob
from fabric.training.volumes import GROUPS, Volume, volumes

__all__ = ["CommunicationMatrix", "communication_matrix"]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LARGEST_SIDE = 8192
"""Of an array: 512 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CommunicationMatrix:
    """Bytes from rank to rank.

    Attributes
    ----------
    n_ranks : int
    pairs : mapping of str to (ndarray, ndarray, ndarray)
        By dimension: source and destination [pairs], and bytes in a step as float64 [pairs]. A pair may occur
        several times.
    """

    n_ranks: int
    pairs: Mapping[str, tuple[Int64Array, Int64Array, FloatArray]]

    def total_bytes(self, dimension: str) -> float:
        """All that is sent in a dimension."""
        return float(self.pairs[dimension][2].sum())

    def array(
        self, dimension: str | None = None, *, per: int = 1, place: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Return a matrix as an array.

        Parameters
        ----------
        dimension : str, optional
            The sum of all unless given.
        per : int
            Ranks (places) that share a row: a server's, to see what is between servers.
        place : array_like of int [ranks], optional
            Host of every rank, as of `place_ranks`; rows are then hosts.

        Returns
        -------
        ndarray of float64 [rows, rows]
            Senders down, receivers across.

        Raises
        ------
        SpecError
            If there is no such dimension, or the array would be very large.
        """
        if dimension is not None and dimension not in self.pairs:
            raise SpecError("dimension", dimension, f"one of {', '.join(self.pairs) or '(none: one rank)'}")
        where = np.arange(self.n_ranks) if place is None else np.asarray(place, dtype=np.int64)
        if where.shape != (self.n_ranks,):
            raise SpecError("place", str(where.shape), f"a host for each of {self.n_ranks} ranks")
        if per < 1:
            raise SpecError("per", per, "at least 1")
        row = where // per
        side = int(row.max()) + 1
        if side > LARGEST_SIDE:
            needed = -(-side * per // LARGEST_SIDE)
            raise SpecError("per", per, f"at least {needed}: a matrix has at most {LARGEST_SIDE} rows")
        chosen = self.pairs.values() if dimension is None else [self.pairs[dimension]]
        total = np.zeros(side * side)
        for source, destination, size in chosen:
            total += np.bincount(row[source] * side + row[destination], weights=size, minlength=side * side)
        return total.reshape(side, side)


def communication_matrix(
    job: TrainingJob, *, collectives: Literal["ring", "direct"] = "ring"
) -> CommunicationMatrix:
    """Return what every rank sends to every other in a step.

    Parameters
    ----------
    job : TrainingJob
    collectives : {"ring", "direct"}
        Which way the bytes of all-reduce, all-gather and reduce-scatter go.

    Returns
    -------
    CommunicationMatrix
        Dimensions in which nothing is sent left out. Routing to experts is uniform.

    Examples
    --------
    >>> from fabric.spec.training.parallelism import Parallelism
    >>> job = TrainingJob(model="gpt2-small", sequence=1024, global_batch=4,
    ...     parallelism=Parallelism(tp=2, pp=2))
    >>> matrix = communication_matrix(job)
    >>> list(matrix.pairs), matrix.array("pp").astype(int).tolist()[0]
    (['tp', 'pp', 'embedding'], [0, 0, 6291456, 0])
    """
    if collectives not in ("ring", "direct"):
        raise SpecError("collectives", collectives, '"ring" or "direct"')
    layout = job.parallelism
    rows = [volumes(job, stage=stage) for stage in range(layout.pp)]
    pairs = {}
    for dimension, (tokens, expert) in GROUPS.items():
        groups = layout.groups(tokens, expert=expert)
        parts = []
        for stage, of_stage in enumerate(rows):
            for row in (one for one in of_stage if one.dimension == dimension):
                if dimension in ("pp", "embedding"):
                    parts.append(_along_pipeline(row, groups, stage))
                else:
                    here = layout.coordinates(groups[:, 0], expert=expert)["pp"] == stage
                    parts.append(_inside_groups(row, groups[here], collectives))
        if parts:
            source, destination, size = (np.concatenate(each) for each in zip(*parts, strict=True))
            pairs[dimension] = (source, destination, size)
    return CommunicationMatrix(n_ranks=layout.world, pairs=pairs)


def _along_pipeline(row: Volume, groups: Int64Array, stage: int) -> tuple[Int64Array, Int64Array, FloatArray]:
    stages = groups.shape[1]
    if row.dimension == "embedding":
        other = stages - 1 if stage == 0 else 0
    else:
        other = (stage + (1 if row.what == "activations" else -1)) % stages
    size = np.full(len(groups), float(row.wire_bytes))
    return groups[:, stage], groups[:, other], size


def _inside_groups(
    row: Volume, groups: Int64Array, collectives: str
) -> tuple[Int64Array, Int64Array, FloatArray]:
    n = groups.shape[1]
    if collectives == "ring" and row.collective != "all_to_all":
        size = np.full(groups.size, float(row.wire_bytes))
        return groups.ravel(), np.roll(groups, -1, axis=1).ravel(), size
    distance = np.arange(1, n)
    member = (np.arange(n)[:, np.newaxis] + distance) % n
    source = np.repeat(groups, n - 1, axis=1).ravel()
    destination = groups[:, member].ravel()
    return source, destination, np.full(len(source), float(row.wire_bytes / (n - 1)))
