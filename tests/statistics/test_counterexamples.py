"""Inputs and counterexamples of a distribution: arrays, order, pictures, tables, where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import radii
from conftest import write_linear, write_points
from radii import Distribution
from radii.errors import DataError
from radii.statistics import Counterexample

POINTS = np.array([[0.5, 0.3], [0.25, 0.75], [0.9, 0.1], [0.5, 0.5]], np.float32)


@pytest.fixture(params=["in memory", "in a directory"])
def measured(request: pytest.FixtureRequest, tmp_path: Path) -> Distribution:
    """Radii 0.1, 0.25, 0 (misclassified), 0 (a tie)."""
    write_points(tmp_path)
    return radii.robustness_distribution(
        write_linear(tmp_path),
        str(tmp_path / "points.npz"),
        domain=(0, 1),
        grid="0.05:0.5:0.05",
        out=None if request.param == "in memory" else tmp_path / "out",
        jobs=0,
    )


def test_a_counterexample_breaks_at_its_distance(measured: Distribution) -> None:
    np.testing.assert_array_equal(measured.inputs, POINTS)
    example = measured.counterexample(0)
    np.testing.assert_array_equal(example.input, POINTS[0])
    assert example.counterexample[0] <= example.counterexample[1]  # class 1, or a tie
    assert (example.label, example.witness_class, example.index) == (0, 1, 0)
    assert example.distance == measured.upper[0]
    assert np.abs(example.difference).max() == pytest.approx(example.distance)
    np.testing.assert_allclose(example.input + example.difference, example.counterexample)
    assert example.pixel_range == (0, 1)


def test_the_most_fragile_come_first_without_what_is_wrong_as_it_stands(
    measured: Distribution,
) -> None:
    fragile = measured.fragile(10)
    assert [each.index for each in fragile] == [0, 1]
    assert [each.index for each in measured.fragile(1)] == [0]
    assert [each.index for each in fragile[1:]] == [1]
    assert len(measured.fragile(0)) == 0


def test_parts_and_unions_keep_their_inputs(measured: Distribution) -> None:
    part = measured.select([3, 1]).labelled(split="test")
    np.testing.assert_array_equal(part.inputs, POINTS[[3, 1]])
    assert part.counterexample(1).index == part.counterexample(-1).index == 1
    both = Distribution.union([part, measured.only(label=0)])
    np.testing.assert_array_equal(both.inputs, POINTS[[3, 1, 0, 3]])


def test_a_directory_is_read_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path)
    options: dict[str, Any] = {"domain": (0, 1), "grid": "0.05:0.5:0.05", "jobs": 0}
    radii.robustness_distribution(write_linear(tmp_path), "points.npz", out="out", **options)
    for part in (
        Distribution.from_store("out"),
        radii.statistics.read("out").brackets,
    ):
        monkeypatch.chdir("/")
        assert part.fragile(1)[0].index == 0
        monkeypatch.chdir(tmp_path)


def test_what_is_not_there_is_told_in_a_sentence(measured: Distribution) -> None:
    with pytest.raises(DataError, match="row 4 is not one of the 4 rows"):
        measured.counterexample(4)
    table = Distribution.from_pandas(measured.to_pandas())
    with pytest.raises(DataError, match=r"came without their inputs.*from_store\(DIR\)"):
        table.fragile()
    with pytest.raises(DataError, match="came without"):
        _ = Distribution.union([measured, table]).inputs


def test_an_input_without_a_witness_says_so(tmp_path: Path) -> None:
    found = radii.robustness_distribution(
        write_linear(tmp_path), (POINTS[1:2], [1]), domain=(0, 1), grid="0.05:0.15:0.05", jobs=0
    )
    if np.isinf(found.upper[0]):
        with pytest.raises(DataError, match="input 0: no counterexample is known"):
            found.counterexample(0)
    assert len(found.fragile()) == np.isfinite(found.upper).sum()


def test_numbers_are_a_table_of_what_changed_most() -> None:
    before = np.zeros(20)
    after = before.copy()
    after[[3, 7]] = [0.5, -0.75]
    example = Counterexample("<b>", 4, 0, 1, before, after, 0.75)
    assert example.changes() == [(7, 0.0, -0.75), (3, 0.0, 0.5)]
    assert example.changes(1) == [(7, 0.0, -0.75)]
    title, first, _ = repr(example).splitlines()
    assert title == "<b>, input 4: class 0, becomes 1 at 0.75"
    assert first.split() == ["feature", "7", "0", "->", "-0.75", "-0.75"]
    page = ElementTree.fromstring(example._repr_html_())
    assert len(list(page.iter("tr"))) == 2
    assert page.find(".//b") is None
    named = Counterexample("n", 4, 0, 1, np.zeros(2), np.ones(2), 1.0, features=("age", "income"))
    assert [line.split()[0] for line in repr(named).splitlines()[1:]] == ["age", "income"]
    stays = Counterexample("n", 4, 1, 1, before, after, 0.75)
    assert repr(stays).startswith("n, input 4: class 1, is broken at 0.75")
    many = Counterexample("n", 4, 0, 1, before, before + 1, 1.0)
    assert "and 12 more" in repr(many)


@pytest.mark.parametrize("shape", [(1, 8, 8), (64,), (3, 6, 6)])
def test_pictures_are_shown_as_pictures(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).uniform(size=shape)
    example = Counterexample("n", 4, 0, 1, image, image**2, 0.25)
    page = example._repr_html_()
    assert page.count("<img") == page.count("data:image/png;base64,") == 3
    (axes,) = example.plot().axes
    assert len(axes.get_images()) == 2
