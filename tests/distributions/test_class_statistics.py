"""Per class and per target: matrices, fairness, gains and costs, by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated_brackets import gridded, lognormal_brackets

from radii.distributions import (
    Distribution,
    adversarial_cost,
    class_curves,
    class_gains,
    closest_targets,
    fairness,
    ks_matrix,
    quality,
    quality_table,
    sample_stability,
    stability_table,
    target_recall,
)
from radii.distributions.two_samples import ks_test
from radii.errors import DataError


def classes(scales: dict[int, float], size: int = 50, seed: int = 0, **columns) -> Distribution:
    """Inputs of several classes, whose radii are a class's scale times log-normal."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(list(scales), size)
    distances = (
        0.05 * np.array([scales[label] for label in labels]) * rng.lognormal(0, 0.4, len(labels))
    )
    return Distribution.from_arrays(*gridded(distances, 0.002), label=labels, **columns)


def test_matrix_layout() -> None:
    train = classes({0: 1.0, 1: 2.0, 2: 1.0}, split="train")
    test = classes({0: 1.0, 1: 1.0}, seed=1, split="test")
    found = ks_matrix(Distribution.union([train, test]))
    assert found.keys == (0, 1, 2)
    for row, column, one, two in (
        (1, 0, train.only(label=1), train.only(label=0)),  # training below
        (0, 1, test.only(label=0), test.only(label=1)),  # testing above
        (1, 1, train.only(label=1), test.only(label=1)),  # the diagonal between
    ):
        expected = ks_test(one.lower, two.lower)
        assert found.statistics[row, column] == expected.statistic
        assert found.p_values[row, column] == expected.p_value
    assert math.isnan(found.statistics[0, 2])
    assert found.differ()[1, 0]
    assert not found.differ()[0, 1]
    assert np.nansum(found.adjusted >= found.p_values) == np.sum(~np.isnan(found.p_values))
    assert found.frame().loc[1, 0] == found.statistics[1, 0]
    alone = ks_matrix(test)
    assert not math.isnan(alone.statistics[0, 1])
    assert math.isnan(alone.statistics[1, 0])
    with pytest.raises(DataError, match="only one network"):
        ks_matrix(test, "network")


def test_fairness_by_hand() -> None:
    dist = Distribution.from_arrays([0.3, 0.3, 0.1, 0.0], [0.4, 0.4, 0.4, 0.0], label=[0, 0, 1, 1])
    found = fairness(dist, 0.2, permutations=19)
    assert [(c.recall.proven, c.recall.not_refuted) for c in found.classes] == [(1, 1), (0, 0.5)]
    assert found.spread == (0.5, 1.0)
    assert found.worst == (1,)
    assert found.worst_confident == (0, 1)
    assert "class 1 is the worst" in str(found)
    curves = class_curves(dist, [0.0, 0.2])
    assert curves.proven.tolist() == [[1, 1], [0.5, 0]]
    assert curves.spread[0].tolist() == [0.5, 0.5]
    assert np.all(curves.low <= curves.proven)
    assert np.all(curves.high >= curves.not_refuted)


def test_unfairness_is_found_and_the_worst_class_named() -> None:
    found = fairness(classes({0: 1.0, 1: 1.0, 2: 0.4}, size=80), 0.03, permutations=199)
    assert found.worst == found.worst_confident == (2,)
    assert found.p_value == 0.005
    assert found.spread_low > 0.3
    assert "which also holds for all inputs" in str(found)


def test_fair_classes_are_rarely_called_unfair() -> None:
    p_values = [
        fairness(classes({0: 1.0, 1: 1.0, 2: 1.0}, 20, seed), 0.05, permutations=99).p_value
        for seed in range(60)
    ]
    assert np.mean(np.array(p_values) <= 0.1) <= 0.2


