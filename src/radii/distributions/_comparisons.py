"""Two distributions compared: on which inputs, tests, effect sizes, and who is more robust where.

Two networks that were measured on the same inputs are compared input by input (`Pair`). How large a
difference is, Cliff's delta and the difference of means say, as intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from radii.distributions._dominance import Dominance, dominance
from radii.distributions._summaries import Side, side_values
from radii.distributions._tests import (
    TestResult,
    censored_scores,
    holm,
    ks_test,
    mann_whitney_test,
    permuted_p_value,
    permuted_sup_p_value,
    welch_test,
)
from radii.errors import DataError
from radii.results import NO_NUMBER, Array, Float64

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


InputChoice = Literal["correct", "all"]

IDENTITY = ("input", "label", "target", "split", "property")
IDENTITY_OF_TARGETS = ("input", "label", "split")
NO_VALUES = "no bracket of one of the two has an answer"


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two distributions; if `is_matched`, row i of both is the same input of the data set."""

    first: Distribution
    second: Distribution
    is_matched: bool

    def solved(self) -> Pair | None:
        """What can be compared by values: without the brackets that have no answer.

        Matched distributions lose an input if either has no answer for it. None if nothing is left
        of one of them.
        """
        one, two = ~self.first.is_unsolved, ~self.second.is_unsolved
        if self.is_matched:
            one = two = one & two
        if not (one.any() and two.any()):
            return None
        return Pair(self.first.select(one), self.second.select(two), self.is_matched)


def paired_on(a: Distribution, b: Distribution, inputs: InputChoice = "correct") -> Pair:
    """The parts of two distributions that are compared, in matching order where they match.

    They match when both hold the same inputs (as two networks measured on one selection do): each
    input is then compared with itself. So do two targets of one network, on the inputs that have
    both. With `correct`, matched distributions lose the inputs that either misclassifies, others
    each their own.
    """
    are_targets = _are_two_targets(a, b)
    identity = IDENTITY_OF_TARGETS if are_targets else IDENTITY
    keys_a, keys_b = _identities(a, identity), _identities(b, identity)
    order_a, order_b = np.argsort(keys_a, kind="stable"), np.argsort(keys_b, kind="stable")
    is_matched = (
        a is not b
        and len(a) == len(b)
        and len(set(keys_a)) == len(a)
        and bool(np.array_equal(keys_a[order_a], keys_b[order_b]))
    )
    if not is_matched:
        # Published files leave out each network's misclassified inputs: match what both have.
        _, at_a, at_b = np.intersect1d(keys_a, keys_b, return_indices=True)
        shared = len(at_a) >= 0.5 * max(len(a), len(b))
        shared &= are_targets or a.networks != b.networks
        unique = len(set(keys_a)) == len(a) and len(set(keys_b)) == len(b)
        if inputs == "correct" and shared and unique:
            order_a, order_b, is_matched = np.sort(at_a), at_b[np.argsort(at_a)], True
    if not is_matched:
        if inputs == "correct":
            return Pair(a.correctly_classified(), b.correctly_classified(), False)
        return Pair(a, b, False)
    first, second = a.select(order_a), b.select(order_b)
    if inputs == "correct":
        both = first.holds & second.holds
        first, second = first.select(both), second.select(both)
    return Pair(first, second, True)


def _are_two_targets(a: Distribution, b: Distribution) -> bool:
    """Two different targets of the same network."""
    one, two = np.unique(a.column("target")), np.unique(b.column("target"))
    is_one_each = (
        len(one) == len(two) == 1 and one[0] != two[0] and min(one[0], two[0]) != NO_NUMBER
    )
    return is_one_each and len(a.networks) == 1 and a.networks == b.networks


def _identities(distribution: Distribution, identity: tuple[str, ...]) -> Array:
    """One text per row, equal for the same input of the same split under the same property."""
    columns = [distribution.column(name).astype(np.str_) for name in identity]
    text = columns[0]
    for column in columns[1:]:
        text = np.strings.add(np.strings.add(text, "\n"), column)
    return text


