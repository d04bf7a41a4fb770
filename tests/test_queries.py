from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.balls import Domain, Norm
from radii.errors import SpecificationError
from radii.properties import OneToAny, OneToOne, Property
from radii.queries import Grid, Instance, Query

UNIT = Domain(np.float64(0), np.float64(1))


def instance(**changes: object) -> Instance:
    fields: dict[str, object] = {
        "network": "f" * 64,
        "index": 3,
        "input": np.array([0.25, 0.5], np.float32),
        "label": 1,
        "outputs": np.array([0.0, 2.0, 1.0]),
        "property": OneToAny(),
        "norm": Norm.LINF,
        "domain": UNIT,
    }
    return Instance(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_paper_grid() -> None:
    grid = Grid.parse("0.001:0.4:0.002")
    assert len(grid) == 200
    assert grid.values[:3] == (0.001, 0.003, 0.005)
    assert grid.values[-1] == 0.399
    assert str(grid) == "0.001:0.4:0.002"
    assert Grid(0.001, 0.4, 0.002) == grid


def test_fractions_are_exact() -> None:
    grid = Grid.parse("0:0.4:1/255")
    assert len(grid) == 102
    assert grid[3] == float(Fraction(3, 255))
    assert Grid.parse(str(grid)) == grid


@pytest.mark.parametrize(
    "text",
    [
        "0.4:0.1:0.1",
        "0:1:0",
        "0:1:-1",
        "-1:1:0.1",
        "0:1",
        "a:b:c",
        "0:1:1/0",
        "0:1:nan",
        "0:inf:1",
        "0:1:1e-9",
    ],
)
def test_bad_grids_get_one_sentence(text: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        Grid.parse(text)
    assert "\n" not in str(caught.value)


@given(st.floats(0, 0.5), st.sampled_from(["0.001:0.4:0.002", "0:0.4:1/255", "0.1:0.35:0.1"]))
def test_count_below_is_what_counting_gives(eps: float, text: str) -> None:
    grid = Grid.parse(text)
    for value in (eps, *grid.values[:5]):
        assert grid.count_below(value) == sum(v < value for v in grid)
    assert grid.count_below(math.inf) == len(grid)


def test_keys_tell_instances_apart() -> None:
    changes: list[dict[str, object]] = [
        {},
        {"network": "e" * 64},
        {"index": 4},
        {"input": np.array([0.25, 0.75], np.float32)},
        {"label": 0},
        {"property": OneToOne(2)},
        {"norm": Norm.L2},
        {"domain": Domain(np.float64(0), np.float64(2))},
    ]
    assert len({instance(**change).key for change in changes}) == len(changes)
    assert instance().key == instance().key


@pytest.mark.parametrize(
    ("outputs", "prop", "correct", "holds"),
    [
        ([0.0, 2.0, 1.0], OneToAny(), True, True),
        ([2.0, 2.0, 1.0], OneToAny(), False, False),
        ([3.0, 2.0, 1.0], OneToAny(), False, False),
        ([3.0, 2.0, 1.0], OneToOne(2), False, True),
        ([3.0, 2.0, 2.0], OneToOne(2), False, False),
    ],
)
def test_a_tie_is_misclassified(
    outputs: list[float], prop: Property, correct: bool, holds: bool
) -> None:
    made = instance(outputs=np.array(outputs), property=prop)
    assert made.correct is correct
    assert made.holds is holds


def test_a_query_speaks_about_its_ball() -> None:
    specification = Query(instance(), 0.1).specification
    assert specification.contains(np.array([0.34, 0.41]))
    assert not specification.contains(np.array([0.36, 0.41]))
