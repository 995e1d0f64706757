"""`Rows`: a template written down step by step, each step as arrays.

    rows = Rows()
    first = rows.add(source, destination, piece=..., step=0)
    rows.add(destination, further, piece=..., step=1, after=[first])

`add` returns the numbers of its rows; `after` takes such numbers, -1 for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.workload.collectives.arrays import Int64Array, bases, distinct
from fabric.workload.collectives.template import NOTHING, Template

__all__ = ["Rows", "csr_of_pairs", "joins_pay"]

COLUMNS: dict[str, type[np.integer[Any]]] = {
    **dict.fromkeys(("source", "destination", "piece", "count", "step"), np.uint32),
    **dict.fromkeys(("channel", "reduce"), np.uint8),
}


class Rows:
    """Rows of a template that is being made."""

    def __init__(self) -> None:
        self._columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in COLUMNS}
        self._follows: list[Int64Array] = []
        self._transfer: list[Int64Array] = []
        self._before: list[Int64Array] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(
        self,
        source: npt.ArrayLike,
        destination: npt.ArrayLike,
        *,
        piece: npt.ArrayLike,
        step: npt.ArrayLike,
        count: npt.ArrayLike = 1,
        channel: npt.ArrayLike = 0,
        reduce: npt.ArrayLike = 0,
        after: Sequence[npt.ArrayLike] = (),
        follows: npt.ArrayLike = -1,
    ) -> Int64Array:
        """Append rows.

        Parameters
        ----------
        source, destination, piece, count, channel, reduce, step : array_like of int, shape [rows] or scalar
        after : sequence of array_like of int, each of shape [rows] or [rows, k]
            Numbers of rows that each row waits for; -1: none.
        follows : array_like of int, shape [rows] or scalar
            Number of the row of the same source that must be acknowledged first; -1: none.

        Returns
        -------
        ndarray of int64 [rows]
            Numbers of the new rows.
        """
        given = (source, destination, piece, count, step, channel, reduce)
        arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(each)) for each in given))
        rows = np.arange(self._size, self._size + len(arrays[0]), dtype=np.int64)
        self._size += len(rows)
        for (name, kind), values in zip(COLUMNS.items(), arrays, strict=True):
            self._columns[name].append(values.astype(kind))
        self._follows.append(np.array(np.broadcast_to(np.asarray(follows, dtype=np.int64), rows.shape)))
        for before in after:
            wide = (
                np.asarray(before, dtype=np.int64).reshape(len(rows), -1) if len(rows) else np.empty((0, 1))
            )
            own = np.broadcast_to(rows[:, np.newaxis], wide.shape)
            there = wide >= 0
            self._transfer.append(own[there])
            self._before.append(wide[there].astype(np.int64))
        return rows

    def join(
        self,
        rank: Int64Array,
        arrivals: Int64Array,
        *,
        readers: int,
        piece: npt.ArrayLike,
        step: int,
        count: npt.ArrayLike = 1,
    ) -> Int64Array:
        """What to wait for to have all of some arrivals: they themselves, or joins where these are fewer.

        Parameters
        ----------
        rank : ndarray of int64 [ranks]
        arrivals : ndarray of int64 [ranks, k]
            Numbers of rows.
        readers : int
            Transfers of each rank that will wait for them.
        piece, count, step
            Of the joins.

        Returns
        -------
        ndarray of int64 [ranks, k] or [ranks, 1]
        """
        if not joins_pay(np.array(arrivals.shape[1]), np.array(readers)):
            return arrivals
        return self.add(rank, rank, piece=piece, count=count, step=step, after=[arrivals])[:, np.newaxis]

    def build(self, name: str, collective: str, *, n_ranks: int, n_pieces: int, **others: Any) -> Template:
        """Return the template.

        Parameters
        ----------
        name, collective, n_ranks, n_pieces
            As of `Template`.
        **others
            Further fields of `Template`.

        Raises
        ------
        SpecError
            If the rows are no template.
        """
        columns: dict[str, Any] = {name: _joined(self._columns[name], kind) for name, kind in COLUMNS.items()}
        pairs = (_joined(each, np.int64) for each in (self._transfer, self._before))
        base, after = csr_of_pairs(*pairs, rows=self._size)
        return Template(
            name=name,
            collective=collective,
            n_ranks=n_ranks,
            n_pieces=n_pieces,
            **columns,
            after_base=base.astype(np.uint32),
            after=after.astype(np.uint32),
            follows=_follows(_joined(self._follows, np.int64)),
            **others,
        ).verify()


def joins_pay(arrivals: npt.NDArray[Any], readers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether a join saves half of the waits, where so many transfers wait for so many arrivals."""
    return np.asarray(arrivals * readers > 2 * (arrivals + readers))


def csr_of_pairs(transfer: Int64Array, before: Int64Array, *, rows: int) -> tuple[Int64Array, Int64Array]:
    """Return pairs (transfer, transfer before it) as base and list, each list ascending, no pair twice."""
    key = transfer * max(rows, 1) + before
    if not (key[1:] > key[:-1]).all():
        key = distinct(key)
        transfer, before = np.divmod(key, max(rows, 1))
    return bases(np.bincount(transfer, minlength=rows)), before


def _joined(parts: list[npt.NDArray[Any]], kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=kind), *parts])


def _follows(rows: Int64Array) -> npt.NDArray[np.uint32] | None:
    return np.where(rows < 0, NOTHING, rows).astype(np.uint32) if (rows >= 0).any() else None
