"""What is known of an ensemble, for those who only look: the facts, and the best play at each eps.

Nothing here is taken at its word. What a play is worth is derived from the facts: the attack's side
from inputs that were replayed, the defence's side from proofs that no replayed input contradicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from radii.balls import Norm
from radii.ensembles.ensemble import Fooling, Point
from radii.ensembles.facts import Facts
from radii.ensembles.game import Attempt, added_up, value_of
from radii.ensembles.sets import full_set, heaviest, weight_of
from radii.errors import StoreError
from radii.verdicts import REAL, Arithmetic

__all__ = ["Known", "Play"]


@dataclass(frozen=True, slots=True)
class Play:
    """The best play known at one eps: the attacker's mix and the weight of each classifier."""

    eps: float
    attack: tuple[Attempt, ...]
    defence: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
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
        rows = self.perturbed(play)
        mixes = [
            added_up(
                (row[place].fooled, each.probability)
                for each, row in zip(play.attack, rows, strict=True)
            )
            for place in range(len(self.points))
        ]
        return value_of(mixes, len(self.names))

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
