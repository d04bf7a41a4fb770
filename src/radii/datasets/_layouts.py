"""Layouts of published sets: how their splits lie in a directory or archive.

Here is what sets share: a `Layout` finds and reads splits, and `Idx` is the form of MNIST and its
like. Layouts of a single set stand in its own file of `published/`.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import FileTree, gunzip
from radii.datasets._catalogue import Remote
from radii.errors import DataError

UInt8 = npt.NDArray[np.uint8]

SPLITS = ("train", "test")


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One split as it is stored: pixels 0..255 of shape (N, channels, height, width) and labels."""

    images: UInt8
    labels: UInt8

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(f"{self.images.shape} images and {self.labels.shape} labels")

    def check_labels(self, classes: int, title: str) -> None:
        """A DataError unless every label is below `classes`."""
        beyond = np.flatnonzero(self.labels >= classes)
        if beyond.size:
            where = int(beyond[0])
            raise DataError(
                f"{title}: label {self.labels[where]} of image {where} is not below {classes}"
            )


class Layout(ABC):
    """Finds and reads splits. Stateless but for options; asked in turn which one fits.

    `title` says what the files are, in words.
    """

    title: ClassVar[str]

    @abstractmethod
    def splits(self, tree: FileTree) -> tuple[str, ...]:
        """Which splits are there, judged by file names alone."""

    @abstractmethod
    def read(self, tree: FileTree, split: str) -> Split:
        """One of the splits that `splits` named; a DataError if its files are not sound."""

    def write(self, directory: Path, split: str, content: Split) -> tuple[str, ...]:
        """Store a split so that `read` returns it; the names of the files. Not every layout can."""
        raise NotImplementedError

    def resized(self, side: int) -> Layout | None:
        """The same with pictures of side x side pixels; None where the official files have a size
        of their own."""
        return None


def recognise(tree: FileTree, layouts: tuple[Layout, ...]) -> Layout | None:
    """The first layout that finds a split of its own among the files."""
    return next((layout for layout in layouts if layout.splits(tree)), None)


# IDX, the format of MNIST: a magic number, the lengths of the axes, then the values.
#
# The four-byte magic is 0, 0, the type of the values and the number of axes; lengths are four bytes
# each; everything is big-endian. Files may be compressed with gzip.


_UNSIGNED_BYTE = 0x08
_MAX_AXES = 8
_PREFIXES = {"train": ("train",), "test": ("t10k", "test")}


IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""The files of MNIST and of sets in its form."""


def idx_remotes(bases: tuple[str, ...], digests: tuple[str, ...]) -> tuple[Remote, ...]:
    """The four files, packed, on each of several servers."""
    return tuple(
        Remote(tuple(f"{base}{name}.gz" for base in bases), f"{name}.gz", 64 << 20, digest)
        for name, digest in zip(IDX_FILES, digests, strict=True)
    )


def idx_checksums(*digests: str) -> dict[str, str]:
    """The sha256 of the four files as they are stored: training images, labels, then the test's."""
    return dict(zip(IDX_FILES, digests, strict=True))


class Idx(Layout):
    """`train-images-idx3-ubyte` and so on; `t10k-` or `test-` for the test split; maybe `.gz`."""

    title = "IDX files"

    def __init__(self, test_prefix: str = "t10k") -> None:
        self._test_prefix = test_prefix

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        return tuple(
            split
            for split in SPLITS
            if _find(tree, split, "images") and _find(tree, split, "labels")
        )

    def read(self, tree: FileTree, split: str) -> Split:
        images, labels = (_read(tree, split, part) for part in ("images", "labels"))
        if images.ndim not in (3, 4) or labels.ndim != 1:
            raise DataError(
                f"{tree.title}: {split} images have {images.ndim} axes and labels {labels.ndim}, "
                "where 3 or 4 and 1 are expected"
            )
        if len(images) != len(labels):
            raise DataError(f"{tree.title}: {len(images)} {split} images but {len(labels)} labels")
        return Split(images[:, None] if images.ndim == 3 else images, labels)

    def write(self, directory: Path, split: str, content: Split) -> tuple[str, ...]:
        prefix = "train" if split == "train" else self._test_prefix
        images = content.images[:, 0] if content.images.shape[1] == 1 else content.images
        names = (f"{prefix}-images-idx{images.ndim}-ubyte", f"{prefix}-labels-idx1-ubyte")
        write_idx(directory / names[0], images)
        write_idx(directory / names[1], content.labels)
        return names


def parse_idx(data: bytes, name: str) -> UInt8:
    """The array in IDX data of unsigned bytes; a DataError unless the sizes add up."""
    if len(data) < 4 or data[:2] != b"\0\0" or not 1 <= data[3] <= _MAX_AXES:
        raise DataError(f"{name}: not an IDX file (it starts with {data[:4].hex(' ')!r})")
    if data[2] != _UNSIGNED_BYTE:
        raise DataError(f"{name}: IDX values of type 0x{data[2]:02x}, not unsigned bytes")
    axes = data[3]
    start = 4 + 4 * axes
    if len(data) < start:
        raise DataError(f"{name}: truncated within its IDX header")
    shape = struct.unpack(f">{axes}I", data[4:start])
    if math.prod(shape) != len(data) - start:
        raise DataError(
            f"{name}: its IDX header announces {math.prod(shape)} values, "
            f"but {len(data) - start} follow; the file is truncated or damaged"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def write_idx(path: Path, array: UInt8) -> None:
    """The array as an IDX file of unsigned bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    with path.open("wb") as stream:
        stream.write(header)
        stream.write(np.ascontiguousarray(array).data)


def _find(tree: FileTree, split: str, part: str) -> str | None:
    axes = (1,) if part == "labels" else (3, 4)
    candidates = (
        f"{prefix}-{part}{separator}idx{count}-ubyte{packed}"
        for packed in ("", ".gz")
        for prefix in _PREFIXES[split]
        for count in axes
        for separator in ("-", ".")
    )
    return next((path for name in candidates if (path := tree.find(name))), None)


def _read(tree: FileTree, split: str, part: str) -> UInt8:
    name = _find(tree, split, part)
    if name is None:
        raise DataError(f"{tree.title}: the {split} {part} are missing")
    data = tree.read(name)
    title = f"{tree.title}: {name}"
    return parse_idx(gunzip(data, title, DataError) if name.endswith(".gz") else data, title)
