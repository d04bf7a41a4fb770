"""Which of two networks is more robust, class by class and image by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radii.statistics import Distribution, holm
from radii_papers._evidence import (
    CLAIM_LEVEL,
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimScope,
    StudyClaim,
)
from radii_papers._intervals import paired_p_value
from radii_papers._tables import StudyTable
from radii_papers.classes._differences import Side, paired_values, signed_ranks
from radii_papers.classes._numbers import SIGNIFICANCE

NEITHER = "neither"

EMPTY = np.array([])


@dataclass(frozen=True, slots=True)
class ClassLead:
    """Of one class: the first network's radii less the second's, on images that both get right.

    `difference` is the median, `p_value` Wilcoxon's of signed ranks, `adjusted` Holm's over the
    classes. `ahead` is the network with the larger sum of ranks, and `leader` the same where it is
    significantly more robust.
    """

    label: int
    images: int
    difference: float
    ahead: str
    p_value: float
    adjusted: float
    leader: str


def class_leads(one: Distribution, two: Distribution, side: Side = "upper") -> list[ClassLead]:
    """For each class of the first, on images that both have."""
    found = []
    for label in one.labels:
        first, second = EMPTY, EMPTY
        if label in two.labels:
            own, other = (part.select(part.label == label) for part in (one, two))
            first, second = paired_values(own, other, side)
        middle = float(np.median(first - second)) if len(first) else 0.0
        ahead = (one if signed_ranks(first - second) >= 0 else two).networks[0]
        found.append((label, len(first), middle, ahead, paired_p_value(first, second)))
    adjusted = holm([row[-1] for row in found])
    return [
        ClassLead(*row, float(p), NEITHER if p >= SIGNIFICANCE else row[3])
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


def crossing_claim(
    pairs: Mapping[tuple[str, str], Sequence[ClassLead]], what: str, note: str = ""
) -> StudyClaim:
    """It holds for a pair where each network leads in some class, by enough images of it. One pair
    of all is enough, so Holm's correction is for the classes of all pairs."""
    adjusted = iter(holm([lead.p_value for leads in pairs.values() for lead in leads]).tolist())
    cases = []
    for pair, leads in pairs.items():
        leading = [lead for lead in leads if next(adjusted) < CLAIM_LEVEL]
        wins = [[lead for lead in leading if lead.ahead == name] for name in pair]
        most = [max((lead.images for lead in own), default=0) for own in wins]
        shows = ", ".join(f"{n} leads in {len(own)}" for n, own in zip(pair, wins, strict=True))
        cases.append(
            ClaimCase(
                name=" and ".join(pair), basis=ClaimBasis.THEIRS, n=min(most), shows=shows,
                rule="each leads in a class",
                outcome=CaseOutcome.HOLDS if all(wins) else CaseOutcome.UNCLEAR,
            )
        )  # fmt: skip
    return StudyClaim(
        "One network can be more robust for one class and less robust for another",
        "Section 5",
        f"{what}: Wilcoxon's signed ranks of the images that both get right, Holm over the classes "
        "of all pairs",
        tuple(cases),
        ClaimScope.SOME,
        "n is that of the largest class in which a network leads, the smaller of both networks'; 0 "
        f"where one leads in none.{' ' if note else ''}{note}",
    )
