"""Tables as pandas data frames.

Names that repeat become a categorical; what did not happen becomes `<NA>` in a nullable integer
column, so that no mean or maximum counts a -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabric.result.table import Category, Table

from .optional import require

if TYPE_CHECKING:
    import pandas

__all__ = ["to_pandas"]


def to_pandas(table: Table) -> pandas.DataFrame:
    """Return `table` as a data frame with the same column names.

    Raises
    ------
    MissingDependencyError
        If pandas is not installed.
    """
    pd = require("pandas", extra="pandas", purpose="Table.to_pandas()")
    series = {}
    for name in table.columns:
        column = table.raw(name)
        if isinstance(column, Category):
            names, codes = np.unique(column.labels, return_inverse=True)
            series[name] = pd.Categorical.from_codes(codes[column.codes], categories=names)
        elif name in table.optional:
            series[name] = pd.array(column, dtype="Int64")
            series[name][column < 0] = pd.NA
        else:
            series[name] = column.copy()
    return pd.DataFrame(series)