@dataclass(frozen=True, slots=True)
class CliffsDelta:
    """The chance that an input of the first has a larger radius, minus that of a smaller one.

    Brackets leave it between `least` and `most`; `low` and `high` add the sampling error of both.
    """

    least: float
    most: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        return (
            f"Cliff's delta in [{self.least:.2f}, {self.most:.2f}] for these inputs, in "
            f"[{self.low:.2f}, {self.high:.2f}] with {100 * self.level:g} % confidence"
        )


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The first mean radius minus the second.

    `proven` compares the proven sides of brackets with an answer, with a confidence interval; NaN
    if there are none. Brackets leave the difference of the radii themselves between `least` and
    `most`, which are infinite without witnesses.
    """

    proven: float
    low: float
    high: float
    least: float
    most: float
    level: float


def cliffs_delta(pair: Pair, level: float = 0.95) -> CliffsDelta:
    """Bounds from brackets; confidence from the placements of each input among the others.

    Matched inputs are compared across the whole sample, with the covariance of their pairs.
    """
    a, b = pair.first, pair.second
    least, least_error = _delta(pair, _smallest(a), b.upper)
    most, most_error = _delta(pair, a.upper, _smallest(b))
    z = _normal_quantile(level)
    return CliffsDelta(
        least=least,
        most=most,
        low=max(-1.0, least - z * least_error),
        high=min(1.0, most + z * most_error),
        level=level,
    )


def mean_difference(pair: Pair, values: Pair | None, level: float = 0.95) -> MeanDifference:
    """`values` is the part of the pair that has values: see `Pair.solved`."""
    a, b = pair.first, pair.second
    least, most = a.lower.mean() - b.upper.mean(), a.upper.mean() - b.lower.mean()
    proven, margin = (math.nan, math.nan) if values is None else _proven_difference(values, level)
    return MeanDifference(
        proven, proven - margin, proven + margin, float(least), float(most), level
    )


def _proven_difference(pair: Pair, level: float) -> tuple[float, float]:
    """Of the means of the proven sides, and the half-width of its confidence interval."""
    from scipy.stats import t

    a, b = pair.first, pair.second
    difference = float(a.lower.mean() - b.lower.mean())
    if pair.is_matched:
        error, freedom = _error(a.lower - b.lower), len(a) - 1.0
    else:
        one, two = _error(a.lower) ** 2, _error(b.lower) ** 2
        error = float(np.sqrt(one + two))
        parts = one**2 / max(len(a) - 1, 1) + two**2 / max(len(b) - 1, 1)
        freedom = (one + two) ** 2 / parts if parts > 0 else 1.0
    return difference, float(t.ppf((1 + level) / 2, max(freedom, 1.0))) * error


def _smallest(distribution: Distribution) -> Float64:
    """The smallest distance each bracket allows: above its lower end, if it is not exact."""
    is_open = distribution.lower < distribution.upper
    return np.where(is_open, np.nextafter(distribution.lower, np.inf), distribution.lower)


def _delta(pair: Pair, first: Float64, second: Float64) -> tuple[float, float]:
    """Delta of two sets of values, and its standard error."""
    place_first, place_second = _placements(first, second), -_placements(second, first)
    delta = float(place_first.mean())
    if pair.is_matched:
        return delta, _error(place_first + place_second)
    return delta, float(np.sqrt(_error(place_first) ** 2 + _error(place_second) ** 2))


def _placements(values: Float64, others: Float64) -> Float64:
    """For each value the share of others below minus the share above."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    above = len(others) - np.searchsorted(ordered, values, side="right")
    return (below - above) / len(others)


