"""Data sets made from others: greyed, resized, or of some classes only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets._dataset import Dataset, Float32, Stack, extent
from radii.errors import DataError, writing

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""How bright red, green and blue are (ITU-R BT.601, as in picture programs)."""

LARGEST_SIDE = 4096


def convert(
    data: Dataset,
    *,
    grey: bool = False,
    side: int | None = None,
    classes: Sequence[int] | None = None,
) -> Dataset:
    """The images of `classes` in shades of grey, resized bilinearly to `side` x `side` pixels.

    The chosen classes are numbered anew, in the order given. Values keep their units.
    """
    if (grey or side is not None) and len(data.shape) != 3:
        raise DataError(f"{data.title}: holds rows of {extent(data.shape)} values, not images")
    if side is not None and not 1 <= side <= LARGEST_SIDE:
        raise DataError(f"{data.title}: size {side} is not between 1 and {LARGEST_SIDE} pixels")
    names = data.classes
    if classes is not None:
        if len(set(classes)) != len(classes) or not classes:
            raise DataError(f"{data.title}: classes {list(classes)} must be some, each named once")
        data = data.of_classes(*classes)
        names = tuple(names[c] for c in classes) if names else None
    order = {label: place for place, label in enumerate(classes or ())}
    labels = np.array([order.get(label, label) for label in data.labels.tolist()], np.int64)
    images = data.images
    if grey and data.shape[0] != 1:
        if data.shape[0] != 3:
            raise DataError(f"{data.title}: has {data.shape[0]} channels, not red, green and blue")
        images = np.tensordot(images, LUMA, axes=(1, 0))[:, None].astype(np.float32)
    if side is not None and images.shape[2:] != (side, side):
        images = _resized(images, side)
    return Dataset(
        Stack(images),
        labels,
        name=data.name,
        split=data.split,
        classes=names,
        assumes_order=data.assumes_order and classes is None,
    )


def _resized(images: Float32, side: int) -> Float32:
    from PIL import Image

    resized = np.empty((*images.shape[:2], side, side), np.float32)
    for picture, target in zip(images, resized, strict=True):
        for channel, goal in zip(picture, target, strict=True):
            shaped = Image.fromarray(np.ascontiguousarray(channel))
            goal[:] = np.asarray(shaped.resize((side, side), Image.Resampling.BILINEAR))
    return resized


def save(path: Path, parts: Sequence[Dataset]) -> None:
    """As .npz, as .csv, or without an ending as a folder of pictures; `read` reads all of them."""
    match path.suffix.lower():
        case ".npz":
            save_npz(path, parts)
        case ".csv":
            save_csv(path, parts)
        case "":
            save_pictures(path, parts)
        case other:
            raise DataError(f"--out {path} must end in .npz or .csv, or be a folder, not {other}")


def _labels(part: Dataset) -> npt.NDArray[Any]:
    """Words stay words where nothing but the alphabet has numbered them."""
    if part.assumes_order and part.classes is not None:
        return np.array(part.classes)[part.labels]
    return part.labels


def save_csv(path: Path, parts: Sequence[Dataset]) -> None:
    """One row for each image: its label, and then its values, flat, as float32 reads them back."""
    import pandas as pd

    if len(parts) > 1:
        raise DataError(f"{path}: a .csv file has no splits; choose train or test")
    flat = parts[0].images.reshape(len(parts[0]), -1)
    frame = pd.DataFrame(flat, columns=[f"x{place}" for place in range(flat.shape[1])])
    frame.insert(0, "label", _labels(parts[0]))
    with writing(path, DataError):
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(path, index=False)


def save_pictures(folder: Path, parts: Sequence[Dataset]) -> None:
    """PNG files in a new folder: LABEL/NUMBER.png, below the split's name if there are several."""
    from PIL import Image

    for part in parts:
        images = part.images
        if images.ndim != 4 or images.shape[1] not in (1, 3):
            raise DataError(f"{part.title}: {extent(part.shape)} is not a picture")
        if images.min() < 0 or images.max() > 1:
            raise DataError(f"{part.title}: has values outside 0 to 1, which pictures cannot hold")
    with writing(folder, DataError):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DataError(f"{folder}: is not empty; name a new folder")
        for part in parts:
            root = folder / str(part.split) if len(parts) > 1 else folder
            pixels = np.moveaxis(_in_bits(part.images), 1, -1)
            for pixel, label, number in zip(pixels, _labels(part), part.indices, strict=True):
                place = root / str(label)
                place.mkdir(parents=True, exist_ok=True)
                picture = pixel[..., 0] if pixel.shape[-1] == 1 else pixel
                Image.fromarray(picture).save(place / f"{number:07}.png")


def save_npz(path: Path, parts: Sequence[Dataset]) -> None:
    """One file that `radii.datasets.read` reads, with every part under the name of its split.

    Values between 0 and 1 are rounded to 8 bits; others stay float32.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    for part in parts:
        names = (f"x_{part.split}", f"y_{part.split}") if part.split else ("images", "labels")
        arrays.update(zip(names, (_in_bits(part.images), _labels(part)), strict=True))
    with writing(path, DataError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _in_bits(images: Float32) -> npt.NDArray[Any]:
    if images.min() >= 0 and images.max() <= 1:
        return np.rint(images * 255).astype(np.uint8)
    return images
