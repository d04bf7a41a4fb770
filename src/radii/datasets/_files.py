"""Files that users bring themselves: numpy's .npz, CSV, folders of pictures, and VERONA's files.

An .npz file holds arrays `images` and `labels`, or a pair for each split, and never a pickle. A CSV
file has one image in each row, with its label in the column `label` or else in the first one. A
folder of pictures has a subfolder for each class.
"""

from __future__ import annotations

import csv
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import DAMAGE_ERRORS, error_text
from radii.datasets._classes import NumberedLabels, are_numbers, numbered
from radii.datasets._dataset import Files, Float32, Int64, decode_file
from radii.errors import DataError

# numpy's .npz.


MAX_ARRAY_BYTES = 4 << 30
"""The most that one array may take in memory."""

NUMPY_ERRORS = (*DAMAGE_ERRORS, KeyError, MemoryError, SyntaxError)
"""What zipfile and numpy raise on files that are damaged, encrypted or not theirs."""

WHOLE_NAMES = ("images", "labels")
SPLIT_NAMES = (("x_{}", "y_{}"), ("{}_images", "{}_labels"), ("images_{}", "labels_{}"))


def read_npz(
    path: Path, split: str | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], str | None]:
    """Images, labels and the split they are; without a name, the whole file or its test split."""
    sizes = _sizes(path)
    if split is None:
        pairs = [(None, WHOLE_NAMES), *((s, pair) for s in ("test", "train") for pair in _pairs(s))]
    else:
        pairs = [(split, pair) for pair in _pairs(split)]
    for stored_split, pair in pairs:
        if set(pair) <= sizes.keys():
            images, labels = (_read_array(path, name, sizes[name]) for name in pair)
            return images, labels, stored_split
    wanted = "'images' and 'labels'" if split is None else f"'x_{split}' and 'y_{split}'"
    raise DataError(
        f"{path}: needs arrays {wanted}, but holds {', '.join(sorted(sizes)[:8]) or 'none'}"
    )


def splits_of(path: Path) -> tuple[str, ...]:
    """The splits for which the file holds a pair of arrays."""
    names = _sizes(path).keys()
    return tuple(s for s in ("train", "test") if any(set(pair) <= names for pair in _pairs(s)))


def _pairs(split: str) -> list[tuple[str, str]]:
    return [(images.format(split), labels.format(split)) for images, labels in SPLIT_NAMES]


