"""What the encodings share: a classifier at a point as ReLU units, and what an answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array, vstack

from radii.balls import Norm
from radii.bounds import ReluForm, fuse, relu_form
from radii.ensembles import Ensemble, Fooling, Point
from radii.ensembles._ensemble import Float64
from radii.ensembles._game import LARGEST_DENOMINATOR, added_up, value_of

VALUE_ROUNDING = 1e-4
"""Probabilities are rounded to fractions, by 1e-6 each, and there are tens of them; a network that
is not fooled where the solver says so costs far more: its probability at one point."""


class BaselineReply(StrEnum):
    """What a method says about an ensemble at eps and alpha."""

    ATTACK = "attack"
    ROBUST = "robust"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedAttack:
    """A randomized attack as replayed: `value` is what it really achieves on ONNX Runtime."""

    probabilities: tuple[Fraction, ...]
    perturbed: tuple[tuple[Fooling, ...], ...]
    value: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class BaselineResult:
    """A reply, with the attack that was found; `is_optimal`: the solver proved that none is better
    by its own objective.

    `alpha` is what the solver was asked to reach, and says that its attack does: by its own
    arithmetic and tolerances. Whether it does on the networks themselves is `is_replayed`.
    """

    reply: BaselineReply
    seconds: float
    played: ReplayedAttack | None = None
    is_optimal: bool = False
    alpha: float | None = None

    @property
    def is_replayed(self) -> bool:
        """There is an attack, and on ONNX Runtime it reaches what it was found for."""
        if self.played is None:
            return False
        return self.alpha is None or reaches(float(self.played.value), self.alpha)


def reaches(value: float, alpha: float) -> bool:
    """Whether a replayed value is that of an attack for alpha, but for rounding."""
    return value >= alpha - VALUE_ROUNDING


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


def play(
    ensemble: Ensemble,
    points: Sequence[Point],
    norm: Norm,
    eps: float,
    probabilities: Sequence[float],
    inputs: Sequence[Sequence[Float64]],
) -> ReplayedAttack:
    """Attacks as a solver gave them, with what they achieve when replayed on every network."""
    shares = [Fraction(max(0.0, p)).limit_denominator(LARGEST_DENOMINATOR) for p in probabilities]
    total = sum(shares, Fraction(0)) or Fraction(1)
    weights = tuple(share / total for share in shares)
    perturbed = []
    for attack in inputs:
        row = []
        for point, values in zip(points, attack, strict=True):
            found = ensemble.replay(point, ensemble.ball(point, norm, eps), values)
            assert found is not None
            row.append(found)
        perturbed.append(tuple(row))
    mixes = [
        added_up(
            (row[place].fooled, weight) for weight, row in zip(weights, perturbed, strict=True)
        )
        for place in range(len(points))
    ]
    return ReplayedAttack(weights, tuple(perturbed), value_of(mixes, len(ensemble)))
