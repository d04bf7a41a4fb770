"""The paper's public tables: which network is which, and the rows that the paper's numbers are of.

The tables of the twelve conventionally trained networks hold more training images than the paper
speaks of: its numbers are of images 0 to 99.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from radii.errors import DataError
from radii.statistics import Distribution, read
from radii_papers.distributions._numbers import CONVENTIONAL, STATISTICS

Split = Literal["train", "test"]
SPLITS: tuple[Split, Split] = ("train", "test")
SPLIT_NAMES = {"train": "training", "test": "testing"}

PAPER_IMAGES = 100
"""The paper's numbers are of the first so many images of each split."""

PLACES = (Path("jair"), Path("../shared/data/jair"))
"""Where the paper's data are looked for without --data."""

TABLES = {
    "conventional": "results_JAIR_fomlas.csv",
    "more images": "results_MNIST_fomlas_400.csv",
    "MNIST": "results_MNIST_JAIR.csv",
    "CIFAR-10": "results_CIFAR_JAIR.csv",
    "GTSRB": "results_GTSRB_JAIR.csv",
}
QUERIES = {
    "fully connected": "per_epsilon_MNIST_ffnn.csv",
    "convolutional": "per_epsilon_MNIST_cnn.csv",
    "GTSRB": "per_epsilon_GTSRB_JAIR.csv",
    "conventional": "per_epsilon_MNIST_fomlas.csv",
    "CIFAR-10": "per_epsilon_CIFAR_JAIR.csv",
}
"""Tables of single queries. The last two are public, not at hand."""

GRID_STEPS = {"MNIST": 0.002, "CIFAR-10": 0.0039, "GTSRB": 0.0039}
"""Between two values of eps that were asked."""

SMALLEST_MNIST_EPS = 0.001
"""The grid of the MNIST tables begins here: a row that proves less has no answer."""


@dataclass(frozen=True, slots=True)
class PublishedNetwork:
    """A network of the paper: its names there, in which table it is, and under which name.

    `file` is the end of its ONNX file's name, without the suffix.
    """

    architecture: str
    training: str
    table: str
    name: str
    file: str
    is_convolutional: bool = False

    @property
    def dataset(self) -> str:
        return "MNIST" if self.table == "conventional" else self.table

    @property
    def title(self) -> str:
        return (
            self.architecture
            if self.table == "conventional"
            else f"{self.architecture} {self.training}"
        )


FILE_NAMES = {
    ("mnist_nn", "Standard"): "mnist_nn",
    ("mnist_nn", "FGSM"): "mnist_nn_fgsm_02",
    ("mnist_relu_4_1024", "Standard"): "mnist_relu_4_1024",
}
"""Networks whose ONNX file has another name than their rows."""


def _conventional() -> list[PublishedNetwork]:
    networks = []
    for (name,) in CONVENTIONAL:
        own = f"mnist-{name}" if name.startswith("net") else f"mnist_{name}"
        networks.append(PublishedNetwork(name, "Standard", "conventional", own, own))
    return networks


def _trained() -> list[PublishedNetwork]:
    networks = []
    for architecture, training in STATISTICS:
        table = {"cifar": "CIFAR-10", "resnet": "CIFAR-10", "gtsrb": "GTSRB"}.get(
            architecture.split("_")[0], "MNIST"
        )
        table = "CIFAR-10" if architecture == "conv_big" else table
        is_convolutional = not architecture.startswith(("mnist", "cifar", "gtsrb_6", "gtsrb_7"))
        name = f"{architecture}_{training.lower()}"
        if architecture in ("convSmall", "convMedG"):
            name = f"{architecture}RELU__{training}"
        elif architecture == "gtsrb_cnn_vnncomp23":
            name = f"{architecture}_relu_{training.lower()}"
        elif (architecture, training) == ("mnist_relu_4_1024", "FGSM"):
            name = f"{name}_02"
        file = FILE_NAMES.get((architecture, training), name)
        networks.append(
            PublishedNetwork(architecture, training, table, name, file, is_convolutional)
        )
    return networks


NETWORKS_OF_SECTION_4 = tuple(_conventional())
TRAINED_NETWORKS = tuple(_trained())
ALL_NETWORKS = (*NETWORKS_OF_SECTION_4, *TRAINED_NETWORKS)


def networks_of(*tables: str, convolutional: bool | None = None) -> list[PublishedNetwork]:
    """Those of some tables, in the paper's order; only one kind of them if that is asked for."""
    return [
        network
        for network in ALL_NETWORKS
        if network.table in tables and convolutional in (None, network.is_convolutional)
    ]


TABLE_PLACES = ("public/*.csv", "*.csv", "data/**/*.csv")
NETWORK_PLACES = ("networks/*.onnx", "networks_onnx/**/*.onnx")
"""In a folder of our own, and in a clone of the paper's repository."""


def files_by_name(folder: Path, places: Sequence[str]) -> dict[str, Path]:
    """Files by their names without suffix; a clone holds some twice, which are then the same."""
    found: dict[str, Path] = {}
    for place in places:
        for path in sorted(folder.glob(place)):
            found.setdefault(path.stem, path)
    return found


