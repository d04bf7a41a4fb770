"""Distributions with one bracket for each target, and the one-to-any that they make.

Two properties have targets. One-to-one is broken where the target's output reaches the label's, and
its counterexamples may be taken for a third class; become is broken where they are taken for the
target. The smallest radius over all targets is the one-to-any radius with either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._arithmetics import ranked_arithmetics
from radii.distributions._columns import NO_NUMBER, Array, joint_codes
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


def over_targets(distribution: Distribution, classes: int | None = None) -> Distribution:
    """The one-to-any distribution: an input's radius is the smallest over its targets.

    Every other class must have been a target of every input. `classes` is how many there are; a
    run on every target knows it. Brackets of some targets alone say nothing of the others.
    """
    target = distribution.column("target")
    if np.any(target == NO_NUMBER):
        raise DataError("a bracket without a target cannot be combined over targets")
    labels = distribution.label
    known = classes or int(distribution.column("classes").min())
    if known == NO_NUMBER:
        raise DataError(
            f"{', '.join(distribution.networks)}: brackets of some targets are not about any wrong "
            "class, and how many classes there are is not known; measure one-to-any, or one-to-one "
            "or become for every target"
        )
    if not 0 <= min(target.min(), labels.min()) <= max(target.max(), labels.max()) < known:
        raise DataError(f"labels and targets are not all among {known} classes")
    group = joint_codes(distribution.column(name) for name in ("network", "input", "split"))
    _, first = np.unique(group, return_index=True)
    size = len(first)
    seen = np.zeros((size, known), np.bool_)
    seen[group, target] = True
    absent = ~seen
    absent[np.arange(size), labels[first]] = False
    if absent.any():
        place, missing = np.argwhere(absent)[0]
        network, index = (distribution.column(name)[first[place]] for name in ("network", "input"))
        raise DataError(f"{network}, input {index}: no bracket for target {missing}")
    lower, upper = np.full(size, np.inf), np.full(size, np.inf)
    np.minimum.at(lower, group, distribution.lower)
    np.minimum.at(upper, group, distribution.upper)
    searched = np.full(size, np.inf)
    with np.errstate(invalid="ignore"):  # NaN of one target is NaN of all: it is not known
        np.minimum.at(searched, group, distribution.column("searched"))
    texts, rank = ranked_arithmetics(distribution.column("arithmetic"))
    weakest = np.full(size, len(texts))
    np.minimum.at(weakest, group, rank)
    seen = witnessed_classes(distribution)
    is_closest = (distribution.upper == upper[group]) & (seen != NO_NUMBER)
    witness = np.full(size, NO_NUMBER)
    witness[group[is_closest]] = seen[is_closest]
    totals = {
        name: np.bincount(group, distribution.column(name), minlength=size)
        for name in ("seconds", "queries", "missing", "cancelled")
    }
    return distribution.select(first).labelled(
        lower=lower,
        upper=upper,
        target=None,
        property="one-to-any",
        witness_class=witness,
        critical=None,
        searched=searched,
        arithmetic=texts[weakest],
        seconds=totals["seconds"],
        **{name: totals[name].astype(np.int64) for name in ("queries", "missing", "cancelled")},
    )


def witnessed_classes(distribution: Distribution) -> Array:
    """The class that each bracket's counterexample is taken for; -1 without one, or if not known.

    Of become it is the target. Of one-to-one and one-to-any only who replayed it can tell, and then
    it is in the column `witness_class`; an input that breaks as it stands is what it is taken for.
    """
    names = np.char.partition(distribution.column("property"), ":")[:, 0]
    is_itself = ~distribution.correct & (distribution.upper == 0)
    seen = np.where(
        is_itself, distribution.column("predicted"), distribution.column("witness_class")
    )
    # A prediction that nobody knows may be stored as the label, which no counterexample is.
    seen = np.where(seen == distribution.label, NO_NUMBER, seen)
    seen = np.where(names == "become", distribution.column("target"), seen)
    return np.where(np.isfinite(distribution.upper), seen, NO_NUMBER)


def closest_targets(distribution: Distribution) -> Array:
    """Counts of (class, class of the closest witness), over inputs that have one.

    From one-to-any brackets with the class that each witness goes to: which pairs of classes are
    the weakest. Row: label, column: where its inputs go first.
    """
    label, goes_to = distribution.label, distribution.column("witness_class")
    told = (label != NO_NUMBER) & (goes_to != NO_NUMBER) & distribution.correct
    size = 1 + int(max(label.max(), goes_to.max(), 0))
    counts = np.zeros((size, size), np.int64)
    np.add.at(counts, (label[told], goes_to[told]), 1)
    return counts
