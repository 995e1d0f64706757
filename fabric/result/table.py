"""`Table`: named columns of equal length, the form in which a result hands out what happened.

A column is a read-only NumPy array whose name ends in its unit (`fct_ps`, `size_bytes`, `rate_bps`).
Names that repeat in every row (of a port, a flow, a class) are kept once: such a column is a
`Category`, integer codes into a list of labels, and reads as an array of strings. Times of things
that may not happen are named in `optional`: -1 there means "did not happen" and leaves as null in
pandas and Arrow. A table is not a data frame: it selects rows, sorts, prints, and converts.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from .text import align, by_unit

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Array", "Category", "Column", "Table"]

Array = npt.NDArray[Any]

SHOWN_ROWS = 10
"""Rows that a table prints."""


@dataclass(frozen=True)
class Category:
    """Names that repeat: row i reads `labels[codes[i]]`.

    Parameters
    ----------
    codes : numpy.ndarray
        Integers, one a row, each an index into `labels`.
    labels : numpy.ndarray
        Strings.
    """

    codes: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.codes)

    def decoded(self) -> Array:
        """Return the names as an array of strings, one a row."""
        return self.labels[self.codes]

    def take(self, rows: Any) -> Category:
        """Return the category of the chosen rows, with the same labels."""
        return Category(self.codes[rows], self.labels)

    def matches(self, pattern: str) -> Array:
        """Return for each row whether its name matches a glob pattern."""
        chosen = np.fromiter(
            (fnmatch.fnmatchcase(str(label), pattern) for label in self.labels), bool, len(self.labels)
        )
        return chosen[self.codes] if len(self.labels) else np.zeros(len(self), bool)


Column = Array | Category


def _frozen(column: npt.ArrayLike | Category) -> Column:
    if isinstance(column, Category):
        return Category(_readonly(column.codes), _readonly(column.labels))
    return _readonly(column)


def _readonly(values: npt.ArrayLike) -> Array:
    array = np.asarray(values).view()
    array.flags.writeable = False
    return array


class Table:
    """Named columns of equal length.

    Parameters
    ----------
    columns : mapping of str to array-like or Category
        One-dimensional, all of one length; the order is kept.
    name : str
        What the table holds, for printing.
    optional : iterable of str
        Integer columns in which -1 means that it did not happen.

    Examples
    --------
    >>> flows = Table({"flow": [0, 1], "fct_ps": [2_000_000, -1]}, name="flows", optional=["fct_ps"])
    >>> len(flows), flows["fct_ps"].max()
    (2, np.int64(2000000))
    >>> print(flows.where(flow=0))
    flows: 1 row
    flow  fct_ps
       0     2us
    """

    def __init__(
        self,
        columns: Mapping[str, npt.ArrayLike | Category],
        *,
        name: str = "table",
        optional: Iterable[str] = (),
    ) -> None:
        self._columns = {key: _frozen(column) for key, column in columns.items()}
        self.name = name
        self.optional = frozenset(optional)
        lengths = {key: len(column) for key, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of table {name!r} differ in length: {lengths}")
        self._length = next(iter(lengths.values()), 0)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield every row as a dictionary of Python values."""
        values = [self[name].tolist() for name in self._columns]
        for row in zip(*values, strict=True):
            yield dict(zip(self._columns, row, strict=True))

    @overload
    def __getitem__(self, key: str) -> Array: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice | Array | Sequence[int]) -> Table: ...
    def __getitem__(
        self, key: str | int | np.integer[Any] | slice | Array | Sequence[int]
    ) -> Array | dict[str, Any] | Table:
        """Return a column by its name, a row by its number, or the table of several rows.

        Parameters
        ----------
        key : str, int, slice, or array of bool or int
            A column's name gives its array; a row number (from the end if negative) that row as a
            dictionary of Python values; a slice, a mask or row numbers a table.

        Raises
        ------
        KeyError
            If there is no such column.
        IndexError
            If there is no such row.
        """
        if isinstance(key, str):
            column = self.raw(key)
            return column.decoded() if isinstance(column, Category) else column
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"table {self.name!r} has no row {key}; it has {len(self)} rows")
            return next(iter(self._rows(np.array([int(key) % len(self)]))))
        if not isinstance(key, (slice, np.ndarray, list)):
            allowed = "a column's name, a row's number, or a slice, mask or numbers of rows"
            raise TypeError(f"table {self.name!r} cannot be indexed by {key!r}; expected {allowed}")
        return self._rows(key if isinstance(key, slice) else np.asarray(key, None if len(key) else np.intp))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def raw(self, name: str) -> Column:
        """Return a column as it is kept: a `Category` stays one.

        Raises
        ------
        KeyError
            If there is no such column; the message lists those that there are.
        """
        try:
            return self._columns[name]
        except KeyError:
            known = ", ".join(self._columns)
            raise KeyError(f"table {self.name!r} has no column {name!r}; it has {known}") from None

    def category(self, name: str) -> Category:
        """Return a column of repeating names by codes and labels.

        Raises
        ------
        KeyError
            If there is no such column.
        TypeError
            If its names do not repeat.
        """
        column = self.raw(name)
        if not isinstance(column, Category):
            raise TypeError(f"column {name!r} of table {self.name!r} is not a category")
        return column

    def where(self, **conditions: object) -> Table:
        """Return the rows in which every named column has the given value.

        A string is a glob pattern: ``result.queue.where(port="leaf0->*")``.
        """
        mask = np.ones(len(self), bool)
        for name, wanted in conditions.items():
            column = self.raw(name)
            if isinstance(column, Category):
                mask &= column.matches(str(wanted))
            elif column.dtype.kind == "U":
                hits = (fnmatch.fnmatchcase(value, str(wanted)) for value in column.tolist())
                mask &= np.fromiter(hits, bool, len(self))
            else:
                mask &= np.asarray(column == wanted)
        return self._rows(mask)

    def sort(self, by: str, *, descending: bool = False) -> Table:
        """Return the rows ordered by one column; equal rows keep their order, NaN comes last."""
        values = self[by]
        if not descending:
            return self._rows(np.argsort(values, kind="stable"))
        if values.dtype.kind == "f":
            return self._rows(np.argsort(-values, kind="stable"))
        backwards = np.argsort(values[::-1], kind="stable")[::-1]
        return self._rows(len(self) - 1 - backwards)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas data frame (needs the extra ``pandas``)."""
        from fabric.io.dataframe import to_pandas

        return to_pandas(self)

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table (needs the extra ``arrow``)."""
        from fabric.io.arrow import to_arrow

        return to_arrow(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table to any reader of the Arrow PyCapsule interface (Polars, DuckDB, ...)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def text(self, *, rows: int | None = None) -> str:
        """Return the table as lines of aligned columns, all of its rows or the first and last `rows`."""
        if not self._columns:
            return ""
        numeric = [k for k, name in enumerate(self.columns) if self._is_number(name)]
        return "\n".join(align(self._cells(len(self) if rows is None else rows), right=numeric))

    def __repr__(self) -> str:
        head = f"{self.name}: {len(self)} row{'' if len(self) == 1 else 's'}"
        return "\n".join([head, self.text(rows=SHOWN_ROWS)]) if self._columns else head

    def _repr_html_(self) -> str:
        from .html import table_html

        return table_html(self)

    def _is_number(self, name: str) -> bool:
        column = self._columns[name]
        return not isinstance(column, Category) and column.dtype.kind != "U"

    def _cells(self, limit: int = SHOWN_ROWS) -> list[list[str]]:
        """Return the header and the first and last rows as text, with an ellipsis between them."""
        shown = np.arange(len(self))
        if len(self) > limit:
            shown = np.concatenate([shown[: limit // 2], shown[-(limit // 2) :]])
        part = self._rows(shown)
        body = [[by_unit(key, value) for key, value in row.items()] for row in part]
        if len(self) > limit:
            body.insert(limit // 2, ["..."] * len(self._columns))
        return [list(self.columns), *body]

    def _rows(self, rows: slice | Array) -> Table:
        chosen = {
            name: column.take(rows) if isinstance(column, Category) else column[rows]
            for name, column in self._columns.items()
        }
        return Table(chosen, name=self.name, optional=self.optional)
