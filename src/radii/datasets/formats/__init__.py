"""File formats: the official layouts of published sets, and what users bring themselves."""

from __future__ import annotations

from radii.datasets.archives import FileTree
from radii.datasets.formats._base import Layout, Split
from radii.datasets.formats.cifar10 import CifarBatches, CifarStrips
from radii.datasets.formats.gtsrb import GtsrbFolders
from radii.datasets.formats.idx import Idx

__all__ = [
    "CifarBatches",
    "CifarStrips",
    "GtsrbFolders",
    "Idx",
    "Layout",
    "Split",
    "recognise",
]


LAYOUTS: tuple[Layout, ...] = (Idx(), CifarBatches(), CifarStrips(), GtsrbFolders())


def recognise(tree: FileTree, layouts: tuple[Layout, ...] = LAYOUTS) -> Layout | None:
    """The first layout that finds a split of its own among the files."""
    return next((layout for layout in layouts if layout.splits(tree)), None)
