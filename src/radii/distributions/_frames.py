"""Distributions as pandas tables, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions._columns import COLUMNS, Array, Column
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def frame_of_columns(columns: Mapping[str, Array]) -> pd.DataFrame:
    """One row an instance. Optional whole numbers become pandas' `Int64`, with its NA for none."""
    import pandas as pd

    frame = pd.DataFrame({name: columns[name] for name in COLUMNS})
    for name, column in COLUMNS.items():
        if column.is_optional and column.dtype is np.int64:
            frame[name] = pd.array(columns[name], dtype="Int64").astype("Int64")
            frame.loc[columns[name] < 0, name] = pd.NA
    return frame


def columns_of_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """The columns of a table as arrays; columns with other names are refused.

    An empty cell is none: no witness in `upper`, no target, nothing known.
    """
    for name in ("lower", "upper"):
        if name not in frame.columns:
            raise DataError(f"a table of brackets needs the column '{name}'")
    unknown = [str(name) for name in frame.columns if name not in COLUMNS]
    if unknown:
        raise DataError(f"column '{unknown[0]}' is not one of {', '.join(COLUMNS)}")
    return {str(name): _column_values(COLUMNS[str(name)], frame[name]) for name in frame.columns}


def _column_values(column: Column, series: pd.Series[Any]) -> Array:
    empty = series.isna()
    if column.name in ("lower", "input", "label", "predicted", "correct") and empty.any():
        raise DataError(f"row {int(np.argmax(empty))}: the cell of '{column.name}' is empty")
    try:
        if column.dtype is np.bool_:
            return _truths(series)
        values: Array = series.astype(object).where(~empty, column.default).to_numpy(column.dtype)
    except (TypeError, ValueError):
        raise DataError(f"column '{column.name}' holds a value of another kind") from None
    return values


def _truths(series: pd.Series[Any]) -> Array:
    """Booleans, also as the words and numbers that text files hold."""
    words = series.astype(str).str.strip().str.lower()
    truths = words.map(
        {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
    )
    if truths.isna().any():
        raise ValueError(words[truths.isna()].iloc[0])
    values: Array = truths.to_numpy(np.bool_)
    return values
