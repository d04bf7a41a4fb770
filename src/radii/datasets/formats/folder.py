"""A folder of pictures with a subfolder a class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from radii.datasets.images import Files, Int64
from radii.errors import DataError

__all__ = ["read_folder"]

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pbm", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
)


def read_folder(root: Path) -> tuple[Files, Int64, tuple[str, ...] | None]:
    """The pictures, their labels and the names of the classes, in the order of the sorted names.

    Subfolders that are all whole numbers are the labels themselves (3 and 00003 are class 3);
    others are numbered from 0 in the order of their names.
    """
    try:
        pictures = {
            folder.name: sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
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
