"""Grids of eps values from files: a list of numbers, or what VERONA keeps of an experiment."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

from radii.errors import DataError
from radii.problem import Grid

DECIMALS = 12
"""Of epsilons: numpy.arange makes 0.009000000000000001 of 0.009."""

EPSILON, RESULT = "epsilon_value", "result"
"""The columns of VERONA's tables of queries."""


def read_grid(place: Path) -> Grid:
    """The grid that a file or folder holds.

    A text file has numbers between commas, spaces or lines. Of VERONA it is a configuration.json, a
    table of queries (epsilons_df.csv, per_epsilon_results.csv), whose values are taken, or the
    folder of an experiment: its latest configuration, or where there is none its tables of queries.
    """
    values = _values_in_folder(place) if place.is_dir() else _values_in_file(place)
    if not values:
        raise DataError(f"{place}: holds no eps values")
    return Grid.of_values(sorted({round(value, DECIMALS) for value in values}))


def _values_in_folder(folder: Path) -> list[Fraction]:
    by_age = sorted(folder.glob("**/configuration.json"), key=lambda path: path.stat().st_mtime)
    if by_age:
        return _values_in_file(by_age[-1])
    names = ("per_epsilon_results.csv", "epsilons_df.csv")
    tables = [path for name in names for path in sorted(folder.glob(f"**/{name}"))]
    if not tables:
        raise DataError(
            f"{folder}: has no configuration.json and no table of queries, as VERONA's folders have"
        )
    return [value for table in tables for value in _values_in_file(table)]


def _values_in_file(path: Path) -> list[Fraction]:
    try:
        text = path.read_text("utf-8-sig")
        if path.suffix == ".json":
            return [Fraction(str(value)) for value in json.loads(text).get("epsilon_list", ())]
        first = text.partition("\n")[0]
        if EPSILON in first.lower():
            return _column(path, text)
        return [Fraction(word) for word in text.replace(",", " ").split()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise DataError(f"{path}: cannot be read as a grid ({reason})") from None
    except (ValueError, AttributeError, TypeError, ZeroDivisionError, csv.Error):
        raise DataError(
            f"{path}: is neither a list of numbers nor a configuration or table of VERONA"
        ) from None


def _column(path: Path, text: str) -> list[Fraction]:
    rows = list(csv.reader(text.splitlines(), skipinitialspace=True))
    names = [name.strip().lower() for name in rows[0]]
    if RESULT not in names:
        raise DataError(
            f"{path}: has one row for each input, which does not tell the grid; name the "
            "configuration.json or the per_epsilon_results.csv beside it"
        )
    place = names.index(EPSILON)
    return [Fraction(row[place].strip()) for row in rows[1:] if row and row[place].strip()]
