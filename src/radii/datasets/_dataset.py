"""A data set, or a selection from one: images, labels and where each stands in its split.

Images may lie in arrays, archives or files; they become float32 only when they are asked for.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import error_text
from radii.datasets._classes import displaced, name_list, numbered
from radii.errors import DataError
from radii.problem import Domain

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

    @property
    def as_bytes(self) -> Images | None:
        """The same from 0 to 255, of bytes that `read` divides by 255; None where the units are
        known."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Stack(Images):
    """Images in one array (N, *shape), in memory or mapped from a file, divided by `divisor`.

    `has_own_units`: nothing but the domain tells whether bytes are meant from 0 to 1 or to 255.
    """

    array: npt.NDArray[Any]
    divisor: float = 1.0
    has_own_units: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def read(self, positions: Int64) -> Float32:
        images: Float32 = self.array[positions].astype(np.float32)
        images /= np.float32(self.divisor)
        return images

    @property
    def as_bytes(self) -> Images | None:
        return Stack(self.array) if self.has_own_units and self.divisor != 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class Files(Images):
    """One image in each file, by number, read when asked for and divided by `divisor`.

    All must have the shape of the first.
    """

    paths: Mapping[int, Path]
    read_image: Callable[[Path], npt.NDArray[Any]]
    shape: tuple[int, ...]
    divisor: float = 1.0

    @classmethod
    def of(
        cls,
        paths: Mapping[int, Path],
        read_image: Callable[[Path], npt.NDArray[Any]],
        divisor: float = 1.0,
    ) -> Files:
        """The files; the first is read to know the shape of all."""
        return cls(paths, read_image, read_image(next(iter(paths.values()))).shape, divisor)

    @property
    def as_bytes(self) -> Images | None:
        return replace(self, divisor=1.0) if self.divisor != 1 else None

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, positions: Int64) -> Float32:
        images = np.empty((len(positions), *self.shape), np.float32)
        for row, number in enumerate(positions.tolist()):
            path = self.paths[number]
            image = self.read_image(path)
            if image.shape != self.shape:
                first = next(iter(self.paths.values()))
                raise DataError(
                    f"{path}: is {extent(image.shape)} but {first.name} is "
                    f"{extent(self.shape)}; bring all images to one size and number of channels"
                )
            images[row] = image
        images /= np.float32(self.divisor)
        return images


def decode_file(path: Path) -> npt.NDArray[np.uint8]:
    """The picture in a file."""
    return decode(path, str(path))


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


DRAW_SALT = int.from_bytes(b"radii")
"""Goes into every draw beside its seed. Without it, the order of a draw is the order of the numbers
that `np.random.default_rng(seed)` gives, so that data made from the same seed come out sorted."""


