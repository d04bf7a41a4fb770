"""Two distributions compared: tests, effect sizes, and who is more robust where."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions.effects import CliffsDelta, MeanDifference, cliffs_delta, mean_difference
from radii.distributions.empirical import Side, side_values
from radii.distributions.multiple import holm
from radii.distributions.pairs import Inputs, Pair, paired_on
from radii.distributions.permutations import (
    censored_scores,
    permuted_p_value,
    permuted_sup_p_value,
)
from radii.distributions.stochastic_order import Dominance, dominance
from radii.distributions.two_samples import TestResult, ks_test, mann_whitney_test, welch_test
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["Comparison", "compare", "compare_all", "compare_sides", "compare_splits"]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Everything that is said about two distributions, on `inputs` inputs of each.

    `tests` are the classical ones on one side of the brackets, which take the samples as
    independent. `permutation` (a difference of location) and `permutation_sup` (of any shape) are
    on the brackets themselves; if `is_matched` they exchange the two brackets of an input. They
    take equal radii to get equally wide brackets on both sides; `widths` are the mean widths, over
    inputs with a witness (NaN if there is none).
    """

    names: tuple[str, str]
    inputs: tuple[int, int]
    is_matched: bool
    tests: tuple[TestResult, ...]
    permutation: TestResult
    permutation_sup: TestResult
    delta: CliffsDelta
    means: MeanDifference
    dominance: Dominance
    widths: tuple[float, float]

    @property
    def all_tests(self) -> tuple[TestResult, ...]:
        return (*self.tests, self.permutation, self.permutation_sup)

    def verdict(self, level: float = 0.05, *, adjusted: float | None = None) -> str:
        """The permutation test and the effect, in a sentence.

        Of one test among many, `adjusted` is the corrected p-value, which then decides.
        """
        one, two = self.names
        matched = "the same inputs" if self.is_matched else "independent samples"
        told = f"permutation p = {self.permutation.p_value:.3g}"
        decisive = self.permutation.p_value
        if adjusted is not None:
            told, decisive = f"{told}, {adjusted:.3g} after Holm's correction", adjusted
        if decisive >= level:
            return (
                f"On {matched}, the radii of {one} and {two} do not differ significantly "
                f"({told}); {self.delta}."
            )
        larger = one if self.delta.least + self.delta.most > 0 else two
        sentence = f"On {matched}, {larger} has the larger radii ({told}); {self.delta}."
        if self.delta.least <= 0 <= self.delta.most:
            # Then the difference may be one of widths alone.
            sentence += (
                f" This rests on brackets being equally wide for equal radii (here {one}: "
                f"{self.widths[0]:.2g}, {two}: {self.widths[1]:.2g} on average): "
                "they alone leave open which is larger."
            )
        return sentence


def compare(
    a: Distribution,
    b: Distribution,
    *,
    names: tuple[str, str] | None = None,
    inputs: Inputs = "correct",
    side: Side = "lower",
    level: float = 0.95,
    tolerance: float = 0.0,
    permutations: int = 4999,
    seed: int = 0,
) -> Comparison:
    """Compare two distributions, by default on correctly classified inputs as the papers do.

    Who is more robust where (`dominance`) always counts misclassified inputs.
    """
    pair = paired_on(a, b, inputs)
    x, y = side_values(pair.first, side), side_values(pair.second, side)
    location, shape = _permuted(pair, permutations, seed)
    known = names or _names(a, b)
    return Comparison(
        names=known,
        inputs=(len(pair.first), len(pair.second)),
        is_matched=pair.is_matched,
        tests=(ks_test(x, y), welch_test(x, y), mann_whitney_test(x, y)),
        permutation=location,
        permutation_sup=shape,
        delta=cliffs_delta(pair, level),
        means=mean_difference(pair, level),
        dominance=dominance(a, b, names=known, tolerance=tolerance),
        widths=(_width(pair.first), _width(pair.second)),
    )


def compare_all(
    groups: dict[Any, Distribution], **options: Any
) -> tuple[list[Comparison], list[float]]:
    """Every pair of groups, and Holm-adjusted p-values of their permutation tests."""
    keys = list(groups)
    found = [
        compare(groups[one], groups[two], names=(str(one), str(two)), **options)
        for place, one in enumerate(keys)
        for two in keys[place + 1 :]
    ]
    return found, [float(p) for p in holm([c.permutation.p_value for c in found])]


def compare_splits(distribution: Distribution, **options: Any) -> dict[str, Comparison]:
    """Training against testing inputs, for each network that was measured on both."""
    found = {}
    for name, part in distribution.by_network().items():
        splits = part.group_by("split")
        if {"train", "test"} <= splits.keys():
            names = (f"{name} on training inputs", f"{name} on testing inputs")
            found[name] = compare(splits["train"], splits["test"], names=names, **options)
    if not found:
        raise DataError("no network was measured on inputs of both splits, train and test")
    return found


def compare_sides(distribution: Distribution) -> tuple[TestResult, TestResult]:
    """The papers' question of precision: do proven and witnessed sides differ? t and KS.

    Both sides are of the same inputs, which these tests do not know: a small p-value shows that the
    brackets are wide, a large one shows nothing. Look at the widths of the brackets instead.
    """
    right = distribution.correctly_classified()
    if np.all(right.lower == 0):
        reason = "no input is proven at any eps"
        missing = math.nan
        return (
            TestResult("Welch's t", missing, missing, reason),
            TestResult("Kolmogorov-Smirnov", missing, missing, reason),
        )
    return welch_test(right.lower, right.upper), ks_test(right.lower, right.upper)


def _permuted(pair: Pair, permutations: int, seed: int) -> tuple[TestResult, TestResult]:
    a, b = pair.first, pair.second
    lower, upper = np.concatenate([a.lower, b.lower]), np.concatenate([a.upper, b.upper])
    is_first = np.arange(len(lower)) < len(a)
    scores = censored_scores(lower, upper)
    location = permuted_p_value(
        scores, is_first, is_matched=pair.is_matched, permutations=permutations, seed=seed
    )
    distance, shape = permuted_sup_p_value(
        (lower, upper),
        is_first,
        is_matched=pair.is_matched,
        permutations=min(permutations, 999),
        seed=seed,
    )
    difference = float(scores[is_first].mean() - scores[~is_first].mean())
    return (
        TestResult("permutation of scores", difference, location),
        TestResult("permutation of curves", distance, shape),
    )


def _width(distribution: Distribution) -> float:
    widths = (distribution.upper - distribution.lower)[np.isfinite(distribution.upper)]
    return float(widths.mean()) if widths.size else math.nan


def _names(a: Distribution, b: Distribution) -> tuple[str, str]:
    one, two = ", ".join(a.networks), ", ".join(b.networks)
    return (one, two) if one != two else (f"first {one}", f"second {two}")
