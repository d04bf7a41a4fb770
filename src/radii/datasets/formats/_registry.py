"""File formats: the official layouts of published sets, and what users bring themselves."""

from __future__ import annotations

from radii.datasets._archives import FileTree
from radii.datasets.formats._base import Layout
from radii.datasets.formats._cifar10 import CifarBatches, CifarStrips
from radii.datasets.formats._gtsrb import GtsrbFolders
from radii.datasets.formats._idx import Idx

LAYOUTS: tuple[Layout, ...] = (Idx(), CifarBatches(), CifarStrips(), GtsrbFolders())


def recognise(tree: FileTree, layouts: tuple[Layout, ...] = LAYOUTS) -> Layout | None:
    """The first layout that finds a split of its own among the files."""
    return next((layout for layout in layouts if layout.splits(tree)), None)
