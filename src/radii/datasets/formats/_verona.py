"""The data of a VERONA experiment: a tensor a file below `images`, and a table of their labels.

VERONA names an image by its file, as `mnist_train_26.pt`; here it is the image with that number, so
that results of both tools are about the same input. Where names do not end in numbers, or two in
the same, images are numbered in the order of their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radii.datasets._archives import error_text
from radii.datasets._images import Float32, Images, Int64, extent
from radii.errors import DataError

IMAGES, LABELS = "images", "image_labels.csv"


@dataclass(frozen=True, slots=True, eq=False)
class Tensors(Images):
    """One tensor a file, by number; all must have the shape of the first."""

    files: dict[int, Path]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, files: dict[int, Path]) -> Tensors:
        return cls(files, _loaded(next(iter(files.values()))).shape)

    def __len__(self) -> int:
        return len(self.files)

    def read(self, positions: Int64) -> Float32:
        images = np.empty((len(positions), *self.shape), np.float32)
        for row, number in enumerate(positions.tolist()):
            path = self.files[number]
            image = _loaded(path)
            if image.shape != self.shape:
                raise DataError(
                    f"{path}: is {extent(image.shape)} but others are {extent(self.shape)}"
                )
            images[row] = image
        return images


def is_verona(root: Path) -> bool:
    """Judged by names alone."""
    try:
        return (root / LABELS).is_file() and next((root / IMAGES).glob("*.pt"), None) is not None
    except OSError:
        return False


def read_verona(root: Path) -> tuple[Tensors, Int64, Int64]:
    """The images, their labels, and their numbers."""
    paths = sorted((root / IMAGES).glob("*.pt"))
    found = [re.search(r"(\d{1,15})$", path.stem) for path in paths]
    numbers = [int(match[1]) for match in found if match is not None]
    if len(set(numbers)) < len(paths):
        numbers = list(range(len(paths)))
    by_name = _image_labels(root / LABELS)
    absent = [path.name for path in paths if path.name not in by_name]
    if absent:
        raise DataError(f"{root / LABELS}: has no label for '{absent[0]}'")
    files = dict(sorted(zip(numbers, paths, strict=True)))
    labels = np.array([by_name[path.name] for path in files.values()], np.int64)
    return Tensors.of(files), labels, np.array(list(files), np.int64)


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
