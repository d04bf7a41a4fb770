"""Does training raise radii? Two networks on the same images, by what is certain of each image.

A radius is certainly larger than another where its proof lies above the other's witness. Images of
which that cannot be told count against whoever claims a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from radii.distributions import Distribution
from radii.training.papers._steps import ClaimVerdict, StudyClaim
from radii.training.papers.distributions._numbers import SIGNIFICANCE

TOLD = 0.5
"""A claim about several networks needs this share of them to be told apart."""


class RadiusChange(StrEnum):
    GAIN = "a gain"
    LOSS = "a loss"
    UNTOLD = "not told apart"


@dataclass(frozen=True, slots=True)
class CertainPairs:
    """Images that two networks share, and those whose second radius is certainly larger, or
    smaller, than the first."""

    larger: int
    smaller: int
    shared: int

    @property
    def change(self) -> RadiusChange:
        """By a sign test in which images that cannot be told count as the opposite."""
        if self._is_significant(self.larger):
            return RadiusChange.GAIN
        return RadiusChange.LOSS if self._is_significant(self.smaller) else RadiusChange.UNTOLD

    def _is_significant(self, count: int) -> bool:
        from scipy.stats import binomtest

        if not self.shared:
            return False
        return bool(binomtest(count, self.shared, alternative="greater").pvalue < SIGNIFICANCE)


def certain_pairs(first: Distribution, second: Distribution) -> CertainPairs:
    """Over the images that both classify correctly, told by their number in the data."""
    before, after = _sides(first), _sides(second)
    shared = [(before[image], after[image]) for image in before if image in after]
    larger = sum(proven > witnessed for (_, witnessed), (proven, _) in shared)
    smaller = sum(witnessed < proven for (proven, _), (_, witnessed) in shared)
    return CertainPairs(larger, smaller, len(shared))


def _sides(part: Distribution) -> dict[int, tuple[float, float]]:
    columns = (part.column("input"), part.correct, part.lower, part.upper)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {image: (lower, upper) for image, is_correct, lower, upper in rows if is_correct}


def gain_claim(claim: str, place: str, pairs: Mapping[str, CertainPairs]) -> StudyClaim:
    """CONFIRMED where all networks that can be told gain, REFUTED where all lose; else it DEPENDS.

    OPEN where fewer than half of them can be told.
    """
    by_change = {c: [name for name in pairs if pairs[name].change is c] for c in RadiusChange}
    gains, losses, untold = (
        by_change[c] for c in (RadiusChange.GAIN, RadiusChange.LOSS, RadiusChange.UNTOLD)
    )
    verdict = ClaimVerdict.OPEN
    if pairs and len(gains) + len(losses) >= TOLD * len(pairs):
        verdict = ClaimVerdict.DEPENDS
        if not losses:
            verdict = ClaimVerdict.CONFIRMED
        elif not gains:
            verdict = ClaimVerdict.REFUTED
    found = (
        f"by our own brackets of the same images, radii are significantly larger for {len(gains)} "
        f"of {len(pairs)} networks and smaller for {len(losses)}"
    )
    if untold:
        found += f"; too few images, or too little proven, to tell for {', '.join(untold)}"
    return StudyClaim(claim, place, verdict, found)
