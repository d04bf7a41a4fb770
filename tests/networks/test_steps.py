"""Functions that jump: lines around the jump, both values near it, choices and places."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.attacks import attack_specification
from radii.bounds import crown_bounds
from radii.networks import (
    ArgMax,
    Ceil,
    Choose,
    Floor,
    Interval,
    IsPositive,
    Network,
    RoundHalfEven,
    Sign,
    StepFunction,
    Truncate,
    UnitLines,
)
from radii.problem import Box, Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound, Limits

STEPS: dict[str, StepFunction] = {
    "ceil": Ceil(),
    "floor": Floor(),
    "positive": IsPositive(with_zero=False),
    "not negative": IsPositive(with_zero=True),
    "round": RoundHalfEven(),
    "sign": Sign(),
    "truncate": Truncate(),
}
SIDES = st.one_of(
    st.floats(-4, 4), st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0]), st.floats(-1e6, 1e6)
)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lines_and_intervals_hold_every_value(name: str, dtype: torch.dtype) -> None:
    function = STEPS[name]

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(first=SIDES, second=SIDES, below=st.floats(0, 1), above=st.floats(0, 1))
    def check(first: float, second: float, below: float, above: float) -> None:
        ends = torch.tensor([[first], [second]], dtype=dtype)
        x = Interval(ends.amin(0, keepdim=True), ends.amax(0, keepdim=True))
        left, right = float(x.low), float(x.high)
        near = np.round(2 * np.linspace(left, right, 40)) / 2
        around = np.concatenate([near, np.nextafter(near, -9e9), np.nextafter(near, 9e9)])
        z = np.clip(np.concatenate([np.linspace(left, right, 200), around]), left, right)
        points = torch.from_numpy(z)
        values, held = function(points), function.enclosure(x)
        assert bool((values >= held.low.double()).all() and (values <= held.high.double()).all())
        assert {float(held.low), float(held.high)} <= {float(function(e)) for e in ends}
        relaxation = function.relaxation((1,), x)
        choices = torch.tensor([below, above], dtype=dtype).reshape(2, 1, 1, 1)
        for lines in (relaxation.lines(), relaxation.lines(choices)):
            assert isinstance(lines, UnitLines)
            sides = (lines.lower_slope, lines.lower_offset, lines.upper_slope, lines.upper_offset)
            slope, offset, upper_slope, upper_offset = (float(side) for side in sides)
            off = 4 * torch.finfo(dtype).eps * (1 + max(abs(left), abs(right)))
            off *= 1 + max(abs(slope), abs(upper_slope))
            assert bool((slope * points + offset <= values + off).all())
            assert bool((upper_slope * points + upper_offset >= values - off).all())

    check()


def binarised(weights: list[list[float]]) -> Network:
    """Two classes by signs of two sums: the outputs are those signs times 1 and 1.5."""
    sketch = Sketch([1, 2])
    product = sketch.apply("MatMul", "x", sketch.constant(np.array(weights)))
    last = sketch.constant(np.array([[1.0, 0.0], [0.0, 1.5]]))
    return sketch.network(
        sketch.apply("MatMul", sketch.apply("Sign", product), last), domain=(-2, 2)
    )


def test_a_binarised_network_is_proven_up_to_its_radius_and_refuted_behind_it() -> None:
    """Class 1 wins while the second sum, 0.5 at the input, stays above 0: up to 0.25 in L-inf."""
    network = binarised([[1.0, 0.0], [1.0, 1.0]])
    instance = instance_at(network, [0.75, 0.5])
    assert instance.label == 1
    verifier = BranchAndBound()
    assert verifier.verify(network, Query(instance, 0.49)).verdict is Verdict.ROBUST
    assert verifier.verify(network, Query(instance, 0.51)).verdict is Verdict.NOT_ROBUST


def test_an_attack_sees_a_jump_that_its_gradient_does_not() -> None:
    network = binarised([[1.0, 0.0], [1.0, 1.0]])
    instance = instance_at(network, [0.75, 0.5])
    witness = attack_specification(network, Query(instance, 0.6).specification, seconds=5)
    assert witness is not None


def test_both_values_count_at_a_jump_that_rounding_reaches() -> None:
    """0.1 + 0.2 - 0.3 may be on either side of 0 in floats, and is exactly 0 for none."""
    sketch = Sketch([1, 2])
    total = sketch.apply("MatMul", "x", sketch.constant(np.array([[1.0], [1.0]])))
    shifted = sketch.apply("Sub", total, sketch.constant(np.array([0.3])))
    network = sketch.network(sketch.apply("Sign", shifted), domain=(0, 1))
    point = np.array([[0.1, 0.2]]).reshape(network.input_shape)
    bounds = crown_bounds(network, [Box(point, point)])
    assert -1.0001 < float(bounds.low) <= -1.0 and 1.0 <= float(bounds.high) < 1.0001


def test_places_of_the_largest_entry() -> None:
    x = torch.tensor([[3.0, 1.0, 3.0, 2.0]])
    assert ArgMax(0, keep=False, last=False)(x).tolist() == [0.0]
    assert ArgMax(0, keep=True, last=True)(x).tolist() == [[2.0]]
    low, high = torch.tensor([[0.0, 2.0, 1.0, 4.0]]), torch.tensor([[1.0, 4.0, 5.0, 4.5]])
    found = ArgMax(0, keep=False, last=False).enclosure(Interval(low, high))
    assert (found.low.tolist(), found.high.tolist()) == ([1.0], [3.0])


@pytest.mark.parametrize("axis", [1, 2])
def test_places_in_feature_maps_are_proven(axis: int) -> None:
    """Of 48 entries of two convolutions ArgMax gives 16 or 12."""
    rng, sketch = np.random.default_rng(0), Sketch([1, 1, 4, 4])
    value = "x"
    for channels in (1, 3):
        weight, bias = rng.normal(0, 1, (3, channels, 3, 3)), rng.normal(0, 1, 3)
        parts = sketch.constant(weight), sketch.constant(bias)
        value = sketch.apply("Tanh", sketch.apply("Conv", value, *parts, pads=[1] * 4))
    value = sketch.apply("Cast", sketch.apply("ArgMax", value, axis=axis, keepdims=1), to=1)
    last = sketch.constant(rng.normal(0, 1, (48 // (3 if axis == 1 else 4), 3)))
    network = sketch.network(sketch.apply("MatMul", sketch.apply("Flatten", value), last))
    instance = instance_at(network, rng.uniform(0.2, 0.8, (1, 4, 4)))
    query, limits = Query(instance, 1e-6), Limits(seconds=60.0)
    assert BranchAndBound().verify(network, query, limits).verdict is Verdict.ROBUST


def test_a_choice_that_is_known_is_the_value_itself() -> None:
    operator = Choose((3,))
    condition = (torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, 0.0, 1.0]))
    x, y = (torch.zeros(3), torch.ones(3)), (5 * torch.ones(3), 6 * torch.ones(3))
    sides = (torch.cat([condition[i], x[i], y[i]])[None].double() for i in (0, 1))
    arguments = Interval(*sides)
    values = operator.enclosure(arguments)
    assert values.low.tolist() == [[0.0, 5.0, 0.0]] and values.high.tolist() == [[1.0, 6.0, 6.0]]
    pulled = operator.relaxation((9,), arguments).lines().pulled(-torch.eye(3).double()[None])
    expected = torch.zeros(3, 9, dtype=torch.float64)
    expected[0, 3], expected[1, 7] = -1.0, -1.0
    assert pulled.rows is not None
    torch.testing.assert_close(pulled.rows[0], expected)
    assert pulled.constant.tolist() == [[0.0, 0.0, -6.0]]
