"""Sections 4.1 and 4.2: distributions of networks and of their classes (Figures 1 to 4, 8 to 10).

Boxes and tests are of witnessed distances, which all images have; curves show both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics import Distribution, clopper_pearson, holm
from radii.views import draw_boxes, draw_ks_matrix, draw_scatter
from radii_papers._evidence import (
    CLAIM_LEVEL,
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    StudyClaim,
    alike,
    differing,
    within,
)
from radii_papers._intervals import rank_interval
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable, interval_text
from radii_papers.classes._brackets import (
    cpu_minutes,
    given_to_verifier,
    one_to_any,
    sizes_of,
)
from radii_papers.classes._differences import (
    ATTACK_SLACK,
    Pair,
    differences,
    differences_table,
    fewest_images,
    groups_differ,
    networks_differ,
    of_tests,
    splits_alike,
    why_counts_differ,
)
from radii_papers.classes._numbers import (
    CLASSES,
    CURVES_OF_CLASSES,
    GRID,
    IMAGES_OF_CLASS,
    MARKED_EPS,
    NETWORKS,
    ROBUST_ACCURACIES,
    SPLITS_DIFFER,
)
from radii_papers.classes._published import CLAIMED, papers_pair
from radii_papers.classes._source import ClassSource
from radii_papers.distributions._public import SPLITS
from radii_papers.figures import draw_ecdf_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENCE = 0.95

WITNESSED = (
    "Of witnessed distances, which are upper bounds of radii, on a draw of our own; the paper's "
    "are lower bounds."
)
PAIRED_TEST = (
    "Wilcoxon's signed ranks of the images that both networks get right, the larger distances "
    f"taken as {100 * ATTACK_SLACK:g} % too large, since attacks are not exact, Holm"
)

ALONE = "each by itself, as in the paper; to fail, after Holm"
"""How a claim is tested that no difference is found."""

TELLING_WIDTH = 5.0
"""Points: a number within wider limits is not confirmed, and one that is no farther outside them is
not contradicted. The paper's number is of 1,000 other images, which alone may move it by 3 points,
and of its own grid: what it proves at 0.04 it proves at 0.041, which may move it by 2."""


def at_hand(found: Distribution) -> str:
    """The networks that were measured, as claims name them."""
    return " and ".join(found.networks)


def whole_networks(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 1, and the robust accuracies that the text reads off."""
    found, sizes = one_to_any(source, settings), sizes_of(settings)
    proven = given_to_verifier(found)
    given = ", ".join(f"{sizes.proven_of(name)} on {name}" for name in found.networks)
    text = (
        f"Up to {sizes.attacked} images of each class and split are attacked, some of them given "
        f"to radii's verifier ({given}), {sizes.seconds:g} s each, on the paper's grid {GRID} "
        f"(stop excluded): {len(found)} "
        f"brackets, {len(proven)} of them with proofs. Of the others the witnessed side alone is "
        "known, an upper bound of the radius. The paper has "
        f"{IMAGES_OF_CLASS} images of each class and split, all with proofs: its numbers are lower "
        "bounds by oval-bab, up to an hour for a query. These brackets took "
        f"{cpu_minutes(found)}."
    )
    title = "Figure 1: radii of the networks, by split"
    return [
        Paragraph(text),
        *([Paragraph(source.without_labels)] if source.without_labels else []),
        StudyFigure(
            "figure-1",
            title,
            lambda: draw_boxes(found, by=("network", "split"), eps=MARKED_EPS, side="upper"),
        ),
        *_robust_accuracies(found, proven),
    ]


def _robust_accuracies(found: Distribution, proven: Distribution) -> list[Part]:
    """At each marked eps: proven of those with proofs, not refuted of all, beside the paper's."""
    rows: list[tuple[Cell, ...]] = []
    for name in NETWORKS:
        printed = ROBUST_ACCURACIES.get(name, ("", ""))
        for split in SPLITS:
            cells: list[Cell] = []
            for eps, paper in zip(MARKED_EPS, printed, strict=True):
                limits = _limits(found, proven, name, split, eps, CONFIDENCE)
                cells += ["" if limits is None else interval_text(*limits, 1), paper or None]
            rows.append((name, split, *cells))
    columns = ["network", "split"]
    for eps in MARKED_EPS:
        columns += [f"at {eps:g}, %", f"at {eps:g}, paper %"]
    title = (
        "Section 4.1: robust accuracy in per cent, from the least that is proven to the most that "
        "is not refuted, each with its 95 % limit as a sample"
    )
    return [
        StudyTable("section-4-1", title, tuple(columns), tuple(rows)),
        *([accuracy_claim(found, proven)] if set(ROBUST_ACCURACIES) & set(found.networks) else []),
    ]


