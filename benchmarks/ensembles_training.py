"""Small classifiers for the benchmark of ensembles: trained here, seeded, kept for the next run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from radii import datasets
from radii.ensembles import Point
from radii.networks import Network, from_torch, load_network

KEPT = Path(tempfile.gettempdir()) / "radii-benchmark-ensembles"
"""Where trained networks are kept between runs."""

STEPS, BATCH, RATE = 500, 64, 5e-3
GIVE_WAY, PRIORITY = 13, 12

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Task:
    """Two classes of images of one size: label 0 is the first class, label 1 the second."""

    name: str
    classes: tuple[int, int]
    side: int


def dense(*widths: int) -> Callable[[int, int], nn.Sequential]:
    def build(side: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = [nn.Flatten()]
        before = side * side
        for width in widths:
            layers += [nn.Linear(before, width), nn.ReLU()]
            before = width
        return nn.Sequential(*layers, nn.Linear(before, outputs))

    return build


def convolutional(*channels: int, pool: bool = False) -> Callable[[int, int], nn.Sequential]:
    """3x3 convolutions without padding, then the largest of 2x2 windows, then a dense layer."""

    def build(side: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        before = 1
        for count in channels:
            layers += [nn.Conv2d(before, count, 3), nn.ReLU()]
            before, side = count, side - 2
        if pool:
            layers.append(nn.MaxPool2d(2))
            side //= 2
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * side * side, outputs))

    return build


ENSEMBLES: dict[str, tuple[Callable[[int, int], nn.Sequential], ...]] = {
    "": (dense(8), dense(6, 6), convolutional(2, pool=True), convolutional(2)),
    "2convs": (convolutional(2, 2), convolutional(1, 2), convolutional(2, 1)),
    "3convs": (convolutional(2, 2, 2), convolutional(1, 2, 2), convolutional(2, 2, 1)),
}
"""The classifiers of an ensemble by the suffix of its name; the first |C| of them are used."""


def images_of(task: Task, split: str, shared: Path) -> tuple[Float32, npt.NDArray[np.int64]]:
    """Grey images of the two classes between 0 and 1, shrunk by averaging, and labels 0 and 1."""
    if task.name.startswith("traffic"):
        with np.load(shared / "gtsrb_small.npz") as held:
            images = held[f"x_{split}"].mean(axis=-1).astype(np.float32) / 255
            labels = held[f"y_{split}"]
    else:
        data = datasets.load("mnist", split)
        images, labels = data.images[:, 0].astype(np.float32), data.labels
    chosen = np.isin(labels, task.classes)
    small = interpolate(
        torch.from_numpy(images[chosen][:, None]), size=(task.side, task.side), mode="area"
    )
    return small.numpy(), (labels[chosen] == task.classes[1]).astype(np.int64)


def points_of(task: Task, count: int, shared: Path) -> list[Point]:
    """The first test images of the two classes."""
    images, labels = images_of(task, "test", shared)
    return [Point(i, int(labels[i]), images[i]) for i in range(count)]


def networks_of(
    task: Task, count: int, domain: tuple[float, float], shared: Path
) -> list[tuple[Network, float]]:
    """The ensemble of a task with test accuracies; trained unless they are kept."""
    suffix = task.name.rsplit("_", 1)[-1]
    builders = ENSEMBLES[suffix if suffix in ENSEMBLES else ""][:count]
    test, truth = images_of(task, "test", shared)
    found = []
    for number, build in enumerate(builders):
        path = KEPT / f"{task.name}_{task.side}_{number}.onnx"
        if not path.exists():
            images, labels = images_of(task, "train", shared)
            module = trained(build(task.side, 2), images, labels, seed=number)
            network = from_torch(module, input_shape=(1, task.side, task.side), domain=domain)
            KEPT.mkdir(exist_ok=True)
            path.write_bytes(network.onnx_bytes)
        network = load_network(path, domain=domain)
        accuracy = float((network.replay(test).argmax(axis=1) == truth).mean())
        found.append((network, accuracy))
    return found


def trained(
    module: nn.Sequential, images: Float32, labels: npt.NDArray[np.int64], *, seed: int
) -> nn.Sequential:
    """Adam on cross-entropy; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        if parameter.dim() > 1:
            fan_in = parameter[0].numel()
            parameter.data = torch.randn(parameter.shape, generator=generator) * fan_in**-0.5
        else:
            parameter.data.zero_()
    inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(module.parameters(), RATE)
    for _ in range(STEPS):
        some = torch.randint(len(inputs), (BATCH,), generator=generator)
        loss: Tensor = cross_entropy(module(inputs[some]), targets[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module.eval()
