"""What the baselines share: the problem, the answer, and a classifier at a point as ReLU units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from radii.bounds import ReluForm, fuse, relu_form
from radii.ensembles import Ensemble, Point, RandomizedAttack, check_alpha
from radii.errors import SpecificationError, UnsupportedQuery
from radii.problem import Norm

Float64 = npt.NDArray[np.float64]

LARGEST_DENOMINATOR = 10**6
"""Up to here, a probability is recovered exactly from its float64."""

VALUE_ROUNDING = 1e-4
"""Probabilities are rounded to fractions, by 1e-6 each, and there are tens of them; a network that
is not fooled where the solver says so costs far more: its probability at one point."""


class BaselineReply(StrEnum):
    """What a method says about an ensemble at eps and alpha."""

    ATTACK = "attack"
    ROBUST = "robust"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, eq=False)
class BaselineProblem:
    """Is there a randomized attack of `attacks` deterministic ones, within eps, that reaches alpha?

    `attacks` is as many as there are classifiers where it is None: more are never needed. `seconds`
    are of the wall. Without alpha, what a method attains is all that it is asked for.
    """

    ensemble: Ensemble
    points: Sequence[Point]
    norm: Norm
    eps: float
    alpha: float | None = None
    attacks: int | None = None
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if not self.points:
            raise SpecificationError("an ensemble needs at least one point, but none was given")
        if not (math.isfinite(self.eps) and self.eps >= 0):
            raise SpecificationError(f"eps {self.eps:g} must be a finite number >= 0")
        if self.alpha is not None:
            check_alpha(self.alpha)
        if self.attacks is not None and self.attacks < 1:
            raise SpecificationError(f"attacks {self.attacks} must be at least 1")
        if not self.seconds > 0:
            raise SpecificationError(f"timeout {self.seconds:g} must be seconds above 0")

    @property
    def attack_count(self) -> int:
        return len(self.ensemble) if self.attacks is None else self.attacks

    def check_encodable(self, method: str, *, needs_alpha: bool) -> float:
        """Alpha, or a refusal: the encodings have no l2, and a feasibility problem needs alpha."""
        if self.norm is Norm.L2:
            raise UnsupportedQuery(
                f"method '{method}' has no balls in l2: choose --norm linf or l1, or radii ensemble"
            )
        if self.alpha is None and needs_alpha:
            raise SpecificationError(
                f"method '{method}' asks whether an attack reaches alpha: give --alpha"
            )
        return 0.0 if self.alpha is None else self.alpha


@dataclass(frozen=True, slots=True, eq=False)
class BaselineResult:
    """What a method says, with the attack that it found.

    `reply` is the method's own word. Nothing in it is proven by radii: a reply of ROBUST is
    believed, by the arithmetic and the tolerances of `solver`, and speaks of so many deterministic
    attacks only. An ATTACK counts by what its inputs achieve when they are replayed on ONNX
    Runtime: `attack.value`. `claimed` is the value that the solver says its attack reaches, None
    where it says nothing; `claimed_mean_loss` the same of the mean loss over all classifiers, where
    that is its objective. `is_optimal`: it says that none is better by its own objective, and the
    replayed attack reaches that. `note` has why it was this solver and not another one.
    """

    method: str
    problem: BaselineProblem
    reply: BaselineReply
    seconds: float
    solver: str
    attack: RandomizedAttack | None = None
    claimed: float | None = None
    claimed_mean_loss: float | None = None
    is_optimal: bool = False
    note: str = ""

    @property
    def is_replayed(self) -> bool:
        """There is an attack, and on ONNX Runtime it reaches what the solver claims."""
        if self.attack is None:
            return False
        return self.claimed is None or reaches(float(self.attack.value), self.claimed)

    @property
    def reaches_objective(self) -> bool:
        """There is an attack, and on ONNX Runtime its mean loss is what the solver claims."""
        if self.attack is None:
            return False
        attained = float(mean_loss(self.attack, len(self.problem.ensemble)))
        return self.claimed_mean_loss is None or reaches(attained, self.claimed_mean_loss)

    @property
    def is_broken(self) -> bool:
        """A replayed attack reaches alpha, exactly: the ensemble is not robust."""
        alpha = self.problem.alpha
        if self.attack is None or alpha is None:
            return False
        return self.attack.value >= Fraction(str(alpha))

    @property
    def covers_all_attacks(self) -> bool:
        """No more than so many deterministic attacks are needed by any randomized one.

        As many as classifiers are enough; for alpha 1 a single one is, since each deterministic
        attack of a mix that always wins does.
        """
        alone = self.problem.alpha == 1.0
        return alone or self.problem.attack_count >= len(self.problem.ensemble)


def reaches(value: float, claim: float) -> bool:
    """Whether what a replayed attack attains is what was claimed of it, but for rounding."""
    return value >= claim - VALUE_ROUNDING


def mean_loss(attack: RandomizedAttack, classifiers: int) -> Fraction:
    """The mean of the losses of all classifiers at all points; `attack.value` is the least
    classifier's."""
    fooled = sum(
        (
            share * Fraction(sum(each.fooled.bit_count() for each in row), max(1, len(row)))
            for share, row in zip(attack.probabilities, attack.perturbed, strict=True)
        ),
        Fraction(0),
    )
    return fooled / classifiers


