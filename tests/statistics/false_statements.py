"""Every statement with 95 % confidence, made about populations for which it is false.

A population is chosen so that the truth is just short of what is required: whenever the statement
is made all the same, it is false. `python tests/statistics/false_statements.py` prints how often
that is, as in docs/gate.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets import from_arrays
from radii.statistics import (
    Distribution,
    Population,
    SequentialEstimate,
    StoppingRule,
    check_all,
    class_curves,
    class_gains,
    compare,
    dominance,
    estimate_mean,
    fairness,
    ks_matrix,
    parse_requirement,
    spearman_matrix,
)

Values = npt.NDArray[np.float64]
Random = np.random.Generator
EPS = 0.1
BARELY = 1e-9
"""What is required is this much more than the truth."""
SKEWED = np.array([0.55, 0.3, 0.14, 0.01])
"""How frequent classes are."""


@dataclass(frozen=True)
class FalseStatement:
    """`is_made` draws a sample and tells whether the false statement is made about it."""

    group: str
    about: str
    is_made: Callable[[Random], bool]


STATEMENTS: list[FalseStatement] = []


def statement(
    group: str, about: str, **given: Any
) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    def register(is_made: Callable[..., bool]) -> Callable[..., bool]:
        about_these = about.format(**given)
        STATEMENTS.append(FalseStatement(group, about_these, lambda rng: is_made(rng, **given)))
        return is_made

    return register


# --- populations


def censored(radii: Values, rng: Random, how: str) -> tuple[Values, Values]:
    """Exact radii; steps of a coarse grid; or brackets that are wider the larger the radius is."""
    if how == "exact":
        return radii, radii
    below = np.floor(radii / 0.05) * 0.05
    if how == "grid":
        return below, np.nextafter(below + 0.05, np.inf)
    is_open = rng.random(len(radii)) < np.minimum(4 * radii, 0.8)
    return np.where(is_open, 0.0, below), np.where(is_open, np.inf, np.nextafter(below + 0.05, 1))


def robust_or_not(rng: Random, shares: Values, how: str = "exact", **columns: Any) -> Distribution:
    """An input for each share, which is the chance that it is robust at EPS."""
    is_robust = rng.random(len(shares)) < shares
    lower, upper = censored(np.where(is_robust, 0.23, 0.07), rng, how)
    return Distribution.from_arrays(lower, upper, correct=True, **columns)


def of_classes(
    rng: Random, inputs: int, recalls: list[float], weights: Values = SKEWED, **columns: Any
) -> Distribution:
    labels = rng.choice(len(weights), inputs, p=weights)
    return robust_or_not(rng, np.array(recalls)[labels], label=labels, **columns)


def is_met(text: str, sample: Distribution) -> bool:
    return parse_requirement(text).check(sample)[0].is_met


def skewed_radii(rng: Random, inputs: int) -> Values:
    """Log-normal, on a grid, a third of them in a lump: ties."""
    radii = np.exp(rng.normal(-3, 1.2, inputs))
    return np.where(rng.random(inputs) < 0.33, 0.04, np.round(radii, 3))


def quantiles_of_skewed(shares: Sequence[float]) -> dict[float, float]:
    many = np.sort(skewed_radii(np.random.default_rng(0), 2_000_000))
    return {share: float(many[int(np.ceil(share * len(many))) - 1]) for share in shares}


MEAN_OF_SKEWED = 0.67 * np.exp(-3 + 1.2**2 / 2) + 0.33 * 0.04

# --- shares of all inputs


@statement("gate", "accuracy >= of {inputs} inputs", inputs=20)
@statement("gate", "accuracy >= of {inputs} inputs", inputs=300)
def accuracy(rng: Random, inputs: int) -> bool:
    correct = rng.random(inputs) < 0.9
    radii = np.where(correct, 0.2, 0.0)
    sample = Distribution.from_arrays(radii, radii, correct=correct)
    return is_met(f"accuracy >= {0.9 + BARELY} @ 95%", sample)


for _share in (0.5, 0.9, 0.99):
    for _inputs in (5, 40, 300):

        @statement(
            "gate",
            "robust_accuracy >= {share} of {inputs} inputs",
            share=_share,
            inputs=_inputs,
        )
        def robust_accuracy(rng: Random, share: float, inputs: int) -> bool:
            sample = robust_or_not(rng, np.full(inputs, share), "grid")
            return is_met(f"robust_accuracy({EPS}) >= {share + BARELY} @ 95%", sample)


@statement("gate", "robust_accuracy >=, brackets open where radii are large")
def informative_brackets(rng: Random) -> bool:
    sample = robust_or_not(rng, np.full(60, 0.8), "informative")
    return is_met(f"robust_accuracy({EPS}) >= {0.8 + BARELY} @ 95%", sample)


@statement("gate", "not_refuted robust_accuracy <=, brackets open where radii are large")
def informative_brackets_above(rng: Random) -> bool:
    sample = robust_or_not(rng, np.full(60, 0.2), "informative")
    return is_met(f"robust_accuracy({EPS}) <= {0.2 - BARELY} @ 95%", sample)


@statement("gate", "robust_accuracy >= of 30 of a set of 45, without replacement")
def finite(rng: Random) -> bool:
    is_robust = rng.permutation(np.arange(45) < 36)[:30]
    radii = np.where(is_robust, 0.2, 0.05)
    sample = Distribution.from_arrays(radii, radii)
    return is_met(f"robust_accuracy({EPS}) >= {0.8 + BARELY} @ 95%", sample)


def drawn_from_set(rng: Random, how: str, recalls: Values, sizes: list[int], count: int) -> bool:
    """Drawn by the data sets themselves, from a set whose share is known."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    is_robust = rng.random(len(labels)) < recalls[labels]
    every = from_arrays(rng.random((len(labels), 1)).astype(np.float32), labels, name="set")
    seed = int(rng.integers(2**31))
    part = every.per_class(count, seed) if how == "per class" else every.stratified(count, seed)
    radii = np.where(is_robust[part.indices], 0.2, 0.05)
    sample = Distribution.from_arrays(
        radii, radii, label=part.labels, input=part.indices, draw=how, classes=len(sizes)
    )
    share = is_robust.mean() + BARELY
    return is_met(f"robust_accuracy({EPS}) >= {share} @ 95%", sample)


