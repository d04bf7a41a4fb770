"""The game between an attacker who mixes perturbations and a defender who mixes classifiers.

What matters of a perturbation of a point is which set of classifiers it fools. Given for each point
the sets that can be fooled together, the attacker's best mix is a small linear program:

    max v   such that for every classifier c:  mean over points x of P_x(c is fooled) >= v

where P_x is any distribution over the sets of x. HiGHS solves it in floating point. What is
returned is proven in rational arithmetic: `lower` is what the mix that is returned achieves, and
`upper` is what the defender's weights that are returned hold every attacker to. The two are equal
but for a game whose exact solution has huge denominators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from radii.ensembles._ensemble import Fooling, heaviest, is_within, members, weight_of
from radii.errors import SpecificationError

Mix = Mapping[int, Fraction]
"""Sets of classifiers fooled at one point, and with which probability; they add up to 1."""

LARGEST_DENOMINATOR = 10**6
"""Up to here, a fraction is recovered exactly from its float64."""

NEGLIGIBLE_PROBABILITY = 1e-9
"""Probabilities and improvements below it are rounding of the linear program."""


class FoolableSets(Protocol):
    """The sets of classifiers that may be fooled together at one point."""

    def heaviest(self, weights: Sequence[Fraction] | Sequence[float]) -> int:
        """The set of largest weight."""
        ...


@dataclass(frozen=True, slots=True)
class ListedSets:
    """These sets and all their subsets."""

    sets: tuple[int, ...]

    def heaviest(self, weights: Sequence[Fraction] | Sequence[float]) -> int:
        return max(self.sets or (0,), key=lambda mask: weight_of(mask, weights))


@dataclass(frozen=True, slots=True)
class AllowedSets:
    """Every subset of `universe` that holds none of the `forbidden` sets, which are minimal."""

    universe: int
    forbidden: tuple[int, ...]

    def heaviest(self, weights: Sequence[Fraction] | Sequence[float]) -> int:
        return heaviest(weights, self.forbidden, self.universe)

    def allows(self, mask: int) -> bool:
        inside = is_within(mask, self.universe)
        return inside and not any(is_within(each, mask) for each in self.forbidden)


@dataclass(frozen=True, slots=True)
class DeterministicAttack:
    """One deterministic attack of a mix: its probability, and the set it fools at each point."""

    probability: Fraction
    sets: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RandomizedAttack:
    """Deterministic attacks with their probabilities: what each makes of every point.

    `value` is what was measured by replaying every perturbed point on every network.
    """

    probabilities: tuple[Fraction, ...]
    perturbed: tuple[tuple[Fooling, ...], ...]
    value: Fraction

    @classmethod
    def measured(
        cls,
        probabilities: Sequence[Fraction],
        perturbed: Sequence[tuple[Fooling, ...]],
        classifiers: int,
    ) -> RandomizedAttack:
        """The attack with the value that its replayed inputs attain."""
        mixes = [
            added_up(
                (fooling.fooled, share)
                for share, fooling in zip(probabilities, foolings, strict=True)
            )
            for foolings in zip(*perturbed, strict=True)
        ]
        return cls(tuple(probabilities), tuple(perturbed), value_of(mixes, classifiers))


@dataclass(frozen=True, slots=True)
class Solution:
    """Optimal play. The value is in [lower, upper]; they are equal where it is known exactly.

    `attack` has the attacker's mix at each point, `defence` the weight of each classifier.
    """

    lower: Fraction
    upper: Fraction
    attack: tuple[Mix, ...]
    defence: tuple[Fraction, ...]

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper


def solve(families: Sequence[FoolableSets], classifiers: int) -> Solution:
    """The value of the game and optimal play, by column generation.

    The attacker's mix has at most as many sets above one a point as there are classifiers less
    one, so `couple` turns it into at most `classifiers` deterministic attacks.
    """
    if not families or classifiers < 1:
        raise SpecificationError("a game needs at least one point and one classifier")
    weights: list[float] = [1 / classifiers] * classifiers
    columns = [dict.fromkeys([family.heaviest(weights)]) for family in families]
    while True:
        program = _Program([list(sets) for sets in columns], classifiers)
        weights = program.weights
        is_complete = True
        for family, sets in zip(families, columns, strict=True):
            found = family.heaviest(weights)
            known = max(weight_of(mask, weights) for mask in sets)
            if found not in sets and weight_of(found, weights) > known + NEGLIGIBLE_PROBABILITY:
                sets[found] = None
                is_complete = False
        if is_complete:
            return _proven(program, families, classifiers)


def _proven(program: _Program, families: Sequence[FoolableSets], classifiers: int) -> Solution:
    """What the floating-point solution amounts to in rational arithmetic."""
    defence = simple_distribution(program.weights)
    best = (weight_of(family.heaviest(defence), defence) for family in families)
    upper = sum(best, Fraction(0)) / len(families)
    attack = tuple(
        {
            mask: share
            for mask, share in zip(sets, simple_distribution(shares), strict=True)
            if share
        }
        for sets, shares in program.mixes
    )
    return Solution(value_of(attack, classifiers), Fraction(upper), attack, defence)


def value_of(attack: Sequence[Mix], classifiers: int) -> Fraction:
    """The least mean probability, over the classifiers, of being fooled by a mix."""
    losses = [Fraction(0)] * classifiers
    for mix in attack:
        for mask, probability in mix.items():
            for classifier in members(mask):
                losses[classifier] += probability
    return min(losses) / len(attack)


def added_up(shares: Iterable[tuple[int, Fraction]]) -> Mix:
    """Sets and probabilities as one mix: those of equal sets are added."""
    total: dict[int, Fraction] = {}
    for mask, share in shares:
        total[mask] = total.get(mask, Fraction(0)) + share
    return total


def couple(attack: Sequence[Mix]) -> tuple[DeterministicAttack, ...]:
    """Deterministic attacks that, chosen with their probabilities, play the mix at every point.

    All points share one draw from [0, 1), which each cuts into its own sets: a staircase. So there
    is one attack more than there are different cuts.
    """
    stairs = []
    for mix in attack:
        height, steps = Fraction(0), []
        for mask, probability in sorted(mix.items()):
            height += probability
            steps.append((height, mask))
        stairs.append(steps)
    heights = sorted({height for steps in stairs for height, _ in steps})
    attempts, below = [], Fraction(0)
    for height in heights:
        sets = tuple(next(mask for top, mask in steps if top >= height) for steps in stairs)
        attempts.append(DeterministicAttack(height - below, sets))
        below = height
    return tuple(attempts)


def simple_distribution(shares: Sequence[float]) -> tuple[Fraction, ...]:
    """The nearest simple fractions, none negative; they add up to exactly 1."""
    kept = [
        Fraction(share).limit_denominator(LARGEST_DENOMINATOR)
        if share > NEGLIGIBLE_PROBABILITY
        else Fraction(0)
        for share in shares
    ]
    total = sum(kept, Fraction(0))
    return tuple(share / total for share in kept)


class _Program:
    """The linear program over some sets a point, solved to a vertex."""

    def __init__(self, columns: Sequence[Sequence[int]], classifiers: int) -> None:
        import highspy

        points = len(columns)
        owners = [point for point, sets in enumerate(columns) for _ in sets]
        masks = [mask for sets in columns for mask in sets]
        count = len(masks)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = count + 1, classifiers + points
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = np.append(np.zeros(count), 1.0)
        model.col_lower_ = np.append(np.zeros(count), -highspy.kHighsInf)
        model.col_upper_ = np.full(count + 1, highspy.kHighsInf)
        model.row_lower_ = np.append(np.zeros(classifiers), np.ones(points))
        model.row_upper_ = np.append(np.full(classifiers, highspy.kHighsInf), np.ones(points))
        starts, rows, values = [0], list[int](), list[float]()
        for owner, mask in zip(owners, masks, strict=True):
            rows += [*members(mask), classifiers + owner]
            values += [1.0] * (mask.bit_count() + 1)
            starts.append(len(rows))
        rows += range(classifiers)
        values += [-1.0] * classifiers
        starts.append(len(rows))
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.array(starts, np.int32)
        model.a_matrix_.index_ = np.array(rows, np.int32)
        model.a_matrix_.value_ = np.array(values)
        solver = _solver()
        solver.passModel(model)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS ended with {solver.getModelStatus()} on a feasible game")
        found = solver.getSolution()
        shares = np.array(found.col_value[:count])
        self.mixes = [
            (list(sets), shares[[i for i, owner in enumerate(owners) if owner == point]].tolist())
            for point, sets in enumerate(columns)
        ]
        self.weights = np.abs(np.array(found.row_dual[:classifiers])).tolist()


def _solver() -> Any:
    import highspy

    solver: Any = highspy.Highs()
    solver.silent()
    # The simplex method without presolve ends at a vertex, which has few sets above zero.
    for name, value in {"presolve": "off", "solver": "simplex", "threads": 1}.items():
        solver.setOptionValue(name, value)
    return solver
