"""What the study is made from: networks, images with labels, and the tables of the JAIR paper.

The per-class paper published nothing. Two of its three networks are among those of the JAIR paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii_papers.classes._numbers import NETWORKS
from radii_papers.distributions._audit import FIRST_IMAGES
from radii_papers.distributions._public import (
    NETWORK_PLACES,
    PLACES,
    TABLE_PLACES,
    TABLES,
    PublicResults,
    Split,
    files_by_name,
)

if TYPE_CHECKING:
    from radii.datasets import Dataset
    from radii.statistics import Distribution

OWN_IMAGES = "mnist.npz"
"""Images to use in place of MNIST, with splits `train` and `test`, in the folder of the data."""

SEED = 1
"""Of every draw of images: the paper's own draw is not told."""


@dataclass(frozen=True)
class ClassSource:
    """A folder with `networks`, and beside them images and public tables, where they are there; or
    a clone of the JAIR paper's repository.

    `names` are the networks that are asked for.
    """

    folder: Path
    names: tuple[str, ...] = NETWORKS

    def __post_init__(self) -> None:
        if not self.networks:
            raise DataError(
                f"{self.folder}: has none of the paper's networks ("
                f"{', '.join(f'networks/{name}.onnx' for name in NETWORKS)})"
            )

    @cached_property
    def networks(self) -> dict[str, Path]:
        """Those of the paper that are at hand, by name."""
        paths = files_by_name(self.folder, NETWORK_PLACES)
        return {name: paths[name] for name in self.names if name in paths}

    def only(self, name: str) -> ClassSource:
        """The same with one network."""
        return ClassSource(self.folder, (name,))

    @cached_property
    def public(self) -> PublicResults | None:
        """The tables of the JAIR paper; None where there are none."""
        try:
            return PublicResults(self.folder)
        except DataError:
            return None

    @cached_property
    def measured(self) -> dict[tuple[str, Path], Distribution]:
        """Brackets that were read or measured already, by what they are and the study's folder."""
        return {}

    @property
    def files(self) -> list[Path]:
        paths = files_by_name(self.folder, TABLE_PLACES)
        stems = [Path(name).stem for name in TABLES.values()]
        tables = [paths[stem] for stem in stems if stem in paths]
        images = [self.folder / name for name in (OWN_IMAGES, FIRST_IMAGES)]
        return [*self.networks.values(), *tables, *(path for path in images if path.is_file())]

    def images(self, split: Split) -> Dataset | None:
        """All labelled images of a split at hand; None where there are none."""
        from radii.datasets import load, load_spec

        own = self.folder / OWN_IMAGES
        if own.is_file():
            return load_spec(f"{own}:{split}")
        try:
            return load("mnist", split)
        except DataError:
            first = self.folder / FIRST_IMAGES
            return load_spec(str(first)) if split == "train" and first.is_file() else None

    def drawn(self, split: Split, count: int, label: int | None = None) -> Dataset | None:
        """`count` images of each class, or of one; all that there are of a split with fewer."""
        images = self.images(split)
        if images is None:
            return None
        if label is not None:
            if label not in images.labels:
                return None
            images = images.of_classes(label)
        _, sizes = np.unique(images.labels, return_counts=True)
        if sizes.min() < count:
            return images
        return images.unsalted().per_class(count, seed=SEED)  # as when the tables were made

    @property
    def without_labels(self) -> str:
        """What to say where MNIST is not in place; empty where it is."""
        if self.images("test") is not None:
            return ""
        return (
            "MNIST is not in place, so that there are no testing images, and labels of the first "
            "training images only: `radii data get mnist` puts it there."
        )


def read_source(folder: Path | None) -> ClassSource:
    """The folder; without one, the first of the JAIR paper's places that is there."""
    if folder is None:
        folder = next((place for place in PLACES if place.is_dir()), None)
    if folder is None:
        raise DataError(
            f"the paper's networks are in none of {', '.join(map(str, PLACES))}: name their folder "
            "with --data"
        )
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder of the paper's networks")
    return ClassSource(folder)