@dataclass(frozen=True, slots=True, eq=False)
class ReluClassifier:
    """A classifier at a point's label: units over (inputs, 1, earlier units), and its rivals.

    Unit k is max(0, rows[k] @ columns); a rival beats the label where `rivals @ columns >= 0`.
    """

    inputs: int
    rows: csr_array
    rivals: csr_array

    def bounds(self, low: Float64, high: Float64) -> tuple[Float64, Float64, Float64, Float64]:
        """Interval bounds of every unit's argument and of every rival, over a box of inputs."""
        least, most = np.append(low, 1.0), np.append(high, 1.0)
        count = self.rows.shape[0]
        under, over = np.zeros(count), np.zeros(count)
        for unit in range(count):
            row = self.rows[[unit]]
            under[unit], over[unit] = _range(row, least, most)
            least = np.append(least, max(0.0, under[unit]))
            most = np.append(most, max(0.0, over[unit]))
        ranges = np.array(
            [_range(self.rivals[[r]], least, most) for r in range(self.rivals.shape[0])]
        )
        return under, over, ranges[:, 0], ranges[:, 1]


def _range(row: csr_array, least: Float64, most: Float64) -> tuple[float, float]:
    places, factors = row.indices, row.data
    low = np.where(factors > 0, least[places], most[places])
    high = np.where(factors > 0, most[places], least[places])
    return float(factors @ low), float(factors @ high)


def units_of(ensemble: Ensemble, label: int) -> list[ReluClassifier]:
    """Every classifier as units, for points of a label."""
    found = []
    for classifier in ensemble.classifiers:
        form: ReluForm = relu_form(fuse(classifier.scores))
        width = form.inputs + 1 + form.units
        rows = [_padded(layer, width) for layer in form.layers]
        rivals = csr_array(csr_array(classifier.rivals(label)) @ _padded(form.output, width))
        joined = csr_array(vstack(rows)) if rows else csr_array((0, width))
        found.append(ReluClassifier(form.inputs, joined, rivals))
    return found


def _padded(rows: csr_array, width: int) -> csr_array:
    return csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))


def replay_attack(
    problem: BaselineProblem,
    probabilities: Sequence[float],
    inputs: Sequence[Sequence[Float64]],
) -> RandomizedAttack:
    """Attacks as a solver gave them, with what they achieve when replayed on every network.

    An input outside its ball is moved into it first; one that is not a number is the point itself.
    """
    ensemble, points = problem.ensemble, problem.points
    shares = [Fraction(max(0.0, p)).limit_denominator(LARGEST_DENOMINATOR) for p in probabilities]
    total = sum(shares, Fraction(0))
    weights = tuple(share / total for share in shares)
    perturbed = []
    for attack in inputs:
        row = []
        for point, values in zip(points, attack, strict=True):
            ball = ensemble.ball(point, problem.norm, problem.eps)
            found = ensemble.replay(point, ball, values)
            if found is None:
                found = ensemble.replay(point, ball, point.input)
            assert found is not None, "a point lies in its own ball"
            row.append(found)
        perturbed.append(tuple(row))
    return RandomizedAttack.measured(weights, perturbed, len(ensemble))
