"""Numbers of a file that underflow in the arithmetic of bounds: nothing may be proven without them.

All have outputs 0.1 and max(0, mean(x) - 0.5), or that of 1 - x: from 0.5 it is 0.1 to a violation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from radii.bounds import _affine_maps, crown_bounds, interval_bounds
from radii.networks import Interval, Network
from radii.problem import FLOAT, REAL, Arithmetic, Box, Norm, Query, Verdict, check_witness
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp

INPUTS, FIRST, SECOND, LARGE = 64, 2048, 1024, 1e37
"""So large that float32 is tried first."""


def _ended(sketch: Sketch, value: str, bias: float, scale: float) -> Network:
    """Outputs 0.1 and the mean of ReLU(value + bias), divided by a scale."""
    value = sketch.apply("Relu", sketch.apply("Add", value, sketch.constant(np.full(SECOND, bias))))
    weight = np.stack([np.zeros(SECOND), np.full(SECOND, 1 / (SECOND * scale))], 1)
    return sketch.network(
        sketch.apply("Gemm", value, sketch.constant(weight), sketch.constant([0.1, 0.0]))
    )


def _copies(sketch: Sketch, factor: float = 1.0) -> str:
    copies = factor * np.eye(INPUTS)[:, np.arange(FIRST) % INPUTS]
    return sketch.apply("MatMul", "x", sketch.constant(copies))


def entries_of_maps_in_a_row() -> Network:
    """A mean times 1e-46, then times 1e37."""
    sketch, small = Sketch([1, INPUTS], dtype=np.float64), 1e-46
    value = sketch.apply("Relu", _copies(sketch))
    value = sketch.apply("MatMul", value, sketch.constant(np.full((FIRST, 1), small / FIRST)))
    value = sketch.apply("MatMul", value, sketch.constant(np.full((1, SECOND), LARGE)))
    return _ended(sketch, value, -0.5 * small * LARGE, small * LARGE)


def slopes_of_units() -> Network:
    """5e-46 of 100 (x - 1), then times -1e37."""
    sketch, small = Sketch([1, INPUTS], dtype=np.float64), 5e-46
    value = sketch.apply("Add", _copies(sketch, 100.0), sketch.constant(np.full(FIRST, -100.0)))
    value = sketch.apply("PRelu", value, sketch.constant(np.full(FIRST, small)))
    mean = np.full((FIRST, SECOND), -LARGE / FIRST)
    scale = 100 * small * LARGE
    return _ended(sketch, sketch.apply("MatMul", value, sketch.constant(mean)), -scale / 2, scale)


def values_of_clips() -> Network:
    """At most 5e-46, times 1e37, and the mean."""
    sketch, top = Sketch([1, INPUTS], dtype=np.float64), 5e-46
    scale = top * LARGE
    value = sketch.apply("Clip", _copies(sketch), sketch.constant(0.0), sketch.constant(top))
    value = sketch.apply("MatMul", value, sketch.constant(np.full((FIRST, SECOND), LARGE / FIRST)))
    mean = sketch.constant(np.full((INPUTS, SECOND), scale / INPUTS))
    value = sketch.apply("Add", value, sketch.apply("MatMul", "x", mean))
    return _ended(sketch, value, -1.5 * scale, scale)


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=["float", "real"])
@pytest.mark.parametrize(
    ("make", "broken"),
    [(entries_of_maps_in_a_row, 0.65), (slopes_of_units, 0.35), (values_of_clips, 0.65)],
)
def test_numbers_that_float32_does_not_have(
    make: Callable[[], Network], broken: float, arithmetic: Arithmetic
) -> None:
    network = make()
    instance = instance_at(network, np.full(INPUTS, 0.5), label=0)
    query = Query(instance, 0.2)
    point = np.full(network.input_shape, broken)
    assert check_witness(network, query.specification, point) is not None
    native = BranchAndBound(arithmetic=arithmetic)
    assert native.certify_least(network, instance, 0.2, Limits(5.0)).proof is None
    assert native.verify(network, query, Limits(2.0)).verdict is not Verdict.ROBUST


@pytest.mark.parametrize("inputs", [2, 14])
@pytest.mark.parametrize("kind", [BranchAndBound, Milp, Enumeration])
def test_products_of_factors_that_underflow_in_float64(
    kind: type[BranchAndBound | Milp | Enumeration], inputs: int
) -> None:
    """1e300, then 1e-200 twice: the runtime has no trouble, the product of the last two is 0."""
    sketch, value = Sketch([1, inputs], dtype=np.float64), "x"
    for factor in (1e300, 1e-200, 1e-200):
        value = sketch.apply("MatMul", value, sketch.constant(factor * np.eye(inputs)))
    value = sketch.apply("Add", value, sketch.constant(np.full(inputs, -0.5e-100)))
    weight = np.stack([np.zeros(inputs), np.full(inputs, 1e100 / inputs)], 1)
    value = sketch.apply("Relu", value)
    network = sketch.network(
        sketch.apply("Gemm", value, sketch.constant(weight), sketch.constant([0.1, 0.0]))
    )
    instance = instance_at(network, np.full(inputs, 0.5), label=0)
    query = Query(instance, 0.2)
    point = np.full(network.input_shape, 0.65)
    assert check_witness(network, query.specification, point) is not None
    verdict = kind(arithmetic=REAL).verify(network, query, Limits(2.0)).verdict
    assert verdict is not Verdict.ROBUST


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=["float", "real"])
@pytest.mark.parametrize("small", [1e-41, 1e-44, 1e-46])
def test_bounds_in_float32_through_maps_in_a_row(
    small: float, arithmetic: Arithmetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maps that stay apart: entries of the first underflow, those of the second are large."""
    monkeypatch.setattr(_affine_maps, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(_affine_maps, "COMPOSED_WORK", 0)
    sketch, inputs = Sketch([1, 4], dtype=np.float64), 4
    value = sketch.apply("MatMul", "x", sketch.constant(np.full((inputs, 1), small / inputs)))
    value = sketch.apply("MatMul", value, sketch.constant(np.full((1, 24), LARGE)))
    value = sketch.apply("Relu", value)
    weight = np.full((24, 1), 1 / (24 * small * LARGE))
    network = sketch.network(sketch.apply("MatMul", value, sketch.constant(weight)))
    box = Box(np.full((1, inputs), 0.2), np.full((1, inputs), 0.8))
    bounds = crown_bounds(network, [box], dtype=torch.float32, arithmetic=arithmetic)
    (reached,) = network.replay(np.full((1, *network.input_shape), 0.8))[0]
    assert float(bounds.high[0, 0]) >= reached * (1 - 1e-6)


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=["float", "real"])
def test_slopes_times_weights_that_underflow(arithmetic: Arithmetic) -> None:
    """Inputs up to 2^290, a weight of 2^-486 and a slope of 2^-590, then large weights: all that
    the runtime computes is a normal number."""
    sketch, most, scale = Sketch([1, 2], dtype=np.float64), 2.0**290, 2.0**-786
    value = sketch.apply("MatMul", "x", sketch.constant(-(2.0**-486) * np.eye(2)))
    value = sketch.apply("PRelu", value, sketch.constant(np.full(2, 2.0**-590)))
    for number, exponent in enumerate((150, 280, 280)):
        factor, scale = 2.0**exponent, scale * 2.0**exponent
        weight = sketch.constant((factor if number else -factor) * np.eye(2))
        value = sketch.apply("MatMul", value, weight)
        if not number:
            value = sketch.apply("Add", value, sketch.constant(np.full(2, -0.5 * scale)))
        value = sketch.apply("Relu", value)
    weights = np.stack([np.zeros(2), np.full(2, 1 / (2 * scale))], 1)
    outputs = sketch.apply("Gemm", value, sketch.constant(weights), sketch.constant([0.1, 0.0]))
    network = sketch.network(outputs, domain=(0.0, most))
    instance = instance_at(network, np.full(2, 0.5 * most), label=0)
    query = Query(instance, 0.2 * most)
    point = np.full(network.input_shape, 0.65 * most)
    assert check_witness(network, query.specification, point) is not None
    verdict = Enumeration(arithmetic=arithmetic).verify(network, query, Limits(2.0)).verdict
    assert verdict is not Verdict.ROBUST


