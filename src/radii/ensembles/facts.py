"""What is known of one point: inputs that fool sets of classifiers, and proofs that none does.

Facts outlive the eps they were found at: an input that fools a set counts in every ball that holds
it, and a proof for a ball covers the smaller ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from radii.ensembles.ensemble import Fooling
from radii.ensembles.proving import Finding
from radii.ensembles.sets import is_within, maximal, minimal
from radii.verdicts import Verdict

__all__ = ["Facts"]

ENOUGH = 0.9
"""A question that timed out after this part of the limit is not asked again within it; one that
ended otherwise without an answer would end so again."""


@dataclass(slots=True)
class Facts:
    """The facts of one point in one norm."""

    foolings: list[Fooling] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        """An answer, with the input it brought."""
        self.findings.append(finding)
        if finding.fooling is not None:
            self.foolings.append(finding.fooling)

    def witnessed(self, eps: float) -> tuple[int, ...]:
        """The largest sets that some known input within `eps` fools."""
        return maximal(fooling.fooled for fooling in self.foolings if fooling.distance <= eps)

    def is_witnessed(self, classifiers: int, eps: float) -> bool:
        return self.fooling_of(classifiers, eps) is not None

    def fooling_of(self, classifiers: int, eps: float) -> Fooling | None:
        """The closest known input within `eps` that fools all of a set."""
        fits = (
            fooling
            for fooling in self.foolings
            if fooling.distance <= eps and is_within(classifiers, fooling.fooled)
        )
        return min(fits, key=lambda fooling: fooling.distance, default=None)

    def proofs(self, eps: float) -> tuple[Finding, ...]:
        """The proofs that hold at `eps` and that no replayed input contradicts."""
        return tuple(
            finding
            for finding in self.findings
            if finding.verdict is Verdict.ROBUST
            and finding.eps >= eps
            and not self._is_refuted(finding)
        )

    def excluded(self, eps: float) -> tuple[int, ...]:
        """The smallest sets that no input within `eps` fools."""
        return minimal(finding.classifiers for finding in self.proofs(eps))

    def certificate(self, eps: float) -> tuple[Finding, ...]:
        """For each of the smallest sets that no input within `eps` fools, the first proof of it."""
        proofs = self.proofs(eps)
        return tuple(
            next(proof for proof in proofs if proof.classifiers == mask)
            for mask in minimal(proof.classifiers for proof in proofs)
        )

    def undecided(self, eps: float) -> tuple[int, ...]:
        """The sets that were asked about at `eps` without an answer."""
        asked = {finding.classifiers for finding in self.findings if finding.eps == eps}
        known, excluded = (*self.witnessed(eps), 0), self.excluded(eps)
        return tuple(
            mask
            for mask in sorted(asked)
            if not any(is_within(mask, larger) for larger in known)
            and not any(is_within(smaller, mask) for smaller in excluded)
        )

    @property
    def disagreements(self) -> tuple[Finding, ...]:
        """Claims of proofs that a replayed input contradicts: reported, never believed."""
        return tuple(
            finding
            for finding in self.findings
            if finding.verdict is Verdict.ROBUST and self._is_refuted(finding)
        )

    def is_given_up(self, classifiers: int, eps: float, seconds: float) -> bool:
        """The set was asked about at this eps, with as much time, and there was no answer."""
        return any(
            finding.classifiers == classifiers
            and finding.eps == eps
            and finding.verdict.is_missing
            and (finding.verdict is not Verdict.TIMEOUT or finding.seconds >= ENOUGH * seconds)
            for finding in self.findings
        )

    def _is_refuted(self, finding: Finding) -> bool:
        return self.is_witnessed(finding.classifiers, finding.eps)
