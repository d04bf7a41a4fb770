"""The columns of a distribution: one array for each fact about an instance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.verdicts import Arithmetic, Bracket, Measurement

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

NO_NUMBER = -1
"""Stands for None in a column of whole numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds, and what an instance has of which nothing is told.

    Where a fact may be None, the default stands for it: -1 for whole numbers, the empty text, NaN
    for others.
    """

    name: str
    dtype: Any
    default: Any
    is_optional: bool = False


DEFAULTS: dict[str, Any] = {
    "network": "network",
    "fingerprint": "",
    "label": NO_NUMBER,
    "predicted": NO_NUMBER,
    "correct": True,
    "property": "one-to-any",
    "seconds": math.nan,
}
"""For facts that a `Measurement` must have but that tables of others often lack."""

DTYPES = {
    "str": np.str_,
    "int": np.int64,
    "int | None": np.int64,
    "bool": np.bool_,
    "Arithmetic | None": np.str_,
}
NONE_OF_DTYPE = {np.float64: math.nan, np.int64: NO_NUMBER, np.str_: ""}
"""What stands for None."""


def _column(field: dataclasses.Field[Any]) -> Column:
    kind, is_optional = str(field.type), str(field.type).endswith("| None")
    dtype = DTYPES.get(kind, np.float64)
    default = DEFAULTS.get(field.name, 0)
    if field.default is not dataclasses.MISSING:
        default = field.default
    if default is None or is_optional:
        default = NONE_OF_DTYPE[dtype]
    return Column(field.name, dtype, default, is_optional)


_MEASURED = tuple(_column(f) for f in dataclasses.fields(Measurement) if f.name != "bracket")

COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        *_MEASURED,
        Column("lower", np.float64, 0.0),
        Column("upper", np.float64, math.inf),
        Column("split", np.str_, ""),
        Column("training", np.str_, ""),
        Column("critical", np.int64, NO_NUMBER, is_optional=True),
        Column("searched", np.float64, math.nan, is_optional=True),
        Column("classes", np.int64, NO_NUMBER, is_optional=True),
    )
}
"""By name: the facts of a `Measurement`, its bracket, and what only distributions speak of.

`split` is train or test, `training` how the network was trained. `critical` counts the missing
answers between `lower` and `upper`, and is none where that is not known. `searched` is the eps up
to which counterexamples were searched for (see `radii.distributions._searched`). `classes` is how
many the network tells apart, where every one of them was a target of every input. `arithmetic` is
text, as in `float` or `real`, and empty without a proof and where nobody told it.
"""


def columns_of(measurements: Sequence[Measurement]) -> dict[str, Array]:
    """The columns that measurements tell."""
    told: dict[str, Array] = {
        "lower": np.array([m.bracket.lower for m in measurements], np.float64),
        "upper": np.array([m.bracket.upper for m in measurements], np.float64),
    }
    for column in _MEASURED:
        values: Iterable[Any] = (getattr(m, column.name) for m in measurements)
        if column.is_optional:
            values = (column.default if value is None else value for value in values)
        told[column.name] = np.array(list(values), column.dtype)
    return told


def measurements_of(columns: Mapping[str, Array]) -> Iterator[Measurement]:
    """The rows as measurements."""
    values: list[list[Any]] = []
    for column in _MEASURED:
        told = columns[column.name].tolist()
        if column.is_optional:
            told = [None if value in (NO_NUMBER, "") or value != value else value for value in told]
        values.append(told)
    names = [column.name for column in _MEASURED]
    spoken = names.index("arithmetic")
    values[spoken] = [text and Arithmetic.parse(text) for text in values[spoken]]
    brackets = map(Bracket, columns["lower"].tolist(), columns["upper"].tolist())
    for bracket, *row in zip(brackets, *values, strict=True):
        yield Measurement(bracket=bracket, **dict(zip(names, row, strict=True)))


def complete_columns(told: Mapping[str, Any]) -> dict[str, Array]:
    """All columns, of the right types and one length; checked, and completed by defaults.

    A value that is not an array is the same for every instance. Misclassified inputs get radius 0:
    whatever was or was not measured about them, the answer is wrong as it stands.
    """
    unknown = told.keys() - COLUMNS.keys()
    if unknown:
        raise DataError(f"column '{min(unknown)}' is not one of {', '.join(COLUMNS)}")
    size = max((np.size(value) for value in told.values() if np.ndim(value) == 1), default=1)
    if size == 0:
        raise DataError("a distribution needs at least one bracket")
    columns = {name: _cast(column, told, size) for name, column in COLUMNS.items()}
    if "input" not in told:
        columns["input"] = np.arange(size)
    if "correct" not in told:
        columns["correct"] = columns["upper"] > 0
    if "predicted" not in told:
        columns["predicted"] = np.where(columns["correct"], columns["label"], NO_NUMBER)
    wrong = ~columns["correct"] & (columns["property"] == "one-to-any")
    columns["lower"] = np.where(wrong, 0.0, columns["lower"])
    columns["upper"] = np.where(wrong, 0.0, columns["upper"])
    columns["arithmetic"] = np.where(wrong, "", columns["arithmetic"])
    _check_brackets(columns)
    for text in np.unique(columns["arithmetic"]):
        if text:
            Arithmetic.parse(str(text))
    return columns


def _cast(column: Column, told: Mapping[str, Any], size: int) -> Array:
    values = told.get(column.name, column.default)
    if np.ndim(values) == 0:
        # Not np.full, which cuts text to its first character.
        return np.array([column.default if values is None else values] * size, column.dtype)
    if np.ndim(values) != 1 or np.size(values) != size:
        raise DataError(
            f"column '{column.name}' has shape {np.shape(values)} where others have {size} values"
        )
    if column.is_optional:
        values = [column.default if value is None else value for value in values]
    try:
        return np.array(values, column.dtype)
    except (TypeError, ValueError):
        raise DataError(f"column '{column.name}' holds a value of another kind") from None


def _check_brackets(columns: Mapping[str, Array]) -> None:
    lower, upper = columns["lower"], columns["upper"]
    bad = ~((lower >= 0) & (lower <= upper) & np.isfinite(lower))
    if bad.any():
        place = int(np.argmax(bad))
        raise DataError(
            f"{columns['network'][place]}, input {columns['input'][place]}: a bracket needs "
            f"0 <= lower <= upper, not [{lower[place]:g}, {upper[place]:g})"
        )


def joint_codes(columns: Iterable[Array]) -> Array:
    """Rows that agree in all columns have the same code, from 0 on without holes."""
    joint: Array = np.zeros(1, np.int64)
    for values in columns:
        distinct, code = np.unique(values, return_inverse=True)
        joint = joint * len(distinct) + code
    _, codes = np.unique(joint, return_inverse=True)
    return codes
