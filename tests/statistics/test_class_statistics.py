"""Per class and per target: matrices, fairness, gains and costs, by hand and by simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from simulated_brackets import gridded, lognormal_brackets

import radii
from radii.errors import DataError
from radii.problem import Norm
from radii.statistics import (
    Distribution,
    adversarial_cost,
    class_curves,
    class_gains,
    closest_targets,
    fairness,
    ks_matrix,
    sample_stability,
    statistics_of,
    statistics_table,
    target_recall,
)
from radii.statistics._tests import ks_test
from radii.testing import LinearClassifier


def classes(
    scales: dict[int, float], size: int = 50, seed: int = 0, **columns: Any
) -> Distribution:
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


def towards_targets(name: str, **columns: Any) -> Distribution:
    """Two inputs of classes 0 and 1, three classes, a bracket for each target."""
    return Distribution.from_arrays(
        [0.1, 0.3, 0.2, 0.0],
        [0.2, 0.4, 0.5, 0.1],
        input=[0, 0, 1, 1],
        label=[0, 0, 1, 1],
        target=[1, 2, 0, 2],
        property=[f"{name}:{target}" for target in (1, 2, 0, 2)],
        **columns,
    )


COSTS = np.array([[0, 1, 10], [2, 0, 5], [1, 1, 0]])
AT = [0.05, 0.2, 0.35, 0.6]


def test_costs_of_become_by_hand() -> None:
    least, most = adversarial_cost(towards_targets("become"), COSTS, AT)
    assert least.tolist() == [0.0, (1 + 5) / 2, (1 + 5) / 2, (10 + 5) / 2]
    assert most.tolist() == [5 / 2, (1 + 5) / 2, (10 + 5) / 2, (10 + 5) / 2]


def test_costs_of_one_to_one_count_what_a_counterexample_is_taken_for() -> None:
    """Proofs exclude their targets; that a target reached the label excludes and shows no class."""
    unknown = towards_targets("one-to-one")
    least, most = adversarial_cost(unknown, COSTS, AT)
    assert least.tolist() == [0.0, (1 + 2) / 2, (1 + 2) / 2, (1 + 2) / 2]
    assert most.tolist() == [5 / 2, (1 + 5) / 2, (10 + 5) / 2, (10 + 5) / 2]
    all_of_one = towards_targets("one-to-one", witness_class=[1, 1, 2, 2])
    least, again = adversarial_cost(all_of_one, COSTS, AT)
    assert least.tolist() == [0.0, (1 + 5) / 2, (1 + 5) / 2, (1 + 5) / 2]
    assert again.tolist() == most.tolist()


def test_a_dear_target_that_no_counterexample_is_taken_for_is_no_proven_cost() -> None:
    """Nine witnesses of a 9, all taken for a 4, one of them because 3 reached the label."""
    costs = np.ones((10, 10)) - np.eye(10)
    costs[9, 3] = 100
    columns = {"input": 0, "label": 9, "target": np.arange(9), "witness_class": 4}
    reached = Distribution.from_arrays(
        np.zeros(9), np.full(9, 0.2), property=[f"one-to-one:{t}" for t in range(9)], **columns
    )
    least, most = adversarial_cost(reached, costs, 0.3)
    assert (least.tolist(), most.tolist()) == ([1.0], [100.0])
    taken = reached.labelled(property=[f"become:{t}" for t in range(9)], witness_class=None)
    assert [side.tolist() for side in adversarial_cost(taken, costs, 0.3)] == [[100.0], [100.0]]


def test_costs_of_both_properties_together_are_the_tighter_ones() -> None:
    reached = towards_targets("one-to-one")
    both = Distribution.union(
        [reached, towards_targets("become").labelled(lower=[0.19, 0.3, 0.2, 0.0])]
    )
    _, alone = adversarial_cost(reached, COSTS, 0.15)
    least, most = adversarial_cost(both, COSTS, 0.15)
    assert alone.tolist() == [(1 + 5) / 2]
    assert (least.tolist(), most.tolist()) == ([5 / 2], [5 / 2])


def test_costs_are_about_classes() -> None:
    moved = Distribution.from_arrays([0.1], [0.2], label=0, property="sr:delta=1")
    with pytest.raises(DataError, match="breaks 'sr:delta=1' may still be taken for its class"):
        adversarial_cost(moved, 1 - np.eye(3), 0.1)


def test_costs_and_recall_hold_what_is_known_of_a_linear_classifier() -> None:
    """Both properties bound what closed forms say, and become has it exactly.

    Here a dear target reaches the label of some input, which is never taken for it within eps.
    """
    classifier = LinearClassifier.random(1, inputs=3, dtype=np.float32)
    points = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    labels = classifier.network.replay(points).argmax(axis=1)
    costs = np.random.default_rng(2).integers(1, 100, (4, 4)) * (1 - np.eye(4))
    distances = np.array(
        [
            [classifier.become_radius(x, t, Norm.LINF) if t != label else np.inf for t in range(4)]
            for x, label in zip(points, labels, strict=True)
        ]
    )
    eps = 0.9
    truth = np.where(distances <= eps, costs[labels], 0).max(axis=1).mean()
    sides = {}
    for name in ("one-to-one", "become"):
        found = radii.robustness_distribution(
            classifier.network, (points, labels), property=name, grid="0.05:1.5:0.05", jobs=0
        )
        least, most = adversarial_cost(found, costs, eps)
        assert least[0] <= truth <= most[0]
        proven, not_refuted = target_recall(found, eps)
        for label in np.unique(labels):
            safe = (distances[labels == label] > eps).mean(axis=0)
            others = np.arange(4) != label
            assert np.all(proven[label, others] <= safe[others])
            assert np.all(safe[others] <= not_refuted[label, others])
        sides[name] = least[0], most[0]
    assert sides["become"] == (truth, truth)
    assert sides["one-to-one"][0] <= truth < sides["one-to-one"][1]


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
    part = towards_targets("become").select(np.arange(4) > 0)
    with pytest.raises(DataError, match="which has a cost"):
        adversarial_cost(part, 1 - np.eye(3), 0.1)


def test_targets_as_matrices() -> None:
    proven, not_refuted = target_recall(towards_targets("become"), 0.25)
    assert (proven[0, 2], not_refuted[0, 1], proven[1, 0], not_refuted[1, 0]) == (1, 0, 0, 1)
    assert math.isnan(proven[2, 0])
    # That a target reached the label refutes nothing, unless the counterexample is taken for it.
    again, unrefuted = target_recall(towards_targets("one-to-one"), 0.25)
    np.testing.assert_array_equal(again, proven)
    assert (unrefuted[0, 1], unrefuted[1, 2]) == (1, 1)
    seen = towards_targets("one-to-one", witness_class=[1, 1, 0, 0])
    _, unrefuted = target_recall(seen, 0.25)
    # Input 1 reached 2 within 0.1, with a counterexample that is taken for 0.
    assert (unrefuted[0, 1], unrefuted[1, 2], unrefuted[1, 0]) == (0, 1, 0)
    misclassified = towards_targets("one-to-one", correct=False, predicted=[1, 1, 0, 0])
    assert target_recall(misclassified, 0.25)[1][0, 1] == 1
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
    (found,) = statistics_table(dist).to_dict("records")
    assert (found["inputs"], found["correct"], found["missing"], found["timeouts"]) == (4, 3, 3, 2)
    assert found["mean_gap"] == pytest.approx(0.1)
    assert (found["critical"], found["unsolved"]) == pytest.approx((2 / 3, 1 / 3))
    assert found["without_witness"] == pytest.approx(2 / 3)
    assert (found["total_seconds"], found["mean_seconds"]) == (6.0, 1.5)
    unknown = statistics_of(lognormal_brackets(5, 0))
    assert unknown["missing"] is None
    assert unknown["critical"] is None


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
    with pytest.raises(DataError, match="at least 2 inputs"):
        sample_stability(dist, [1])


def test_accuracy_of_a_sample_moves_also_where_most_radii_are_zero() -> None:
    lower = np.repeat([0.0, 0.1], [60, 40])
    (row,) = sample_stability(Distribution.from_arrays(lower, lower + 0.01), [100])
    assert 0.07 < row.robust_accuracy < 0.13  # 1.96 sqrt(0.4 * 0.6 / 100) = 0.096