def accuracy_claim(found: Distribution, proven: Distribution) -> StudyClaim:
    """A case for each number of the paper about a network at hand. It does not say of which
    images, so the limits reach from the lower end of one split to the upper end of the other."""
    known = [name for name in ROBUST_ACCURACIES if name in found.networks]
    comparisons = len(MARKED_EPS) * len(SPLITS) * len(known)
    cases, claimed = [], []
    for name in known:
        parts = [part.only(network=name) for part in (found, proven) if name in part.networks]
        images = min(len(own) for part in parts for own in _by_split(part).values())
        numbers = list(zip(MARKED_EPS, ROBUST_ACCURACIES[name], strict=True))
        for eps, paper in numbers:
            several = [
                _limits(found, proven, name, split, eps, 1 - CLAIM_LEVEL / comparisons)
                for split in SPLITS
            ]
            lows, highs = zip(*(limits for limits in several if limits is not None), strict=True)
            limits = min(lows), max(highs)
            cases.append(accuracy_case(f"{name} at {eps:g}", images, limits, float(paper)))
        shown = " and ".join(f"{paper} % at {eps:g}" for eps, paper in numbers)
        claimed.append(f"of {name} is {shown}")
    return StudyClaim(
        f"Robust accuracy {', '.join(claimed)}",
        "Section 4.1",
        "exact limits of what is proven and of what is not refuted, over both splits, Bonferroni",
        tuple(cases),
        note="The paper does not say whether it speaks of training or of testing images.",
    )


def accuracy_case(name: str, n: int, limits: tuple[float, float], paper: float) -> ClaimCase:
    """It fails only where the paper's number lies farther outside than sampling and the grid may
    move it."""
    low, high = limits
    outcome = CaseOutcome.UNCLEAR
    if low <= paper <= high and high - low <= TELLING_WIDTH:
        outcome = CaseOutcome.HOLDS
    elif paper < low - TELLING_WIDTH or paper > high + TELLING_WIDTH:
        outcome = CaseOutcome.FAILS
    return ClaimCase(
        name=name, basis=ClaimBasis.THEIRS, n=n, shows=f"{low:.1f} to {high:.1f} %",
        rule=f"{paper:g} % inside, and at most {TELLING_WIDTH:g} points apart; fails where it lies "
        f"more than {TELLING_WIDTH:g} points outside", outcome=outcome,
    )  # fmt: skip


def _limits(
    found: Distribution,
    proven: Distribution,
    name: str,
    split: str,
    eps: float,
    confidence: float,
) -> tuple[float, float] | None:
    """Per cent: the low end of what is proven, the high end of what is not refuted."""
    if name not in found.networks or split not in found.column("split"):
        return None
    whole = found.only(network=name, split=split)
    own = (proven.network == name) & (proven.column("split") == split)
    stands = round(whole.robust_accuracy(eps).not_refuted * len(whole))
    low = 0.0
    if own.any():
        holds = int(np.count_nonzero((proven.lower >= eps)[own]))
        low = clopper_pearson(holds, int(own.sum()), confidence)[0]
    high = clopper_pearson(stands, len(whole), confidence)[1]
    return 100 * low, 100 * high


