"""What a layout of files is: how the splits of a published set lie in a directory or archive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import FileTree
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