def _error(values: Float64) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Everything that is said about two distributions, on `inputs` inputs of each.

    `tests` are the classical ones on one side of the brackets, which take the samples as
    independent. `permutation` (a difference of location) is on the brackets themselves,
    `permutation_sup` (of any shape) on both their sides; if `is_matched` they exchange the two
    brackets of an input. They take equal radii to get equally wide brackets on both sides; `widths`
    are the mean widths, over inputs with a witness (NaN if there is none).

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
        tests=_classical(pair, values, side),
        permutation=_permuted_scores(pair, permutations, seed),
        permutation_sup=_permuted_curves(pair, values, permutations, seed),
        delta=cliffs_delta(pair, level),
        means=mean_difference(pair, values, level),
        dominance=dominance(a, b, names=known, tolerance=tolerance),
        widths=(_width(pair.first), _width(pair.second)),
    )


def compare_all(
    groups: dict[Any, Distribution], **options: Any
) -> tuple[list[Comparison], list[float]]:
    """Every pair of groups, and Holm-adjusted p-values of their permutation tests."""
    keys = list(groups)
    comparisons = [
        compare(groups[one], groups[two], names=(str(one), str(two)), **options)
        for place, one in enumerate(keys)
        for two in keys[place + 1 :]
    ]
    return comparisons, [float(p) for p in holm([c.permutation.p_value for c in comparisons])]


def compare_splits(distribution: Distribution, **options: Any) -> dict[str, Comparison]:
    """Training against testing inputs, for each network that was measured on both."""
    comparisons = {}
    for name, part in distribution.by_network().items():
        splits = part.group_by("split")
        if {"train", "test"} <= splits.keys():
            names = (f"{name} on training inputs", f"{name} on testing inputs")
            comparisons[name] = compare(splits["train"], splits["test"], names=names, **options)
    if not comparisons:
        raise DataError("no network was measured on inputs of both splits, train and test")
    return comparisons


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


def _classical(pair: Pair, values: Pair | None, side: Side) -> tuple[TestResult, ...]:
    if values is None:
        names = ("Kolmogorov-Smirnov", "Welch's t", "Mann-Whitney")
        return tuple(_not_made(name, NO_VALUES) for name in names)
    x, y = side_values(values.first, side), side_values(values.second, side)
    left_out = sum(_left_out(pair, values))
    tests = (ks_test, welch_test, mann_whitney_test)
    return tuple(replace(test(x, y), left_out=left_out) for test in tests)


def _permuted_scores(pair: Pair, permutations: int, seed: int) -> TestResult:
    lower, upper, is_first = _pooled(pair)
    scores = censored_scores(lower, upper)
    p_value = permuted_p_value(
        scores, is_first, is_matched=pair.is_matched, permutations=permutations, seed=seed
    )
    difference = float(scores[is_first].mean() - scores[~is_first].mean())
    return TestResult("permutation of scores", difference, p_value)


def _permuted_curves(pair: Pair, values: Pair | None, permutations: int, seed: int) -> TestResult:
    """Curves are of one number per bracket and side; brackets without an answer have none."""
    name = "permutation of curves"
    if values is None:
        return _not_made(name, NO_VALUES)
    lower, upper, is_first = _pooled(values)
    distance, p_value = permuted_sup_p_value(
        (lower, upper),
        is_first,
        is_matched=values.is_matched,
        permutations=min(permutations, 999),
        seed=seed,
    )
    return TestResult(name, distance, p_value, left_out=sum(_left_out(pair, values)))


def _pooled(pair: Pair) -> tuple[Float64, Float64, Array]:
    """Both sides of all brackets, and which are of the first."""
    a, b = pair.first, pair.second
    lower, upper = np.concatenate([a.lower, b.lower]), np.concatenate([a.upper, b.upper])
    return lower, upper, np.arange(len(lower)) < len(a)


def _width(distribution: Distribution) -> float:
    widths = (distribution.upper - distribution.lower)[np.isfinite(distribution.upper)]
    return float(widths.mean()) if widths.size else math.nan


def _names(a: Distribution, b: Distribution) -> tuple[str, str]:
    one, two = ", ".join(a.networks), ", ".join(b.networks)
    return (one, two) if one != two else (f"first {one}", f"second {two}")