@statement("gate", "robust_accuracy >=, 10 of each of four skewed classes")
def per_class(rng: Random) -> bool:
    return drawn_from_set(rng, "per class", np.array([0.3, 1, 1, 1]), [700, 100, 100, 100], 10)


@statement("gate", "robust_accuracy >=, 100 stratified over 4 skewed classes")
def stratified(rng: Random) -> bool:
    recalls = np.array([0.95, 0.8, 0.5, 0.0])
    return drawn_from_set(rng, "stratified", recalls, [550, 300, 140, 10], 100)


@statement("gate", "robust_accuracy >=, 50 stratified over 100 classes, half of them never drawn")
def stratified_over_many(rng: Random) -> bool:
    recalls = np.where(np.arange(100) < 50, 1.0, 0.0)
    return drawn_from_set(rng, "stratified", recalls, [10] * 100, 50)


# --- minima and maxima over classes

RARE_IS_WRONG = [0.95, 0.95, 0.95, 0.0]


for _inputs in (30, 100, 300):

    @statement(
        "gate", "worst_recall >= of {inputs} inputs, a class of 1 % always wrong", inputs=_inputs
    )
    def worst_recall(rng: Random, inputs: int) -> bool:
        sample = of_classes(rng, inputs, RARE_IS_WRONG, classes=4)
        return is_met(f"worst_recall({EPS}) >= 0.001 @ 95%", sample)

    @statement(
        "gate", "recall_spread <= of {inputs} inputs, a class of 1 % always wrong", inputs=_inputs
    )
    def recall_spread(rng: Random, inputs: int) -> bool:
        sample = of_classes(rng, inputs, RARE_IS_WRONG, classes=4)
        return is_met(f"recall_spread({EPS}) <= {0.95 - BARELY} @ 95%", sample)


@statement("gate", "worst_recall >=, five equal classes")
def worst_of_equal(rng: Random) -> bool:
    sample = of_classes(rng, 200, [0.8] * 5, np.full(5, 0.2), classes=5)
    return is_met(f"worst_recall({EPS}) >= {0.8 + BARELY} @ 95%", sample)


@statement("gate", "worst_recall >=, one class worse than four")
def worst_of_five(rng: Random) -> bool:
    sample = of_classes(rng, 200, [1.0, 1.0, 1.0, 1.0, 0.8], np.full(5, 0.2), classes=5)
    return is_met(f"worst_recall({EPS}) >= {0.8 + BARELY} @ 95%", sample)


@statement("gate", "worst_recall <=, skewed classes")
def worst_from_above(rng: Random) -> bool:
    sample = of_classes(rng, 100, [0.8] * 4, classes=4)
    return is_met(f"worst_recall({EPS}) <= {0.8 - BARELY} @ 95%", sample)