def network_tests(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 8: networks against each other, by split."""
    found = one_to_any(source, settings)
    matrix = differences(found, "network")
    if matrix is None:
        return [Paragraph("There is one network only: nothing to compare.")]
    table = differences_table(
        "figure-8-counts", "Figure 8 in numbers", "networks", {"all at hand": matrix}, {}
    )
    return [
        StudyFigure(
            "figure-8",
            "Figure 8: networks against each other",
            lambda: draw_ks_matrix(found, "network", side="upper"),
        ),
        table,
        Paragraph(of_tests(sizes_of(settings).attacked)),
        StudyClaim(
            f"Robustness distributions of {at_hand(found)} differ, on training and on testing "
            "images",
            "Section 4.1, Figure 8",
            PAIRED_TEST,
            tuple(networks_differ(_by_split(found))),
            note=WITNESSED,
        ),
        one_split_differs(matrix.between_splits(), fewest_images(found, "network")),
    ]


def _by_split(found: Distribution) -> dict[str, Distribution]:
    return {split: part for split, part in found.group_by("split").items() if len(part)}


def one_split_differs(between_splits: Mapping[str, float], images: int) -> StudyClaim:
    """The paper: mnist-net's splits differ, those of mnist-net_256x4 are not found to. The p-values
    are by network."""
    claimed = {"mnist-net": differing, "mnist-net_256x4": alike}
    p_values = {name: p for name, p in between_splits.items() if name in claimed}
    adjusted = holm(list(p_values.values())).tolist()
    return StudyClaim(
        "Training and testing images differ significantly on mnist-net, and are not found to on "
        "mnist-net_256x4",
        "Figure 1",
        "Kolmogorov and Smirnov's test between different images, Holm; that no difference is found "
        f"{ALONE}",
        tuple(
            claimed[name](name, ClaimBasis.THEIRS, images, p_value, corrected)
            for (name, p_value), corrected in zip(p_values.items(), adjusted, strict=True)
        ),
        note=WITNESSED,
    )


def class_boxes(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 2: a figure for each network, and the median bracket of every class."""
    found = one_to_any(source, settings)
    proven = given_to_verifier(found)
    parts: list[Part] = []
    for letter, name in zip("abc", found.networks, strict=False):
        own = found.only(network=name)
        title = f"Figure 2{letter}: radii of {name} by class"
        parts.append(
            StudyFigure(
                f"figure-2{letter}",
                title,
                lambda own=own: _class_boxes(own),  # type: ignore[misc]
            )
        )
    return [*parts, _medians(found, proven)]


def _class_boxes(own: Distribution) -> Figure:
    return draw_boxes(own, by=("class", "split"), side="upper")


def _medians(found: Distribution, proven: Distribution) -> StudyTable:
    """Of each class: the median as proven and as witnessed, correct images of both splits."""
    rows = []
    for label in CLASSES:
        row: list[Cell] = [label]
        for name in found.networks:
            row += _median_cells(found, proven, name, label)
        rows.append(tuple(row))
    columns = ["class"]
    for name in found.networks:
        columns += [f"{name}: images", "proven median", "witnessed median", "lowest witness"]
    forms = ("", *(("", ".3f", ".3f", ".3f") * len(found.networks)))
    title = "Figure 2 in numbers: median radii of classes, both splits"
    return StudyTable("figure-2-medians", title, tuple(columns), tuple(rows), forms)


def _median_cells(found: Distribution, proven: Distribution, name: str, label: int) -> list[Cell]:
    own = (found.network == name) & (found.label == label) & found.correct
    some = (proven.network == name) & (proven.label == label) & proven.correct
    low = float(np.median(proven.lower[some])) if some.any() else None
    if not own.any():
        return [0, low, None, None]
    upper = found.upper[own]
    return [int(own.sum()), low, float(np.median(upper)), float(upper.min())]


def class_curves_figure(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 3: networks' curves for two classes, testing images."""
    found = _preferred(one_to_any(source, settings))
    panels = {
        f"class {label}": found.select(found.label == label).correctly_classified()
        for label in CURVES_OF_CLASSES
        if np.any((found.label == label) & found.correct)
    }
    title = "Figure 3: two classes on every network, testing images where there are some"
    return [StudyFigure("figure-3", title, lambda: draw_ecdf_panels(panels))]


def _preferred(found: Distribution) -> Distribution:
    """Testing images where there are some, else training images."""
    is_test = found.column("split") == "test"
    return found.select(is_test) if is_test.any() else found


def class_points(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 4: the same images on two networks; are the same ones hard?"""
    from radii.statistics import spearman_matrix

    found = _preferred(one_to_any(source, settings))
    if len(found.networks) < 2:
        return [Paragraph("There is one network only: nothing to compare.")]
    parts: list[Part] = []
    rows: list[tuple[Cell, ...]] = []
    for letter, label in zip("ab", CURVES_OF_CLASSES, strict=True):
        own = found.select(found.label == label)
        pair = (own.networks[0], own.networks[1])
        title = f"Figure 4{letter}: images of class {label} on two networks"
        parts.append(
            StudyFigure(
                f"figure-4{letter}",
                title,
                lambda own=own, pair=pair: draw_scatter(own, [pair], side="upper"),  # type: ignore[misc]
            )
        )
        ranks = spearman_matrix(own, "upper")
        rows.append((label, int(ranks.inputs[0, 1]), float(ranks.coefficients[0, 1])))
    columns = ("class", "images right on both", "Spearman's coefficient")
    table = StudyTable(
        "figure-4-ranks", "Figure 4 in numbers: witnessed distances", columns, tuple(rows),
        ("", "", ".2f"),
    )  # fmt: skip
    return [*parts, table, _same_images_hard(rows, papers_pair(source, CURVES_OF_CLASSES[1]))]


def _same_images_hard(rows: list[tuple[Cell, ...]], published: Pair | None) -> StudyClaim:
    """Below 0.5, less than a quarter of the ranks' variation is shared. The claim is of the paper's
    own pair, of which there are published brackets only."""
    shown = ", ".join(f"class {row[0]}: {row[2]:.2f} on {row[1]} images" for row in rows)
    cases = []
    if published is not None:
        interval = rank_interval(*published)
        n = len(published[0])
        cases.append(within("published brackets", ClaimBasis.THEIRS, n, interval, below=LOOSE))
    return StudyClaim(
        "Images of class 6 that are easy to perturb for mnist-net need not be for "
        "mnist_relu_4_1024",
        "Section 4.2, Figure 4b",
        "Spearman's coefficient over images of both, bootstrap over images",
        tuple(cases),
        note=f"{CLAIMED} Another pair, mnist-net and mnist-net_256x4, by witnessed distances: "
        f"{shown}.",
    )


LOOSE = 0.5
"""A rank correlation below which most of the order is not shared."""


def class_tests(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 9: classes against each other, a matrix for each network."""
    found = one_to_any(source, settings)
    matrices = {name: differences(part, "class") for name, part in found.by_network().items()}
    known = {name: each for name, each in matrices.items() if each is not None}
    others = [name for name in NETWORKS if name not in matrices]
    table = differences_table(
        "figure-9-counts",
        "Figure 9 in numbers: pairs of classes, and classes whose splits differ",
        "network",
        matrices,
        SPLITS_DIFFER,
        others=others,
        reason=why_counts_differ(sizes_of(settings).attacked),
    )
    parts = {
        f"{name}, {split}": part
        for name, own in found.by_network().items()
        for split, part in _by_split(own).items()
    }
    return [
        StudyFigure(
            "figure-9",
            "Figure 9: classes against each other",
            lambda: draw_ks_matrix(found, "class", side="upper"),
        ),
        table,
        Paragraph(of_tests(sizes_of(settings).attacked)),
        StudyClaim(
            f"On {at_hand(found)} classes have significantly different robustness distributions",
            "Section 4.2, Figure 9",
            "Kruskal and Wallis' test between classes, whose images are others, Holm",
            tuple(groups_differ(parts, "class", "upper")),
            note=WITNESSED,
        ),
        StudyClaim(
            f"For most classes of {at_hand(found)}, training and testing images are not found to "
            "differ significantly",
            "Section 4.2, Figure 9",
            f"Kolmogorov and Smirnov's test between different images, {ALONE}",
            tuple(splits_alike(known, fewest_images(found, "class"))),
            ClaimScope.MOST,
            WITNESSED,
        ),
    ]


def networks_by_class(source: ClassSource, settings: StudySettings) -> list[Part]:
    """Figure 10: networks against each other, a matrix for each class; and who leads where."""
    found = one_to_any(source, settings)
    if len(found.networks) < 2:
        return [Paragraph("There is one network only: nothing to compare.")]
    matrices = {
        f"class {label}": differences(part, "network")
        for label, part in found.group_by("class").items()
    }
    table = differences_table(
        "figure-10-counts", "Figure 10 in numbers: networks, by class", "of", matrices, {}
    )
    parts = {
        f"class {label}, {split}": part
        for label in CURVES_OF_CLASSES
        if label in found.labels
        for split, part in _by_split(found.select(found.label == label)).items()
    }
    return [
        StudyFigure(
            "figure-10",
            "Figure 10: networks against each other, by class",
            lambda: draw_ks_matrix(found, ("network", "class"), side="upper"),
        ),
        table,
        StudyClaim(
            f"For classes 2 and 6 the distributions of {at_hand(found)} differ, on both splits",
            "Section 4.2, Figure 10",
            PAIRED_TEST,
            tuple(networks_differ(parts)),
            note=WITNESSED,
        ),
    ]
