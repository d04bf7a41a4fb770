"""Distributions with one bracket for each target: the one-to-any that they make, and costs.

Two properties have targets. One-to-one is broken where the target's output reaches the label's, and
its counterexamples may be taken for a third class; become is broken where they are taken for the
target. The smallest radius over all targets is the one-to-any radius with either. Costs weigh each
pair of classes, where misclassifications are not equally bad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.problem import is_of_class
from radii.statistics._columns import NO_NUMBER, Array, Float64, joint_codes
from radii.statistics._evidence import ranked_arithmetics, ranked_statuses

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


SUMMED = ("seconds", "cpu_seconds", "queries", "missing", "cancelled", "timeouts", "memouts")
"""Columns of an input that are sums over its targets."""


def over_targets(distribution: Distribution, classes: int | None = None) -> Distribution:
    """The one-to-any distribution: an input's radius is the smallest over its targets.

    Every other class must have been a target of every input. `classes` is how many there are, by
    default the number of the network's outputs, which runs of radii know. Brackets of some targets
    alone say nothing of the others. A distribution without targets is returned as it is.
    """
    target = distribution.column("target")
    if np.all(target == NO_NUMBER):
        return distribution
    if np.any(target == NO_NUMBER):
        raise DataError("a bracket without a target cannot be combined over targets")
    group = joint_codes(distribution.column(name) for name in ("network", "input", "split"))
    _, first = np.unique(group, return_index=True)
    _check_all_targets(distribution, group, first, classes)

    def least(values: Array) -> Array:
        """The smallest over each input's targets; NaN of one target is NaN of all: not known."""
        smallest = values[first].copy()
        with np.errstate(invalid="ignore"):
            np.minimum.at(smallest, group, values)
        return smallest

    def total(name: str) -> Array:
        values = distribution.column(name)
        return np.bincount(group, values, minlength=len(first)).astype(values.dtype)

    upper = least(distribution.upper)
    arithmetics, strength = ranked_arithmetics(distribution.column("arithmetic"))
    statuses, trust = ranked_statuses(distribution.column("proof"))
    checkers = distribution.column("checked_by")
    by_one = np.bincount(group, checkers != checkers[first][group], minlength=len(first)) == 0
    goes_to = witnessed_classes(distribution)
    is_closest = (distribution.upper == upper[group]) & (goes_to != NO_NUMBER)
    witness = np.full(len(first), NO_NUMBER)
    witness[group[is_closest]] = goes_to[is_closest]
    return distribution.select(first).labelled(
        lower=least(distribution.lower),
        upper=upper,
        target=None,
        property="one-to-any",
        witness_class=witness,
        critical=None,
        searched=least(distribution.column("searched")),
        arithmetic=arithmetics[least(strength)],
        proof=statuses[least(trust)],
        checked_by=np.where(by_one, checkers[first], ""),
        certificate=None,
        **{name: total(name) for name in SUMMED},
    )


def _check_all_targets(
    distribution: Distribution, group: Array, first: Array, classes: int | None
) -> None:
    """A DataError unless each input, whose `first` row this is, has a bracket for every target."""
    target, labels = distribution.column("target"), distribution.label
    known = classes or int(distribution.column("classes").min())
    if known == NO_NUMBER:
        raise DataError(
            f"{', '.join(distribution.networks)}: brackets of some targets are not about any wrong "
            "class, and how many classes there are is not known; measure one-to-any, or one-to-one "
            "or become for every target"
        )
    if not 0 <= min(target.min(), labels.min()) <= max(target.max(), labels.max()) < known:
        raise DataError(f"labels and targets are not all among {known} classes")
    absent = np.ones((len(first), known), np.bool_)
    absent[group, target] = False
    absent[np.arange(len(first)), labels[first]] = False
    if absent.any():
        place, missing = np.argwhere(absent)[0]
        network, index = (distribution.column(name)[first[place]] for name in ("network", "input"))
        raise DataError(f"{network}, input {index}: no bracket for target {missing}")


def witnessed_classes(distribution: Distribution) -> Array:
    """The class that each bracket's counterexample is taken for; -1 without one, or if not known.

    With become it is the target. With one-to-one and one-to-any it is known only from a replay, and
    is then in the column `witness_class`; an input that breaks as it stands is its own witness.
    """
    names = np.char.partition(distribution.column("property"), ":")[:, 0]
    is_itself = ~distribution.correct & (distribution.upper == 0)
    goes_to = np.where(
        is_itself, distribution.column("predicted"), distribution.column("witness_class")
    )
    # A prediction that nobody knows may be stored as the label, which no counterexample is.
    goes_to = np.where(goes_to == distribution.label, NO_NUMBER, goes_to)
    goes_to = np.where(names == "become", distribution.column("target"), goes_to)
    return np.where(np.isfinite(distribution.upper), goes_to, NO_NUMBER)


def closest_targets(distribution: Distribution) -> Array:
    """Counts of (class, class of the closest witness), over inputs that have one.

    From one-to-any brackets with the class that each witness goes to: which pairs of classes are
    the weakest. Row: label, column: where its inputs go first.
    """
    label, goes_to = distribution.label, distribution.column("witness_class")
    is_known = (label != NO_NUMBER) & (goes_to != NO_NUMBER) & distribution.correct
    size = 1 + int(max(label.max(), goes_to.max(), 0))
    counts = np.zeros((size, size), np.int64)
    np.add.at(counts, (label[is_known], goes_to[is_known]), 1)
    return counts


