"""Groups of inputs by a column of their data: a feature, or an attribute that no network sees."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from radii.errors import DataError
from radii.statistics.reading._feature_changes import category_of, features_of
from radii.statistics.reading._run import Run
from radii.store import Store

MOST_VALUES = 12
"""A column of numbers with more different ones is cut at its quartiles."""

INPUT_COLUMN = "input"
"""Of a table: the number of the input in its data set. Without it, rows are in that order."""


def grouped(run: Run, column: str, table: Path | None = None) -> Run:
    """The same with the column `group`: each input's value, as in `sex=female`.

    The column is one of `table`, a CSV file with a row for each input of the data set, or else a
    feature of the run by its name, or a category.
    """
    values = _of_features(run, column) if table is None else _of_table(run, column, table)
    return run.labelled(group=[f"{column}={value}" for value in _spelled(values)])


def _of_features(run: Run, column: str) -> list[str]:
    """What every row's input has for a feature."""
    features = features_of(run.settings)
    if features is None or not run.records:
        raise DataError(
            f"{run.place}: '{column}' is not a group of these results, whose features have no "
            "names; name a CSV file that has it with --groups"
        )
    with Store.open(run.place) as store:  # a run leaves the arrays where they are
        arrays = {record.measurement.input: np.ravel(record.input) for record in store.records()}
    inputs = [arrays[number] for number in run.columns["input"].tolist()]
    if column in features.groups:
        places = list(features.groups[column])
        names = [features.names[place] for place in places]
        return [category_of(names[int(row[places].argmax())], column) for row in inputs]
    if column not in features.names:
        known = ", ".join(dict.fromkeys([*features.groups, *features.names]))
        raise DataError(f"{run.place}: '{column}' is not one of the features {known}")
    place = features.names.index(column)
    return [str(row[place].item()) for row in inputs]


def _of_table(run: Run, column: str, table: Path) -> list[str]:
    """What the table says of every row's input."""
    try:
        with table.open(newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.DictReader(stream, skipinitialspace=True))
    except FileNotFoundError:
        raise DataError(f"{table}: there is no such file of groups") from None
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(f"{table}: cannot be read as a table in CSV") from None
    if not rows or column not in rows[0]:
        known = ", ".join(map(str, rows[0])) if rows else "none"
        raise DataError(f"{table}: '{column}' is not one of its columns, {known}")
    try:
        numbers = [int(row.get(INPUT_COLUMN, place)) for place, row in enumerate(rows)]
    except (TypeError, ValueError):
        raise DataError(f"{table}: '{INPUT_COLUMN}' must be the number of an input") from None
    if len(set(numbers)) < len(numbers):
        raise DataError(f"{table}: an input is named twice")
    known_values = {n: (row[column] or "").strip() for n, row in zip(numbers, rows, strict=True)}
    inputs = run.columns["input"].tolist()
    absent = [number for number in inputs if not known_values.get(number)]
    if absent:
        raise DataError(f"{table}: has no '{column}' for input {absent[0]}")
    return [known_values[number] for number in inputs]


def _spelled(values: Sequence[str]) -> list[str]:
    """Words as they are; numbers in short, or where there are many, the quarter they are in."""
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return list(values)
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) <= MOST_VALUES:
        return [f"{number:.6g}" for number in numbers]
    edges = np.unique(np.quantile(numbers, (0.25, 0.5, 0.75), method="inverted_cdf"))
    names = [f"to {edges[0]:.6g}"]
    names += [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)]
    names.append(f"above {edges[-1]:.6g}")
    return [names[int(place)] for place in np.searchsorted(edges, numbers, side="left")]
