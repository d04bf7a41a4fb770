"""Writes tiny files in the official formats, without radii's own writers."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
from PIL import Image


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


Held = dict[str, tuple[np.ndarray, np.ndarray]]
"""Images and labels of each split."""


def pixels(count: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def write_mnist(root: Path, train: int = 20, test: int = 10, packed: bool = False) -> Held:
    """The four IDX files; returns what they hold."""
    root.mkdir(parents=True, exist_ok=True)
    held = {}
    for split, prefix, count in (("train", "train", train), ("test", "t10k", test)):
        images, labels = pixels(count, 28, 28, seed=count), np.arange(count, dtype=np.uint8) % 10
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            data = idx(array)
            path = root / f"{prefix}-{name}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(data) if packed else data)
        held[split] = (images, labels)
    return held


def write_cifar_batches(root: Path, each: int = 4) -> Held:
    """The six .bin files with `each` images; returns what they hold."""
    root.mkdir(parents=True, exist_ok=True)
    images, labels = pixels(6 * each, 3, 32, 32), np.arange(6 * each, dtype=np.uint8) % 10
    for batch in range(6):
        name = f"data_batch_{batch + 1}.bin" if batch < 5 else "test_batch.bin"
        rows = range(batch * each, (batch + 1) * each)
        records = b"".join(bytes([labels[row]]) + images[row].tobytes() for row in rows)
        (root / name).write_bytes(records)
    cut = 5 * each
    return {"train": (images[:cut], labels[:cut]), "test": (images[cut:], labels[cut:])}


def write_cifar_strips(root: Path, each: int = 3) -> Held:
    """PNG strips, a row an image, and the labels in JSON; returns what they hold."""
    root.mkdir(parents=True, exist_ok=True)
    images, labels = pixels(6 * each, 3, 32, 32, seed=1), np.arange(6 * each, dtype=np.uint8) % 10
    for batch in range(6):
        name = f"data_batch_{batch + 1}.png" if batch < 5 else "test_batch.png"
        part = images[batch * each : (batch + 1) * each]
        Image.fromarray(part.transpose(0, 2, 3, 1).reshape(each, 1024, 3)).save(root / name)
    cut = 5 * each
    (root / "train_lables.json").write_text(json.dumps(labels[:cut].tolist()))
    (root / "test_lables.json").write_text(json.dumps(labels[cut:].tolist()))
    return {"train": (images[:cut], labels[:cut]), "test": (images[cut:], labels[cut:])}


def _table(rows: list[tuple[str, int]], with_class: bool = True) -> str:
    head = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2" + (";ClassId" if with_class else "")
    lines = [f"{name};9;9;1;1;8;8" + (f";{label}" if with_class else "") for name, label in rows]
    return "\n".join([head, *lines]) + "\n"


def write_gtsrb(root: Path) -> None:
    """Three classes with two plain pictures each, of different sizes, and three test pictures.

    The red value of a picture is five times its class, so that a reader can be checked by eye.
    """
    training = root / "GTSRB" / "Final_Training" / "Images"
    for label in (0, 1, 42):
        folder = training / f"{label:05d}"
        folder.mkdir(parents=True)
        rows = []
        for number, size in enumerate(((20, 31), (45, 40))):
            name = f"00000_{number:05d}.ppm"
            Image.new("RGB", size, (label * 5, 7, 9)).save(folder / name)
            rows.append((name, label))
        (folder / f"GT-{label:05d}.csv").write_text(_table(rows))
    test = root / "GTSRB" / "Final_Test" / "Images"
    test.mkdir(parents=True)
    rows = [("00000.ppm", 42), ("00001.ppm", 0), ("00002.ppm", 1)]
    for name, label in rows:
        Image.new("RGB", (25, 30), (label * 5, 7, 9)).save(test / name)
    (test / "GT-final_test.test.csv").write_text(_table(rows, with_class=False))
    (root / "GT-final_test.csv").write_text(_table(rows))
