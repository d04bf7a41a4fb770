"""Results without any answer: no number stands for them, and intervals keep them.

Each statistic of values must be what it is without them, and say how many they were; each statistic
of intervals must count them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from simulated_brackets import gridded, lognormal_brackets

from conftest import SHARED_DATA, needs_shared_data
from radii.errors import DataError
from radii.statistics import (
    CATALOGUE,
    ComparisonOptions,
    Distribution,
    compare,
    compare_groups,
    compare_sides,
    fit,
    goodness_of_fit,
    ks_matrix,
    read,
    sample_stability,
    spearman_matrix,
    turnbull,
)
from radii.statistics._pairs import paired_on

EMPTY = 40


def with_unsolved(distribution: Distribution, count: int = EMPTY, **columns: Any) -> Distribution:
    """More inputs of the same network, about which nothing was found out."""
    empty = Distribution.from_arrays(
        np.zeros(count),
        np.full(count, np.inf),
        network=distribution.networks[0],
        input=1000 + np.arange(count),
        **{
            "label": distribution.label[np.arange(count) % len(distribution)],
            "split": str(distribution.column("split")[0]),
            **columns,
        },
    )
    return Distribution.union([distribution, empty])


def samples() -> tuple[Distribution, Distribution]:
    train = lognormal_brackets(60, 1, network="a", label=np.arange(60) % 2, split="train")
    test = lognormal_brackets(50, 2, network="a", label=np.arange(50) % 2, split="test")
    return train, test


def test_misclassified_inputs_and_one_sided_brackets_are_solved() -> None:
    several = Distribution.from_arrays(
        [0.0, 0.0, 0.1, 0.0, 0.0],
        [np.inf, 0.2, np.inf, 0.0, np.inf],
        correct=[True, True, True, False, False],
        property=["one-to-any"] * 4 + ["one-to-one:3"],
    )
    assert several.is_unsolved.tolist() == [True, False, False, False, False]
    assert several.unsolved == 1
    assert several.solved().lower.tolist() == [0.0, 0.1, 0.0, 0.0]
    with pytest.raises(DataError, match="no result has an answer"):
        several.select([0]).solved()


def test_tests_of_values_are_those_without_unsolved_results() -> None:
    train, test = samples()
    plain, padded = compare(train, test), compare(with_unsolved(train), test)
    assert padded.left_out == (EMPTY, 0) and plain.left_out == (0, 0)
    assert padded.inputs == (60 + EMPTY, 50)
    for one, two in zip(plain.tests, padded.tests, strict=True):
        assert two == dataclasses.replace(one, left_out=EMPTY)
    by_scipy = stats.ks_2samp(train.lower, test.lower, method="exact")
    assert padded.tests[0].p_value == pytest.approx(by_scipy.pvalue)
    assert f"{EMPTY} without an answer left out" in str(padded.tests[0])
    assert padded.permutation_sup.statistic == plain.permutation_sup.statistic
    assert padded.permutation_sup.p_value == plain.permutation_sup.p_value
    assert (padded.means.proven, padded.means.error) == (plain.means.proven, plain.means.error)


def test_statistics_of_intervals_keep_unsolved_results() -> None:
    train, test = samples()
    plain, padded = compare(train, test), compare(with_unsolved(train), test)
    share = EMPTY / (60 + EMPTY)
    # Delta: an unsolved input may be below or above every other.
    assert padded.delta.least == pytest.approx((1 - share) * plain.delta.least - share)
    assert padded.delta.most == pytest.approx((1 - share) * plain.delta.most + share)
    assert padded.means.most == math.inf
    # A bracket that excludes nothing does not move the most likely distribution.
    at = np.linspace(0.01, 0.2, 9)
    np.testing.assert_allclose(
        turnbull(with_unsolved(train)).broken(at), turnbull(train).broken(at), atol=1e-4
    )
    assert with_unsolved(train).robust_accuracy(0.0).not_refuted == 1
    assert with_unsolved(train).median()[1] == math.inf or share < 0.5
    assert CATALOGUE["unsolved"](with_unsolved(train)) == pytest.approx(share)


def test_samples_of_equal_radii_are_not_told_apart_by_what_was_not_solved() -> None:
    """The defect: as radius 0, unsolved results made any two samples differ."""
    train = lognormal_brackets(200, 3, network="a", split="train")
    test = lognormal_brackets(200, 4, network="a", split="test")
    as_zero = stats.ks_2samp(np.append(train.lower, np.zeros(100)), test.lower)
    assert as_zero.pvalue < 1e-6
    found = compare(with_unsolved(train, 100), test)
    assert all(result.p_value > 0.05 for result in found.all_tests)


def test_matched_inputs_go_where_either_has_no_answer() -> None:
    rng = np.random.default_rng(5)
    a = Distribution.from_arrays(*gridded(rng.uniform(0.1, 0.3, 30), 0.01), network="a")
    b = Distribution.from_arrays(*gridded(rng.uniform(0.1, 0.3, 30), 0.01), network="b")
    lost_a, lost_b = np.arange(30) < 4, (np.arange(30) >= 2) & (np.arange(30) < 9)
    padded = [
        part.labelled(lower=np.where(lost, 0, part.lower), upper=np.where(lost, np.inf, part.upper))
        for part, lost in ((a, lost_a), (b, lost_b))
    ]
    pair = paired_on(padded[0], padded[1])
    values = pair.solved()
    assert pair.is_matched and values is not None
    assert sorted(values.first.column("input").tolist()) == list(range(9, 30))
    kept = compare(a.select(np.arange(9, 30)), b.select(np.arange(9, 30)))
    found = compare(*padded)
    assert found.left_out == (9, 9)
    assert found.means.proven == kept.means.proven
    assert [test.p_value for test in found.tests] == [test.p_value for test in kept.tests]


def test_a_group_without_any_answer_cannot_be_tested_by_values() -> None:
    train, _ = samples()
    nothing = Distribution.from_arrays(np.zeros(9), np.full(9, np.inf), network="b")
    found = compare(train, nothing)
    assert found.left_out == (60, 9)
    assert not any(test.is_made for test in (*found.tests, found.permutation_sup))
    assert "has an answer" in found.tests[0].reason
    assert math.isnan(found.means.proven)
    assert found.permutation.p_value > 0.05  # intervals that exclude nothing show no difference
    assert (found.delta.least, found.delta.most) == (-1, 1)


def test_matrices_leave_unsolved_results_out_and_count_them() -> None:
    train, test = samples()
    both = Distribution.union([train, test])
    padded = Distribution.union([with_unsolved(train, label=0), test])
    plain, found = ks_matrix(both), ks_matrix(padded)
    np.testing.assert_array_equal(found.statistics, plain.statistics)
    np.testing.assert_array_equal(found.p_values, plain.p_values)
    assert (plain.left_out, found.left_out) == ((0, 0), (EMPTY, 0))


def test_a_group_of_unsolved_results_alone_has_no_cell() -> None:
    train, _ = samples()
    found = ks_matrix(with_unsolved(train, label=7))
    assert found.keys == (0, 1, 7)
    assert np.isnan(found.statistics[2]).all() and not np.isnan(found.statistics[1, 0])


def test_correlations_leave_unsolved_results_out_and_count_them() -> None:
    rng = np.random.default_rng(6)
    values = rng.uniform(0.1, 0.3, (2, 25))
    lower = values.copy()
    lower[0, :5] = 0
    upper = values + 0.01
    upper[0, :5] = np.inf
    found = spearman_matrix(
        Distribution.from_arrays(
            lower.ravel(),
            upper.ravel(),
            network=np.repeat(["a", "b"], 25),
            input=np.tile(np.arange(25), 2),
        )
    )
    expected = stats.spearmanr(values[0, 5:], values[1, 5:])
    assert found.coefficients[0, 1] == pytest.approx(expected.statistic)
    assert found.p_values[0, 1] == pytest.approx(expected.pvalue, rel=0.1)
    assert found.inputs[0, 1] == 20
    assert found.left_out == (5, 0)


def test_curves_sides_summaries_and_resampling_leave_them_out() -> None:
    train, _ = samples()
    padded = with_unsolved(train)
    for one, two in zip(compare_sides(train), compare_sides(padded), strict=True):
        assert two == dataclasses.replace(one, left_out=EMPTY)
    both = Distribution.union([padded.labelled(network="a"), train.labelled(network="b")])
    first, second = compare_groups(both, ComparisonOptions(permutations=19)).summaries()
    assert first["deviation"] == second["deviation"]
    assert (first["unsolved"], second["unsolved"]) == (EMPTY, 0)
    (stable,), (plain,) = sample_stability(padded, [100]), sample_stability(train, [100])
    assert stable.left_out == EMPTY
    assert stable.mean == pytest.approx(plain.mean, rel=0.2)
    assert f"{EMPTY} brackets without an answer" in str(stable)


def test_fits_and_their_plain_check_are_those_without_unsolved_results() -> None:
    train, _ = samples()
    plain, padded = goodness_of_fit(train), goodness_of_fit(with_unsolved(train))
    assert padded.fit.parameters == plain.fit.parameters
    assert padded.ks_p_value == plain.ks_p_value is not None  # not invalid for a radius of 0
    assert padded.p_value == plain.p_value
    assert f"({EMPTY} more without an answer)" in str(fit(with_unsolved(train)))
    assert "without an answer" not in str(plain.fit)


@needs_shared_data
def test_a_published_file_shows_no_difference_of_training_and_testing_inputs() -> None:
    """252 of 492 training rows of mnist-net_256x4 have no answer; as radius 0, p was 6e-20."""
    path = SHARED_DATA / "jair" / "public" / "results_JAIR_fomlas.csv"
    part = read(path).brackets.only(network="mnist-net_256x4")
    splits = part.group_by("split")
    found = compare(splits["train"], splits["test"], permutations=499)
    assert found.left_out == (252, 0)
    assert stats.ks_2samp(splits["train"].lower, splits["test"].lower).pvalue < 1e-10
    assert found.tests[0].p_value > 0.05
    assert found.permutation_sup.p_value > 0.05