def adversarial_cost(
    distribution: Distribution, costs: npt.ArrayLike, eps: npt.ArrayLike
) -> tuple[Float64, Float64]:
    """The mean cost that an adversary within eps can cause: at least, and at most, at each eps.

    `costs[y, t]` is what it costs to take class y for t, 0 on the diagonal. Each input counts with
    the dearest class that it can be taken for. With 1 for every pair this is one minus robust
    accuracy. How much is known depends on the property that was measured:

    - become: each target counts by its own bracket, on both sides;
    - one-to-one: a proof excludes its target, so "at most" is as with become or larger. But a
      counterexample may be taken for a third class, so "at least" counts the class that it was
      seen as (`witness_class`), or the cheapest one where that is not known;
    - one-to-any: "at least" as with one-to-one, and at most the dearest class.
    """
    weights = _checked_costs(distribution, costs)
    at = np.atleast_1d(np.asarray(eps, np.float64))
    label, target = distribution.label, distribution.column("target")
    if np.any(target == NO_NUMBER) and not np.all(target == NO_NUMBER):
        raise DataError("costs need brackets that all have a target, or that all have none")
    if np.any(target == NO_NUMBER):
        places, price = np.arange(len(label)), weights.max(axis=1)[label]
    else:
        places, price = _instance_numbers(distribution), weights[label, target]
        _check_targets(distribution, weights, places)
    pairs = joint_codes((places, target))
    witnessed = _witnessed_cost(distribution, weights)
    least, most = np.empty(len(at)), np.empty(len(at))
    for place, value in enumerate(at):
        least[place] = _dearest(places, np.where(distribution.upper <= value, witnessed, 0.0))
        is_proven = _any_of(pairs, _is_proven(distribution, value))
        most[place] = _dearest(places, np.where(is_proven, 0.0, price))
    return least, most


def target_recall(distribution: Distribution, eps: float) -> tuple[Float64, Float64]:
    """The share of class y that is not taken for t within eps, as matrices: at least, at most.

    Rows are classes, columns targets, NaN where nothing was measured. "At least" is what is proven:
    by become, or by one-to-one, which implies it. "At most" is what is not refuted: by a
    counterexample that is taken for t. One of become is; one of one-to-one only where its class is
    known (`witness_class`), so that of one-to-one results the second matrix may be far from tight.
    """
    target, label = distribution.column("target"), distribution.label
    if np.any(target == NO_NUMBER):
        raise DataError("a matrix of classes and targets needs brackets that all have a target")
    size = 1 + int(max(target.max(), label.max()))
    places = _instance_numbers(distribution)
    pairs = joint_codes((places, target))
    _, first = np.unique(pairs, return_index=True)
    proven = _any_of(pairs, _is_proven(distribution, eps))[first]
    refuted = _is_taken_for(distribution, places, eps)[first]
    cells = label[first] * size + target[first]
    counts = np.bincount(cells, minlength=size * size).astype(np.float64)
    counts[counts == 0] = np.nan
    sums = (np.bincount(cells, which, size * size) for which in (proven, ~refuted))
    one, two = ((total / counts).reshape(size, size) for total in sums)
    return one, two


def _instance_numbers(distribution: Distribution) -> Array:
    """Which input of which network each bracket is about, as a number."""
    return joint_codes(distribution.column(name) for name in ("network", "input", "split"))


def _is_proven(distribution: Distribution, eps: float) -> Array:
    """Of each bracket, whether its property holds within eps."""
    return (distribution.lower >= eps) & (distribution.upper > eps)


def _any_of(groups: Array, which: Array) -> Array:
    """For each row, whether any row of its group is among `which`."""
    return (np.bincount(groups, which) > 0)[groups]


def _is_taken_for(distribution: Distribution, places: Array, eps: float) -> Array:
    """For each bracket, whether its input has a counterexample within eps seen as its target."""
    goes_to, is_within = witnessed_classes(distribution), distribution.upper <= eps
    known = set(zip(places[is_within].tolist(), goes_to[is_within].tolist(), strict=True))
    rows = zip(places.tolist(), distribution.column("target").tolist(), strict=True)
    return np.array([row in known for row in rows])


def _witnessed_cost(distribution: Distribution, weights: Float64) -> Float64:
    """What each bracket's counterexample costs at least: the cheapest class where it is unknown."""
    goes_to, label = witnessed_classes(distribution), distribution.label
    rivals = weights + np.where(np.eye(len(weights), dtype=bool), np.inf, 0.0)
    return np.where(
        goes_to == NO_NUMBER, rivals.min(axis=1)[label], weights[label, np.maximum(goes_to, 0)]
    )


def _checked_costs(distribution: Distribution, costs: npt.ArrayLike) -> Float64:
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
    if np.any(distribution.label == NO_NUMBER):
        raise DataError("costs need the class of every input")
    for spec in np.unique(distribution.column("property")).tolist():
        if not is_of_class(spec):
            raise DataError(
                f"costs need results of one-to-any, one-to-one or become: what breaks '{spec}' "
                "may still be taken for its class"
            )
    return weights


def _check_targets(distribution: Distribution, weights: Float64, instance: Array) -> None:
    """What the measured targets cost is an upper limit only if all targets with a cost were."""
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


def _dearest(instance: Array, price: Float64) -> float:
    """The mean over inputs of the largest price."""
    dearest = np.zeros(int(instance.max()) + 1)
    np.maximum.at(dearest, instance, price)
    return float(dearest.mean())
