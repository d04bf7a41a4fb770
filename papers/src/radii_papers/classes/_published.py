"""What the JAIR paper's public brackets say by class: of twelve networks, all of the paper's three.

They are claims, not proofs of radii, and many fall to attacks: see the study `distributions`.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from radii.statistics import NO_NUMBER, Distribution
from radii.views import draw_ks_matrix
from radii_papers._evidence import StudyClaim
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.classes._differences import (
    Pair,
    differences,
    differences_table,
    groups_differ,
    paired_values,
)
from radii_papers.classes._leads import (
    class_leads,
    crossing_claim,
    leads_table,
)
from radii_papers.classes._numbers import NETWORKS, SPLITS_DIFFER
from radii_papers.classes._source import ClassSource
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    SPLITS,
    PublicResults,
    PublishedNetwork,
)

CLAIMED = (
    "These are lower sides that the JAIR paper published, of which the study `distributions` "
    "refutes many."
)

FEWEST_ROWS = 3
"""Of a class, for a median of it to be shown."""


def published_classes(source: ClassSource, _: StudySettings) -> list[Part]:
    """Medians by class of all networks, and tests between classes of the paper's three."""
    if source.public is None:
        return [Paragraph("The public tables of the JAIR paper are not at hand.")]
    parts, wrong, unknown = {}, 0, 0
    for network in NETWORKS_OF_SECTION_4:
        part, counts = _labelled(source, source.public, network)
        wrong, unknown = wrong + counts[0], unknown + counts[1]
        if part is not None:
            parts[network.name] = part
    if not parts:
        return [Paragraph("No row of the public tables has a label that is known.")]
    rows = sum(map(len, parts.values()))
    text = (
        f"{rows} public rows are read by class: the label is the file's or, by the image's number, "
        f"MNIST's. Left out are {unknown} rows whose label is not known and {wrong} that are "
        "labelled otherwise than the image of that number in MNIST. Lower sides are what was "
        "published: claims, of which many fall to attacks (the study `distributions`)."
    )
    return [
        Paragraph(text),
        *([Paragraph(source.without_labels)] if source.without_labels else []),
        _medians(parts),
        *_tests(parts),
        _same_images(parts),
        *_leads(parts),
    ]


def _labelled(
    source: ClassSource, public: PublicResults, network: PublishedNetwork
) -> tuple[Distribution | None, tuple[int, int]]:
    """The rows of a network with labels; how many contradict MNIST, and how many have none."""
    kept, wrong, unknown = [], 0, 0
    for split in SPLITS:
        part = public.part(network, split, images=None)
        if part is None:
            continue
        labels = part.label.copy()
        images = source.images(split)
        true = np.full(len(part), NO_NUMBER)
        if images is not None:
            numbers = part.column("input")
            known = numbers < len(images)
            true[known] = images.labels[numbers[known]]
        contradicts = (labels != NO_NUMBER) & (true != NO_NUMBER) & (labels != true)
        labels = np.where(labels == NO_NUMBER, true, labels)
        is_good = ~contradicts & (labels != NO_NUMBER)
        wrong, unknown = wrong + int(contradicts.sum()), unknown + int((labels == NO_NUMBER).sum())
        if is_good.any():
            kept.append(part.labelled(label=labels, network=network.name).select(is_good))
    return (Distribution.union(kept) if kept else None), (wrong, unknown)


def _medians(parts: dict[str, Distribution]) -> StudyTable:
    """A row for each network: claimed medians of classes, weakest and strongest."""
    labels = sorted({label for part in parts.values() for label in part.labels})
    rows: list[tuple[Cell, ...]] = []
    for name, part in parts.items():
        medians = {
            label: float(np.median(own.lower))
            for label, own in part.group_by("class").items()
            if len(own) >= FEWEST_ROWS
        }
        cells: list[Cell] = [medians.get(label) for label in labels]
        ends: list[Cell] = [None, None]
        if medians:
            ends = [min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)]
        rows.append((name, len(part), *cells, *ends))
    columns = ("network", "rows", *(f"class {label}" for label in labels), "weakest", "strongest")
    forms = ("", "", *([".3f"] * len(labels)), "", "")
    title = "Published brackets by class: medians of what is claimed to be proven, both splits"
    return StudyTable("published", title, columns, tuple(rows), forms)


