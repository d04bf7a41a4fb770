"""The ensembles of the paper's benchmark, rebuilt: its own networks are not published.

Two digits of MNIST, or two traffic signs, at the paper's image sizes; the same number of small
classifiers. They are trained here, seeded, and kept in the study's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from radii import datasets
from radii.ensembles import Point
from radii.errors import DataError
from radii.networks import from_torch, load_network
from radii_papers._steps import StudySettings
from radii_papers.classifier_ensembles._numbers import BenchmarkRow

if TYPE_CHECKING:
    from radii.networks import Network

SIGNS_FILE = "gtsrb_small.npz"
LARGER_FOLDER = Path("jair") / "networks"
LARGER_IMAGES = Path("jair") / "mnist_train_0_49.npz"
USUAL_FOLDER = Path("../shared/data")

DOMAIN = (-1001.0, 1002.0)
"""So wide that no ball of the table is clipped: as in the paper, perturbed inputs need not be valid
images."""

STEPS_OF_TRAINING, BATCH, RATE = 500, 64, 5e-3
GIVE_WAY, PRIORITY = 13, 12

Float32 = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Builder = Callable[[int, int], nn.Sequential]


@dataclass(frozen=True, slots=True)
class EnsembleData:
    """Where files are that the study needs beside MNIST; None where they are not at hand."""

    signs: Path | None
    larger: Path | None
    larger_images: Path | None

    @property
    def files(self) -> list[Path]:
        networks = [] if self.larger is None else sorted(self.larger.glob("*.onnx"))
        return [
            *(path for path in (self.signs, self.larger_images) if path is not None),
            *networks,
        ]

    def has(self, row: BenchmarkRow) -> bool:
        """The images of a row are at hand."""
        return self.signs is not None or not is_of_signs(row.name)


def read_data(folder: Path | None) -> EnsembleData:
    """What of the data is in a folder; without one, in the usual place."""
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder; --data is one with {SIGNS_FILE} and {LARGER_FOLDER}"
        )
    place = USUAL_FOLDER if folder is None else folder

    def held(path: Path) -> Path | None:
        return place / path if (place / path).exists() else None

    return EnsembleData(held(Path(SIGNS_FILE)), held(LARGER_FOLDER), held(LARGER_IMAGES))


def is_of_signs(name: str) -> bool:
    return name.startswith("traffic")


def classes_of(name: str) -> tuple[int, int]:
    """The two classes of a benchmark: label 0 is the first, label 1 the second."""
    if is_of_signs(name):
        return GIVE_WAY, PRIORITY
    first, second = name.split("_")[1:3]
    return int(first), int(second)


def dense(*widths: int) -> Builder:
    def build(side: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = [nn.Flatten()]
        before = side * side
        for width in widths:
            layers += [nn.Linear(before, width), nn.ReLU()]
            before = width
        return nn.Sequential(*layers, nn.Linear(before, outputs))

    return build


def convolutional(*channels: int, pool: bool = False) -> Builder:
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


BUILDERS: dict[str, tuple[Builder, ...]] = {
    "": (dense(8), dense(6, 6), convolutional(2, pool=True), convolutional(2)),
    "2convs": (convolutional(2, 2), convolutional(1, 2), convolutional(2, 1)),
    "3convs": (convolutional(2, 2, 2), convolutional(1, 2, 2), convolutional(2, 2, 1)),
}
"""The classifiers of an ensemble by the suffix of its name; the first |C| of them are used."""


def mnist_images(split: str) -> tuple[Float32, Labels]:
    data = datasets.load("mnist", split)
    return data.images[:, 0].astype(np.float32), data.labels.astype(np.int64)


def sign_images(path: Path, split: str) -> tuple[Float32, Labels]:
    with np.load(path) as held:
        grey = held[f"x_{split}"].mean(axis=-1).astype(np.float32) / 255
        return grey, held[f"y_{split}"].astype(np.int64)


@lru_cache(maxsize=8)
def images_of(data: EnsembleData, name: str, side: int, split: str) -> tuple[Float32, Labels]:
    """Grey images of the two classes between 0 and 1, shrunk by averaging, and labels 0 and 1."""
    if is_of_signs(name):
        assert data.signs is not None
        images, labels = sign_images(data.signs, split)
    else:
        images, labels = mnist_images(split)
    classes = classes_of(name)
    chosen = np.isin(labels, classes)
    small = interpolate(torch.from_numpy(images[chosen][:, None]), size=(side, side), mode="area")
    return small.numpy(), (labels[chosen] == classes[1]).astype(np.int64)


def points_of(data: EnsembleData, row: BenchmarkRow) -> list[Point]:
    """The first test images of the two classes."""
    images, labels = images_of(data, row.name, row.side, "test")
    return [Point(i, int(labels[i]), images[i]) for i in range(row.points)]


def kept_networks(settings: StudySettings) -> Path:
    """The study's folder of trained networks."""
    return settings.folder.parent / "networks"


def networks_of(
    data: EnsembleData, row: BenchmarkRow, settings: StudySettings
) -> list[tuple[Network, float]]:
    """The classifiers of a row with their test accuracies; trained unless they are kept."""
    suffix = row.name.rsplit("_", 1)[-1]
    builders = BUILDERS.get(suffix, BUILDERS[""])[: row.classifiers]
    test, truth = images_of(data, row.name, row.side, "test")
    found = []
    for number, build in enumerate(builders):
        path = kept_networks(settings) / f"{row.name}_{row.side}_{number}.onnx"
        images, labels = images_of(data, row.name, row.side, "train")
        make = partial(trained, build(row.side, 2), images, labels, seed=number)
        network = kept_network(path, make, (1, row.side, row.side), DOMAIN)
        accuracy = float((network.replay(test).argmax(axis=1) == truth).mean())
        found.append((network, accuracy))
    return found


def kept_network(
    path: Path,
    module: Callable[[], nn.Module],
    shape: Sequence[int],
    domain: tuple[float, float],
) -> Network:
    """The network in a file; made first where there is none."""
    if not path.exists():
        made = from_torch(module(), input_shape=tuple(shape), domain=domain)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(made.onnx_bytes)
        partial.replace(path)
    return load_network(path, domain=domain)


def trained(module: nn.Sequential, images: Float32, labels: Labels, *, seed: int) -> nn.Sequential:
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
    for _ in range(STEPS_OF_TRAINING):
        some = torch.randint(len(inputs), (BATCH,), generator=generator)
        loss: Tensor = cross_entropy(module(inputs[some]), targets[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module.eval()
