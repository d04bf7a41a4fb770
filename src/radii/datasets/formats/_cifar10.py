"""CIFAR-10: its official binary version, and PNG strips with one image a row.

The official Python version is a pickle, which could run anything when it is loaded: it is refused.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from radii.datasets._archives import FileTree
from radii.datasets._images import decode
from radii.datasets.formats._base import SPLITS, Layout, Split, UInt8
from radii.errors import DataError

CIFAR10_CLASSES = 10
CIFAR10_SIDE = 32
RECORD_BYTES = 1 + 3 * CIFAR10_SIDE * CIFAR10_SIDE
"""Bytes a record: the label, then the red, green and blue planes."""

BATCH_FILES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}


class CifarBatches(Layout):
    """`data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`."""

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        found = tuple(split for split in SPLITS if tree.find(f"{BATCH_FILES[split][0]}.bin"))
        if not found and tree.find("data_batch_1") and tree.find("batches.meta"):
            raise DataError(
                f"{tree.title}: this is CIFAR-10's Python version, a pickle, which could run "
                "anything and is not loaded; take the binary version, cifar-10-binary.tar.gz"
            )
        return found

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
    """`data_batch_1.png`... with a row of 1024 pixels an image; labels in `train_lables.json`."""

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
