"""Which of two networks is more robust, class by class and image by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radii.distributions import Distribution, holm
from radii.training.papers._steps import ClaimVerdict, StudyClaim
from radii.training.papers._tables import StudyTable
from radii.training.papers.classes._differences import Side
from radii.training.papers.classes._numbers import SIGNIFICANCE

NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class ClassLead:
    """Of one class: the first network's radii less the second's, on images that both get right.

    `difference` is the median, `p_value` Wilcoxon's of signed ranks, `adjusted` Holm's over the
    classes; `leader` is the network that is significantly more robust.
    """

    label: int
    images: int
    difference: float
    p_value: float
    adjusted: float
    leader: str


def image_values(part: Distribution, label: int, side: Side) -> dict[tuple[str, int], float]:
    """By split and number of each correct image of a class: one side of its bracket."""
    own = (part.label == label) & part.correct
    splits, numbers = part.column("split")[own].tolist(), part.column("input")[own].tolist()
    values = (part.upper if side == "upper" else part.lower)[own].tolist()
    return dict(zip(zip(splits, numbers, strict=True), values, strict=True))


def class_leads(one: Distribution, two: Distribution, side: Side = "upper") -> list[ClassLead]:
    """For each class of the first, on images that both have."""
    from scipy.stats import wilcoxon

    found = []
    for label in one.labels:
        first, second = (image_values(part, label, side) for part in (one, two))
        shared = [key for key in first if key in second]
        difference = np.array([first[key] - second[key] for key in shared])
        is_testable = difference.size > 0 and bool(np.any(difference != 0))
        p_value = float(wilcoxon(difference).pvalue) if is_testable else 1.0
        middle = float(np.median(difference)) if len(shared) else 0.0
        found.append((label, len(shared), middle, p_value))
    adjusted = holm([row[-1] for row in found])
    names = one.networks[0], two.networks[0]
    return [
        ClassLead(*row, float(p), NEITHER if p >= SIGNIFICANCE else names[row[2] < 0])
        for row, p in zip(found, adjusted, strict=True)
    ]


def leads_table(
    name: str, title: str, pairs: Mapping[tuple[str, str], Sequence[ClassLead]]
) -> StudyTable:
    rows = tuple(
        (f"{one}, {two}", lead.label, lead.images, lead.difference, lead.adjusted, lead.leader)
        for (one, two), leads in pairs.items()
        for lead in leads
    )
    columns = (
        *("networks", "class", "images right on both", "first less second, median"),
        *("p after Holm", "more robust"),
    )
    return StudyTable(name, title, columns, rows, ("", "", "", "+.4f", ".3g", ""))


def crossing_claim(pairs: Mapping[tuple[str, str], Sequence[ClassLead]], what: str) -> StudyClaim:
    """Confirmed where two networks lead each in some class; some other pair may, so else open."""
    is_crossing, shown = False, []
    for pair, leads in pairs.items():
        wins = [sum(lead.leader == name for lead in leads) for name in pair]
        is_crossing |= all(wins)
        shown.append(f"{pair[0]} in {wins[0]} classes, {pair[1]} in {wins[1]}")
    return StudyClaim(
        "One network can be more robust for one class and less robust for another",
        "Section 5",
        ClaimVerdict.CONFIRMED if is_crossing else ClaimVerdict.OPEN,
        f"significantly more robust, by {what}: {'; '.join(shown) or 'no pair'}",
    )
