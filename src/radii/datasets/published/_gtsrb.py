"""GTSRB: German traffic signs (Stallkamp, Schlipsing, Salmen, Igel, 2012), as PPM pictures.

They have many sizes, and tables name their classes: training pictures lie in one folder for each
class, each with its `GT-00000.csv`; test pictures lie in one folder, and `GT-final_test.csv` comes
apart from them. Pictures are resized to one size as a whole, bilinearly, without cutting out the
region of interest.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np

from radii.datasets._archives import FileTree
from radii.datasets._catalogue import Normalisation, PublishedSet, Remote
from radii.datasets._dataset import decode
from radii.datasets._layouts import Idx, Layout, Split
from radii.errors import DataError

GTSRB_CLASSES = 43

_TRAIN_TABLE = re.compile(r"GT-\d{5}\.csv")
_TEST_TABLE = re.compile(r"GT-.*test.*\.csv")

LabelledFile = tuple[str, int]
"""The name of a picture in the tree, and its class."""


class GtsrbFolders(Layout):
    """The official folders and tables; pictures become `side` x `side` pixels."""

    title = "folders of PPM pictures and tables"

    def __init__(self, side: int = 32) -> None:
        self._side = side

    def resized(self, side: int) -> GtsrbFolders:
        return GtsrbFolders(side)

    def splits(self, tree: FileTree) -> tuple[str, ...]:
        splits = []
        if _tables(tree, _TRAIN_TABLE):
            splits.append("train")
        if _labelled_test_table(tree) is not None:
            splits.append("test")
        return tuple(splits)

    def read(self, tree: FileTree, split: str) -> Split:
        rows = list(_train_rows(tree) if split == "train" else _test_rows(tree))
        if not rows:
            raise DataError(f"{tree.title}: the {split} tables of GTSRB name no picture")
        images = np.empty((len(rows), 3, self._side, self._side), np.uint8)
        for position, (name, _) in enumerate(rows):
            source = io.BytesIO(tree.read(name))
            images[position] = decode(
                source, f"{tree.title}: {name}", size=(self._side, self._side)
            )
        return Split(images, np.array([label for _, label in rows], np.uint8))


def _tables(tree: FileTree, pattern: re.Pattern[str]) -> list[PurePosixPath]:
    paths = (PurePosixPath(name) for name in tree.names())
    return sorted(path for path in paths if pattern.fullmatch(path.name))


def _train_rows(tree: FileTree) -> Iterator[LabelledFile]:
    tables = _tables(tree, _TRAIN_TABLE)
    roots = {table.parent.parent for table in tables}
    if len(roots) > 1:
        roots = {root for root in roots if "train" in str(root).lower()}
    if len(roots) != 1:
        raise DataError(f"{tree.title}: more than one set of GTSRB training folders; name one")
    root = roots.pop()
    for table in tables:
        if table.parent.parent == root:
            for file_name, label in _labelled(tree, str(table)):
                yield str(table.parent / file_name), label


def _test_rows(tree: FileTree) -> Iterator[LabelledFile]:
    table = _labelled_test_table(tree)
    if table is None:
        raise DataError(f"{tree.title}: no test table of GTSRB with classes is in it")
    class_folders = {path.parent for path in _tables(tree, _TRAIN_TABLE)}
    places: dict[str, list[str]] = {}
    for name in tree.names():
        path = PurePosixPath(name)
        if path.parent not in class_folders:
            places.setdefault(path.name, []).append(name)
    for file_name, label in _labelled(tree, table):
        paths = places.get(file_name, [])
        if len(paths) != 1:
            state = f"is there {len(paths)} times" if paths else "is missing"
            raise DataError(f"{tree.title}: '{file_name}', which {table} names, {state}")
        yield paths[0], label


def _labelled_test_table(tree: FileTree) -> str | None:
    """The test table with classes: the one that comes beside the pictures has none."""
    for table in _tables(tree, _TEST_TABLE):
        first_line = tree.read(str(table)).split(b"\n", 1)[0]
        if b"ClassId" in first_line:
            return str(table)
    return None


def _labelled(tree: FileTree, table: str) -> Iterator[LabelledFile]:
    """File names and classes of one table, whose columns are separated by semicolons."""
    try:
        text = tree.read(table).decode("utf-8-sig")
        for row in csv.DictReader(io.StringIO(text), delimiter=";"):
            label = int(row["ClassId"])
            if not 0 <= label < GTSRB_CLASSES:
                raise ValueError
            yield row["Filename"], label
    except (KeyError, TypeError, ValueError, csv.Error):
        raise DataError(
            f"{tree.title}: {table} is not a table of GTSRB with columns Filename and ClassId "
            f"from 0 to {GTSRB_CLASSES - 1}"
        ) from None


_GTSRB_ARCHIVE = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"

PUBLISHED = PublishedSet(
    name="gtsrb",
    title="GTSRB, German traffic signs",
    home="https://benchmark.ini.rub.de/gtsrb_dataset.html",
    shape=(3, 32, 32),
    counts={"train": 39209, "test": 12630},
    classes=(
        "speed limit 20",
        "speed limit 30",
        "speed limit 50",
        "speed limit 60",
        "speed limit 70",
        "speed limit 80",
        "end of speed limit 80",
        "speed limit 100",
        "speed limit 120",
        "no passing",
        "no passing over 3.5 t",
        "right of way at next crossing",
        "priority road",
        "yield",
        "stop",
        "no vehicles",
        "no vehicles over 3.5 t",
        "no entry",
        "danger",
        "curve left",
        "curve right",
        "double curve",
        "bumpy road",
        "slippery road",
        "road narrows on the right",
        "road works",
        "traffic lights",
        "pedestrians",
        "children",
        "bicycles",
        "ice or snow",
        "wild animals",
        "end of all limits",
        "turn right",
        "turn left",
        "straight on",
        "straight on or right",
        "straight on or left",
        "keep right",
        "keep left",
        "roundabout",
        "end of no passing",
        "end of no passing over 3.5 t",
    ),
    layouts=(GtsrbFolders(), Idx("test")),
    stored=Idx("test"),
    archives=("GTSRB*.zip",),
    remotes=tuple(
        Remote((_GTSRB_ARCHIVE + name,), name, 512 << 20, f"md5:{digest}")
        for name, digest in (
            ("GTSRB_Final_Training_Images.zip", "f33fd80ac59bff73c82d25ab499e03a3"),
            ("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185"),
            ("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
        )
    ),
    normalisations=(
        Normalisation(
            "GTSRB's means and deviations", (0.3403, 0.3121, 0.3214), (0.2724, 0.2608, 0.2669)
        ),
    ),
)
