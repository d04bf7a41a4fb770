"""CSV: one image a row, its label in the column `label` or else in the first one."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import error_text
from radii.datasets._images import Files, Int64
from radii.errors import DataError


def read_csv(path: Path) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    """Features (N, features) as they stand, and labels. A first row with words is a header."""
    import pandas as pd

    first_row = _first_row(path)
    has_header = not all(_is_number(field) for field in first_row)
    if len(first_row) < 2:
        raise DataError(f"{path}: needs a label and at least one value a row, separated by commas")
    column = _label_column(first_row) if has_header else 0
    try:
        table = pd.read_csv(
            path,
            header=None,
            skiprows=1 if has_header else 0,
            encoding="utf-8-sig",
            low_memory=False,
            skipinitialspace=True,
        )
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{path}: cannot be read as CSV ({error_text(error)})") from None
    if table.shape[1] != len(first_row):
        raise DataError(f"{path}: the first row has {len(first_row)} fields, others more")
    for position in range(table.shape[1]):
        _check_numbers(table.iloc[:, position], position, path, has_header)
    labels = table.iloc[:, column].to_numpy()
    return table.drop(columns=table.columns[column]).to_numpy(np.float32), labels


def _first_row(path: Path) -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            row = next(csv.reader(stream), [])
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV ({error_text(error)})") from None
    if not row:
        raise DataError(f"{path}: the file is empty")
    return row


def _label_column(header: list[str]) -> int:
    names = [name.strip().lower() for name in header]
    return names.index("label") if "label" in names else 0


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _check_numbers(column: Any, position: int, path: Path, has_header: bool) -> None:
    """A DataError that names the first row whose value is missing or not a number."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    bad = np.flatnonzero(~np.isfinite(numbers.to_numpy(np.float64, na_value=np.nan)))
    if bad.size:
        row = int(bad[0]) + 1 + has_header
        value = column.iloc[int(bad[0])]
        shown = "is missing" if pd.isna(value) else f"'{value}' is not a finite number"
        raise DataError(f"{path}: row {row}, column {position + 1}: the value {shown}")


# A folder of pictures with a subfolder a class.


PICTURE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pbm", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
)


def read_folder(root: Path) -> tuple[Files, Int64, tuple[str, ...] | None]:
    """The pictures, their labels and the names of the classes, in the order of the sorted names.

    Subfolders that are all whole numbers are the labels themselves (3 and 00003 are class 3);
    others are numbered from 0 in the order of their names.
    """
    try:
        pictures = {
            folder.name: sorted(
                p for p in folder.rglob("*") if p.suffix.lower() in PICTURE_SUFFIXES
            )
            for folder in sorted(root.iterdir())
            if folder.is_dir() and not folder.name.startswith(".")
        }
    except OSError as error:
        raise DataError(f"{root}: cannot be listed ({error.strerror})") from None
    pictures = {name: paths for name, paths in pictures.items() if paths}
    if not pictures:
        raise DataError(
            f"{root}: holds no data set that radii knows, and no subfolder a class with pictures"
        )
    numbered = all(name.isascii() and name.isdigit() for name in pictures)
    if numbered:
        pictures = dict(sorted(pictures.items(), key=lambda item: int(item[0])))
    labels = {name: int(name) if numbered else i for i, name in enumerate(pictures)}
    if len(set(labels.values())) < len(labels):
        raise DataError(f"{root}: two subfolders stand for the same class number")
    files = Files.of(tuple(path for paths in pictures.values() for path in paths))
    counted = np.repeat(list(labels.values()), [len(paths) for paths in pictures.values()])
    return files, counted.astype(np.int64), None if numbered else tuple(pictures)