@statement("gate", "recall_spread <=, two classes that differ")
def spread_of_two(rng: Random) -> bool:
    sample = of_classes(rng, 80, [0.9, 0.6], np.array([0.5, 0.5]), classes=2)
    return is_met(f"recall_spread({EPS}) <= {0.3 - BARELY} @ 95%", sample)


@statement("gate", "recall_spread >=, skewed classes that are alike")
def spread_from_below(rng: Random) -> bool:
    sample = of_classes(rng, 100, [0.5] * 4, classes=4)
    return is_met(f"recall_spread({EPS}) >= {BARELY} @ 95%", sample)


@statement("gate", "robust_recall >= of a class of 14 %")
def recall_of_one(rng: Random) -> bool:
    sample = of_classes(rng, 100, [0.5, 0.5, 0.8, 0.5], classes=4)
    return is_met(f"robust_recall(2, {EPS}) >= {0.8 + BARELY} @ 95%", sample)


# --- radii

QUANTILES = quantiles_of_skewed((0.05, 0.2, 0.5))


for _share in QUANTILES:
    for _inputs in (12, 100):
        for _how in ("exact", "grid", "informative"):

            @statement(
                "gate",
                "quantile({share}) >= of {inputs} radii with ties, {how}",
                share=_share,
                inputs=_inputs,
                how=_how,
            )
            def quantile(rng: Random, share: float, inputs: int, how: str) -> bool:
                lower, upper = censored(skewed_radii(rng, inputs), rng, how)
                sample = Distribution.from_arrays(lower, upper, correct=True)
                return is_met(f"quantile({share}) >= {QUANTILES[share] + BARELY} @ 95%", sample)


@statement("gate", "median <= of 40 radii with ties")
def median_from_above(rng: Random) -> bool:
    lower, upper = censored(skewed_radii(rng, 40), rng, "grid")
    sample = Distribution.from_arrays(lower, upper, correct=True)
    return is_met(f"median <= {QUANTILES[0.5] - BARELY} @ 95%", sample)


for _inputs in (5, 100):

    @statement("gate", "mean >= of {inputs} skewed radii", inputs=_inputs)
    def mean(rng: Random, inputs: int) -> bool:
        lower, upper = censored(skewed_radii(rng, inputs), rng, "exact")
        sample = Distribution.from_arrays(lower, upper, correct=True)
        return is_met(f"mean >= {0.999 * MEAN_OF_SKEWED} @ 95%", sample)


# --- several statements, and statements that are made again


@statement("gate", "any of 8 networks on the same 60 inputs, two requirements")
def eight_networks(rng: Random) -> bool:
    shared = rng.random(60)
    radii = np.concatenate([np.where(0.5 * (shared + rng.random(60)) < 0.6, 0.2, 0.05)] * 8)
    share = 1 - 2 * 0.4**2
    sample = Distribution.from_arrays(
        radii,
        radii,
        network=np.repeat([f"n{k}" for k in range(8)], 60),
        input=np.tile(range(60), 8),
    )
    texts = (f"robust_accuracy({EPS}) >= {share + BARELY} @ 95%", f"median >= {0.2 + BARELY} @ 95%")
    outcomes = check_all([parse_requirement(text) for text in texts], sample).outcomes
    return any(outcome.is_met for outcome in outcomes)


@statement("gate", "the first of 20 networks on the same inputs that is met (look=)")
def asked_again(rng: Random) -> bool:
    required = [parse_requirement(f"robust_accuracy({EPS}) >= {0.8 + BARELY} @ 95%")]
    return any(
        check_all(required, robust_or_not(rng, np.full(60, 0.8)), look=look).is_met
        for look in range(1, 21)
    )


