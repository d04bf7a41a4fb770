"""How claims of the paper are judged: a rule a case, and a verdict over all cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from radii.training.papers._steps import ClaimVerdict, StudyClaim

MARGIN = 0.01
"""By how much a share must exceed another to count as larger: one image of a hundred."""


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """What one case, such as a data set, says of a claim: does it hold, and by which numbers."""

    holds: bool
    numbers: str


def judged(claim: str, place: str, cases: Mapping[str, CaseFinding]) -> StudyClaim:
    """Confirmed where it holds in all cases, refuted where in none, else it depends."""
    held = [case.holds for case in cases.values()]
    if not held:
        return StudyClaim(claim, place, ClaimVerdict.OPEN, "no case of it was measured")
    verdict = ClaimVerdict.DEPENDS
    if all(held):
        verdict = ClaimVerdict.CONFIRMED
    elif not any(held):
        verdict = ClaimVerdict.REFUTED
    told = [
        f"{name}: {case.numbers}" + ("" if verdict is not ClaimVerdict.DEPENDS else _answer(case))
        for name, case in cases.items()
    ]
    return StudyClaim(claim, place, verdict, "; ".join(told))


def _answer(case: CaseFinding) -> str:
    return " (holds)" if case.holds else " (does not)"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
