"""Boxes and curves: Figures 2 to 5 of Section 4, 8 and 9 of Section 5, 10 and 11 of 6."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radii.statistics import Distribution, holm
from radii.statistics import compare as compare_distributions
from radii.views import draw_boxes
from radii_papers._steps import Paragraph, Part, StudyFigure, StudySettings
from radii_papers._tables import Beside, Cell, StudyTable, reasons_of
from radii_papers.distributions._claims import (
    convolutional_claims,
    dense_claim,
    training_pairs,
)
from radii_papers.distributions._image_claims import order_claim, split_claim
from radii_papers.distributions._numbers import (
    ROBUST_ACCURACIES,
    SIGNIFICANCE,
)
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    NETWORKS_OF_SECTION_4,
    PublicResults,
    PublishedNetwork,
    Split,
    networks_of,
)
from radii_papers.distributions._quality import two_sample_p_value
from radii_papers.figures import draw_ecdf_panels

MARKED_EPS = (0.012, 0.04)
"""Two radii of the literature, which the paper's figures mark."""

PERMUTATIONS = 999

NO_ROWS = "The files hold no rows for this figure."


def training_boxes(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 2, and the robust accuracies that its text reads off."""
    joined = results.joined(NETWORKS_OF_SECTION_4, "train")
    if joined is None:
        return [Paragraph(NO_ROWS)]
    rows: list[tuple[Cell, ...]] = []
    for (name,), paper in ROBUST_ACCURACIES.items():
        if name not in joined.networks:
            continue
        part = joined.only(network=name)
        cells: dict[str, Cell] = {
            f"proven at {eps:g}": Beside(100 * float((part.lower >= eps).mean()), printed)
            for eps, printed in zip(MARKED_EPS, paper, strict=True)
        }
        rows.append((name, *cells.values(), reasons_of(name, cells, {})))
    names = (f"proven at {eps:g}" for eps in MARKED_EPS)
    columns = ("of training images, %", *names, "reason of a difference")
    title = "Figure 2: radii of twelve networks on training images, by their minimum"
    return [
        StudyFigure("figure-2", title, lambda: draw_boxes(joined, sort="minimum", eps=MARKED_EPS)),
        StudyTable(
            "section-4-3", "Section 4.3: robust accuracy, of correct images", columns, tuple(rows)
        ),
        order_claim(results, MARKED_EPS),
    ]


def by_median(
    results: PublicResults, networks: Sequence[PublishedNetwork], split: Split = "train"
) -> list[tuple[PublishedNetwork, float]]:
    """Networks with rows, the one with the largest proven median first."""
    found = []
    for network in networks:
        part = results.part(network, split)
        if part is not None:
            found.append((network, float(np.median(part.lower))))
    return sorted(found, key=lambda pair: -pair[1])


def training_curves(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 3: the two networks with the largest median, and the largest beside the smallest."""
    ranked = by_median(results, NETWORKS_OF_SECTION_4)
    if len(ranked) < 2:
        return [Paragraph(NO_ROWS)]
    medians = ", ".join(f"{network.title} {median:g}" for network, median in ranked)
    panels = {}
    for first, second in ((0, 1), (0, -1)):
        pair = [ranked[first][0], ranked[second][0]]
        joined = results.joined(pair, "train")
        if joined is not None:
            panels[" and ".join(network.title for network in pair)] = joined
    title = (
        "Figure 3: the largest median beside the second and beside the smallest, training images"
    )
    return [
        Paragraph(f"Networks by their proven median: {medians}."),
        StudyFigure("figure-3", title, lambda: draw_ecdf_panels(panels)),
    ]


def split_boxes(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 4."""
    joined = results.joined(NETWORKS_OF_SECTION_4)
    if joined is None:
        return [Paragraph(NO_ROWS)]
    title = "Figure 4: radii of twelve networks on training and testing images"
    return [
        StudyFigure(
            "figure-4", title, lambda: draw_boxes(joined, by=("network", "split"), sort="minimum")
        )
    ]


def split_curves(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 5."""
    ranked = by_median(results, NETWORKS_OF_SECTION_4)
    if not ranked:
        return [Paragraph(NO_ROWS)]
    panels = _panels(results, [ranked[0][0], ranked[-1][0]])
    title = "Figure 5: training against testing images, largest and smallest median"
    return [StudyFigure("figure-5", title, lambda: draw_ecdf_panels(panels, by="split"))]


def _panels(
    results: PublicResults, networks: Sequence[PublishedNetwork]
) -> dict[str, Distribution]:
    joined = {network.title: results.joined([network]) for network in networks}
    return {title: part for title, part in joined.items() if part is not None}


def _training_panels(
    results: PublicResults, networks: Sequence[PublishedNetwork]
) -> dict[str, Distribution]:
    """One panel for each architecture, on testing images; trainings are its curves."""
    panels = {}
    for architecture in dict.fromkeys(network.architecture for network in networks):
        own = [network for network in networks if network.architecture == architecture]
        joined = results.joined(own, "test")
        if joined is not None:
            panels[architecture] = joined
    return panels


def _training_curves(
    results: PublicResults, number: int, convolutional: bool, kind: str
) -> list[Part]:
    networks = networks_of("MNIST", "CIFAR-10", "GTSRB", convolutional=convolutional)
    panels = _training_panels(results, networks)
    if not panels:
        return [Paragraph(NO_ROWS)]
    title = f"Figure {number}: {kind} networks under several trainings, testing images"
    return [StudyFigure(f"figure-{number}", title, lambda: draw_ecdf_panels(panels, by="training"))]


def dense_curves(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 8."""
    return _training_curves(results, 8, False, "fully connected")


def convolutional_curves(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 10."""
    return _training_curves(results, 10, True, "convolutional")


def _training_boxes(
    results: PublicResults, number: int, networks: Sequence[PublishedNetwork], what: str
) -> list[Part]:
    joined = results.joined(networks)
    if joined is None:
        return [Paragraph(NO_ROWS)]
    title = f"Figure {number}: {what} under several trainings, both splits"
    return [
        StudyFigure(f"figure-{number}", title, lambda: draw_boxes(joined, by=("network", "split")))
    ]


def dense_boxes(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 9."""
    networks = networks_of("MNIST", "GTSRB", convolutional=False)
    return [
        *_training_boxes(results, 9, networks, "fully connected MNIST and GTSRB networks"),
        dense_claim(training_pairs(results, networks, "train")),
    ]


def convolutional_boxes(results: PublicResults, _: StudySettings) -> list[Part]:
    """Figure 11."""
    networks = networks_of("MNIST", convolutional=True)
    return [
        *_training_boxes(results, 11, networks, "convolutional MNIST networks"),
        *convolutional_claims(training_pairs(results, networks, "train")),
    ]


SPLIT_GROUPS = {
    "Section 4, MNIST": NETWORKS_OF_SECTION_4,
    "Section 5, MNIST": networks_of("MNIST", convolutional=False),
    "Section 5, GTSRB": networks_of("GTSRB", convolutional=False),
    "Section 6, MNIST": networks_of("MNIST", convolutional=True),
}
"""Networks that were asked about the same images, in the sections that compare the splits."""


def split_tests(results: PublicResults, _: StudySettings) -> list[Part]:
    """Sections 4.4, 5.3 and 6.3: do radii differ between training and testing images?"""
    tested: list[tuple[PublishedNetwork, tuple[Cell, ...], float, float]] = []
    for network in ALL_NETWORKS:
        train, test = (results.part(network, split) for split in ("train", "test"))
        if train is None or test is None or network.title in results.relabelled:
            continue
        p_value = two_sample_p_value(train.lower, test.lower)
        found = compare_distributions(train, test, permutations=PERMUTATIONS)
        tested.append(
            (
                network,
                (len(train), len(test), found.means.proven),
                p_value,
                found.permutation.p_value,
            )
        )
    adjusted = holm([p_value for *_, p_value in tested]).tolist()
    rows = tuple(
        (network.title, *cells, p_value, permuted, float(corrected))
        for (network, cells, p_value, permuted), corrected in zip(tested, adjusted, strict=True)
    )
    columns = (
        *("network", "training", "testing", "difference of means", "KS p", "permutation p"),
        "after Holm",
    )
    forms = ("", "", "", "+.4f", ".3f", ".3f", ".3f")
    counts = [sum(p < SIGNIFICANCE for p in values) for values in _p_values(rows)]
    larger = sum(row[3] > 0 for row in rows)  # type: ignore[operator]
    left_out = ", ".join(results.relabelled) or "none"
    return [
        Paragraph(
            "The paper finds no significant difference for any network. Its test "
            f"(Kolmogorov-Smirnov on proven sides) gives p below {SIGNIFICANCE:g} for {counts[0]} "
            f"of {len(rows)} networks, a permutation test on brackets for {counts[1]}, and after "
            f"Holm's correction for as many tests for {counts[2]}. To find no difference is "
            "not to show that there is none: with 100 images a side these tests see only large "
            f"ones, and means are larger on training images for {larger} of {len(rows)} networks. "
            f"Left out, since their testing rows are of training images: {left_out}."
        ),
        StudyTable("splits", "Training against testing images", columns, rows, forms),
        split_claim(
            results,
            SPLIT_GROUPS,
            "The paper's test, network by network, gives p below "
            f"{SIGNIFICANCE:g} for {counts[0]} of {len(rows)} networks.",
        ),
    ]


def _p_values(rows: Sequence[tuple[Cell, ...]]) -> list[list[float]]:
    return [[float(row[place]) for row in rows] for place in (4, 5, 6)]  # type: ignore[arg-type]
