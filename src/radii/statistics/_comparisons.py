"""Two distributions compared: tests, effect sizes, and who is more robust where."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics._columns import Float64
from radii.statistics._dominance import Dominance, dominance
from radii.statistics._effects import CliffsDelta, MeanDifference, cliffs_delta, mean_difference
from radii.statistics._pairs import InputChoice, Pair, paired_on
from radii.statistics._tests import (
    Side,
    TestResult,
    by_permutation,
    censored_scores,
    curves_p_value,
    ks_test,
    location_p_value,
    mann_whitney_test,
    side_values,
    welch_test,
)

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


NO_VALUES = "no bracket of one of the two has an answer"


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Everything that is said about two distributions, on `inputs` inputs of each.

    `tests` are the classical ones on one side of the brackets, which take the samples as
    independent; the p-values of Welch's t and of Mann and Whitney's U are by permutation of the
    inputs, since with ties and few inputs the usual ones are too small. `permutation` (a difference
    of location) is on the brackets themselves, `permutation_sup` (of any shape) on both their
    sides; if `is_matched` they exchange the two brackets of an input. They take equal radii to get
    equally wide brackets on both sides; `widths` are the mean widths, over inputs with a witness
    (NaN if there is none).

    Brackets without any answer have no values. `left_out` counts those of each distribution, which
    have no part in `tests`, `permutation_sup` and the proven means; of matched inputs, those for
    which either has no answer.
    """

    names: tuple[str, str]
    inputs: tuple[int, int]
    left_out: tuple[int, int]
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
        p_values = f"permutation p = {self.permutation.p_value:.3g}"
        decisive = self.permutation.p_value
        if adjusted is not None:
            p_values, decisive = f"{p_values}, {adjusted:.3g} after Holm's correction", adjusted
        if decisive >= level:
            return (
                f"On {matched}, the radii of {one} and {two} do not differ significantly "
                f"({p_values}); {self.delta}."
            )
        larger = one if self.delta.least + self.delta.most > 0 else two
        sentence = f"On {matched}, {larger} has the larger radii ({p_values}); {self.delta}."
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
    inputs: InputChoice = "correct",
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
    values = pair.solved()
    known = names or _names(a, b)
    return Comparison(
        names=known,
        inputs=(len(pair.first), len(pair.second)),
        left_out=_left_out(pair, values),
        is_matched=pair.is_matched,
        tests=_classical(pair, values, side, permutations, seed),
        permutation=_permuted_scores(pair, permutations, seed),
        permutation_sup=_permuted_curves(pair, values, permutations, seed),
        delta=cliffs_delta(pair, level),
        means=mean_difference(pair, values),
        dominance=dominance(a, b, names=known, tolerance=tolerance),
        widths=(_width(pair.first), _width(pair.second)),
    )


def compare_sides(distribution: Distribution) -> tuple[TestResult, TestResult]:
    """The papers' question of precision: do proven and witnessed sides differ? t and KS.

    Both sides are of the same inputs, which these tests do not know: a small p-value shows that the
    brackets are wide, a large one shows nothing. Look at the widths of the brackets instead.
    """
    right = distribution.correctly_classified()
    left_out = right.unsolved
    if np.all(right.lower == 0):
        reason = "no input is proven at any eps"
        return _not_made("Welch's t", reason), _not_made("Kolmogorov-Smirnov", reason)
    lower, upper = side_values(right, "lower"), side_values(right, "upper")
    return (
        replace(welch_test(lower, upper), left_out=left_out),
        replace(ks_test(lower, upper), left_out=left_out),
    )


def _left_out(pair: Pair, values: Pair | None) -> tuple[int, int]:
    if values is None:
        return len(pair.first), len(pair.second)
    return len(pair.first) - len(values.first), len(pair.second) - len(values.second)


def _not_made(test: str, reason: str) -> TestResult:
    return TestResult(test, math.nan, math.nan, reason)


def _classical(
    pair: Pair, values: Pair | None, side: Side, permutations: int, seed: int
) -> tuple[TestResult, ...]:
    if values is None:
        names = ("Kolmogorov-Smirnov", "Welch's t", "Mann-Whitney")
        return tuple(_not_made(name, NO_VALUES) for name in names)
    x, y = side_values(values.first, side), side_values(values.second, side)
    left_out = sum(_left_out(pair, values))
    permuted = (
        by_permutation(test, x, y, permutations=permutations, seed=seed)
        for test in (welch_test(x, y), mann_whitney_test(x, y))
    )
    return tuple(replace(test, left_out=left_out) for test in (ks_test(x, y), *permuted))


def _permuted_scores(pair: Pair, permutations: int, seed: int) -> TestResult:
    scores = censored_scores(*_pooled(pair))
    one, two = scores[: len(pair.first)], scores[len(pair.first) :]
    p_value = location_p_value(
        one, two, is_matched=pair.is_matched, permutations=permutations, seed=seed
    )
    difference = float(one.mean() - two.mean())
    return TestResult("permutation of scores", difference, p_value)


def _permuted_curves(pair: Pair, values: Pair | None, permutations: int, seed: int) -> TestResult:
    """Curves are of one number per bracket and side; brackets without an answer have none."""
    name = "permutation of curves"
    if values is None:
        return _not_made(name, NO_VALUES)
    distance, p_value = curves_p_value(
        _pooled(values),
        len(values.first),
        is_matched=values.is_matched,
        permutations=min(permutations, 999),
        seed=seed,
    )
    return TestResult(name, distance, p_value, left_out=sum(_left_out(pair, values)))


def _pooled(pair: Pair) -> tuple[Float64, Float64]:
    """Both sides of all brackets, those of the first before those of the second."""
    a, b = pair.first, pair.second
    return np.concatenate([a.lower, b.lower]), np.concatenate([a.upper, b.upper])


def _width(distribution: Distribution) -> float:
    widths = (distribution.upper - distribution.lower)[np.isfinite(distribution.upper)]
    return float(widths.mean()) if widths.size else math.nan


def _names(a: Distribution, b: Distribution) -> tuple[str, str]:
    one, two = ", ".join(a.networks), ", ".join(b.networks)
    return (one, two) if one != two else (f"first {one}", f"second {two}")
