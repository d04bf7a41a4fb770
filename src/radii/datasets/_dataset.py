"""A data set, or a selection from one: images, labels and where each stands in its split.

Images may lie in arrays, archives or files; they become float32 only when they are asked for.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import error_text
from radii.errors import DataError

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

MAX_PIXELS = 1 << 26
"""The largest picture that is decoded, in pixels; far above what any classifier takes."""

DECODED_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "TIFF", "WEBP")
"""Formats decoded in the process itself; others of pillow's call foreign programs."""


class Images(ABC):
    """A sequence of images of one shape, read by position."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of one image: (channels, height, width), or (features,)."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, positions: Int64) -> Float32:
        """The images at these positions, in the data's own units."""


@dataclass(frozen=True, slots=True, eq=False)
class Stack(Images):
    """Images in one array (N, *shape), in memory or mapped from a file, divided by `divisor`."""

    array: npt.NDArray[Any]
    divisor: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def read(self, positions: Int64) -> Float32:
        images: Float32 = self.array[positions].astype(np.float32)
        images /= np.float32(self.divisor)
        return images


@dataclass(frozen=True, slots=True, eq=False)
class Files(Images):
    """One picture in each file, decoded when asked for; all must have the shape of the first."""

    paths: tuple[Path, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, paths: tuple[Path, ...]) -> Files:
        return cls(paths, decode(paths[0], str(paths[0])).shape)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, positions: Int64) -> Float32:
        pixels = np.empty((len(positions), *self.shape), np.uint8)
        for row, position in enumerate(positions):
            path = self.paths[position]
            picture = decode(path, str(path))
            if picture.shape != self.shape:
                raise DataError(
                    f"{path}: is {extent(picture.shape)} but {self.paths[0].name} is "
                    f"{extent(self.shape)}; bring all images to one size and number of channels"
                )
            pixels[row] = picture
        return np.divide(pixels, np.float32(255), dtype=np.float32)


def decode(
    source: Path | IO[bytes], name: str, *, size: tuple[int, int] | None = None
) -> npt.NDArray[np.uint8]:
    """One picture as (channels, height, width): 1 channel if it is grey, else 3; no transparency.

    `size` is (width, height) to resize to, bilinearly. `name` is what an error calls the picture.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(source, formats=DECODED_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise DataError(f"{name}: {image.width}x{image.height} pixels are too many")
                if image.mode.startswith(("I", "F")):
                    raise DataError(f"{name}: has more than 8 bits a channel; convert it to 8 bits")
                picture = image.convert("L" if image.mode in ("1", "L", "LA", "La") else "RGB")
        if size is not None and picture.size != size:
            picture = picture.resize(size, Image.Resampling.BILINEAR)
        pixels = np.array(picture, dtype=np.uint8)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except Exception as error:  # decoders fail on hostile bytes in more ways than they document
        raise DataError(f"{name}: cannot be decoded as a picture ({error_text(error)})") from None
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(np.moveaxis(pixels, 2, 0))


def channels_first(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(N, H, W) as (N, 1, H, W), and (N, H, W, C) as (N, C, H, W); anything else as it is.

    The last axis holds channels if it has length 1 or 3 and the second axis has not.
    """
    if array.ndim == 3:
        return array[:, None]
    if array.ndim == 4 and array.shape[3] in (1, 3) and array.shape[1] not in (1, 3):
        return np.moveaxis(array, 3, 1)
    return array


def extent(shape: tuple[int, ...]) -> str:
    """A shape as messages show it: 1x28x28."""
    return "x".join(map(str, shape)) or "a single number"


MAX_LABEL = 1 << 31
"""No classifier has so many outputs; keeps the conversion of floats to integers exact."""


