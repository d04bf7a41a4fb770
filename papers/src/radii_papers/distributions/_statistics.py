"""Lowest, mean, median and counts of the radii: Tables 5, 6, 8, 9 and 10 of the appendix.

Once with the paper's dropping of rows without an answer, once with every row kept as the interval
that is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from radii.statistics import Distribution
from radii_papers._steps import Paragraph, Part, StudySettings
from radii_papers._tables import (
    Beside,
    Cell,
    StudyTable,
    interval_text,
    reasons_of,
)
from radii_papers.distributions._claims import mean_tests, means_claim
from radii_papers.distributions._numbers import (
    CONVENTIONAL,
    INSTANCES,
    STATISTICS,
)
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    NETWORKS_OF_SECTION_4,
    PAPER_IMAGES,
    SPLIT_NAMES,
    SPLITS,
    PublicResults,
    PublishedNetwork,
    Split,
    networks_of,
    unanswered_images,
)

WHOLE_SETS = "the paper's accuracy is over whole data sets, which the files do not hold"

LOWEST, MEAN, ROWS, ERRORS = "lowest", "mean", "rows", "errors"


def lowest_and_mean(part: Distribution | None) -> tuple[float | None, float | None]:
    """Of the proven sides, which are all that the paper averages."""
    if part is None:
        return None, None
    return float(part.lower.min()), float(part.lower.mean())


def statistics_row(
    results: PublicResults, network: PublishedNetwork, paper: Sequence[str]
) -> dict[str, Cell]:
    """Lowest, mean and rows with an answer, of both splits; `paper` has the same in this order."""
    cells: dict[str, Cell] = {}
    parts = {split: results.part(network, split) for split in SPLITS}
    found = {split: lowest_and_mean(part) for split, part in parts.items()}
    for place, name in enumerate((LOWEST, MEAN)):
        for offset, split in enumerate(SPLITS):
            printed = paper[2 * place + offset]
            value = found[split][place]
            ours: float | str | None = value
            if printed == "x" and value == 0.0:
                ours = "x"  # the paper's sign for: nothing is proven about any image
            cells[f"{name}, {split}"] = Beside(ours, printed)
    for offset, split in enumerate(SPLITS):
        part = parts[split]
        count = None if part is None else len(part)
        cells[f"{ROWS}, {split}"] = Beside(count, paper[4 + offset])
    return cells


def _medians(results: PublicResults, network: PublishedNetwork) -> list[float | None]:
    """Of the proven sides of either split; the paper prints none."""
    parts = [results.part(network, split) for split in SPLITS]
    return [None if part is None else float(np.median(part.lower)) for part in parts]


MEDIANS = tuple(f"median, {split}" for split in SPLITS)


def conventional_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 5."""
    rows = []
    for network in NETWORKS_OF_SECTION_4:
        cells = statistics_row(results, network, CONVENTIONAL[(network.architecture,)])
        reason = reasons_of(network.title, cells, REASONS_5)
        rows.append((network.title, *cells.values(), *_medians(results, network), reason))
    totals = {split: _rows_in_all(results, split, is_dropped=False) for split in SPLITS}
    answered = {split: _rows_in_all(results, split, is_dropped=True) for split in SPLITS}
    counts = "; ".join(
        f"{totals[split]} on {SPLIT_NAMES[split]} images (paper: {INSTANCES[split]}), of which "
        f"{answered[split]} have an answer"
        for split in SPLITS
    )
    columns = ("network", *cells, *MEDIANS, "reason of a difference")
    forms = ("",) * (len(columns) - 3) + (".3f", ".3f", "")
    return [
        Paragraph(f"Rows of the twelve networks on images 0 to {PAPER_IMAGES - 1}: {counts}."),
        StudyTable(
            "table-5",
            "Table 5: twelve conventionally trained MNIST networks",
            columns,
            tuple(rows),
            forms,
        ),
        Paragraph(f"Its two columns of accuracy are left out: {WHOLE_SETS}."),
    ]


REASONS_5 = {
    **{
        (
            name,
            "mean, train",
        ): "Table 6 tests the same rows and agrees, so the paper's mean is a slip"
        for name in ("relu_9_200", "net_256x6")
    },
    ("nn", "rows, train"): "Table 6 agrees with all rows, so the paper's count is a slip",
}


def _rows_in_all(results: PublicResults, split: Split, *, is_dropped: bool) -> int:
    parts = [results.part(n, split, is_dropped=is_dropped) for n in NETWORKS_OF_SECTION_4]
    return sum(len(part) for part in parts if part is not None)


def trained_table(
    results: PublicResults, dataset: str, number: int, reasons: Mapping[tuple[str, str], str]
) -> list[Part]:
    """Table 8, 9 or 10, with the test by which the paper marks means that training changed."""
    rows = []
    for network in networks_of(dataset):
        paper = STATISTICS[network.architecture, network.training]
        cells = statistics_row(results, network, paper)
        for offset, split in enumerate(SPLITS):
            cells[f"{ERRORS}, {split}"] = _errors(results, network, split, paper[6 + offset])
        reason = reasons_of(network.title, cells, reasons)
        extra = [*_medians(results, network), *_changes(results, network)]
        rows.append((network.title, *cells.values(), *extra, reason))
    columns = (
        "network",
        *cells,
        *MEDIANS,
        "p of the mean, train",
        "p of the mean, test",
        "reason of a difference",
    )
    forms = ("",) * (len(columns) - 5) + (".4f", ".4f", ".3f", ".3f", "")
    title = f"Table {number}: {dataset} networks under several trainings"
    return [StudyTable(f"table-{number}", title, columns, tuple(rows), forms)]