class PublicResults:
    """The tables of a folder, read once each. One that is not there is empty.

    `folder` may be a clone of the paper's repository; or it holds the tables, by themselves or in
    `public`, with `networks` beside them. `networks` has the ONNX files by name, without suffix.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tables = files_by_name(folder, TABLE_PLACES)
        if not any(Path(name).stem in self._tables for name in TABLES.values()):
            raise DataError(
                f"{folder}: has none of the paper's tables ({', '.join(TABLES.values())}); it may "
                "be a clone of the repository that the paper's footnote 2 names"
            )
        self.networks = files_by_name(folder, NETWORK_PLACES)
        self._read: dict[str, Distribution] = {}
        self.notes: dict[str, tuple[str, ...]] = {}
        for name, file in (*TABLES.items(), *((f"queries {n}", f) for n, f in QUERIES.items())):
            path = self._tables.get(Path(file).stem)
            if path is not None:
                results = read(path)
                self._read[name] = results.brackets
                self.notes[name] = tuple(note.removeprefix(f"{path}: ") for note in results.notes)

    @property
    def files(self) -> list[Path]:
        """Everything in the folder that a step may read."""
        stems = [Path(name).stem for name in (*TABLES.values(), *QUERIES.values())]
        tables = [self._tables[stem] for stem in stems if stem in self._tables]
        return [*tables, *self.folder.glob("*.npz"), *self.networks.values()]

    def table(self, name: str) -> Distribution | None:
        """All rows of one of `TABLES`; None if its file is not there."""
        return self._read.get(name)

    def queries(self, name: str) -> Distribution | None:
        """One of `QUERIES`, brought together by instance; None if its file is not there."""
        return self._read.get(f"queries {name}")

    def part(
        self,
        network: PublishedNetwork,
        split: Split | None,
        *,
        images: range | None = range(PAPER_IMAGES),
        is_dropped: bool = True,
    ) -> Distribution | None:
        """The rows of a network on a split (both without one); None where there are none.

        As in the paper's numbers `is_dropped` leaves out rows without an answer about robustness.
        """
        table = self.table(network.table)
        if table is None:
            return None
        keep = table.network == network.name
        if split is not None:
            keep &= table.column("split") == split
        if images is not None:
            keep &= np.isin(table.column("input"), list(images))
        if is_dropped:
            keep &= ~self._without_answer(network, table)
        return table.select(keep) if keep.any() else None

    def row_number(self, network: PublishedNetwork, split: Split, image: int) -> int:
        """Where a row stands in its file, counted from 1 below the header; 0 if nowhere."""
        table = self.table(network.table)
        if table is None:
            return 0
        found = (
            (table.network == network.name)
            & (table.column("split") == split)
            & (table.column("input") == image)
        )
        return int(np.argmax(found)) + 1 if found.any() else 0

    def _without_answer(self, network: PublishedNetwork, table: Distribution) -> np.ndarray:
        if network.dataset != "MNIST":
            return table.is_unsolved
        return table.lower < SMALLEST_MNIST_EPS

    def joined(
        self,
        networks: Sequence[PublishedNetwork],
        split: Split | None = None,
        *,
        is_dropped: bool = True,
    ) -> Distribution | None:
        """The rows of several networks under the paper's names, with its words for trainings."""
        parts = []
        for network in networks:
            part = self.part(network, split, is_dropped=is_dropped)
            if part is not None:
                parts.append(part.labelled(network=network.title, training=network.training))
        return Distribution.union(parts) if parts else None

    @cached_property
    def relabelled(self) -> dict[str, tuple[int, int]]:
        """Networks whose testing rows are about their training images: equal brackets, and rows.

        The images that a network classifies correctly differ between splits, and so do nearly all
        brackets. Where both splits list the same images, and most brackets are equal, the rows of
        one were measured on the other's images, whatever labels stand beside them.
        """
        found = {}
        for network in ALL_NETWORKS:
            both = [self.part(network, split, images=None, is_dropped=False) for split in SPLITS]
            if both[0] is None or both[1] is None or network.dataset != "MNIST":
                continue
            train, test = (_by_input(part) for part in both if part is not None)
            equal = sum(train[place] == test.get(place) for place in train)
            if train.keys() == test.keys() and equal > len(train) / 2:
                found[network.title] = (equal, len(train))
        return found


def unanswered_images(network: PublishedNetwork, split: Split) -> int:
    """Images without any answer, by the paper's count of errors: the files have no rows for them.

    Of the CIFAR-10 networks its Table 9 exchanges the two splits: only so do rows and errors add up
    to the images that are classified correctly, and to the shares of Tables 2 and 3.
    """
    if network.table == "conventional":
        return 0
    place = SPLITS.index(split)
    if network.table == "CIFAR-10":
        place = 1 - place
    return int(STATISTICS[network.architecture, network.training][6 + place])


def _by_input(part: Distribution) -> dict[int, tuple[float, float]]:
    places, lower, upper = part.column("input").tolist(), part.lower.tolist(), part.upper.tolist()
    return dict(zip(places, zip(lower, upper, strict=True), strict=True))


def read_public(folder: Path | None) -> PublicResults:
    """The paper's tables in a folder; without one, in the first of `PLACES` that is there."""
    if folder is None:
        folder = next((place for place in PLACES if place.is_dir()), None)
    if folder is None:
        raise DataError(
            f"the paper's tables are in none of {', '.join(map(str, PLACES))}: name their folder "
            "with --data"
        )
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder of the paper's tables")
    return PublicResults(folder)
