"""What is known of one point: inputs that fool sets of classifiers, and proofs that none does.

Facts outlive the eps they were found at: an input that fools a set counts in every ball that holds
it, and a proof for a ball covers the smaller ones. `EnsembleResults` are the facts of all points
with the best play at each eps, for reports. What a play is worth is derived from the facts: the
attack's side from inputs that were replayed, the defence's side from proofs that no replayed input
contradicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from radii.ensembles._ensemble import (
    Fooling,
    Point,
    full_set,
    heaviest,
    is_within,
    maximal,
    minimal,
    weight_of,
)
from radii.ensembles._game import DeterministicAttack, RandomizedAttack
from radii.ensembles._proofs import JointResult
from radii.errors import StoreError
from radii.problem import REAL, Arithmetic, Norm, Verdict

SPENT_LIMIT_SHARE = 0.9
"""A question that timed out after this part of the limit is not asked again within it; one that
ended otherwise without an answer would end so again."""


@dataclass(slots=True)
class Facts:
    """The facts of one point in one norm."""

    foolings: list[Fooling] = field(default_factory=list)
    findings: list[JointResult] = field(default_factory=list)

    def add(self, finding: JointResult) -> None:
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

    def proofs(self, eps: float) -> tuple[JointResult, ...]:
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

    def certificate(self, eps: float) -> tuple[JointResult, ...]:
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
    def disagreements(self) -> tuple[JointResult, ...]:
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
            and (
                finding.verdict is not Verdict.TIMEOUT
                or finding.seconds >= SPENT_LIMIT_SHARE * seconds
            )
            for finding in self.findings
        )

    def _is_refuted(self, finding: JointResult) -> bool:
        return self.is_witnessed(finding.classifiers, finding.eps)


@dataclass(frozen=True, slots=True)
class Play:
    """The best play known at one eps: the attacker's mix and the weight of each classifier."""

    eps: float
    attack: tuple[DeterministicAttack, ...]
    defence: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleResults:
    """An ensemble by the names of its networks, its points with their facts, and plays by eps.

    `domain` is the key of the input domain; `place` the directory that all this is kept in;
    `arithmetic` what proofs were asked to speak of.
    """

    names: tuple[str, ...]
    points: tuple[Point, ...]
    norm: Norm
    domain: str
    facts: tuple[Facts, ...]
    plays: tuple[Play, ...]
    place: Path | None = None
    arithmetic: Arithmetic = REAL

    def perturbed(self, play: Play) -> tuple[tuple[Fooling, ...], ...]:
        """For each deterministic attack of a play what it makes of every point."""
        return tuple(
            tuple(self._fooling(place, mask, play.eps) for place, mask in enumerate(each.sets))
            for each in play.attack
        )

    def attained(self, play: Play) -> Fraction:
        """What the attack makes every classifier lose at least: the value is not below it."""
        probabilities = [each.probability for each in play.attack]
        return RandomizedAttack.measured(probabilities, self.perturbed(play), len(self.names)).value

    def conceded(self, play: Play) -> Fraction:
        """What the defence holds every attacker to: the value is not above it."""
        everyone, weights = full_set(len(self.names)), play.defence
        best = (
            weight_of(heaviest(weights, facts.excluded(play.eps), everyone), weights)
            for facts in self.facts
        )
        return Fraction(sum(best, Fraction(0))) / len(self.facts)

    def _fooling(self, place: int, mask: int, eps: float) -> Fooling:
        found = self.facts[place].fooling_of(mask, eps)
        if found is None:
            raise StoreError(
                f"{self.place}: is damaged: an attack at eps {eps:g} has no perturbed input of "
                f"point {self.points[place].index}"
            )
        return found