def stopped(rng: Random, values: Values, goal: StoppingRule, population: Population) -> Any:
    """Looked at after every few inputs, until there is a reason to stop."""
    sequence = SequentialEstimate(goal, population, is_share=bool(np.isin(values, (0, 1)).all()))
    for few in np.array_split(values, max(1, len(values) // 8)):
        sequence.add(few)
        if sequence.reason_to_stop is not None:
            break
    return sequence.estimate


for _share in (0.5, 0.9, 0.97):

    @statement("sequence", "interval for {share} when it stopped early", share=_share)
    def stopped_share(rng: Random, share: float) -> bool:
        values = (rng.random(400) < share).astype(np.float64)
        goal = StoppingRule(error=0.08, threshold=0.9)
        found = stopped(rng, values, goal, Population("a source"))
        return not found.low <= share <= found.high


@statement("sequence", "interval for a mean change, most of them 0, when it stopped early")
def stopped_mean(rng: Random) -> bool:
    values = rng.random(400) * (rng.random(400) < 0.1)
    goal = StoppingRule(error=0.05, threshold=0.1)
    found = stopped(rng, values, goal, Population("a source"))
    return not found.low <= 0.05 <= found.high


@statement("sequence", "interval for a set of 150 when it stopped early, without replacement")
def stopped_finite(rng: Random) -> bool:
    values = rng.permutation(np.arange(150) < 129).astype(np.float64)
    goal = StoppingRule(error=0.06, threshold=0.9)
    found = stopped(rng, values, goal, Population("a set", 150))
    return not found.low <= 129 / 150 <= found.high


# --- intervals


for _method in ("exact", "hoeffding", "chernoff", "bernstein", "tightest"):
    for _size in (None, 40):

        @statement(
            "global",
            "{method} for R" + ("" if _size is None else " of a set of {size}, 30 drawn"),
            method=_method,
            size=_size,
        )
        def limits_of_share(rng: Random, method: str, size: int | None) -> bool:
            share = 0.9
            values = (rng.random(30) < share) * 1.0
            if size is not None:
                values = rng.permutation(np.arange(size) < share * size)[:30] * 1.0
            whom = Population("inputs", size)
            found = estimate_mean(values, population=whom, method=method)
            return not found.low <= share <= found.high


for _inputs in (1, 4, 30):

    @statement("global", "D of {inputs} inputs, changes mostly 0, now and then 1", inputs=_inputs)
    def limits_of_mean(rng: Random, inputs: int) -> bool:
        kinds = rng.choice(3, inputs, p=[0.8, 0.1, 0.1])
        values = np.choose(kinds, [np.zeros(inputs), np.ones(inputs), rng.random(inputs)])
        found = estimate_mean(values, population=Population("inputs"))
        return not found.low <= 0.15 <= found.high


MESH = np.linspace(0.0, 1.0, 201)


@statement("curve", "band at every eps, 40 inputs with wide brackets")
def band(rng: Random) -> bool:
    radii = rng.random(40) ** 2
    lower, upper = np.maximum(radii - 0.2 * rng.random(40), 0), radii + 0.2 * rng.random(40)
    low, high = Distribution.from_arrays(lower, upper).band().at(MESH)
    truth = 1 - np.sqrt(MESH)
    return bool(np.any((low > truth) | (high < truth)))


@statement("curve", "band at every eps, 15 of each of two skewed classes")
def band_per_class(rng: Random) -> bool:
    label = np.repeat([0, 1], 15)
    radii = rng.random(30) * np.where(label == 0, 1.0, 0.3)
    sample = Distribution.from_arrays(radii, radii, label=label, draw="per class", classes=2)
    low, high = sample.band().at(MESH)
    truth = 0.1 * (1 - MESH) + 0.9 * np.maximum(1 - MESH / 0.3, 0)
    return bool(np.any((low > truth) | (high < truth)))


@statement("curve", "bands of four skewed classes at every eps, all at once")
def class_bands(rng: Random) -> bool:
    labels = rng.choice(4, 80, p=SKEWED)
    radii = rng.random(80)
    curves = class_curves(Distribution.from_arrays(radii, radii, label=labels), MESH)
    truth = 1 - MESH
    return bool(np.any((curves.low > truth) | (curves.high < truth)))


@statement("classes", "fairness: which class is the worst among all inputs, one of 1 % is")
def worst_class(rng: Random) -> bool:
    sample = of_classes(rng, 100, RARE_IS_WRONG, classes=4)
    return 3 not in fairness(sample, EPS, permutations=1).worst_confident


@statement("classes", "fairness: spread of all inputs")
def spread_interval(rng: Random) -> bool:
    found = fairness(of_classes(rng, 100, RARE_IS_WRONG, classes=4), EPS, permutations=1)
    return not found.spread_low <= 0.95 <= found.spread_high


@statement("classes", "fairness: do classes differ? p <= 0.05, alike and skewed")
def classes_differ(rng: Random) -> bool:
    return fairness(of_classes(rng, 60, [0.7] * 4), EPS, permutations=99).p_value <= 0.05


@statement("classes", "KS matrix of four skewed classes with ties: any pair after Holm")
def classes_in_pairs(rng: Random) -> bool:
    labels = rng.choice(4, 80, p=SKEWED)
    radii = skewed_radii(rng, 80)
    sample = Distribution.from_arrays(radii, radii, label=labels, correct=True)
    return bool(np.any(ks_matrix(sample).differ()))


# --- two networks


def pair_of(
    rng: Random, sizes: tuple[int, int], factor: float, is_matched: bool, zeros: float = 0.0
) -> tuple[Distribution, Distribution]:
    """Log-normal radii, the second network's `factor` times as large; some 0."""
    ease = rng.normal(size=sizes[0])
    parts = []
    for name, size, scale in (("a", sizes[0], 1.0), ("b", sizes[1], factor)):
        noise = rng.normal(size=size)
        logs = 0.6 * ease + 0.8 * noise if is_matched else noise
        radii = np.where(rng.random(size) < zeros, 0.0, 0.05 * scale * np.exp(0.8 * logs))
        first = 0 if is_matched or name == "a" else 10_000
        parts.append(
            Distribution.from_arrays(
                radii, radii, network=name, correct=True, input=first + np.arange(size)
            )
        )
    return parts[0], parts[1]


def true_delta(factor: float) -> float:
    from scipy.stats import norm

    return float(2 * norm.cdf(-np.log(factor) / (0.8 * np.sqrt(2))) - 1)


for _sizes in ((5, 5), (10, 40), (100, 100)):
    for _factor in (1.0, 4.0, 20.0):
        for _matched in (False, True):
            if _matched and _sizes[0] != _sizes[1]:
                continue

            @statement(
                "compare",
                "Cliff's delta, {sizes[0]} and {sizes[1]} inputs, {factor:g} times as robust"
                + (", the same inputs" if _matched else ""),
                sizes=_sizes,
                factor=_factor,
                is_matched=_matched,
            )
            def delta(rng: Random, sizes: tuple[int, int], factor: float, is_matched: bool) -> bool:
                pair = pair_of(rng, sizes, factor, is_matched)
                found = compare(*pair, permutations=1).delta
                return not found.low <= true_delta(factor) <= found.high


@statement("compare", "who is more robust where, of equals")
def leads(rng: Random) -> bool:
    return bool(dominance(*pair_of(rng, (40, 60), 1.0, False), level=0.95).stretches)


for _sizes, _matched, _zeros in (
    ((5, 30), False, 0.0),
    ((10, 100), False, 0.9),
    ((30, 30), True, 0.5),
):
    for _place, _name in enumerate(
        ("Kolmogorov-Smirnov", "Welch's t", "Mann-Whitney", "permuted scores", "permuted curves")
    ):

        @statement(
            "compare",
            "{name}, p <= 0.05, {sizes[0]} and {sizes[1]} inputs, {zeros:.0%} with radius 0",
            name=_name,
            place=_place,
            sizes=_sizes,
            is_matched=_matched,
            zeros=_zeros,
        )
        def test_of_equals(
            rng: Random,
            name: str,
            place: int,
            sizes: tuple[int, int],
            is_matched: bool,
            zeros: float,
        ) -> bool:
            pair = pair_of(rng, sizes, 1.0, is_matched, zeros)
            seed = int(rng.integers(2**31))
            return compare(*pair, permutations=99, seed=seed).all_tests[place].p_value <= 0.05


for _inputs in (3, 5, 9, 40):

    @statement("compare", "Spearman's r of {inputs} inputs, p <= 0.05", inputs=_inputs)
    def correlated(rng: Random, inputs: int) -> bool:
        pair = pair_of(rng, (inputs, inputs), 1.0, False)
        both = Distribution.union([pair[0], pair[1].labelled(input=np.arange(inputs))])
        return bool(spearman_matrix(both).p_values[0, 1] <= 0.05)


@statement("compare", "a class gains, after Holm, of four skewed classes, brackets open at random")
def gains(rng: Random) -> bool:
    labels = rng.choice(4, 80, p=SKEWED)
    one, two = (
        robust_or_not(rng, np.full(80, 0.6), "informative", label=labels, network=name)
        for name in ("a", "b")
    )
    return any(gain.verdict() != "undecided" for gain in class_gains(one, two, EPS))


def false_rate(asked: FalseStatement, samples: int, seed: int = 0) -> int:
    """Of how many samples the false statement is made."""
    rng = np.random.default_rng([seed, STATEMENTS.index(asked)])
    return sum(asked.is_made(rng) for _ in range(samples))


def main(samples: int) -> None:
    print("| | statement | false |\n|---|---|---:|")
    for asked in STATEMENTS:
        share = 100 * false_rate(asked, samples, seed=1) / samples
        print(f"| {asked.group} | {asked.about} | {share:.1f} % |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