def _errors(
    results: PublicResults, network: PublishedNetwork, split: Split, printed: str
) -> Beside:
    """Rows without any answer; files that do not hold such rows cannot tell."""
    table = results.table(network.table)
    part = results.part(network, split, is_dropped=False)
    if table is None or part is None or not table.unsolved:
        return Beside(None, printed)
    return Beside(part.unsolved, printed)


def _change(results: PublicResults, network: PublishedNetwork, split: Split) -> float | None:
    """Welch's p-value between the proven means under this and under the first training."""
    from scipy.stats import ttest_ind

    first = next(n for n in ALL_NETWORKS if n.architecture == network.architecture)
    if first is network:
        return None
    both = [results.part(each, split) for each in (first, network)]
    if both[0] is None or both[1] is None or min(len(part) for part in both if part) < 2:
        return None
    values = [part.lower for part in both if part is not None]
    if all(np.ptp(side) == 0 for side in values):
        return None
    return float(ttest_ind(*values, equal_var=False).pvalue)


def _changes(results: PublicResults, network: PublishedNetwork) -> list[float | None]:
    return [_change(results, network, split) for split in SPLITS]


def mnist_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 8."""
    parts = trained_table(results, "MNIST", 8, REASONS_8)
    networks = networks_of("MNIST", convolutional=True)
    parts.append(means_claim([t for split in SPLITS for t in mean_tests(results, networks, split)]))
    if results.relabelled:
        names = " and ".join(results.relabelled)
        parts.append(
            Paragraph(
                f"Testing rows of {names} are of training images: the paper compares these "
                "networks' training images with themselves (Table 8).",
                is_finding=True,
            )
        )
    for name, (equal, total) in results.relabelled.items():
        parts.append(
            Paragraph(
                f"**{name}**: the rows of both splits list the same images, and {equal} of {total} "
                "brackets are equal. The testing rows were measured on training images; only the "
                "labels beside them are those of testing images. What the paper says about "
                f"testing images of {name} here is about training images."
            )
        )
    return parts


REASONS_8 = {
    ("mnist_nn Standard", f"rows, {split}"): "the paper counts a row without an answer"
    for split in SPLITS
}

REASONS_10 = {
    **{
        (f"gtsrb_cnn_vnncomp23 {training}", f"rows, {split}"): (
            "the file's rows are of networks called ..._relu, perhaps of a later training"
        )
        for training in ("Standard", "FGSM")
        for split in SPLITS
    },
    **{
        ("gtsrb_cnn_vnncomp23 PGD", f"errors, {split}"): "no row has an answer: 0 on both sides"
        for split in SPLITS
    },
}


def cifar_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 9."""
    return [
        *trained_table(results, "CIFAR-10", 9, {}),
        Paragraph(
            "Images without any answer, which the paper counts as errors, have no rows in the "
            "file. The paper's two columns of them are exchanged: only with the errors of the "
            "other column do rows and errors add up to the images that are classified correctly "
            "(Table 15), and to the shares of unsolved images in Tables 2 and 3. Below, and in "
            "Tables 2 and 3, they count for the split to which they belong."
        ),
        Paragraph(
            "Table 9 has the errors of training and testing images exchanged, and Tables 3 and 9 "
            "give resnet_4b the accuracy of resnet_18.",
            is_finding=True,
        ),
    ]


def gtsrb_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 10."""
    return trained_table(results, "GTSRB", 10, REASONS_10)


def kept_table(results: PublicResults, _: StudySettings) -> list[Part]:
    """Mean and median with the paper's dropping, and with every image kept as what is known."""
    rows = []
    for network in ALL_NETWORKS:
        for split in SPLITS:
            row = _kept_row(results, network, split)
            if row is not None:
                rows.append((network.title, split, *row))
    columns = (
        *("network", "split", "answered", "mean proven", "median proven", "without an answer"),
        *("mean of all", "median of all"),
    )
    forms = ("", "", "", ".4f", ".4f", "", "", "")
    return [
        Paragraph(
            "The paper drops images without an answer, and averages what is proven about the "
            "others. An image without an answer has a radius between 0 and infinity: kept as "
            "that, it widens what is known of the mean (without a witness there is no upper "
            "side) and moves the median. Only networks with such images are listed; those of "
            "CIFAR-10 are taken from the paper's own count, since the file leaves them out."
        ),
        StudyTable(
            "rows-kept",
            "Every image kept: mean and median with and without the paper's dropping",
            columns,
            tuple(rows),
            forms,
        ),
    ]


def _kept_row(
    results: PublicResults, network: PublishedNetwork, split: Split
) -> tuple[Cell, ...] | None:
    dropped = results.part(network, split)
    kept = results.part(network, split, is_dropped=False)
    if kept is None:
        return None
    answered = 0 if dropped is None else len(dropped)
    missing = len(kept) - answered
    if network.dataset == "CIFAR-10":
        missing = unanswered_images(network, split)
        nothing = Distribution.from_arrays(
            np.zeros(missing), np.full(missing, math.inf), network=network.name, split=split
        )
        kept = Distribution.union([kept, nothing]) if missing else kept
    if not missing:
        return None
    right = kept.correctly_classified()
    mean = None if dropped is None else float(dropped.lower.mean())
    median = None if dropped is None else float(np.median(dropped.lower))
    return (
        answered,
        mean,
        median,
        missing,
        interval_text(*right.mean()),
        interval_text(*right.median()),
    )
