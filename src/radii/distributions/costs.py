"""Misclassifications of unequal cost: a weight for each pair of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.distributions.columns import NONE, Array, Float64, joint_codes
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["adversarial_cost", "target_recall"]


def adversarial_cost(
    distribution: Distribution, costs: npt.ArrayLike, eps: npt.ArrayLike
) -> tuple[Float64, Float64]:
    """The mean cost that an adversary within eps can cause: at least, and at most, at each eps.

    `costs[y, t]` is what it costs to take class y for t, 0 on the diagonal. For each input counts
    its dearest target that can be reached. With one-to-one brackets each target counts by its own;
    with one-to-any brackets a broken input costs at least as much as the class of its witness, or
    the cheapest one where that is not known, and at most the dearest. With 1 for every pair this is
    one minus robust accuracy.
    """
    weights = _checked(distribution, costs)
    at = np.atleast_1d(np.asarray(eps, np.float64))
    target = distribution.column("target")
    if np.all(target == NONE):
        return _untargeted(distribution, weights, at)
    if np.any(target == NONE):
        raise DataError("costs need brackets that all have a target, or that all have none")
    instance = joint_codes(distribution.column(name) for name in ("network", "input", "split"))
    price = weights[distribution.label, target]
    least, most = np.empty(len(at)), np.empty(len(at))
    size = int(instance.max()) + 1
    _check_targets(distribution, weights, instance)
    for place, value in enumerate(at):
        refuted = distribution.upper <= value
        open_ = refuted | (distribution.lower < value)
        least[place] = _dearest(instance, np.where(refuted, price, 0.0), size)
        most[place] = _dearest(instance, np.where(open_, price, 0.0), size)
    return least, most


def target_recall(distribution: Distribution, eps: float) -> tuple[Float64, Float64]:
    """Of one-to-one brackets: the share of class y that cannot be made t within eps, as matrices.

    Proven, and not refuted; rows are classes, columns targets, NaN where nothing was measured.
    """
    target, label = distribution.column("target"), distribution.label
    if np.any(target == NONE):
        raise DataError("a matrix of classes and targets needs brackets that all have a target")
    size = 1 + int(max(target.max(), label.max()))
    refuted = distribution.upper <= eps
    proven = (distribution.lower >= eps) & ~refuted
    cells = label * size + target
    counts = np.bincount(cells, minlength=size * size).astype(np.float64)
    counts[counts == 0] = np.nan
    sums = (np.bincount(cells, which, size * size) for which in (proven, ~refuted))
    one, two = ((total / counts).reshape(size, size) for total in sums)
    return one, two


def _checked(distribution: Distribution, costs: npt.ArrayLike) -> Float64:
    weights = np.asarray(costs, np.float64)
    needed = 1 + int(
        max(
            distribution.label.max(),
            distribution.column("target").max(),
            distribution.column("witness_class").max(),
            distribution.column("predicted").max(),
        )
    )
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or len(weights) < needed:
        raise DataError(
            f"costs need one row and one column for each of {needed} classes, "
            f"not shape {weights.shape}"
        )
    if not np.all(weights >= 0) or np.any(np.diag(weights) != 0):
        raise DataError("costs are numbers >= 0, and 0 for taking a class for itself")
    if np.any(distribution.label == NONE):
        raise DataError("costs need the class of every input")
    return weights


def _check_targets(distribution: Distribution, weights: Float64, instance: Array) -> None:
    """At most what the measured targets cost is true only if those that cost are all measured."""
    costly = np.zeros((int(instance.max()) + 1, len(weights)), np.bool_)
    costly[instance] = weights[distribution.label] > 0
    costly[instance, distribution.column("target")] = False
    if costly.any():
        place, target = np.argwhere(costly)[0]
        row = int(np.argmax(instance == place))
        raise DataError(
            f"{distribution.network[row]}, input {distribution.column('input')[row]}: "
            f"no bracket for target {target}, which has a cost"
        )


def _untargeted(
    distribution: Distribution, weights: Float64, at: Float64
) -> tuple[Float64, Float64]:
    label = distribution.label
    rivals = weights + np.where(np.eye(len(weights), dtype=bool), np.inf, 0.0)
    cheapest, dearest = rivals.min(axis=1)[label], weights.max(axis=1)[label]
    goes_to = np.where(
        distribution.correct, distribution.column("witness_class"), distribution.column("predicted")
    )
    known = np.where(goes_to == NONE, cheapest, weights[label, np.maximum(goes_to, 0)])
    # An unknown prediction may be stored as the label itself, which is never what it costs.
    known = np.where(goes_to == label, cheapest, known)
    least = [np.where(distribution.upper <= value, known, 0.0).mean() for value in at]
    most = [
        np.where((distribution.upper <= value) | (distribution.lower < value), dearest, 0.0).mean()
        for value in at
    ]
    return np.array(least), np.array(most)


def _dearest(instance: Array, price: Float64, size: int) -> float:
    dearest = np.zeros(size)
    np.maximum.at(dearest, instance, price)
    return float(dearest.mean())
