"""Table 1: recall of each class over all images at hand, and how many of a draw are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii_papers._evidence import StudyClaim, fact
from radii_papers._steps import (
    Paragraph,
    Part,
    StudySettings,
)
from radii_papers._tables import Beside, Cell, StudyTable, reasons_of
from radii_papers.classes._brackets import DOMAIN
from radii_papers.classes._numbers import CLASSES, IMAGES_OF_CLASS, NETWORKS, TABLE_1
from radii_papers.classes._source import ClassSource
from radii_papers.distributions._public import SPLIT_NAMES, SPLITS

if TYPE_CHECKING:
    from radii.datasets import Dataset
    from radii.networks import Network

BATCH = 1000

ALL_TESTING = 10_000
"""Testing images of MNIST: of fewer, or of other images, a file's accuracy is not the paper's."""

REASONS = {("*", name): "another draw of images" for name in ("images, train", "images, test")} | {
    ("all", "recall, test"): "the paper's is no mean of its classes' recalls",
}


def right_answers(network: Network, images: Dataset) -> npt.NDArray[np.bool_]:
    """Whether each image's label has the largest output, as the file computes it."""
    from radii.runs import images_for

    found = []
    for start in range(0, len(images), BATCH):
        part = images.take(slice(start, min(start + BATCH, len(images))))
        outputs = network.replay(images_for(network, part, None))
        found.append(outputs.argmax(axis=1) == part.labels)
    return np.concatenate(found)


def network_table(source: ClassSource, _: StudySettings) -> list[Part]:
    """Table 1, a row for each class of each network; then whether its last row can be right."""
    from radii.networks import load_network

    rows: list[tuple[Cell, ...]] = []
    for name in NETWORKS:
        path = source.networks.get(name)
        network = None if path is None else load_network(path, domain=DOMAIN)
        rows += _rows(name, network, source)
    columns = ("network", "class", *COLUMNS, "reason of a difference")
    title = "Table 1: recall over all images, and images of a draw that are right"
    counts = ", ".join(
        f"{0 if images is None else len(images)} {SPLIT_NAMES[split]} images"
        for split in SPLITS
        for images in [source.images(split)]
    )
    text = (
        f"Recall is of {counts}; images are those that are right among {IMAGES_OF_CLASS} drawn of "
        "each class. A dash: the network's file is public, not at hand."
    )
    missing = [Paragraph(source.without_labels)] if source.without_labels else []
    return [
        Paragraph(text),
        *missing,
        StudyTable("table-1", title, columns, tuple(rows)),
        accuracy_claim({name: _accuracy(rows, name, source) for name in NETWORKS}),
    ]


COLUMNS = ("recall, train", "recall, test", "images, train", "images, test")


def _rows(name: str, network: Network | None, source: ClassSource) -> list[tuple[Cell, ...]]:
    numbers: dict[str, list[float | None]] = {str(label): [] for label in (*CLASSES, "all")}
    for count in (None, IMAGES_OF_CLASS):
        for split in SPLITS:
            images = source.images(split) if count is None else source.drawn(split, count)
            right = None
            if network is not None and images is not None:
                right = right_answers(network, images)
            for label, found in numbers.items():
                found.append(_number(right, images, label, is_count=count is not None))
    rows: list[tuple[Cell, ...]] = []
    for label, found in numbers.items():
        paper = TABLE_1[label, name]
        cells: dict[str, Cell] = {
            column: Beside(ours, printed)
            for column, ours, printed in zip(COLUMNS, found, paper, strict=True)
        }
        reason = reasons_of(label, cells, REASONS)
        rows.append((name, label, *cells.values(), reason))
    return rows


def _number(
    right: npt.NDArray[np.bool_] | None, images: Dataset | None, label: str, *, is_count: bool
) -> float | None:
    if right is None or images is None:
        return None
    chosen = right if label == "all" else right[images.labels == int(label)]
    if not len(chosen):
        return None
    return int(chosen.sum()) if is_count else float(chosen.mean())


def _accuracy(rows: list[tuple[Cell, ...]], name: str, source: ClassSource) -> Beside:
    """Beside the paper's, where all testing images and the network's file are at hand."""
    images = source.images("test")
    found = next(row[3] for row in rows if row[:2] == (name, "all"))
    if images is None or len(images) != ALL_TESTING or not isinstance(found, Beside):
        return Beside(None, TABLE_1["all", name][1])
    return found


def accuracy_claim(accuracies: Mapping[str, Beside]) -> StudyClaim:
    """An accuracy is a mean of the classes' recalls, so it cannot exceed the largest of them; and
    over all testing images that of a file is exact."""
    cases = []
    for name, found in accuracies.items():
        recalls = [float(TABLE_1[str(label), name][1]) for label in CLASSES]
        printed = TABLE_1["all", name][1]
        is_wrong = found.agrees is False or not min(recalls) <= float(printed) <= max(recalls)
        shows = f"{printed}, while the recalls of its classes are {min(recalls):.3f} to " + (
            f"{max(recalls):.3f}"
        )
        if isinstance(found.ours, float):
            shows += f", and its file has {found.ours:.3f}"
        outcome = False if is_wrong else (found.agrees or None)
        cases.append(fact(name, outcome, shows, rule=f"{printed} by its file"))
    return StudyClaim(
        f"The networks' testing accuracies are {', '.join(TABLE_1['all', n][1] for n in NETWORKS)}",
        "Table 1",
        "the paper's own recalls of classes, and the networks' files on all testing images",
        tuple(cases),
    )
