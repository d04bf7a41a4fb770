from __future__ import annotations

import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.errors import SpecificationError
from radii.problem import Domain, Grid, Instance, Norm, OneToAny, OneToOne, Property, Query, Shard

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
        "0.1,0.1",
        "0.2,0.1,0.3",
        "-0.1,0.1",
        "0.1,,0.2",
        "0.1,inf",
        "log:0:1:5",
        "log:0.1:1:1",
        "log:0.1:1:x",
        "log:0.1:1:10000000",
        "log:1:1.0000001:50",
    ],
)
def test_bad_grids_get_one_sentence(text: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        Grid.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("0.001,0.01,0.1", (0.001, 0.01, 0.1), "0.001,0.01,0.1"),
        (" 0.01, 8/255 ", (0.01, 8 / 255), "0.01,8/255"),
        ("0.1,0.2,0.3", (0.1, 0.2, 0.3), "0.1:0.4:0.1"),  # in even steps: one text
        ("log:0.001:0.1:3", (0.001, 0.01, 0.1), "log:0.001:0.1:3"),
        ("log:1/255:1/16:4", (1 / 255, 0.00986885, 0.0248355, 1 / 16), "log:1/255:0.0625:4"),
    ],
)
def test_lists_and_equal_ratios(text: str, values: tuple[float, ...], told: str) -> None:
    grid = Grid.parse(text)
    assert (grid.values, str(grid)) == (values, told)
    again = pickle.loads(pickle.dumps(grid))
    assert grid == again == Grid.parse(told) and hash(grid) == hash(again)
    assert Grid.of_values(values) == grid


def test_equal_ratios_are_equal() -> None:
    grid = Grid.log(0.001, 0.1, 20)
    np.testing.assert_allclose(grid.values, np.geomspace(0.001, 0.1, 20), rtol=5e-6)
    assert len(set(grid.values)) == 20


def test_equal_values_are_equal_grids() -> None:
    assert Grid.parse("0.2,0.4,0.6") == Grid(0.2, 0.8, 0.2) == Grid.of_values(["1/5", 0.4, 0.6])
    assert Grid.of_values([0.1]) == Grid.of_one(0.1)
    assert Grid.of_values([0]).values == (0,)
    assert Grid.parse("0.1,0.2") != Grid.parse("0.1,0.3") and Grid(0, 1, 0.5) != "0:1:0.5"
    assert Grid.parse("0.1,0.3,0.35").finest_step == 0.05


@given(
    st.floats(0, 0.5),
    st.sampled_from(
        ["0.001:0.4:0.002", "0:0.4:1/255", "0.1:0.35:0.1", "0.01,0.2,0.25", "log:0.001:0.4:30"]
    ),
)
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


@given(st.integers(1, 40), st.data())
def test_a_shard_is_its_text(count: int, data: st.DataObject) -> None:
    numbers = data.draw(st.sets(st.integers(1, count), min_size=1))
    shard = Shard(tuple(numbers), count)
    assert Shard.parse(str(shard)) == shard
    assert shard.is_whole == (len(numbers) == count)
    assert {place % count + 1 for place in range(3 * count) if place in shard} == numbers


def test_shards_are_written_in_few_words() -> None:
    assert str(Shard((3,), 20)) == "3/20"
    assert str(Shard((9, 1, 2, 3, 2), 20)) == "1-3,9/20"
    assert Shard.parse(" 1-3, 9 / 20 ").numbers == (1, 2, 3, 9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0/20", "shard 0 of 20 does not exist: they are numbered from 1 to 20"),
        ("21/20", "shard 21 of 20 does not exist"),
        ("1/0", "0 shards must be 1 to 10,000"),
        ("1/999999999", "must be 1 to 10,000"),
        ("1-99999999999/5", "shard 6 of 5 does not exist"),
        ("3-1/5", "shard none of 5 does not exist"),
        *(
            (text, "is not a part of a number, such as 3/20")
            for text in ("3", "", "/", "a/b", "1.5/2", "-1/2", "1/-2")
        ),
    ],
)
def test_what_is_not_a_shard_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(words)):
        Shard.parse(text)
