"""Does training raise radii? Two networks on the same images, by what is certain of each image.

A radius is certainly larger than another where its proof lies above the other's witness. Images of
which that cannot be told count against whoever claims a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from radii.statistics import Distribution
from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    StudyClaim,
    unclear,
    within,
)
from radii_papers._intervals import share_interval
from radii_papers.distributions._numbers import SIGNIFICANCE

HALF = 50.0
"""Per cent of the shared images that must be certainly larger for a gain."""


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


def gain_claim(
    claim: str, place: str, pairs: Mapping[str, CertainPairs], basis: ClaimBasis, note: str = ""
) -> StudyClaim:
    """A network gains where more than half of its shared images do, for certain."""
    return StudyClaim(
        claim,
        place,
        "share of the images of both whose proven side lies above the other network's witness, "
        "exact interval; images of which that is not certain count against it",
        tuple(_gain_case(name, each, basis, len(pairs)) for name, each in pairs.items()),
        note=note,
    )


def _gain_case(name: str, each: CertainPairs, basis: ClaimBasis, of: int) -> ClaimCase:
    """That few images are certainly larger is no evidence of a loss, which `smaller` would be."""
    if not each.shared:
        return unclear(name, basis, 0, "no image of both", "no image of both")
    share = share_interval(each.larger, each.shared, of)
    case = within(name, basis, each.shared, share, above=HALF, unit=" %")
    if case.outcome is not CaseOutcome.FAILS or each.change is RadiusChange.LOSS:
        return case
    return unclear(name, basis, each.shared, case.shows, "too little is proven")
