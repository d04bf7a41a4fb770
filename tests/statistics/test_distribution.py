"""The distribution itself: where it comes from, its parts, and what it counts."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import radii
from radii import demo
from radii.cli import main
from radii.errors import DataError, StoreError
from radii.problem import Bracket, Measurement
from radii.statistics import Distribution, over_targets, spearman_matrix, statistics_table


def small() -> Distribution:
    """Network a: misclassified, [0.1, 0.2), [0.3, 0.4), no witness above 0.5; b: two inputs."""
    return Distribution.from_arrays(
        [0.0, 0.1, 0.3, 0.5, 0.2, 0.1],
        [0.0, 0.2, 0.4, math.inf, 0.3, 0.15],
        network=["a", "a", "a", "a", "b", "b"],
        label=[0, 0, 1, 1, 0, 1],
        split=["train", "train", "test", "test", "test", "train"],
        seconds=1.5,
    )


def test_shares_by_hand() -> None:
    part = small().only(network="a")
    proven, not_refuted = part.shares([0.0, 0.1, 0.15, 0.2, 0.4, 0.5, 0.6])
    assert proven.tolist() == [0.75, 0.75, 0.5, 0.5, 0.25, 0.25, 0]
    assert not_refuted.tolist() == [0.75, 0.75, 0.75, 0.5, 0.25, 0.25, 0.25]
    assert part.robust_recall(1, 0.35) == radii.statistics.Share(0.5, 1.0)


def test_an_exact_distance_is_not_robust_at_itself() -> None:
    share = Distribution.from_arrays([0.2], [0.2]).robust_accuracy(0.2)
    assert (share.proven, share.not_refuted) == (0, 0)
    assert Distribution.from_arrays([0.2], [0.2]).robust_accuracy(0.1999).proven == 1


def test_misclassified_inputs_have_radius_zero_whatever_was_measured() -> None:
    dist = Distribution.from_arrays([0.1, 0.0], [0.2, math.inf], correct=[True, False])
    assert dist.upper.tolist() == [0.2, 0.0]
    assert dist.robust_accuracy(0.0).not_refuted == 0.5
    targeted = Distribution.from_arrays(
        [0.1], [0.2], correct=False, property="one-to-one", target=3, label=1
    )
    assert targeted.upper.tolist() == [0.2]


def test_sides_in_one_look() -> None:
    right = small().only(network="a").correctly_classified()
    assert right.minimum() == (0.1, 0.2)
    assert right.median() == (0.3, 0.4)
    low, high = right.mean()
    assert low == pytest.approx(0.3) and high == math.inf
    table = statistics_table(small())
    assert table["lowest_lower"].tolist() == [0.1, 0.3, 0.1, 0.2]


def test_what_targets_cost_adds_up() -> None:
    targets = Distribution.from_arrays(
        [0.1, 0.2],
        [0.4, 0.3],
        input=0,
        label=0,
        target=[1, 2],
        property=["one-to-one:1", "one-to-one:2"],
        classes=3,
        seconds=[1.0, 1.5],
        cpu_seconds=[2.0, 0.5],
        timeouts=[1, 2],
        memouts=[0, 1],
    )
    combined = over_targets(targets)
    assert (combined.lower.tolist(), combined.upper.tolist()) == ([0.1], [0.3])
    sums = {"seconds": 2.5, "cpu_seconds": 2.5, "timeouts": 3, "memouts": 1}
    assert {name: combined.column(name).item() for name in sums} == sums
    assert over_targets(combined) is combined


def test_groups() -> None:
    dist = small().labelled(training={"a": "standard", "b": "pgd"})
    assert list(dist.group_by("network")) == ["a", "b"]
    assert list(dist.group_by("class")) == [0, 1]
    assert list(dist.group_by("split")) == ["train", "test"]
    assert list(dist.group_by("target")) == [None]
    assert dist.group_by("training")["pgd"].networks == ("b",)
    both = dist.group_by("network", "class")
    assert {key: len(part) for key, part in both.items()} == {
        ("a", 0): 2,
        ("a", 1): 2,
        ("b", 0): 1,
        ("b", 1): 1,
    }
    assert sum(len(part) for part in both.values()) == len(dist)
    again = Distribution.union(dist.by_network().values())
    assert again.measurements == dist.measurements


def test_pandas_and_back() -> None:
    frame = small().to_pandas()
    assert frame["target"].isna().all()
    assert Distribution.from_pandas(frame).measurements == small().measurements
    pd.testing.assert_frame_equal(Distribution.from_pandas(frame).to_pandas(), frame)
    least = Distribution.from_pandas(pd.DataFrame({"lower": [0.1], "upper": [math.nan]}))
    assert least.upper.tolist() == [math.inf]


def test_measurements_and_back() -> None:
    row = Measurement(
        network="a",
        fingerprint="f",
        input=7,
        label=1,
        predicted=1,
        correct=True,
        property="one-to-one",
        target=2,
        bracket=Bracket(0.1, 0.2),
        witness_class=2,
        seconds=0.5,
        queries=2,
        missing=1,
        cancelled=0,
    )
    assert Distribution([row]).measurements == (row,)


@pytest.mark.parametrize(
    ("inputs", "grid"),
    [(1, "0.05:0.4:0.1"), pytest.param(12, "0.02:0.3:0.02", marks=pytest.mark.slow)],
)
def test_from_a_store_and_over_targets(tmp_path: Path, inputs: int, grid: str) -> None:
    """The smallest radius over targets is the one-to-any radius, instance by instance."""
    net = demo.load_network("mlp-standard")
    data = radii.datasets.load("digits", split="test").first(inputs)
    direct = radii.robustness_distribution(net, data, grid=grid, out=tmp_path / "any", jobs=0)
    stored = Distribution.from_store(tmp_path / "any", training="standard")
    assert stored.lower.tolist() == direct.lower.tolist()
    assert set(stored.column("split")) == {"test"}
    assert set(stored.column("training")) == {"standard"}
    targeted = radii.robustness_distribution(net, data, grid=grid, property="one-to-one", jobs=0)
    assert len(targeted) == 9 * inputs
    combined = over_targets(targeted)
    assert combined.column("input").tolist() == direct.column("input").tolist()
    np.testing.assert_array_equal(combined.lower, direct.lower)
    # Witnesses come from attacks: their distances differ, but within one step of the grid.
    step = float(grid.split(":")[2])
    is_proven = direct.correct
    assert np.all(combined.upper[is_proven] > combined.lower[is_proven])
    assert np.all(np.abs(combined.upper - direct.upper) <= step)


def test_a_target_that_is_missing_is_named() -> None:
    dist = Distribution.from_arrays(
        [0.1, 0.2], [0.2, 0.3], input=[0, 0], label=0, target=[1, 3], property="one-to-one"
    )
    with pytest.raises(DataError, match="input 0: no bracket for target 2"):
        over_targets(dist, classes=4)
    with pytest.raises(DataError, match="how many classes there are is not known"):
        over_targets(dist)
    with pytest.raises(DataError, match="not all among 3 classes"):
        over_targets(dist, classes=3)


@pytest.mark.parametrize(
    ("name", "seen", "expected"),
    [
        ("one-to-one", [2, 2, 2], 2),
        ("one-to-one", [None, None, None], None),
        ("become", [None, None, None], 1),
    ],
)
def test_the_class_over_targets_is_what_the_closest_witness_is_taken_for(
    name: str, seen: list[int | None], expected: int | None
) -> None:
    dist = Distribution.from_arrays(
        [0.1, 0.1, 0.2],
        [0.2, 0.3, 0.4],
        input=0,
        label=0,
        target=[1, 2, 3],
        property=[f"{name}:{target}" for target in (1, 2, 3)],
        witness_class=seen,
    )
    (row,) = over_targets(dist, classes=4)
    assert (row.bracket.lower, row.bracket.upper, row.witness_class) == (0.1, 0.2, expected)


@pytest.mark.usefixtures("without_workers")
def test_one_target_alone_is_not_any_target(
    relu_file: Path, relu_points_file: Path, tmp_path: Path
) -> None:
    """The network has three outputs, so that one target leaves another."""
    data = f"{relu_points_file}[0:2]"
    command = ["run", "--network", str(relu_file), "--data", data, "--domain", "0:1"]
    for name in ("one-to-one", "one-to-one:1", "become"):
        out = str(tmp_path / name.replace(":", "-"))
        flags = ["--grid", "0.05:0.5:0.05", "--jobs", "1", "--property", name, "--out", out]
        assert main([*command, *flags]) == 0
    for name in ("one-to-one", "become"):
        whole = Distribution.from_store(tmp_path / name)
        assert set(whole.column("classes")) == {3}
        assert len(over_targets(whole)) == 2
    with pytest.raises(DataError, match="no bracket for target"):
        over_targets(Distribution.from_store(tmp_path / "one-to-one-1"))
    assert main(["gate", str(tmp_path / "one-to-one-1"), "--require", "median >= 0"]) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Distribution([]), "at least one measurement"),
        (lambda: Distribution.from_arrays([0.2], [0.1]), "0 <= lower <= upper"),
        (lambda: Distribution.from_arrays([math.nan], [0.1]), "0 <= lower <= upper"),
        (lambda: Distribution.from_arrays([0.1, 0.2], [0.3]), "others have 2 values"),
        (lambda: Distribution.from_arrays([0.1], [0.3], colour="red"), "'colour' is not one of"),
        (lambda: Distribution.from_arrays([0.1], [0.3], label=["x"]), "'label' holds a value"),
        (lambda: small().group_by("colour"), "not by 'colour'"),
        (lambda: small().group_by(), "not by ''"),
        (lambda: small().only(label=9), "no bracket has label 9"),
        (lambda: small().shares([-0.1]), "eps -0.1 must be"),
        (lambda: small().quantile(2), "between 0 and 1"),
        (lambda: small().labelled(training={"a": "x"}), "no training is given for network 'b'"),
        (lambda: Distribution.from_pandas(pd.DataFrame({"lower": [0.1]})), "column 'upper'"),
        (lambda: spearman_matrix(small(), "middle"), "lower or upper, not 'middle'"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()


def test_no_store_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no radii experiment is here"):
        Distribution.from_store(tmp_path)


def test_ten_thousand_instances_on_twenty_networks_are_handled_in_seconds() -> None:
    rng = np.random.default_rng(0)
    lower = rng.lognormal(-3, 0.5, 200_000)
    names = np.repeat([f"network-{place}" for place in range(20)], 10_000)
    start = time.process_time()
    dist = Distribution.from_arrays(
        lower, lower + 0.002, network=names, label=np.tile(np.arange(10), 20_000)
    )
    groups = dist.group_by("network", "class")
    for part in groups.values():
        part.shares(np.linspace(0, 0.4, 200))
    assert len(groups) == 200
    assert time.process_time() - start < 10
