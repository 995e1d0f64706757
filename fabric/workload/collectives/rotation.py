"""`Rotation`: a template in which every rank does what rank 0 does, with ranks and pieces so many further on.

A ring of n ranks is 2 (n-1) transfers of rank 0 and a rule, not a table of 2 n (n-1) rows: of 1,024 ranks
64 KB instead of 63 MB. A template that is given so (`Template.rotated`) writes its rows down only if somebody
asks for them; `fabric.lowering` does not.

Row `j n + r` of the table is transfer j of rank r. What transfer j waits for is transfer `after[j]` of the
rank that sends that to r, `distance[after[j]]` before it in the ring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array, bases

__all__ = ["Rotation"]


@dataclass(frozen=True, eq=False)
class Rotation:
    """What rank 0 of n ranks and pieces sends, in order; on channel 0, one piece each.

    Attributes
    ----------
    n_ranks : int
        And pieces.
    distance : ndarray of int64 [transfers]
        From the source to the destination, 1 to n_ranks - 1.
    piece : ndarray of int64 [transfers]
    reduce : ndarray of uint8 [transfers]
        As of `Template`.
    step : ndarray of int64 [transfers]
        As of `Template`; ascending.
    after : ndarray of int64 [transfers]
        Which earlier transfer must have arrived at the source; -1: none.

    Raises
    ------
    SpecError
        If a number is out of its range.
    """

    n_ranks: int
    distance: Int64Array
    piece: Int64Array
    reduce: npt.NDArray[np.uint8]
    step: Int64Array
    after: Int64Array

    def __post_init__(self) -> None:
        last = self.n_ranks - 1
        number = np.arange(len(self))
        for name, values, low, high, allowed in (
            ("distance", self.distance, 1, last, f"1 to {last}"),
            ("piece", self.piece, 0, last, f"0 to {last}"),
            ("after", self.after, -1, number - 1, "an earlier transfer, or -1"),
        ):
            wrong = np.flatnonzero((values < low) | (values > high))
            if len(wrong):
                raise SpecError(f"rotation: {name}[{wrong[0]}]", int(values[wrong[0]]), allowed)

    def __len__(self) -> int:
        return len(self.distance)

    @property
    def depth(self) -> int:
        """Transfers of the longest chain in which each waits for the one before."""
        longest = [0] * (len(self) + 1)
        for number, before in enumerate(self.after.tolist()):
            longest[number] = longest[before] + 1
        return max(longest)

    def columns(self) -> dict[str, npt.NDArray[np.uint32] | npt.NDArray[np.uint8]]:
        """The rows of all ranks, as columns of `Template`.

        Examples
        --------
        >>> ones = np.ones(1, dtype=np.int64)
        >>> one_on = Rotation(3, ones, 0 * ones, np.zeros(1, dtype=np.uint8), 0 * ones, -ones)
        >>> [one_on.columns()[name].tolist() for name in ("source", "destination", "piece")]
        [[0, 1, 2], [1, 2, 0], [0, 1, 2]]
        """
        n_ranks, rank = np.uint32(self.n_ranks), np.arange(self.n_ranks, dtype=np.uint32)
        waits = np.flatnonzero(self.after >= 0)
        before = self.after[waits]
        back = self._column(self.n_ranks - self.distance[before])
        return {
            "source": np.tile(rank, len(self)),
            "destination": ((rank + self._column(self.distance)) % n_ranks).ravel(),
            "piece": ((rank + self._column(self.piece)) % n_ranks).ravel(),
            "count": np.ones(len(self) * self.n_ranks, dtype=np.uint32),
            "channel": np.zeros(len(self) * self.n_ranks, dtype=np.uint8),
            "reduce": np.repeat(self.reduce, self.n_ranks),
            "step": np.repeat(self.step.astype(np.uint32), self.n_ranks),
            "after_base": bases(np.repeat(self.after >= 0, self.n_ranks)).astype(np.uint32),
            "after": (self._column(before * self.n_ranks) + (rank + back) % n_ranks).ravel(),
        }

    @staticmethod
    def _column(values: Int64Array) -> npt.NDArray[np.uint32]:
        return values.astype(np.uint32)[:, np.newaxis]
