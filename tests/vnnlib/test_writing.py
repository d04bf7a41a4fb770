"""What is written reads back as the same box and the same polyhedra, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from radii.errors import SpecificationError
from radii.problem import (
    Ball,
    Become,
    Box,
    Domain,
    Halfspaces,
    Instance,
    LinearRequirement,
    Norm,
    OneToAny,
    OneToOne,
    Property,
    Query,
    Requirement,
    Specification,
)
from radii.vnnlib import parse_problem, query_text, specification_text

finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: value + 0.0)


def instance(asked: Property, norm: Norm = Norm.LINF) -> Instance:
    return Instance(
        network="0123abcd",
        index=7,
        input=np.array([[0.1, 0.7, 1.0]], np.float32),
        label=1,
        outputs=np.array([0.0, 2.0, 1.0, -1.0], np.float32),
        property=asked,
        norm=norm,
        domain=Domain(np.array(0.0), np.array(1.0)),
    )


def assert_same(read: Specification, written: Specification) -> None:
    for side, written_side in zip(read.region.box(), written.region.box(), strict=True):
        assert np.array_equal(side, written_side)
    assert (read.inputs is None) == (written.inputs is None)
    pairs = [(read.inputs, written.inputs)] if read.inputs else []
    mine, theirs = read.requirement.violations, written.requirement.violations
    assert mine is not None
    assert theirs is not None
    for a, b in [*zip(mine, theirs, strict=True), *pairs]:
        assert a is not None
        assert b is not None
        assert np.array_equal(a.matrix, b.matrix)
        assert np.array_equal(a.offset, b.offset)


@pytest.mark.parametrize("asked", [OneToAny(), OneToOne(3), Become(3), Become(0)])
@pytest.mark.parametrize("eps", [0.0, 0.007, 1 / 255, 0.5])
def test_queries_round_trip(asked: Property, eps: float) -> None:
    query = Query(instance(asked), eps)
    text = query_text(query)
    assert "0123abcd" in text.splitlines()[0]
    (read,) = parse_problem(text).specifications((1, 3))
    assert_same(read, query.specification)


def test_the_text_is_what_simple_parsers_know() -> None:
    lines = query_text(Query(instance(OneToOne(3)), 0.25)).splitlines()
    assert lines[2:4] == ["(declare-const X_0 Real)", "(declare-const X_1 Real)"]
    assert lines[-1] == "(assert (<= Y_1 Y_3))"
    become = query_text(Query(instance(Become(2)), 0.25)).splitlines()
    assert become[-3:] == [
        "(assert (<= Y_0 Y_2))",
        "(assert (<= Y_1 Y_2))",
        "(assert (<= Y_3 Y_2))",
    ]
    several = query_text(Query(instance(OneToAny()), 0.25)).splitlines()
    assert several[-5:] == [
        "(assert (or",
        "  (and (<= Y_1 Y_0))",
        "  (and (<= Y_1 Y_2))",
        "  (and (<= Y_1 Y_3))",
        "))",
    ]


@st.composite
def halfspaces(draw: st.DrawFn, *, size: int) -> Halfspaces:
    count = draw(st.integers(1, 3))
    coefficients = st.one_of(st.sampled_from([0.0, 1.0, -1.0]), finite)
    matrix = draw(arrays(np.float64, (count, size), elements=coefficients))
    matrix[:, 0] = np.where(np.any(matrix, axis=1), matrix[:, 0], 2.0)
    matrix[:, 1] = np.where(np.count_nonzero(matrix, axis=1) > 1, matrix[:, 1], 1.0)
    return Halfspaces(matrix, draw(arrays(np.float64, count, elements=finite)))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_specifications_round_trip(data: st.DataObject) -> None:
    sides = data.draw(arrays(np.float64, (2, 2, 2), elements=finite))
    box = Box(sides.min(axis=0), sides.max(axis=0))
    polyhedra = data.draw(st.lists(halfspaces(size=3), min_size=1, max_size=3))
    inputs = data.draw(st.one_of(st.none(), halfspaces(size=4)))
    if inputs is not None:
        inputs.matrix[:, :2] = np.where(inputs.matrix[:, :2] == 0, 1.5, inputs.matrix[:, :2])
    written = Specification(box, LinearRequirement(tuple(polyhedra)), inputs)
    (read,) = parse_problem(specification_text(written, outputs=3)).specifications((2, 2))
    assert_same(read, written)


def test_a_violation_everywhere_round_trips() -> None:
    everywhere = LinearRequirement((Halfspaces(np.zeros((1, 2)), np.array([-1.0])),))
    written = Specification(Box(np.zeros(1), np.ones(1)), everywhere)
    (read,) = parse_problem(specification_text(written, outputs=2)).specifications((1,))
    assert_same(read, written)


class Curved(Requirement):
    def margin(self, outputs: object, distances: object) -> np.ndarray:
        return np.ones(1)

    @property
    def violations(self) -> None:
        return None


def test_what_is_not_linear_is_refused() -> None:
    with pytest.raises(SpecificationError, match="cannot state a ball in l2"):
        query_text(Query(instance(OneToAny(), norm=Norm.L2), 0.1))
    ball = Ball(np.zeros(2), 0.1, Norm.LINF, Domain(np.array(0.0), np.array(1.0)))
    with pytest.raises(SpecificationError, match="cannot state this property"):
        specification_text(Specification(ball, Curved()), outputs=2)
