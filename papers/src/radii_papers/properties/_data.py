"""The two data sets of the paper, as far as they are at hand, and the balls around their images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from radii.datasets import Dataset, convert, load, read
from radii.errors import DataError
from radii.problem import Domain

FASHION, GTSRB = "fashion", "gtsrb"
TITLES = {FASHION: "Fashion-MNIST", GTSRB: "GTSRB"}

FASHION_FILE = "fashion.npz"
GTSRB_FILES = ("gtsrb.npz", "gtsrb_small.npz")
"""In the folder of the data; what is not there is looked for among the sets in place."""

USUAL_FOLDERS = (Path("properties"), Path("../shared/data"))

SIGNS = (1, 2, 4, 5, 9, 10, 12, 13, 25, 38)
"""Ten classes with many images. The paper took ten and does not say which."""

SIDE = 48
"""Pixels: the paper's traffic signs are grey, of 48 x 48 pixels."""

WHOLE_REACH = 1.0
"""How far the domain of whole balls goes beyond valid images; no ball here is as large."""


class BallRegion(StrEnum):
    """Which points of a ball count: valid images alone, or all, as in the paper's definitions."""

    CLIPPED = "clipped"
    WHOLE = "whole"

    def domain(self, eps: float) -> Domain:
        """That of a network on balls of eps around images with pixels in [0, 1].

        A whole ball lies inside of its domain, so clipping takes nothing away.
        """
        if self is BallRegion.CLIPPED:
            return Domain(0.0, 1.0)
        if not eps < WHOLE_REACH:
            raise DataError(f"eps {eps:g} must be below {WHOLE_REACH:g}: balls would be cut off")
        return Domain(-WHOLE_REACH, 1.0 + WHOLE_REACH)


@dataclass(frozen=True, slots=True, eq=False)
class ImageSet:
    """Images to train on and images to measure on, with pixels in [0, 1]."""

    name: str
    train: Dataset
    test: Dataset

    @property
    def title(self) -> str:
        return TITLES[self.name]


@dataclass(frozen=True, slots=True, eq=False)
class StudyImages:
    """Both sets by name, and the files that they were read from."""

    sets: Mapping[str, ImageSet]
    files: tuple[Path, ...]


def read_images(folder: Path | None) -> StudyImages:
    """From the folder of `--data`; without it, from the usual ones and from sets in place."""
    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder}: no such folder; it holds {FASHION_FILE} or {GTSRB_FILES[-1]}")
    folders = USUAL_FOLDERS if folder is None else (folder,)
    fashion = _found(folders, (FASHION_FILE,))
    signs = _found(folders, GTSRB_FILES)
    sets = {
        FASHION: _image_set(FASHION, _parts(fashion, "fashion-mnist")),
        GTSRB: _image_set(GTSRB, tuple(_as_signs(part) for part in _parts(signs, "gtsrb"))),
    }
    return StudyImages(sets, tuple(path for path in (fashion, signs) if path is not None))


def _found(folders: tuple[Path, ...], names: tuple[str, ...]) -> Path | None:
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.exists()), None)


def _parts(path: Path | None, name: str) -> tuple[Dataset, ...]:
    """With pixels from 0 to 1 for good: the domain of whole balls says nothing of units."""
    if path is None:
        return tuple(load(name, split=split) for split in ("train", "test"))
    return tuple(convert(read(path, split=split)) for split in ("train", "test"))


def _as_signs(part: Dataset) -> Dataset:
    return convert(part, grey=True, side=SIDE, classes=SIGNS)


def _image_set(name: str, parts: tuple[Dataset, ...]) -> ImageSet:
    for part in parts:
        low, high = float(np.min(part.images)), float(np.max(part.images))
        if low < 0 or high > 1:
            raise DataError(f"{part.title}: has values from {low:g} to {high:g}, not from 0 to 1")
    return ImageSet(name, *parts)
