"""numpy's .npz: arrays `images` and `labels`, or a pair for each split; never a pickle."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import error_text
from radii.errors import DataError

MAX_ARRAY_BYTES = 4 << 30
"""The most that one array may take in memory."""

DAMAGE_ERRORS = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)
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
    for found, pair in pairs:
        if set(pair) <= sizes.keys():
            images, labels = (_read_array(path, name, sizes[name]) for name in pair)
            return images, labels, found
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
    except DAMAGE_ERRORS as error:
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
    except DAMAGE_ERRORS as error:
        raise DataError(f"{path}: array '{name}' cannot be read ({error_text(error)})") from None
