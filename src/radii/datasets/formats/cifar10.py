"""CIFAR-10: its official binary version, and PNG strips with one image a row.

The official Python version is a pickle, which could run anything when it is loaded: it is refused.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from radii.datasets.archives import FileTree
from radii.datasets.formats._base import SPLITS, Layout, Split, UInt8
from radii.datasets.images import decode
from radii.errors import DataError

__all__ = ["CifarBatches", "CifarStrips"]

CLASSES = 10
SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE
"""Bytes a record: the label, then the red, green and blue planes."""

BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}


class CifarBatches(Layout):
    """`data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`."""

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        found = tuple(split for split in SPLITS if tree.find(f"{BATCHES[split][0]}.bin"))
        if not found and tree.find("data_batch_1") and tree.find("batches.meta"):
            raise DataError(
                f"{tree.title}: this is CIFAR-10's Python version, a pickle, which could run "
                "anything and is not loaded; take the binary version, cifar-10-binary.tar.gz"
            )
        return found

    def read(self, tree: FileTree, split: str) -> Split:
        parts = []
        for batch in BATCHES[split]:
            name = _found(tree, f"{batch}.bin")
            data = tree.read(name)
            if not data or len(data) % RECORD:
                raise DataError(
                    f"{tree.title}: {name} has {len(data)} bytes, not a multiple of {RECORD}; "
                    "it is truncated or not CIFAR-10's binary version"
                )
            parts.append(np.frombuffer(data, np.uint8).reshape(-1, RECORD))
        records = parts[0] if len(parts) == 1 else np.concatenate(parts)
        content = Split(records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0])
        content.check_labels(CLASSES, tree.title)
        return content

    def write(self, directory: Path, split: str, content: Split) -> tuple[str, ...]:
        pixels = content.images.reshape(len(content.images), -1)
        records = np.concatenate([content.labels[:, None], pixels], axis=1)
        names = tuple(f"{batch}.bin" for batch in BATCHES[split])
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
            if tree.find(f"{BATCHES[split][0]}.png") and tree.find(f"{split}_lables.json")
        )

    def read(self, tree: FileTree, split: str) -> Split:
        strips = [_strip(tree, f"{batch}.png") for batch in BATCHES[split]]
        images = strips[0] if len(strips) == 1 else np.concatenate(strips)
        labels = _labels(tree, f"{split}_lables.json")
        if len(images) != len(labels):
            raise DataError(f"{tree.title}: {len(images)} {split} images but {len(labels)} labels")
        content = Split(images, labels)
        content.check_labels(CLASSES, tree.title)
        return content


def _found(tree: FileTree, file_name: str) -> str:
    name = tree.find(file_name)
    if name is None:
        raise DataError(f"{tree.title}: '{file_name}' is missing")
    return name


def _strip(tree: FileTree, file_name: str) -> UInt8:
    name = _found(tree, file_name)
    pixels = decode(io.BytesIO(tree.read(name)), f"{tree.title}: {name}")
    if pixels.shape[0] != 3 or pixels.shape[2] != SIDE * SIDE:
        raise DataError(
            f"{tree.title}: {name} is {pixels.shape[2]} pixels wide and has {pixels.shape[0]} "
            f"channels, where {SIDE * SIDE} and 3 are expected"
        )
    return np.ascontiguousarray(pixels.reshape(3, -1, SIDE, SIDE).swapaxes(0, 1))


def _labels(tree: FileTree, file_name: str) -> UInt8:
    name = _found(tree, file_name)
    try:
        labels = json.loads(tree.read(name))
        if not isinstance(labels, list) or not all(label in range(CLASSES) for label in labels):
            raise ValueError
    except (ValueError, RecursionError):
        raise DataError(
            f"{tree.title}: {name} is not a JSON list of labels from 0 to {CLASSES - 1}"
        ) from None
    return np.array(labels, np.uint8)