def _sizes(path: Path) -> dict[str, int]:
    """The arrays in the file, with the bytes their members unpack to."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except NUMPY_ERRORS as error:
        raise DataError(f"{path}: not a readable .npz file ({error_text(error)})") from None
    return {m.filename[:-4]: m.file_size for m in members if m.filename.endswith(".npy")}


def _read_array(path: Path, name: str, size: int) -> npt.NDArray[Any]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
            version = np.lib.format.read_magic(member)
            read_header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(member)
            if dtype.hasobject:
                raise DataError(
                    f"{path}: array '{name}' holds Python objects (a pickle), which radii does not "
                    "load; save it as numbers"
                )
            if max(math.prod(shape) * dtype.itemsize, size) > MAX_ARRAY_BYTES:
                raise DataError(
                    f"{path}: array '{name}' is larger than {MAX_ARRAY_BYTES >> 30} GiB"
                )
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[name])
    except NUMPY_ERRORS as error:
        raise DataError(f"{path}: array '{name}' cannot be read ({error_text(error)})") from None


# CSV.


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTable:
    """Values (N, features) and labels, numbers or words, and the names of the columns if they have
    any. `notes` are as in `Dataset`."""

    values: npt.NDArray[np.float32]
    labels: npt.NDArray[Any]
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def read_csv(path: Path, label: str | None = None) -> LabelledTable:
    """What a CSV file holds, as it stands. A first row with words is a header.

    Only an empty field is a missing one: a class may be called NA or None.
    """
    import pandas as pd

    first_row = _first_row(path)
    has_header = not all(_is_number(field) for field in first_row)
    if len(first_row) < 2:
        raise DataError(
            f"{path}: needs a label and at least one value in each row, separated by commas"
        )
    column = _label_column(path, first_row, label) if has_header or label else 0
    try:
        table = pd.read_csv(
            path,
            header=None,
            skiprows=1 if has_header else 0,
            encoding="utf-8-sig",
            low_memory=False,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],
        )
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{path}: cannot be read as CSV ({error_text(error)})") from None
    if table.shape[1] != len(first_row):
        raise DataError(f"{path}: the first row has {len(first_row)} fields, others more")
    labels, are_words = table.iloc[:, column], False
    if has_header and _is_named(first_row[column], label):
        are_words = _are_words(labels)
    for position in range(table.shape[1]):
        if position != column or not are_words:
            _check_numbers(table.iloc[:, position], position, path, has_header)
    names, notes = None, []
    if has_header:
        names = tuple(name.strip() for place, name in enumerate(first_row) if place != column)
        if not _is_named(first_row[column], label):
            notes = [
                f"{path}: has no column 'label', so that the first, '{first_row[column].strip()}', "
                "is taken for the label; --label names another"
            ]
    values = table.drop(columns=table.columns[column]).to_numpy(np.float32)
    return LabelledTable(values, labels.to_numpy(), names, tuple(notes))


def _is_named(column: str, label: str | None) -> bool:
    """The column was found by its name: words in it are labels, not a header that was missed."""
    return column.strip().lower() == (label or "label").strip().lower()


def _are_words(column: Any) -> bool:
    """Every label is a word, and none a number."""
    words = [value.strip() for value in column if isinstance(value, str)]
    return len(words) == len(column) and all(word and not _is_number(word) for word in words)


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


def _label_column(path: Path, header: list[str], label: str | None) -> int:
    names = [name.strip().lower() for name in header]
    if label is not None and label.strip().lower() not in names:
        raise DataError(f"{path}: has no column '{label}'; its columns are {', '.join(names[:20])}")
    wanted = (label or "label").strip().lower()
    if names.count(wanted) > 1:
        raise DataError(f"{path}: has {names.count(wanted)} columns '{wanted}'; rename all but one")
    return names.index(wanted) if wanted in names else 0


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


# A folder of pictures with a subfolder for each class.


PICTURE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pbm", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
)


def read_folder(root: Path) -> tuple[Files, NumberedLabels, tuple[str, ...]]:
    """The pictures, the label of each, and notes as in `Dataset`.

    Subfolders that are all whole numbers are the labels themselves (3 and 00003 are class 3);
    others are words. One without any file is a class without pictures.
    """
    try:
        folders = sorted(
            (each for each in root.iterdir() if each.is_dir() and not each.name.startswith(".")),
            key=lambda folder: folder.name,
        )
        pictures = {
            folder.name: sorted(
                p for p in folder.rglob("*") if p.suffix.lower() in PICTURE_SUFFIXES
            )
            for folder in folders
        }
        empty = {folder.name for folder in folders if next(folder.iterdir(), None) is None}
    except OSError as error:
        raise DataError(f"{root}: cannot be listed ({error.strerror})") from None
    pictures = {name: paths for name, paths in pictures.items() if paths or name in empty}
    if not any(pictures.values()):
        raise DataError(f"{root}: holds no data set that radii knows, and no subfolder of pictures")
    in_order = [path for paths in _in_order(pictures).values() for path in paths]
    files = Files.of(dict(enumerate(in_order)), decode_file, 255.0)
    names = [name for name, paths in _in_order(pictures).items() for _ in paths]
    if not are_numbers(list(pictures)):
        known = numbered(names, root.name, tuple(pictures))
        return files, replace(known, is_assumed=True), ()
    if len({int(name) for name in pictures}) < len(pictures):
        raise DataError(f"{root}: two subfolders stand for the same class number")
    return files, numbered(names, root.name), tuple(_order_notes(root, list(pictures)))


def _in_order(pictures: dict[str, list[Path]]) -> dict[str, list[Path]]:
    """Class numbers in their order, names in that of the alphabet."""
    if not are_numbers(list(pictures)):
        return pictures
    return dict(sorted(pictures.items(), key=lambda item: int(item[0])))


def _order_notes(root: Path, names: list[str]) -> Iterator[str]:
    """Where 10 stands before 2, tools that number folders by their names give others numbers."""
    if [int(name) for name in names] != sorted(map(int, names)):
        yield (
            f"{root}: its subfolders are taken for class numbers, so that '2' is class 2; "
            "torchvision's ImageFolder and Keras number them in the order of their names, where "
            f"'10' comes before '2': if the network was trained so, --classes {','.join(names)}"
        )


# The data of a VERONA experiment: one tensor in each file below `images`, and a table of labels.
#
# VERONA names an image by its file, as `mnist_train_26.pt`; here it is the image with that number,
# so that results of both tools are about the same input. Where names do not end in numbers, or two
# in the same, images are numbered in the order of their names.


IMAGES, LABELS = "images", "image_labels.csv"


def is_verona(root: Path) -> bool:
    """Judged by names alone."""
    try:
        return (root / LABELS).is_file() and next((root / IMAGES).glob("*.pt"), None) is not None
    except OSError:
        return False


def read_verona(root: Path) -> tuple[Files, Int64, Int64]:
    """The images, their labels, and their numbers."""
    paths = sorted((root / IMAGES).glob("*.pt"))
    matches = [re.search(r"(\d{1,15})$", path.stem) for path in paths]
    numbers = [int(match[1]) for match in matches if match is not None]
    if len(set(numbers)) < len(paths):
        numbers = list(range(len(paths)))
    by_name = _image_labels(root / LABELS)
    absent = [path.name for path in paths if path.name not in by_name]
    if absent:
        raise DataError(f"{root / LABELS}: has no label for '{absent[0]}'")
    files = dict(sorted(zip(numbers, paths, strict=True)))
    labels = np.array([by_name[path.name] for path in files.values()], np.int64)
    return Files.of(files, _loaded), labels, np.array(list(files), np.int64)


def _image_labels(path: Path) -> dict[str, int]:
    import pandas as pd

    try:
        frame = pd.read_csv(path)
        labels = frame["label"].dropna().astype(np.int64)
        if (labels != frame["label"].dropna()).any() or (labels < 0).any():
            raise ValueError("labels are whole numbers, at least 0")
        return dict(zip(frame["image"][labels.index].astype(str), labels.tolist(), strict=True))
    except KeyError as error:
        raise DataError(f"{path}: column {error} is missing; it needs image and label") from None
    except (OSError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: cannot be read as a table of labels ({error_text(error)})"
        ) from None


def _loaded(path: Path) -> Float32:
    """The tensor in a file of torch; bytes are divided by 255. Never a pickle of anything else."""
    import torch

    try:
        image: Any = torch.load(path, map_location="cpu", weights_only=True)
        is_image = isinstance(image, torch.Tensor) and image.dim() and image.numel()
        if not is_image or image.is_complex():
            raise DataError(f"{path}: does not hold a tensor of one image")
        values: Float32 = image.detach().to(torch.float32).numpy()
    except DataError:
        raise
    except Exception as error:  # torch fails on other files in more ways than it documents
        raise DataError(f"{path}: cannot be read as a tensor ({error_text(error)})") from None
    if not np.isfinite(values).all():
        raise DataError(f"{path}: holds values that are not finite numbers")
    if image.dtype == torch.uint8:
        values /= np.float32(255)
    return values
