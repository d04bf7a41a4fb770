"""More networks that were built to break proofs in floating point, as in `test_float_attacks`."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.soundness.search import breaks
from radii.networks import Network
from radii.problem import (
    FLOAT,
    Arithmetic,
    LipschitzRobustness,
    Property,
    Query,
    StandardRobustness,
    Verdict,
)
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp

SECONDS = 0.5
WIDE = Arithmetic.parse("float:65536")
Kind = type[BranchAndBound] | type[Milp] | type[Enumeration]


def refuse(
    kind: Kind,
    network: Network,
    centre: list[float],
    eps: float,
    broken: list[float],
    property: Property | None = None,  # noqa: A002
) -> None:
    """The property breaks at `broken` on the runtime, and the verifier proves nothing there."""
    instance = instance_at(network, centre, label=0, property=property)
    point = np.asarray(broken, network.input_dtype).reshape(network.input_shape)
    assert breaks(network, instance, eps, point) is not None
    result = kind().verify(network, Query(instance, eps), Limits(seconds=SECONDS))
    assert result.verdict is not Verdict.ROBUST


def far_mean(has_convolution: bool) -> Network:
    """A factor of 2.49 times the smallest number, which becomes 2 of them, times a large mean."""
    root = 2.0**63
    sketch = Sketch([1, 2, 1, 1])
    value = "x"
    if has_convolution:
        value = sketch.apply("Conv", value, sketch.constant(np.eye(2).reshape(2, 2, 1, 1)))
    columns = [[2.49 * 2.0**-149 * root, 0.0], [0.0, 0.0], [-(2.0**126), 0.0], [root**2, 1.0]]
    constants = [sketch.constant(np.array(column)) for column in columns]
    value = sketch.apply("BatchNormalization", value, *constants)
    value = sketch.apply("Mul", sketch.apply("Relu", value), sketch.constant(2.0**23))
    shape = sketch.constant(np.array([1, 2]))
    value = sketch.apply("Reshape", value, shape)
    value = sketch.apply("Add", value, sketch.apply("Reshape", "x", shape))
    return sketch.network(sketch.apply("Add", value, sketch.constant(np.array([[0.0, 2.2]]))))


@pytest.mark.parametrize("has_convolution", [False, True], ids=["alone", "behind a convolution"])
@pytest.mark.parametrize("kind", [BranchAndBound, Milp, Enumeration])
def test_means_that_meet_a_factor_which_underflows(kind: Kind, has_convolution: bool) -> None:
    refuse(kind, far_mean(has_convolution), [0.6, 0.1], 0.3, [0.35, 0.35])


def test_probabilities_that_are_no_numbers() -> None:
    """No probability moves by 2; but the softmax of infinity minus infinity is no probability."""
    sketch = Sketch([1, 2])
    large = sketch.apply("Mul", "x", sketch.constant(10.0))
    large = sketch.apply("Mul", large, sketch.constant(3e38))
    lost = sketch.apply("Gemm", large, sketch.constant(np.array([[1.0, -1.0], [-1.0, 1.0]])))
    network = sketch.network(sketch.apply("Softmax", lost))
    refuse(BranchAndBound, network, [0.05, 0.05], 0.9, [0.9, 0.9], StandardRobustness(2.0))


def test_sums_that_overflow_once_they_are_rounded() -> None:
    """With roundings 65536 times as large, 3.34e38 may be off by a hundredth of it."""
    sketch = Sketch([1, 2])
    value = sketch.apply("Gemm", "x", sketch.constant(np.full((2, 2), 1.67e38)))
    value = sketch.apply("Clip", value, sketch.constant(0.0), sketch.constant(1.0))
    network = sketch.network(sketch.apply("Add", value, sketch.constant(np.array([[9.0, 0.0]]))))
    query = Query(instance_at(network, [0.5, 0.5], label=0), 0.5)
    limits = Limits(seconds=SECONDS)
    plain, wide = (Milp(arithmetic=each).verify(network, query, limits) for each in (FLOAT, WIDE))
    assert plain.verdict is Verdict.ROBUST
    assert wide.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("constant", "verdict"), [(1.5, Verdict.ROBUST), (0.9, Verdict.NOT_ROBUST)]
)
def test_slopes_of_leaky_units_that_share_an_argument(constant: float, verdict: Verdict) -> None:
    """Two slopes for each input: four units, whose arguments are two numbers."""
    sketch = Sketch([1, 2, 1])
    value = sketch.apply("PRelu", "x", sketch.constant(np.array([[0.1, 0.5]])))
    network = sketch.network(sketch.apply("Flatten", value), domain=(-1.0, 1.0))
    asked = LipschitzRobustness(constant)
    query = Query(instance_at(network, [-0.5, 0.5], property=asked), 0.1)
    assert BranchAndBound().verify(network, query, Limits(seconds=SECONDS)).verdict is verdict


def far_units(operator: str) -> Network:
    """Units that read -1.6e308 to 1.6e308: that is wider than the largest number."""
    sketch = Sketch([1, 2], dtype=np.float64)
    value = sketch.apply(operator, sketch.apply("Gemm", "x", sketch.constant(np.ones((2, 2)))))
    weight = sketch.constant(np.array([[0.0, 1e-302], [0.0, 0.0]]))
    bias = sketch.constant(np.array([5e5, 0.0]))
    return sketch.network(sketch.apply("Gemm", value, weight, bias), domain=(-8e307, 8e307))


@pytest.mark.parametrize("kind", [BranchAndBound, Milp, Enumeration])
@pytest.mark.parametrize("operator", ["Relu", "LeakyRelu"])
def test_chords_over_more_than_the_largest_number(kind: Kind, operator: str) -> None:
    refuse(kind, far_units(operator), [0.0, 0.0], 7.9e307, [7e307, 7e307])


@pytest.mark.parametrize("inputs", [2, 14], ids=["inputs are split", "units are split"])
@pytest.mark.parametrize("kind", [BranchAndBound, Milp])
def test_coefficients_that_underflow_on_inputs_that_are_large(kind: Kind, inputs: int) -> None:
    """1e300 times 1e-290, and that times 1e-35; but 1e-325 is 0 in float64."""
    sketch = Sketch([1, inputs], dtype=np.float64)
    value = sketch.apply("Gemm", "x", sketch.constant(1e-290 * np.eye(inputs)))
    weight = np.zeros((inputs, 2))
    weight[0, 1] = 1e-35
    constants = sketch.constant(weight), sketch.constant(np.array([0.7e-25, 0.0]))
    value = sketch.apply("Gemm", sketch.apply("Relu", value), *constants)
    network = sketch.network(value, domain=(0.0, 2e300))
    rest = [0.5e300] * (inputs - 1)
    refuse(kind, network, [0.5e300, *rest], 0.45e300, [0.9e300, *rest])