def test_class_intervals_hold_together() -> None:
    """All classes' recall at once, at a true recall that is known."""
    held = 0
    for seed in range(100):
        dist = classes({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, 25, seed)
        # Half of all radii are below 0.05, which is a value of the grid.
        found = fairness(dist, 0.05, level=0.9, permutations=1)
        held += all(c.low <= 0.5 <= c.high for c in found.classes)
    assert held / 100 >= 0.85


def test_who_gains() -> None:
    a = classes({0: 1.0, 1: 1.0, 2: 1.0}, network="a")
    b = classes({0: 3.0, 1: 1.0, 2: 0.3}, network="b")
    gains = class_gains(a, b, 0.05)
    assert [g.verdict() for g in gains] == ["gains", "undecided", "loses"]
    assert all(g.least <= g.most and g.adjusted >= g.p_value for g in gains)
    elsewhere = classes({0: 3.0, 1: 1.0, 2: 0.3}, network="b").labelled(input=np.arange(150) + 500)
    unmatched = class_gains(a, elsewhere, 0.05)
    assert [g.verdict() for g in unmatched] == ["gains", "undecided", "loses"]
    with pytest.raises(DataError, match="share no class"):
        class_gains(a, classes({7: 1.0}), 0.05)


def test_undecided_inputs_count_against_every_claim() -> None:
    a = Distribution.from_arrays([0.1] * 20, [0.2] * 20, network="a", label=0)
    b = Distribution.from_arrays([0.1] * 20, [math.inf] * 20, network="b", label=0)
    (gain,) = class_gains(a, b, 0.3)
    assert (gain.least, gain.most) == (0, 1)
    assert gain.p_value == 1


def one_to_one() -> Distribution:
    """Two inputs of classes 0 and 1, three classes, a bracket for each target."""
    return Distribution.from_arrays(
        [0.1, 0.3, 0.2, 0.0],
        [0.2, 0.4, 0.5, 0.1],
        input=[0, 0, 1, 1],
        label=[0, 0, 1, 1],
        target=[1, 2, 0, 2],
        property=["one-to-one:1", "one-to-one:2", "one-to-one:0", "one-to-one:2"],
    )


def test_costs_by_hand() -> None:
    costs = np.array([[0, 1, 10], [2, 0, 5], [1, 1, 0]])
    least, most = adversarial_cost(one_to_one(), costs, [0.05, 0.2, 0.35, 0.6])
    assert least.tolist() == [0.0, (1 + 5) / 2, (1 + 5) / 2, (10 + 5) / 2]
    assert most.tolist() == [5 / 2, (1 + 5) / 2, (10 + 5) / 2, (10 + 5) / 2]


def test_equal_costs_are_one_minus_robust_accuracy() -> None:
    dist = lognormal_brackets(30, 1, label=0, witness_class=1)
    eps = np.array([0.02, 0.05, 0.1])
    least, most = adversarial_cost(dist, 1 - np.eye(3), eps)
    proven, not_refuted = dist.shares(eps)
    np.testing.assert_allclose(least, 1 - not_refuted)
    np.testing.assert_allclose(most, 1 - proven)


def test_untargeted_costs_use_the_class_of_the_witness() -> None:
    dist = Distribution.from_arrays(
        [0.1, 0.0], [0.2, 0.0], label=[0, 1], witness_class=[2, None], predicted=[0, 0]
    )
    costs = np.array([[0, 1, 10], [2, 0, 5], [1, 1, 0]])
    least, most = adversarial_cost(dist, costs, 0.3)
    assert least.tolist() == [(10 + 2) / 2]
    assert most.tolist() == [(10 + 5) / 2]
    with pytest.raises(DataError, match="each of 3 classes"):
        adversarial_cost(dist, np.zeros((2, 2)), 0.1)
    with pytest.raises(DataError, match="0 for taking a class for itself"):
        adversarial_cost(dist, np.ones((3, 3)), 0.1)


def test_costs_need_every_target_that_costs() -> None:
    part = one_to_one().select(np.arange(len(one_to_one())) > 0)
    with pytest.raises(DataError, match="which has a cost"):
        adversarial_cost(part, 1 - np.eye(3), 0.1)


def test_targets_as_matrices() -> None:
    proven, not_refuted = target_recall(one_to_one(), 0.25)
    assert (proven[0, 2], not_refuted[0, 1], proven[1, 0], not_refuted[1, 0]) == (1, 0, 0, 1)
    assert math.isnan(proven[2, 0])
    dist = Distribution.from_arrays(
        [0.1, 0.1, 0.0], [0.2, 0.2, 0.0], label=[0, 0, 1], witness_class=[2, 2, 0]
    )
    assert closest_targets(dist).tolist() == [[0, 0, 2], [0, 0, 0], [0, 0, 0]]


def test_quality_by_hand() -> None:
    dist = Distribution.from_arrays(
        [0.1, 0.2, 0.0, 0.0],
        [0.2, math.inf, math.inf, 0.0],
        network="a",
        queries=[3, 4, 2, 1],
        missing=[0, 1, 2, 0],
        timeouts=[0, 1, 1, 0],
        critical=[0, 1, 2, 0],
        seconds=[1.0, 2.0, 3.0, 0.0],
    )
    found = quality(dist)
    assert (found.inputs, found.correct, found.missing, found.timeouts) == (4, 3, 3, 2)
    assert found.mean_gap == pytest.approx(0.1)
    assert (found.critical, found.unsolved) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert found.without_witness == pytest.approx(2 / 3)
    assert (found.total_seconds, found.mean_seconds) == (6.0, 1.5)
    assert found.is_critical_exact
    untold = quality(lognormal_brackets(5, 0))
    assert untold.missing is None
    assert math.isnan(untold.critical)
    assert len(quality_table(dist)) == 1


def test_larger_samples_are_steadier() -> None:
    dist = lognormal_brackets(200, 2, network="a")
    rows = sample_stability(dist)
    assert [row.inputs for row in rows] == [100, 200, 400]
    assert rows[0].mean > rows[1].mean > rows[2].mean
    # The standard error of a mean, of which 1.96 make the half-width.
    assert rows[0].mean == pytest.approx(1.96 * dist.lower.std() / 10, rel=0.15)
    assert rows[0].robust_accuracy == pytest.approx(0.098, abs=0.02)
    assert rows[0].band > rows[0].robust_accuracy
    assert "With 100 inputs the mean radius is within" in str(rows[0])
    assert len(stability_table(dist, [10, 20])) == 2
    with pytest.raises(DataError, match="at least 2 inputs"):
        sample_stability(dist, [1])


def test_accuracy_of_a_sample_moves_also_where_most_radii_are_zero() -> None:
    lower = np.repeat([0.0, 0.1], [60, 40])
    (row,) = sample_stability(Distribution.from_arrays(lower, lower + 0.01), [100])
    assert 0.07 < row.robust_accuracy < 0.13  # 1.96 sqrt(0.4 * 0.6 / 100) = 0.096
