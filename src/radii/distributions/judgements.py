"""Several requirements at once: what holds together, with which confidence.

Limits with 95 % confidence each miss with up to 5 %, and of many some will. So statements that are
made together share the permitted error: of k statements each may miss a k-th as often (Bonferroni).
All limits that are printed then hold at once. Holm's procedure would meet a few more requirements,
but its limits would not hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from radii.distributions.requirements import Outcome, Requirement

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["Judgement", "check_all"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One outcome for each requirement and network.

    So many `statements` of them have a confidence. `together` is the confidence with which all that
    are met hold at once, None if no statement has one. Without `is_corrected` every confidence is
    its own, and that of all together is smaller.
    """

    outcomes: tuple[Outcome, ...]
    statements: int
    is_corrected: bool
    together: float | None

    @property
    def is_met(self) -> bool:
        """Whether every network meets every requirement."""
        return all(outcome.is_met for outcome in self.outcomes)

    def __str__(self) -> str:
        """A sentence on the confidence of several statements; empty if there are not several."""
        if self.together is None or self.statements < 2:
            return ""
        told = f"{self.statements} statements have a confidence"
        if self.is_corrected:
            return (
                f"{told}, and share the error that it permits (Bonferroni, 1/{self.statements} "
                f"each): all that are met hold together with {100 * self.together:.4g} % "
                "confidence."
            )
        least = f"at least {100 * self.together:.4g} %" if self.together > 0 else "any"
        return (
            f"{told}, each its own (uncorrected): that all which are met hold together has "
            f"{least} confidence."
        )


def check_all(
    requirements: Sequence[Requirement], distribution: Distribution, *, is_corrected: bool = True
) -> Judgement:
    """Hold every network against every requirement; one that is named twice is one statement.

    Statements with a confidence share its miss, whatever they are about: networks on the same
    inputs, or several measures of one network, may go together.
    """
    distinct = list({required.text: required for required in requirements}.values())
    misses = [
        1 - required.level
        for required in distinct
        if required.level is not None
        for _ in distribution.networks
    ]
    sharing = max(1, len(misses)) if is_corrected else 1
    outcomes = tuple(
        outcome
        for required in distinct
        for outcome in replace(required, statements=sharing).check(distribution)
    )
    together = max(0.0, 1 - sum(misses) / sharing) if misses else None
    return Judgement(outcomes, len(misses), is_corrected, together)
