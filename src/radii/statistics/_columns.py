"""The columns of a `Distribution`: arrays with one fact about every instance.

Whatever is read, from a store or from a file, becomes these columns, which are checked and
completed here once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.problem import Arithmetic, Bracket, Measurement, ProofStatus
from radii.statistics.reading._draws import InputDraw

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

NO_NUMBER = -1
"""Stands for None in a column of whole numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds, and the default for instances about which the fact is not given.

    Where a fact may be None, the default stands for it: -1 for whole numbers, the empty text, NaN
    for others.
    """

    name: str
    dtype: Any
    default: Any
    is_optional: bool = False


NEVER_EMPTY = ("lower", "input", "label", "predicted", "correct")
"""Of a table, the columns whose cells must all have a value, where they are there."""
TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}

_MEASURED = (
    Column("network", np.str_, "network"),
    Column("fingerprint", np.str_, ""),
    Column("input", np.int64, 0),
    Column("label", np.int64, NO_NUMBER),
    Column("predicted", np.int64, NO_NUMBER),
    Column("correct", np.bool_, True),
    Column("property", np.str_, "one-to-any"),
    Column("target", np.int64, NO_NUMBER, is_optional=True),
    Column("witness_class", np.int64, NO_NUMBER, is_optional=True),
    Column("seconds", np.float64, math.nan),
    Column("queries", np.int64, 0),
    Column("missing", np.int64, 0),
    Column("cancelled", np.int64, 0),
    Column("timeouts", np.int64, 0),
    Column("memouts", np.int64, 0),
    Column("cpu_seconds", np.float64, math.nan, is_optional=True),
    Column("arithmetic", np.str_, "", is_optional=True),
    Column("proof", np.str_, "", is_optional=True),
    Column("checked_by", np.str_, "", is_optional=True),
    Column("certificate", np.str_, "", is_optional=True),
    Column("classes", np.int64, NO_NUMBER, is_optional=True),
)

COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        *_MEASURED,
        Column("lower", np.float64, 0.0),
        Column("upper", np.float64, math.inf),
        Column("split", np.str_, ""),
        Column("training", np.str_, ""),
        Column("group", np.str_, ""),
        Column("draw", np.str_, ""),
        Column("critical", np.int64, NO_NUMBER, is_optional=True),
        Column("searched", np.float64, math.nan, is_optional=True),
    )
}
"""By name: the facts of a `Measurement`, its bracket, and what only distributions speak of.

`split` is train or test, `training` how the network was trained, `group` the input's value of some
column of the data, such as a sensitive attribute, and `draw` how the inputs were drawn, an
`InputDraw`. `critical` counts the missing answers between `lower` and `upper`, and is none where
that is not known. `searched` is the eps up to which somebody tried to refute the instance: 0 where
no attempt was answered, NaN where that is not known, as of published files. `arithmetic` is text,
as in `float` or `real`, and empty without a proof and where a file does not give it, as is `proof`:
believed, unreadable, unchecked, checked or failed.
"""


def columns_of(measurements: Sequence[Measurement]) -> dict[str, Array]:
    """The columns that measurements have."""
    columns: dict[str, Array] = {
        "lower": np.array([m.bracket.lower for m in measurements], np.float64),
        "upper": np.array([m.bracket.upper for m in measurements], np.float64),
    }
    for column in _MEASURED:
        values: Iterable[Any] = (getattr(m, column.name) for m in measurements)
        if column.is_optional:
            values = (column.default if value is None else value for value in values)
        columns[column.name] = np.array(list(values), column.dtype)
    return columns


def measurements_of(columns: Mapping[str, Array]) -> Iterator[Measurement]:
    """The rows as measurements."""
    values: list[list[Any]] = []
    for column in _MEASURED:
        facts = columns[column.name].tolist()
        if column.is_optional:
            facts = [None if fact in (NO_NUMBER, "") or fact != fact else fact for fact in facts]
        values.append(facts)
    names = [column.name for column in _MEASURED]
    for name, read in (("arithmetic", Arithmetic.parse), ("proof", ProofStatus)):
        place = names.index(name)
        values[place] = [text and read(text) for text in values[place]]
    brackets = map(Bracket, columns["lower"].tolist(), columns["upper"].tolist())
    for bracket, *row in zip(brackets, *values, strict=True):
        yield Measurement(bracket=bracket, **dict(zip(names, row, strict=True)))


def complete_columns(given: Mapping[str, Any]) -> dict[str, Array]:
    """All columns, of the right types and one length; checked, and completed by defaults.

    A value that is not an array is the same for every instance. Misclassified inputs get radius 0:
    whatever was or was not measured about them, the answer is wrong as it stands.
    """
    unknown = given.keys() - COLUMNS.keys()
    if unknown:
        raise DataError(f"column '{min(unknown)}' is not one of {', '.join(COLUMNS)}")
    size = max((np.size(value) for value in given.values() if np.ndim(value) == 1), default=1)
    if size == 0:
        raise DataError("a distribution needs at least one bracket")
    columns = {name: _cast(column, given, size) for name, column in COLUMNS.items()}
    if "input" not in given:
        columns["input"] = np.arange(size)
    if "correct" not in given:
        columns["correct"] = columns["upper"] > 0
    if "predicted" not in given:
        columns["predicted"] = np.where(columns["correct"], columns["label"], NO_NUMBER)
    wrong = ~columns["correct"] & (columns["property"] == "one-to-any")
    columns["lower"] = np.where(wrong, 0.0, columns["lower"])
    columns["upper"] = np.where(wrong, 0.0, columns["upper"])
    for name in ("arithmetic", "proof", "checked_by", "certificate"):
        columns[name] = np.where(wrong, "", columns[name])
    _check_brackets(columns)
    for text in np.unique(columns["arithmetic"]):
        if text:
            Arithmetic.parse(str(text))
    for text in np.unique(columns["proof"]):
        if text and text not in list(ProofStatus):
            raise DataError(f"proof '{text}' is not one of {', '.join(ProofStatus)}")
    for text in np.unique(columns["draw"]):
        if text not in list(InputDraw):
            raise DataError(f"draw '{text}' is not one of {', '.join(filter(None, InputDraw))}")
    return columns


def _cast(column: Column, given: Mapping[str, Any], size: int) -> Array:
    values = given.get(column.name, column.default)
    if np.ndim(values) == 0:
        # Not np.full, which cuts text to its first character.
        return np.array([column.default if values is None else values] * size, column.dtype)
    if np.ndim(values) != 1 or np.size(values) != size:
        raise DataError(
            f"column '{column.name}' has shape {np.shape(values)} where others have {size} values"
        )
    if getattr(values, "dtype", None) in (None, np.object_):
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

    An empty cell is None: no witness in `upper`, no target, nothing known.
    """
    for name in ("lower", "upper"):
        if name not in frame.columns:
            raise DataError(f"a table of brackets needs the column '{name}'")
    columns: dict[str, Any] = {}
    for name in map(str, frame.columns):
        empty = frame[name].isna()
        if name in NEVER_EMPTY and empty.any():
            raise DataError(f"row {int(np.argmax(empty))}: the cell of '{name}' is empty")
        columns[name] = frame[name].astype(object).where(~empty, None).to_numpy()
    if "correct" in columns:
        columns["correct"] = _truths(columns["correct"])
    return columns


def _truths(values: Array) -> Array:
    """Booleans, also as the words and numbers that text files hold."""
    words = [str(value).strip().lower() for value in values]
    if any(word not in TRUTHS for word in words):
        raise DataError("column 'correct' holds a value of another kind")
    return np.array([TRUTHS[word] for word in words])
