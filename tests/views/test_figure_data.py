"""The numbers behind the figures, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from radii.errors import DataError
from radii.statistics import Distribution, spearman_matrix
from radii.views import (
    box_summaries,
    claims_of,
    class_table,
    draw_scatter,
    ecdf_curves,
    fitted_groups,
    gap_summaries,
    ks_matrices,
    qq_points,
    run_times,
    scatter_of,
    spread_curves,
    target_tables,
)
from radii.views.figures._curves import turnbull_line
from radii.views.figures._matrices import short, shortened
from radii.views.figures._pairs import extreme_pairs
from radii.views.figures._style import groups_of


def three_networks() -> Distribution:
    """On inputs 0 to 3: b orders them as a does, c in reverse; c is wrong on input 3."""
    radii = {"a": [0.1, 0.2, 0.3, 0.4], "b": [0.2, 0.3, 0.5, 0.9], "c": [0.4, 0.3, 0.2, 0.0]}
    return Distribution.from_arrays(
        np.concatenate(list(radii.values())),
        np.concatenate([np.where(np.array(r) > 0, np.array(r) + 0.1, 0) for r in radii.values()]),
        network=np.repeat(list(radii), 4),
        input=np.tile(np.arange(4), 3),
        label=np.tile([0, 0, 1, 1], 3),
        seconds=np.tile([1.0, 2.0, 2.0, 8.0], 3),
    )


def test_boxes_go_by_minimum_from_large_to_small() -> None:
    found = box_summaries(three_networks(), sort="minimum")
    assert [s.name for s in found] == ["b", "c", "a"]
    assert [s.minimum[0] for s in found] == [0.2, 0.2, 0.1]
    assert [s.inputs for s in found] == [4, 3, 4]  # the misclassified one has no radius
    assert [s.name for s in box_summaries(three_networks(), sort="median")] == ["b", "c", "a"]


def test_boxes_of_two_splits_stay_together() -> None:
    several = Distribution.from_arrays(
        [0.1, 0.5, 0.3, 0.2],
        [0.2, 0.6, 0.4, 0.3],
        network=["a", "a", "b", "b"],
        split=["train", "test", "train", "test"],
    )
    found = box_summaries(several, by=("network", "split"), sort="minimum")
    assert [s.name for s in found] == ["b, train", "b, test", "a, train", "a, test"]


def test_groups_need_what_they_are_by() -> None:
    with pytest.raises(DataError, match="no bracket has a target: measure with --property"):
        groups_of(three_networks(), "target")
    assert [g.name for g in groups_of(three_networks(), "class")] == ["class 0", "class 1"]


def test_confidence_widens_both_sides() -> None:
    (curve,) = ecdf_curves(three_networks().only(network="a"), confidence=0.95)
    half = math.sqrt(math.log(2 / 0.05) / (2 * 4))
    assert curve.low is not None and curve.high is not None
    np.testing.assert_allclose(curve.low, np.maximum(curve.least - half, 0))
    np.testing.assert_allclose(curve.high, np.minimum(curve.most + half, 1))


def test_turnbull_line_passes_through_its_corners() -> None:
    """Disjoint brackets have a third of the mass each; the last has no end."""
    line = turnbull_line(Distribution.from_arrays([0.1, 0.3, 0.5], [0.2, 0.4, math.inf]))
    np.testing.assert_allclose(line[0], [0, 0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(line[1], [0, 0, 1 / 3, 1 / 3, 2 / 3, 2 / 3], atol=1e-6)


def test_run_times_are_shares_of_inputs() -> None:
    curve = run_times(three_networks())[0]
    assert curve.seconds.tolist() == [1, 2, 8]
    assert curve.shares.tolist() == [0.25, 0.75, 1]
    of_cpu = run_times(three_networks().labelled(cpu_seconds=3.0), time="cpu_seconds")[0]
    assert of_cpu.seconds.tolist() == [3]
    with pytest.raises(DataError, match="how long"):
        run_times(Distribution.from_arrays([0.1], [0.2]))


def test_gaps_are_of_correct_inputs_with_a_witness() -> None:
    some = Distribution.from_arrays(
        [0.0, 0.1, 0.1, 0.1], [0.0, 0.1, 0.3, math.inf], correct=[False, True, True, True]
    )
    (summary,) = gap_summaries(some)
    assert summary.inputs == 2
    assert summary.minimum == (0.0, 0.0)
    assert summary.high_whisker == pytest.approx((0.2, 0.2))


def test_class_table_by_hand() -> None:
    table = class_table(three_networks())
    assert (table.rows, table.columns) == (("0", "1"), ("a", "b", "c"))
    np.testing.assert_allclose(table.values, [[0.1, 0.2, 0.3], [0.3, 0.5, 0.2]])
    recall = class_table(three_networks(), eps=0.25)
    np.testing.assert_allclose(recall.values, [[0.0, 0.5, 1.0], [1.0, 1.0, 0.0]])


def test_target_tables_leave_the_diagonal_empty() -> None:
    towards = Distribution.from_arrays(
        [0.1, 0.2, 0.3],
        [0.2, 0.3, 0.4],
        label=[0, 0, 1],
        target=[1, 2, 0],
        property="one-to-one",
    )
    (table,) = target_tables(towards)
    expected = [[math.nan, 0.1, 0.2], [0.3, math.nan, math.nan]]
    np.testing.assert_allclose(table.values, expected)


def test_scatter_matches_inputs_and_marks_misclassified_ones() -> None:
    found = scatter_of(three_networks(), "a", "c")
    assert found.first[0].tolist() == [0.1, 0.2, 0.3, 0.4]
    assert found.second[0].tolist() == [0.4, 0.3, 0.2, 0.0]
    assert found.wrong.tolist() == [False, False, False, True]
    assert (found.coefficient, found.inputs) == (-1, 3)


def test_a_scatter_of_witnesses_is_at_their_distances() -> None:
    """By proofs the order of b is that of a, by witnesses the reverse; one has no witness."""
    two = Distribution.from_arrays(
        [0.1, 0.2, 0.3] * 2, [0.4, 0.5, math.inf, 0.6, 0.5, 0.4],
        network=np.repeat(["a", "b"], 3), input=[0, 1, 2] * 2,
    )  # fmt: skip
    assert scatter_of(two, "a", "b").coefficient == 1
    assert scatter_of(two, "a", "b", "upper").coefficient == -1
    (axes,) = draw_scatter(two, side="upper").axes
    (points,) = (line for line in axes.lines if line.get_marker() == "o")
    assert np.ravel(points.get_xdata()).tolist() == pytest.approx([0.4, 0.5, 1.06 * 0.6])
    assert np.ravel(points.get_ydata()).tolist() == [0.6, 0.5, 0.4]


def test_a_claim_is_refuted_by_a_witness_within_it() -> None:
    claimed = Distribution.from_arrays([0.1, 0.2, 0.3, 0.0], [0.2] * 2 + [0.4, 0.1], network="a")
    attacked = Distribution.from_arrays(
        [0.0] * 4, [0.05, 0.2, math.inf, 0.05], network="b", correct=True
    )
    found = claims_of(Distribution.union([claimed, attacked]), "a", "b", "name")
    assert found.refuted.tolist() == [True, True, False, False]


def test_the_most_and_the_least_correlated_pair() -> None:
    pairs = extreme_pairs(spearman_matrix(three_networks()))
    assert pairs[0] == ("a", "b")
    assert "c" in pairs[1]


def test_spread_is_best_minus_worst_class() -> None:
    """Network a, eps 0.25: class 0 is refuted or open on both inputs, class 1 proven on both."""
    curve = spread_curves(three_networks())[0]
    place = np.searchsorted(curve.edges, 0.25) - 1
    assert curve.least[place] == 0.5  # input 1, in [0.2, 0.3), may still hold
    assert curve.most[place] == 1


def test_ks_matrix_has_training_below_and_testing_above() -> None:
    lower = [0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.1, 0.2]
    split = Distribution.from_arrays(
        lower,
        np.array(lower) + 0.1,
        label=[0, 0, 1, 1, 0, 0, 1, 1],
        split=["train"] * 4 + ["test"] * 4,
    )
    matrix = ks_matrices(split)["network"]
    np.testing.assert_allclose(matrix.statistics, [[0, 0], [1, 1]])


def test_fits_are_ordered_and_quantiles_follow_the_data() -> None:
    values = np.random.default_rng(5).lognormal(-3, 0.5, 200)
    lower = 0.002 * np.floor(values / 0.002)
    sample = Distribution.from_arrays(lower, lower + 0.002)
    (group,) = fitted_groups(sample, families=["normal", "lognormal"])
    assert [fitted.family for fitted in group.fits] == ["lognormal", "normal"]
    points = qq_points(sample, "lognormal")
    inside = (points.lower[20:180] < 1.15 * points.fitted[20:180]) & (
        points.upper[20:180] > 0.85 * points.fitted[20:180]
    )
    assert inside.all()


def test_numbers_and_names_for_narrow_cells() -> None:
    told = [short(v) for v in (0.0431, 1.0, 0.0, 0.0004, math.nan, -0.25)]
    assert told == [".043", "1", "0", "0", "–", "-.250"]
    assert short(0.999, 2) == "1"
    assert shortened("a-very-long-name-of-a-network_256x4", 12) == "a-ver…_256x4"
    assert shortened("short", 12) == "short"
