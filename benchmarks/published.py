"""The published networks and images that benchmarks use, where they are at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from radii.networks import Network, load_network
from radii.problem import Instance, Norm, OneToAny


def _shared() -> Path:
    """`../shared/data`; a checkout that is a work tree may lie deeper than the project."""
    places = [folder / "shared" / "data" for folder in Path(__file__).parents[2:]]
    return next((place for place in places if place.is_dir()), places[0])


SHARED = _shared()
DATA = SHARED / "jair"


def is_here() -> bool:
    """Say so and return False where the data are absent."""
    if not DATA.is_dir():
        print(f"skipped: the published networks are not at {DATA}")
    return DATA.is_dir()


def network(name: str) -> Network:
    return load_network(DATA / "networks" / f"{name}.onnx", domain=(0, 1))


def instances(net: Network, first: int, last: int) -> list[Instance]:
    """The correctly classified images first to last - 1, as Linf one-to-any instances."""
    arrays = np.load(DATA / "mnist_train_0_49.npz")
    images = arrays["images"][first:last].astype(np.float32) / np.float32(255)
    inputs = images.reshape(-1, *net.input_shape)
    outputs = net.replay(inputs)
    made = [
        Instance(
            net.fingerprint,
            first + row,
            inputs[row],
            int(label),
            outputs[row],
            OneToAny(),
            Norm.LINF,
            net.domain,
        )
        for row, label in enumerate(arrays["labels"][first:last])
    ]
    return [instance for instance in made if instance.holds]


def seconds(name: str) -> dict[int, float]:
    """What each published bracket took: those above 3,100 s are partly wrong (see the README)."""
    return {int(row["image_id"]): float(row["total_time"]) for row in _rows(name)}


def brackets(name: str) -> dict[int, tuple[float, float]]:
    """The published (epsilon_value, smallest_sat_value) of each image."""
    return {
        int(row["image_id"]): (float(row["epsilon_value"]), float(row["smallest_sat_value"]))
        for row in _rows(name)
    }


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / "published_results.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["network_path"] == f"{name}.onnx"]
