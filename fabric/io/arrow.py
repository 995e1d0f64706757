"""Tables as Arrow tables, for Parquet, Polars, DuckDB and whoever else reads Arrow.

Names that repeat become dictionary arrays, what did not happen becomes null. The unit of a column is
the end of its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabric.result.table import Category, Table

from .optional import require

if TYPE_CHECKING:
    import pyarrow

__all__ = ["to_arrow"]


def to_arrow(table: Table) -> pyarrow.Table:
    """Return `table` as an Arrow table with the same column names.

    Raises
    ------
    MissingDependencyError
        If pyarrow is not installed.
    """
    pa = require("pyarrow", extra="arrow", purpose="Table.to_arrow()")
    arrays = []
    for name in table.columns:
        column = table.raw(name)
        if isinstance(column, Category):
            codes = pa.array(column.codes.astype(np.int32))
            labels = pa.array(column.labels.tolist(), pa.string())
            arrays.append(pa.DictionaryArray.from_arrays(codes, labels))
        elif name in table.optional:
            arrays.append(pa.array(column, mask=column < 0))
        elif column.dtype.kind == "U":
            arrays.append(pa.array(column.tolist(), pa.string()))
        else:
            arrays.append(pa.array(column))
    return pa.table(arrays, names=list(table.columns))
