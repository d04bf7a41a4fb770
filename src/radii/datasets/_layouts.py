"""The official layouts of published sets: how their splits lie in a directory or archive.

MNIST and its like are IDX files. CIFAR-10 has an official binary version, and PNG strips with one
image in each row; its Python version is a pickle, which could run anything when it is loaded, and
is refused. GTSRB has PPM pictures of many sizes, and tables that name their classes: training
pictures lie in one folder for each class, each with its `GT-00000.csv`; test pictures lie in one
folder, and `GT-final_test.csv` comes apart from them. Pictures are resized to one size as a whole,
bilinearly, without cutting out the region of interest.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import FileTree, gunzip
from radii.datasets._dataset import decode
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
    """Finds and reads splits. Stateless but for options; asked in turn which one fits."""

    @abstractmethod
    def splits(self, tree: FileTree) -> tuple[str, ...]:
        """Which splits are there, judged by file names alone."""

    @abstractmethod
    def read(self, tree: FileTree, split: str) -> Split:
        """One of the splits that `splits` named; a DataError if its files are not sound."""

    def write(self, directory: Path, split: str, content: Split) -> tuple[str, ...]:
        """Store a split so that `read` returns it; the names of the files. Not every layout can."""
        raise NotImplementedError


# IDX, the format of MNIST: a magic number, the lengths of the axes, then the values.
#
# The four-byte magic is 0, 0, the type of the values and the number of axes; lengths are four bytes
# each; everything is big-endian. Files may be compressed with gzip.


_UNSIGNED_BYTE = 0x08
_MAX_AXES = 8
_PREFIXES = {"train": ("train",), "test": ("t10k", "test")}


class Idx(Layout):
    """`train-images-idx3-ubyte` and so on; `t10k-` or `test-` for the test split; maybe `.gz`."""

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


# CIFAR-10.


CIFAR10_CLASSES = 10
CIFAR10_SIDE = 32
RECORD_BYTES = 1 + 3 * CIFAR10_SIDE * CIFAR10_SIDE
"""Bytes a record: the label, then the red, green and blue planes."""

BATCH_FILES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}


class CifarBatches(Layout):
    """`data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`."""

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        splits = tuple(split for split in SPLITS if tree.find(f"{BATCH_FILES[split][0]}.bin"))
        if not splits and tree.find("data_batch_1") and tree.find("batches.meta"):
            raise DataError(
                f"{tree.title}: this is CIFAR-10's Python version, a pickle, which could run "
                "anything and is not loaded; take the binary version, cifar-10-binary.tar.gz"
            )
        return splits

    def read(self, tree: FileTree, split: str) -> Split:
        parts = []
        for batch in BATCH_FILES[split]:
            name = _batch_path(tree, f"{batch}.bin")
            data = tree.read(name)
            if not data or len(data) % RECORD_BYTES:
                raise DataError(
                    f"{tree.title}: {name} has {len(data)} bytes, "
                    f"not a multiple of {RECORD_BYTES}; "
                    "it is truncated or not CIFAR-10's binary version"
                )
            parts.append(np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES))
        records = parts[0] if len(parts) == 1 else np.concatenate(parts)
        content = Split(records[:, 1:].reshape(-1, 3, CIFAR10_SIDE, CIFAR10_SIDE), records[:, 0])
        content.check_labels(CIFAR10_CLASSES, tree.title)
        return content

    def write(self, directory: Path, split: str, content: Split) -> tuple[str, ...]:
        pixels = content.images.reshape(len(content.images), -1)
        records = np.concatenate([content.labels[:, None], pixels], axis=1)
        names = tuple(f"{batch}.bin" for batch in BATCH_FILES[split])
        share = -(-len(records) // len(names))
        for position, name in enumerate(names):
            batch = records[position * share : (position + 1) * share]
            (directory / name).write_bytes(batch.tobytes())
        return names


class CifarStrips(Layout):
    """`data_batch_1.png`... with 1024 pixels in a row for each image; `train_lables.json`."""

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        return tuple(
            split
            for split in SPLITS
            if tree.find(f"{BATCH_FILES[split][0]}.png") and tree.find(f"{split}_lables.json")
        )

    def read(self, tree: FileTree, split: str) -> Split:
        strips = [_strip(tree, f"{batch}.png") for batch in BATCH_FILES[split]]
        images = strips[0] if len(strips) == 1 else np.concatenate(strips)
        labels = _strip_labels(tree, f"{split}_lables.json")
        if len(images) != len(labels):
            raise DataError(f"{tree.title}: {len(images)} {split} images but {len(labels)} labels")
        content = Split(images, labels)
        content.check_labels(CIFAR10_CLASSES, tree.title)
        return content


def _batch_path(tree: FileTree, file_name: str) -> str:
    name = tree.find(file_name)
    if name is None:
        raise DataError(f"{tree.title}: '{file_name}' is missing")
    return name


def _strip(tree: FileTree, file_name: str) -> UInt8:
    name = _batch_path(tree, file_name)
    pixels = decode(io.BytesIO(tree.read(name)), f"{tree.title}: {name}")
    if pixels.shape[0] != 3 or pixels.shape[2] != CIFAR10_SIDE * CIFAR10_SIDE:
        raise DataError(
            f"{tree.title}: {name} is {pixels.shape[2]} pixels wide and has {pixels.shape[0]} "
            f"channels, where {CIFAR10_SIDE * CIFAR10_SIDE} and 3 are expected"
        )
    return np.ascontiguousarray(pixels.reshape(3, -1, CIFAR10_SIDE, CIFAR10_SIDE).swapaxes(0, 1))


def _strip_labels(tree: FileTree, file_name: str) -> UInt8:
    name = _batch_path(tree, file_name)
    try:
        labels = json.loads(tree.read(name))
        if not isinstance(labels, list) or not all(
            label in range(CIFAR10_CLASSES) for label in labels
        ):
            raise ValueError
    except (ValueError, RecursionError):
        raise DataError(
            f"{tree.title}: {name} is not a JSON list of labels from 0 to {CIFAR10_CLASSES - 1}"
        ) from None
    return np.array(labels, np.uint8)


# GTSRB.


GTSRB_CLASSES = 43

_TRAIN_TABLE = re.compile(r"GT-\d{5}\.csv")
_TEST_TABLE = re.compile(r"GT-.*test.*\.csv")

LabelledFile = tuple[str, int]
"""The name of a picture in the tree, and its class."""


class GtsrbFolders(Layout):
    """The official folders and tables; pictures become `side` x `side` pixels."""

    def __init__(self, side: int = 32) -> None:
        self._side = side

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        splits = []
        if _tables(tree, _TRAIN_TABLE):
            splits.append("train")
        if _labelled_test_table(tree) is not None:
            splits.append("test")
        return tuple(splits)

    def read(self, tree: FileTree, split: str) -> Split:
        rows = list(_train_rows(tree) if split == "train" else _test_rows(tree))
        if not rows:
            raise DataError(f"{tree.title}: the {split} tables of GTSRB name no picture")
        images = np.empty((len(rows), 3, self._side, self._side), np.uint8)
        for position, (name, _) in enumerate(rows):
            source = io.BytesIO(tree.read(name))
            images[position] = decode(
                source, f"{tree.title}: {name}", size=(self._side, self._side)
            )
        return Split(images, np.array([label for _, label in rows], np.uint8))


def _tables(tree: FileTree, pattern: re.Pattern[str]) -> list[PurePosixPath]:
    paths = (PurePosixPath(name) for name in tree.names())
    return sorted(path for path in paths if pattern.fullmatch(path.name))


def _train_rows(tree: FileTree) -> Iterator[LabelledFile]:
    tables = _tables(tree, _TRAIN_TABLE)
    roots = {table.parent.parent for table in tables}
    if len(roots) > 1:
        roots = {root for root in roots if "train" in str(root).lower()}
    if len(roots) != 1:
        raise DataError(f"{tree.title}: more than one set of GTSRB training folders; name one")
    root = roots.pop()
    for table in tables:
        if table.parent.parent == root:
            for file_name, label in _labelled(tree, str(table)):
                yield str(table.parent / file_name), label


def _test_rows(tree: FileTree) -> Iterator[LabelledFile]:
    table = _labelled_test_table(tree)
    if table is None:
        raise DataError(f"{tree.title}: no test table of GTSRB with classes is in it")
    class_folders = {path.parent for path in _tables(tree, _TRAIN_TABLE)}
    places: dict[str, list[str]] = {}
    for name in tree.names():
        path = PurePosixPath(name)
        if path.parent not in class_folders:
            places.setdefault(path.name, []).append(name)
    for file_name, label in _labelled(tree, table):
        paths = places.get(file_name, [])
        if len(paths) != 1:
            state = f"is there {len(paths)} times" if paths else "is missing"
            raise DataError(f"{tree.title}: '{file_name}', which {table} names, {state}")
        yield paths[0], label


def _labelled_test_table(tree: FileTree) -> str | None:
    """The test table with classes: the one that comes beside the pictures has none."""
    for table in _tables(tree, _TEST_TABLE):
        first_line = tree.read(str(table)).split(b"\n", 1)[0]
        if b"ClassId" in first_line:
            return str(table)
    return None


def _labelled(tree: FileTree, table: str) -> Iterator[LabelledFile]:
    """File names and classes of one table, whose columns are separated by semicolons."""
    try:
        text = tree.read(table).decode("utf-8-sig")
        for row in csv.DictReader(io.StringIO(text), delimiter=";"):
            label = int(row["ClassId"])
            if not 0 <= label < GTSRB_CLASSES:
                raise ValueError
            yield row["Filename"], label
    except (KeyError, TypeError, ValueError, csv.Error):
        raise DataError(
            f"{tree.title}: {table} is not a table of GTSRB with columns Filename and ClassId "
            f"from 0 to {GTSRB_CLASSES - 1}"
        ) from None


# All of them.


LAYOUTS: tuple[Layout, ...] = (Idx(), CifarBatches(), CifarStrips(), GtsrbFolders())


def recognise(tree: FileTree, layouts: tuple[Layout, ...] = LAYOUTS) -> Layout | None:
    """The first layout that finds a split of its own among the files."""
    return next((layout for layout in layouts if layout.splits(tree)), None)