@pytest.mark.parametrize(
    ("dtype", "exponent", "weight"),
    [(torch.float32, 59, 2.0**-68), (torch.float32, 59, 2.0**-77), (torch.float64, 299, 2.0**-726)],
)
def test_balls_in_l2_where_the_price_of_a_length_would_underflow(
    dtype: torch.dtype, exponent: int, weight: float
) -> None:
    most, kind = 2.0**exponent, np.float32 if dtype == torch.float32 else np.float64
    sketch = Sketch([1, 4], dtype=kind)
    matrix = np.stack([np.full(4, weight), np.zeros(4)], 1).astype(kind)
    network = sketch.network(
        sketch.apply("MatMul", "x", sketch.constant(matrix)), domain=(0.0, most)
    )
    instance = instance_at(network, np.full(4, 0.5 * most), label=0, norm=Norm.L2)
    bounds = crown_bounds(network, [instance.ball(0.4 * most)], dtype=dtype)
    ends = [2 * weight * most * (1 + sign * 0.4) for sign in (-1, 1)]  # steps of 0.2 in each input
    assert 0.9 * ends[0] < float(bounds.low[0, 0]) <= ends[0]
    assert ends[1] <= float(bounds.high[0, 0]) < 1.1 * ends[1]


def test_intervals_in_float32_of_weights_that_it_does_not_have() -> None:
    sketch, value = Sketch([1, 4], dtype=np.float64), "x"
    for weight in (1e37 * np.eye(4), 1e-46 * np.eye(4), np.full((4, 1), 1e9)):
        value = sketch.apply("MatMul", value, sketch.constant(weight))
    inputs = Interval(torch.full((1, 4), 0.2), torch.full((1, 4), 0.8))
    last = interval_bounds(sketch.network(value).graph, inputs)[-1]
    assert 0.79 < float(last.low) <= 0.8
    assert 3.2 <= float(last.high) < 3.21


@pytest.mark.parametrize("kind", [BranchAndBound, Milp, Enumeration])
def test_real_numbers_that_a_clip_at_the_largest_float_ends(
    kind: type[BranchAndBound | Milp | Enumeration],
) -> None:
    """x0 and x1 times 1e40, clipped at the largest float: without the end, x0 would be larger."""
    sketch, value = Sketch([1, 2]), "x"
    for factors in ([1e30, 1.0], [1e10, 1.0]):
        value = sketch.apply("Mul", value, sketch.constant(np.array(factors, np.float32)))
    largest = sketch.constant(np.array(np.finfo(np.float32).max, np.float32))
    value = sketch.apply("Clip", value, "", largest)
    value = sketch.apply("Mul", value, sketch.constant(np.array([1e-38, 1.0], np.float32)))
    network = sketch.network(value, domain=(0.0, 60.0))
    instance = instance_at(network, np.array([1.0, 50.0]), label=0)
    verifier = kind(arithmetic=REAL)
    result = verifier.verify(network, Query(instance, 0.01), Limits(2.0))
    assert result.verdict is not Verdict.ROBUST
