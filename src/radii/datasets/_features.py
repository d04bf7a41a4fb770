"""A table of features as CSV: what each column of the data is, and how far it moves.

    feature,kind,low,high,scale,group
    income,number,0,500000,12000,
    age,fixed,,,,
    children,integer,0,10,1,
    purpose_car,one-hot,,,2,purpose

`kind` is number, integer, fixed or one-hot; without the column all are numbers. An empty scale is
1, of a category 0: it stays. Empty bounds are the domain's, of a category 0 and 1.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from radii.errors import DataError, SpecificationError
from radii.problem import Features

COLUMNS = ("feature", "kind", "low", "high", "scale", "group")
MOST_COUNTED = 100
"""Whole numbers over a wider range are amounts that were rounded, not counts."""

KINDS = ("number", "integer", "fixed", "one-hot")


def read_features(path: str | Path) -> Features:
    """The table in a file; a DataError of one sentence for what cannot be read."""
    rows = _rows(Path(path))
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if row["kind"] == "one-hot":
            groups.setdefault(row["group"], []).append(place)
    numbers = {
        side: [_number(path, row, side) for row in rows] for side in ("low", "high", "scale")
    }
    try:
        return Features(
            tuple(row["feature"] for row in rows),
            np.array(numbers["scale"]),
            np.array([row["kind"] == "integer" for row in rows]),
            {name: tuple(places) for name, places in groups.items()},
            np.array(numbers["low"]),
            np.array(numbers["high"]),
        )
    except SpecificationError as error:
        raise DataError(f"{path}: {error}") from None


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, skipinitialspace=True)
            header = [name.strip().lower() for name in reader.fieldnames or ()]
            reader.fieldnames = header
            rows = [{k: (v or "").strip() for k, v in row.items() if k} for row in reader]
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file of features") from None
    except (OSError, UnicodeDecodeError, csv.Error, AttributeError, TypeError):
        raise DataError(f"{path}: cannot be read as a table of features in CSV") from None
    unknown = [name for name in header if name not in COLUMNS]
    if "feature" not in header or unknown:
        what = f"column '{unknown[0]}' is not one of" if unknown else "needs a column 'feature' of"
        raise DataError(f"{path}: {what} {', '.join(COLUMNS)}")
    if not rows:
        raise DataError(f"{path}: names no feature")
    checked = [_checked(path, row) for row in rows]
    names = [row["feature"] for row in checked]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise DataError(f"{path}: feature '{min(repeated)}' is named twice")
    return checked


def _checked(path: Path, row: Mapping[str, str]) -> dict[str, str]:
    full = {name: row.get(name, "") for name in COLUMNS}
    full["kind"] = full["kind"].lower() or "number"
    if full["kind"] not in KINDS:
        raise DataError(
            f"{path}: feature '{full['feature']}': kind '{full['kind']}' is not one of "
            f"{', '.join(KINDS)}"
        )
    if full["kind"] == "one-hot" and not full["group"]:
        raise DataError(f"{path}: feature '{full['feature']}' is one-hot and names no group")
    return full


def _number(path: str | Path, row: Mapping[str, str], side: str) -> float:
    """The number in a cell; where it is empty, what it means for the kind."""
    text, kind = row[side], row["kind"]
    if side == "scale" and kind == "fixed":
        return 0.0
    if not text:
        otherwise = {"low": np.nan, "high": np.nan, "scale": 1.0}
        of_category = {"low": 0.0, "high": 1.0, "scale": 0.0}
        return (of_category if kind == "one-hot" else otherwise)[side]
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise DataError(f"{path}: feature '{row['feature']}': {side} '{text}' is not a number")
    return value


def features_text(features: Features) -> str:
    """The table that `read_features` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    group_of = {place: name for name, places in features.groups.items() for place in places}
    for place, name in enumerate(features.names):
        kind = "integer" if features.is_whole[place] else "number"
        if place in group_of:
            kind = "one-hot"
        elif features.scale[place] == 0:
            kind = "fixed"
        sides = (features.low[place], features.high[place], features.scale[place])
        cells = ["" if np.isnan(value) else f"{value:.9g}" for value in sides]
        writer.writerow([name, kind, *cells, group_of.get(place, "")])
    return text.getvalue()


def guessed_features(names: tuple[str, ...], values: np.ndarray) -> Features:
    """What columns look like: 0 and 1 that add up to 1 under a common beginning are a category,
    small whole numbers are integers; numbers move by their deviation, categories stay."""
    whole = np.all(values == np.round(values), axis=0) & (np.ptp(values, axis=0) <= MOST_COUNTED)
    groups = _guessed_groups(names, values)
    places = [place for members in groups.values() for place in members]
    is_category = np.isin(np.arange(len(names)), places)
    deviation = np.array([float(f"{value:.3g}") for value in values.std(axis=0, dtype=np.float64)])
    return Features(
        names,
        np.where(is_category, 0.0, deviation),
        whole & ~is_category,
        groups,
        np.where(is_category, 0.0, values.min(axis=0)).astype(np.float64),
        np.where(is_category, 1.0, values.max(axis=0)).astype(np.float64),
    )


def _guessed_groups(names: tuple[str, ...], values: np.ndarray) -> dict[str, tuple[int, ...]]:
    binary = np.all((values == 0) | (values == 1), axis=0)
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        for mark in ("=", "_", ":"):
            if binary[place] and mark in name:
                found.setdefault(name.rsplit(mark, 1)[0], []).append(place)
                break
    return {
        name: tuple(places)
        for name, places in found.items()
        if len(places) > 1 and np.all(values[:, places].sum(axis=1) == 1)
    }