def _tests(parts: dict[str, Distribution]) -> list[Part]:
    own = {name: parts[name] for name in NETWORKS if name in parts}
    if not own:
        return []
    joined = Distribution.union(own.values())
    matrices = {name: differences(part, "class", "lower") for name, part in own.items()}
    table = differences_table(
        "published-counts",
        "Pairs of classes that differ in the published brackets of the paper's networks",
        "network",
        matrices,
        SPLITS_DIFFER,
        reason="the JAIR paper's images, fewer of each class",
    )
    third = own[THIRD].group_by("split") if THIRD in own else {}
    return [
        StudyFigure(
            "published-ks",
            "Published brackets: classes against each other",
            lambda: draw_ks_matrix(joined, "class"),
        ),
        table,
        StudyClaim(
            f"Classes differ on {THIRD} too",
            "Section 4.2, Figure 9c",
            "Kruskal and Wallis' test between classes, whose images are others, Holm",
            tuple(groups_differ({f"{s} images": p for s, p in third.items()}, "class", "lower")),
            note=f"With few images of a class. {CLAIMED}",
        ),
    ]


THIRD = "mnist_relu_4_1024"
"""The paper's network whose file is public and not at hand."""

PAPERS_PAIR = ("mnist_relu_4_1024", "mnist-net")
"""Of the paper's Figures 4 and 7."""


def _same_images(parts: dict[str, Distribution]) -> StudyTable:
    """Of the pair in the paper's Figure 4: are the same images hard, class by class?"""
    pair = [parts[name] for name in PAPERS_PAIR if name in parts]
    labels = pair[0].labels if len(pair) == 2 else ()
    rows = tuple((label, *_rank_correlation(pair[0], pair[1], label)) for label in labels)
    columns = ("class", "images of both", "Spearman's coefficient")
    title = "Figure 4's pair: mnist_relu_4_1024 and mnist-net on the same images, as published"
    return StudyTable("published-pairs", title, columns, rows, ("", "", ".2f"))


def papers_pair(source: ClassSource, label: int) -> Pair | None:
    """The published lower sides of the paper's pair, of the images of a class that both have."""
    if source.public is None:
        return None
    networks = [each for each in NETWORKS_OF_SECTION_4 if each.name in PAPERS_PAIR]
    pair = [_labelled(source, source.public, each)[0] for each in networks]
    if len(pair) < 2 or pair[0] is None or pair[1] is None:
        return None
    one, two = (part.select(part.label == label) for part in pair if part is not None)
    first, second = paired_values(one, two, "lower")
    return (first, second) if len(first) >= FEWEST_ROWS else None


def _rank_correlation(one: Distribution, two: Distribution, label: int) -> tuple[int, float | None]:
    """Images that both have, and Spearman's coefficient; None where it is not defined."""
    from scipy.stats import spearmanr

    own, other = (part.select(part.label == label) for part in (one, two))
    first, second = paired_values(own, other, "lower")
    if len(first) < FEWEST_ROWS or not (np.ptp(first) and np.ptp(second)):
        return len(first), None
    return len(first), float(spearmanr(first, second).statistic)


def _leads(parts: dict[str, Distribution]) -> list[Part]:
    """Of every two of the paper's networks, who leads in which class, by what is claimed."""
    own = [name for name in NETWORKS if name in parts]
    pairs = {
        (one, two): class_leads(parts[one], parts[two], "lower")
        for one, two in combinations(own, 2)
    }
    title = "Which network is more robust, class by class (published lower bounds)"
    return [
        leads_table("published-leads", title, pairs),
        crossing_claim(pairs, "published bounds", CLAIMED),
    ]