class Dataset:
    """Labelled images of one shape. Selections share the images and copy nothing until asked.

    `images` is float32 (N, *shape) in the data's own units, channels first; `labels` is int64;
    `indices` are the positions in the full split; `classes` names the labels and `features` the
    values of an input, if they have names. `assumes_order`: labels are words, and the order of
    `classes` is only that of the alphabet. `span` is the least and the largest label of the full
    split. `notes` are sentences about what was read in a way that may not be meant.
    Every selection raises a DataError when it would be empty or asks for more than there is.
    """

    __slots__ = (
        "_images",
        "_is_salted",
        "_source",
        "assumes_order",
        "classes",
        "features",
        "indices",
        "labels",
        "name",
        "notes",
        "span",
        "split",
    )

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
        assumes_order: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.features = features
        self.assumes_order = assumes_order
        self.notes = notes
        self.name = name
        self.split = split
        self.classes = classes
        self.labels = labels
        self.indices = np.arange(len(source)) if indices is None else indices
        self._source = source
        self._images: Float32 | None = None
        self._is_salted = True
        if len(self.labels) != len(self.indices):
            raise DataError(f"{name}: {len(self.indices)} images but {len(self.labels)} labels")
        if not len(self.labels):
            raise DataError(f"{self.title}: holds no images")
        self.span = _span(labels)

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

    def digests(self) -> dict[int, str]:
        """A digest of the values of each image, by index: equal for equal images in any type."""
        pairs = zip(self.indices.tolist(), self.images, strict=True)
        return {
            index: hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()
            for index, image in pairs
        }

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Dataset {self.title}: {len(self)} images of {extent(self.shape)}>"

    def with_classes(self, names: Sequence[str]) -> Dataset:
        """The same, where `names` are the classes of labels 0, 1, ..., in the order of the outputs.

        Labels with names get the numbers of these names, and so do numbers where all names are
        numbers; other numbers are only named. The data's own names may be spelled in another way,
        but not stand in another order. A DataError names a label that is not among the names.
        """
        labels, own = self.labels, self.classes
        if own is None:
            labels = numbered(labels, self.title, names).labels
        elif self.assumes_order or set(own) <= set(names):
            words = np.array([own[label] for label in labels.tolist()])
            labels = numbered(words, self.title, names).labels
        elif (name := displaced(own, names)) is not None:
            raise DataError(
                f"{self.title}: calls its classes {name_list(own)}, so that '{name}' has another "
                f"place than among {name_list(names)}"
            )
        renamed = self._copy(self._source, labels, self.indices)
        renamed.classes, renamed.assumes_order = tuple(names), False
        if not np.array_equal(labels, self.labels):
            renamed.span = _span(labels)
        renamed._images = self._images
        return renamed

    def in_units_of(self, domain: Domain) -> Dataset:
        """The same, with the bytes of files and arrays of one's own as the domain means them: from
        0 to 1 where it lies within these, and as they stand everywhere else."""
        as_bytes = self._source.as_bytes
        if as_bytes is None or _is_unit(domain):
            return self
        return self._copy(as_bytes, self.labels, self.indices)

    @property
    def holds_bytes(self) -> bool:
        """`in_units_of` decides about the units of its values."""
        return self._source.as_bytes is not None

    def unsalted(self) -> Dataset:
        """The same, drawn from as radii did before draws were salted."""
        other = self._copy(self._source, self.labels, self.indices)
        other._images, other._is_salted = self._images, False
        return other

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
        entropy = [DRAW_SALT, seed] if self._is_salted else seed
        return np.argsort(np.random.PCG64(entropy).random_raw(len(self)), kind="stable")

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
        selected = self._copy(self._source, self.labels[positions], self.indices[positions])
        if self._images is not None:
            selected._images = self._images[positions]
        return selected

    def _copy(self, source: Images, labels: Int64, indices: Int64) -> Dataset:
        """With other images, labels and positions; all else stays."""
        other = Dataset(
            source,
            labels,
            name=self.name,
            split=self.split,
            classes=self.classes,
            indices=indices,
            features=self.features,
            assumes_order=self.assumes_order,
            notes=self.notes,
        )
        other._is_salted, other.span = self._is_salted, self.span
        return other


def _span(labels: Int64) -> tuple[int, int]:
    return int(labels.min()), int(labels.max())


def _is_unit(domain: Domain) -> bool:
    return bool(np.all(domain.low >= 0) and np.all(domain.high <= 1))


def from_arrays(
    images: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    name: str = "arrays",
    split: str | None = None,
    classes: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    notes: Sequence[str] = (),
) -> Dataset:
    """A data set of arrays: `images` (N, ...) and a label for each image, a number or a word.

    uint8 images are divided by 255, unless they hold nothing but 0 and 1; a network whose domain is
    not within 0 to 1 gets them as they stand. Others are taken as they are. (N, H, W) gets a
    channel axis and (N, H, W, C) is turned to channels first; (N, features) stays flat.

    `classes` are the names of labels 0, 1, .... Words are numbered by them, and without them in
    alphabetical order.
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
    is_bytes = array.dtype == np.uint8 and array.max() > 1
    known = numbered(labels, name, classes)
    return Dataset(
        Stack(channels_first(array), 255.0 if is_bytes else 1.0, has_own_units=True),
        known.labels,
        name=name,
        split=split,
        classes=known.classes,
        features=None if features is None else tuple(features),
        assumes_order=known.is_assumed,
        notes=tuple(notes),
    )


def _check_finite(array: npt.NDArray[np.floating], name: str) -> None:
    with np.errstate(over="ignore"):
        finite = np.isfinite(array.astype(np.float32)).reshape(len(array), -1).all(axis=1)
    if not finite.all():
        where = int(np.flatnonzero(~finite)[0])
        raise DataError(f"{name}: image {where} holds values that are not finite numbers")