class Dataset:
    """Labelled images of one shape. Selections share the images and copy nothing until asked.

    `images` is float32 (N, *shape) in the data's own units, channels first; `labels` is int64;
    `indices` are the positions in the full split; `classes` names the labels and `features` the
    values of an input, if they have names.
    Every selection raises a DataError when it would be empty or asks for more than there is.
    """

    __slots__ = ("_images", "_source", "classes", "features", "indices", "labels", "name", "split")

    def __init__(
        self,
        source: Images,
        labels: Int64,
        *,
        name: str,
        split: str | None = None,
        classes: tuple[str, ...] | None = None,
        indices: Int64 | None = None,
        features: tuple[str, ...] | None = None,
    ) -> None:
        self.features = features
        self.name = name
        self.split = split
        self.classes = classes
        self.labels = labels
        self.indices = np.arange(len(source)) if indices is None else indices
        self._source = source
        self._images: Float32 | None = None
        if len(self.labels) != len(self.indices):
            raise DataError(f"{name}: {len(self.indices)} images but {len(self.labels)} labels")
        if not len(self.labels):
            raise DataError(f"{self.title}: holds no images")

    @property
    def title(self) -> str:
        """`mnist:train`, as specs spell it."""
        return f"{self.name}:{self.split}" if self.split else self.name

    @property
    def images(self) -> Float32:
        """All selected images; read and converted the first time they are asked for."""
        if self._images is None:
            try:
                self._images = self._source.read(self.indices)
            except MemoryError:
                size = len(self) * math.prod(self.shape) * 4 / 2**30
                raise DataError(
                    f"{self.title}: {len(self)} images of {extent(self.shape)} need {size:.1f} GiB "
                    "of memory; select fewer"
                ) from None
        return self._images

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one image; known without reading any."""
        return self._source.shape

    def deviations(self) -> npt.NDArray[np.float64]:
        """The standard deviation of each value over all that the selection is made from."""
        everything = self._source.read(np.arange(len(self._source)))
        return np.asarray(everything.std(axis=0, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Dataset {self.title}: {len(self)} images of {extent(self.shape)}>"

    def take(self, which: int | slice | Sequence[int] | npt.NDArray[Any]) -> Dataset:
        """The images at a position, a range, several positions, or where a mask is true.

        Unlike Python's slices, a bound beyond the end is an error and not silently cut off.
        """
        if isinstance(which, slice):
            positions = np.arange(len(self))[self._checked(which)]
        else:
            positions = self._positions(np.atleast_1d(np.asarray(which)))
            beyond = positions[(positions < -len(self)) | (positions >= len(self))]
            if beyond.size:
                raise self._too_few(f"no image {beyond[0]}")
            positions = positions % len(self)
        return self._at(positions)

    def first(self, count: int) -> Dataset:
        """The first `count` images."""
        return self._at(np.arange(self._available(count)))

    def random(self, count: int, seed: int = 0) -> Dataset:
        """`count` images drawn without replacement, in the order of the data set.

        With the same seed a larger draw holds every smaller one.
        """
        return self._at(np.sort(self._shuffled(seed)[: self._available(count)]))

    def shuffled(self, seed: int = 0) -> Dataset:
        """All images in a random order, whose first n are those of `random(n)`."""
        return self._at(self._shuffled(seed))

    def stratified(self, count: int, seed: int = 0) -> Dataset:
        """`count` images drawn so that classes keep their proportions, rounded to whole images."""
        self._available(count)
        labels, sizes = np.unique(self.labels, return_counts=True)
        shares = sizes * count / len(self)
        quotas = np.floor(shares).astype(np.int64)
        largest_remainders = np.argsort(quotas - shares, kind="stable")
        quotas[largest_remainders[: count - int(quotas.sum())]] += 1
        return self._quotas(dict(zip(labels.tolist(), quotas.tolist(), strict=True)), seed)

    def per_class(self, count: int, seed: int | None = None) -> Dataset:
        """`count` images of each class that occurs: its first ones, or drawn if a seed is given."""
        self._available(count)
        labels, sizes = np.unique(self.labels, return_counts=True)
        short = sizes < count
        if short.any():
            raise self._too_few(
                f"{count} images of each class are asked for, but class {labels[short][0]} "
                f"has {sizes[short][0]}"
            )
        return self._quotas(dict.fromkeys(labels.tolist(), count), seed)

    def of_classes(self, *labels: int) -> Dataset:
        """The images with one of these labels."""
        absent = [label for label in labels if label not in self.labels]
        if absent:
            raise self._too_few(f"no image of class {absent[0]}")
        return self._at(np.flatnonzero(np.isin(self.labels, labels)))

    def _quotas(self, quotas: dict[int, int], seed: int | None) -> Dataset:
        order = np.arange(len(self)) if seed is None else self._shuffled(seed)
        labels = self.labels[order]
        chosen = [order[labels == label][:quota] for label, quota in quotas.items()]
        return self._at(np.sort(np.concatenate(chosen)))

    def _shuffled(self, seed: int) -> Int64:
        """A random order that is the same with every version of numpy.

        numpy keeps the raw output of a bit generator stable for ever, not what is derived from it.
        """
        if seed < 0:
            raise DataError(f"{self.title}: seed {seed} must not be negative")
        return np.argsort(np.random.PCG64(seed).random_raw(len(self)), kind="stable")

    def _positions(self, which: npt.NDArray[Any]) -> Int64:
        if which.dtype == np.bool_:
            if which.shape != (len(self),):
                raise DataError(f"{self.title}: a mask of {which.size} for {len(self)} images")
            return np.flatnonzero(which)
        if which.size and which.dtype.kind not in "iu":
            raise DataError(f"{self.title}: positions of type {which.dtype} are not integers")
        return which.astype(np.int64)

    def _available(self, count: int) -> int:
        if count < 1:
            raise DataError(f"{self.title}: a selection of {count} images is empty")
        if count > len(self):
            raise self._too_few(f"{count} images are asked for")
        return count

    def _checked(self, which: slice) -> slice:
        if which.step == 0:
            raise DataError(f"{self.title}: the step of a range must not be 0")
        for bound in (which.start, which.stop):
            if bound is not None and not -len(self) <= bound <= len(self):
                raise self._too_few(f"range bound {bound} is beyond the end")
        return which

    def _too_few(self, request: str) -> DataError:
        return DataError(f"{self.title}: {request}; it holds {len(self)}")

    def _at(self, positions: Int64) -> Dataset:
        if not positions.size:
            raise DataError(f"{self.title}: the selection is empty")
        selected = Dataset(
            self._source,
            self.labels[positions],
            name=self.name,
            split=self.split,
            classes=self.classes,
            indices=self.indices[positions],
            features=self.features,
        )
        if self._images is not None:
            selected._images = self._images[positions]
        return selected


def from_arrays(
    images: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    name: str = "arrays",
    split: str | None = None,
    classes: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
) -> Dataset:
    """A data set of arrays: `images` (N, ...) and one integer label for each image.

    uint8 images are divided by 255; others are taken as they are. (N, H, W) gets a channel axis and
    (N, H, W, C) is turned to channels first; (N, features) stays flat.
    """
    array = np.asarray(images)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: images of type {array.dtype} are not numbers")
    if array.ndim < 2:
        raise DataError(f"{name}: images of shape {array.shape} need one row for each image")
    if 0 in array.shape:
        raise DataError(f"{name}: images of shape {array.shape} are empty")
    if array.dtype.kind == "f":
        _check_finite(array, name)
    stack = Stack(channels_first(array), 255.0 if array.dtype == np.uint8 else 1.0)
    return Dataset(
        stack,
        whole_labels(labels, name),
        name=name,
        split=split,
        classes=None if classes is None else tuple(classes),
        features=None if features is None else tuple(features),
    )


def whole_labels(labels: npt.ArrayLike, name: str) -> Int64:
    """The labels as int64, one for each image; a DataError if they are not whole numbers >= 0."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name}: labels of shape {array.shape} are not one number for each image")
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: labels of type {array.dtype} are not integers")
    if array.dtype.kind == "f":
        whole = (array == np.floor(array)) & (array < MAX_LABEL)
        if not whole.all():
            where = int(np.flatnonzero(~whole)[0])
            raise DataError(f"{name}: label {array[where]} of image {where} is not an integer")
    if (array < 0).any():
        where = int(np.flatnonzero(array < 0)[0])
        raise DataError(f"{name}: label {array[where]} of image {where} is negative")
    return array.astype(np.int64)


def _check_finite(array: npt.NDArray[np.floating], name: str) -> None:
    with np.errstate(over="ignore"):
        finite = np.isfinite(array.astype(np.float32)).reshape(len(array), -1).all(axis=1)
    if not finite.all():
        where = int(np.flatnonzero(~finite)[0])
        raise DataError(f"{name}: image {where} holds values that are not finite numbers")
