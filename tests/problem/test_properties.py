from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from radii.errors import SpecificationError
from radii.problem import (
    Anchor,
    Become,
    Halfspaces,
    LinearRequirement,
    OneToAny,
    OneToOne,
    is_of_class,
)
from radii.problem import parse_property as parse
from radii.problem import property_family as family

OUTPUTS = npst.arrays(np.float64, (7, 4), elements=st.integers(-3, 3).map(float))


@given(OUTPUTS, st.integers(0, 3))
def test_one_to_any_holds_where_the_label_is_strictly_largest(
    outputs: np.ndarray, label: int
) -> None:
    requirement = OneToAny().at(Anchor(label, np.zeros(4)))
    expected = [all(y[label] > y[t] for t in range(4) if t != label) for y in outputs]
    assert requirement.holds(outputs, 0.0).tolist() == expected


@given(OUTPUTS, st.integers(0, 3))
def test_one_to_any_is_every_one_to_one(outputs: np.ndarray, label: int) -> None:
    anchor = Anchor(label, np.zeros(4))
    any_margin = OneToAny().at(anchor).margin(outputs)
    each = [p.at(anchor).margin(outputs, 0.0) for p in family("one-to-one", label, 4)]
    assert np.array_equal(any_margin, np.min(each, axis=0))


@given(OUTPUTS, st.integers(0, 3))
def test_become_is_broken_where_nothing_is_above_the_target(
    outputs: np.ndarray, label: int
) -> None:
    """Ties count, with the label and with third classes: the outputs are small whole numbers."""
    for asked in family("become", label, 4):
        (polyhedron,) = asked.at(Anchor(label, np.zeros(4))).violations or ()
        assert polyhedron.matrix.shape == (3, 4)
        broken = ~asked.at(Anchor(label, np.zeros(4))).holds(outputs, 0.0)
        assert asked.target is not None
        assert broken.tolist() == (outputs[:, asked.target] == outputs.max(axis=1)).tolist()


@given(OUTPUTS, st.integers(0, 3))
def test_become_between_one_to_one_and_one_to_any(outputs: np.ndarray, label: int) -> None:
    """It implies one-to-one; and what breaks one-to-any is taken for some class, or ties."""
    anchor = Anchor(label, np.zeros(4))
    become = [p.at(anchor).holds(outputs, 0.0) for p in family("become", label, 4)]
    reached = [p.at(anchor).holds(outputs, 0.0) for p in family("one-to-one", label, 4)]
    assert np.all(np.array(become) >= np.array(reached))
    assert np.array_equal(np.all(become, axis=0), OneToAny().at(anchor).holds(outputs, 0.0))


def test_a_target_that_beats_the_label_alone_is_not_become() -> None:
    outputs, anchor = [[1.0, 2.0, 3.0]], Anchor(0, np.zeros(3))
    assert not OneToOne(1).at(anchor).holds(outputs, 0.0)[0]
    assert Become(1).at(anchor).holds(outputs, 0.0)[0]
    assert not Become(2).at(anchor).holds(outputs, 0.0)[0]


def test_polyhedra_with_several_rows() -> None:
    both = Halfspaces(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, -1.0]))
    requirement = LinearRequirement((both,))
    assert requirement.holds([[0.0, 1.0], [0.1, 1.0], [0.0, 1.1]], 0.0).tolist() == [
        False,
        True,
        True,
    ]


def test_nan_outputs_do_not_hold() -> None:
    assert not OneToAny().at(Anchor(0, np.zeros(2))).holds([[np.nan, 0.0]], 0.0)[0]


@pytest.mark.parametrize("spec", ["one-to-any", "one-to-one:3", "become:3"])
def test_specs_round_trip(spec: str) -> None:
    assert parse(spec).spec == spec
    assert parse(spec) == parse(spec)


@pytest.mark.parametrize(
    "spec",
    ["", "one-to-two", "one-to-one:x", "one-to-any:1", "one-to-one:-1", "become:x", "become"],
)
def test_bad_specs(spec: str) -> None:
    with pytest.raises(SpecificationError, match="is not one of"):
        parse(spec)


def test_targets_are_checked() -> None:
    anchor = Anchor(1, np.zeros(3))
    with pytest.raises(SpecificationError, match="target 7 is not one of the network's 3 outputs"):
        OneToOne(7).at(anchor)
    with pytest.raises(SpecificationError, match="target 3 is not one of the network's 3 outputs"):
        Become(3).at(anchor)
    for kind in (OneToOne, Become):
        with pytest.raises(SpecificationError, match="label itself"):
            kind(1).at(anchor)
    with pytest.raises(SpecificationError, match="label 5"):
        OneToAny().at(Anchor(5, np.zeros(3)))
    with pytest.raises(SpecificationError, match="at least two outputs"):
        OneToAny().at(Anchor(0, np.zeros(1)))


def test_families_leave_out_the_label() -> None:
    for name in ("one-to-one", "become"):
        assert [p.spec for p in family(name, 1, 3)] == [f"{name}:0", f"{name}:2"]
        assert family(f"{name}:1", 1, 3) == ()
        assert [p.spec for p in family(f"{name}:2", 1, 3)] == [f"{name}:2"]


def test_which_properties_are_about_the_class_of_the_label() -> None:
    assert all(map(is_of_class, ("one-to-any", "one-to-one:3", "one-to-one", "become:3")))
    assert not any(map(is_of_class, ("cr:of=prediction", "sr:delta=1", "lr:L=1", "scr:eta=0.6")))


def test_a_requirement_without_violations_always_holds() -> None:
    assert LinearRequirement(()).holds(np.zeros((3, 2)), 0.0).all()
