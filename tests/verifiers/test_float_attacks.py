"""Networks that were built to break proofs in floating point: each breaks at a point that is given.

The point is checked on the runtime first, so that a test fails should the network be harmless.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from benchmarks.soundness.families import fragile
from benchmarks.soundness.search import breaks, find_break
from radii.bounds import crown_bounds
from radii.ensembles._ensemble import Classifier
from radii.ensembles._proofs import possible_rivals
from radii.errors import UnsupportedQuery
from radii.networks import Network, load_network
from radii.problem import FLOAT, REAL, Arithmetic, OneToOne, Property, Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp

SECONDS = 0.5
Kind = type[BranchAndBound] | type[Milp] | type[Enumeration]
PIECEWISE: tuple[Kind, ...] = (BranchAndBound, Milp, Enumeration)
LARGE = 3e38


def refuse(
    kind: Kind,
    network: Network,
    centre: npt.ArrayLike,
    eps: float,
    broken: npt.ArrayLike,
    *,
    arithmetic: Arithmetic = FLOAT,
    property: Property | None = None,  # noqa: A002
) -> None:
    """The property breaks at `broken` on the runtime, and the verifier proves nothing there."""
    instance = instance_at(network, centre, label=0, property=property)
    point = np.asarray(broken, network.input_dtype).reshape(network.input_shape)
    assert breaks(network, instance, eps, point) is not None
    verifier = kind(arithmetic=arithmetic)
    result = verifier.verify(network, Query(instance, eps), Limits(seconds=SECONDS))
    assert result.verdict is not Verdict.ROBUST


def cut(sketch: Sketch, value: str, place: int) -> str:
    ends = (np.array([place]), np.array([place + 1]), np.array([1]))
    return sketch.apply("Slice", value, *(sketch.constant(end) for end in ends))


def sum_onto_a_value(is_gemm: bool) -> Network:
    """A thousandth of a unit in the last place, 2^16 times, added to about 1.

    The runtime makes one Gemm of it, which adds 256 products at a time to what is there already.
    """
    terms, block = 1 << 16, 256
    sketch = Sketch([1, 2])
    start = sketch.apply("Mul", cut(sketch, "x", 0), sketch.constant(1024.0))
    many = sketch.apply("Expand", cut(sketch, "x", 1), sketch.constant(np.array([1, terms])))
    weight = np.zeros((terms, 2))
    weight[:, 0] = 0.98 * 2.0**-25 / block
    ahead = sketch.constant(np.array([[0.0, 0.25 * weight.sum()]]))
    start, held = sketch.apply("Add", start, ahead), sketch.constant(weight)
    if is_gemm:
        return sketch.network(sketch.apply("Gemm", many, held, start))
    return sketch.network(sketch.apply("Add", sketch.apply("MatMul", many, held), start))


@pytest.mark.parametrize("is_gemm", [True, False], ids=["gemm", "matmul and add"])
@pytest.mark.parametrize("kind", PIECEWISE)
def test_products_that_are_added_to_a_value(kind: Kind, is_gemm: bool) -> None:
    network = sum_onto_a_value(is_gemm)
    refuse(kind, network, [0.45 / 1024, 1.0], 0.6 / 1024, [1 / 1024, 1.0])


def mean_that_overflows(operator: str) -> Network:
    sketch = Sketch([1, 1, 2, 2])
    window = {"kernel_shape": [2, 2]} if operator == "AveragePool" else {}
    mean = sketch.apply(operator, "x", **window)
    small = sketch.apply("Mul", mean, sketch.constant(1e-38))
    flat = sketch.apply("Reshape", small, sketch.constant(np.array([1, 1])))
    ahead = sketch.constant(np.array([[1000.0, 0.0]]))
    return sketch.network(sketch.apply("Add", flat, ahead), domain=(0.0, LARGE))


@pytest.mark.parametrize("operator", ["AveragePool", "GlobalAveragePool", "ReduceMean"])
@pytest.mark.parametrize("kind", PIECEWISE)
def test_sums_that_overflow_before_they_are_divided(kind: Kind, operator: str) -> None:
    network = mean_that_overflows(operator)
    refuse(kind, network, np.zeros(4), 2e38, np.full(4, 1.9e38))


def no_number_behind(operator: str) -> Network:
    """Infinity minus infinity, then a bounded function of it, then a weight of 0."""
    sketch = Sketch([1, 2])
    large = sketch.apply("Mul", "x", sketch.constant(10.0))
    large = sketch.apply("Mul", large, sketch.constant(LARGE))
    lost = sketch.apply("Gemm", large, sketch.constant(np.array([[1.0, -1.0], [-1.0, 1.0]])))
    limits = [sketch.constant(end) for end in (-1.0, 1.0)] if operator == "Clip" else []
    nothing = sketch.apply("Mul", sketch.apply(operator, lost, *limits), sketch.constant(0.0))
    value = sketch.apply("Mul", "x", sketch.constant(0.01))
    value = sketch.apply("Add", value, sketch.constant(np.array([[1.0, 0.0]])))
    return sketch.network(sketch.apply("Add", nothing, value))


@pytest.mark.parametrize("operator", ["Clip", "Sigmoid", "Softmax", "Tanh"])
def test_bounded_functions_of_what_overflows(operator: str) -> None:
    network = no_number_behind(operator)
    refuse(BranchAndBound, network, [0.05, 0.05], 0.9, [0.9, 0.9])
    ball = instance_at(network, [0.05, 0.05]).ball(0.9)
    bounds = crown_bounds(network, [ball])
    assert not bool(bounds.low.isfinite().any() or bounds.high.isfinite().any())


@pytest.mark.parametrize("has_units", [False, True])
def test_logarithms_round_by_the_largest_argument(has_units: bool) -> None:
    """Two classes that are 0.01 apart, and 360000 below a third one."""
    sketch = Sketch([1, 1])
    value = sketch.apply("Relu", "x") if has_units else "x"
    weight = sketch.constant(np.array([[0.0, 0.0, 900.0, 0.0]]))
    bias = sketch.constant(np.array([0.01, 0.0, 0.0, -1000.0]))
    value = sketch.apply("LogSoftmax", sketch.apply("Gemm", value, weight, bias))
    network = sketch.network(value, domain=(0.0, 1000.0))
    refuse(BranchAndBound, network, [1.0], 500.0, [400.0], property=OneToOne(1))


@pytest.mark.parametrize("has_units", [False, True])
def test_logarithms_that_overflow_are_equal(has_units: bool) -> None:
    sketch = Sketch([1, 1])
    value = sketch.apply("Relu", "x") if has_units else "x"
    weight = sketch.constant(np.array([[-1.5e38, -2e38, 3e38]]))
    network = sketch.network(sketch.apply("LogSoftmax", sketch.apply("Gemm", value, weight)))
    refuse(BranchAndBound, network, [0.6], 0.35, [0.9], property=OneToOne(1))


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=str)
@pytest.mark.parametrize("kind", PIECEWISE)
def test_leaky_units_that_are_steep(kind: Kind, arithmetic: Arithmetic) -> None:
    """1 - slope is -slope in float64, so that a unit would seem to be 0 where it is positive."""
    sketch = Sketch([1, 2])
    value = sketch.apply("PRelu", "x", sketch.constant(np.full(2, 1e17)))
    weight = sketch.constant(np.array([[-1.0, 0.0], [-1.0, 0.0]]))
    value = sketch.apply("Gemm", value, weight, sketch.constant(np.array([0.5, 0.0])))
    network = sketch.network(value, domain=(-1.0, 1.0))
    with pytest.raises(UnsupportedQuery, match="too steep"):
        refuse(kind, network, [0.2, 0.2], 0.1, [0.29, 0.29], arithmetic=arithmetic)


@pytest.mark.parametrize("kind", PIECEWISE)
def test_factors_that_underflow_once_they_are_folded(kind: Kind) -> None:
    """The runtime folds a factor into a weight, where 2.49 becomes 2 times the smallest number."""
    output = 1e15
    reach = 1 / (2.49 * 2.0**-149 * output)
    sketch = Sketch([1, 1, 1, 1])
    weight = sketch.constant(np.array([2.0**-72, 0.0]).reshape(2, 1, 1, 1))
    value = sketch.apply("Conv", sketch.apply("Relu", "x"), weight)
    value = sketch.apply("Mul", value, sketch.constant(np.full((1, 2, 1, 1), 2.49 * 2.0**-77)))
    value = sketch.apply("Mul", sketch.apply("Relu", value), sketch.constant(output))
    value = sketch.apply("Reshape", value, sketch.constant(np.array([1, 2])))
    value = sketch.apply("Add", value, sketch.constant(np.array([[0.0, 0.9]])))
    network = sketch.network(value, domain=(0.0, 3 * reach))
    refuse(kind, network, [reach], 0.05 * reach, [reach])


def test_scores_whose_logarithms_overflow_are_proven_by_no_bounds() -> None:
    """A rival that is 6e38 below the label is minus infinity, and the outputs are not finite."""
    sketch = Sketch([1, 1])
    weight = sketch.constant(np.array([[1.5e38, -1.5e38]]))
    scores = sketch.apply("Gemm", sketch.apply("Relu", "x"), weight)
    network = sketch.network(sketch.apply("LogSoftmax", scores), domain=(0.5, 2.0))
    ball = instance_at(network, [1.5]).ball(0.5)
    rivals, slack = possible_rivals(Classifier.of(network), 0, ball, FLOAT)
    assert slack == np.inf
    assert len(rivals) == 1


@pytest.mark.parametrize("kind", [BranchAndBound, Enumeration])
def test_constants_that_the_file_computes(kind: Kind, tmp_path: Path) -> None:
    """A sum that cancels, which the runtime adds up in another order; loading lets it pass."""

    def network_with(other: float, terms: npt.NDArray[np.float64]) -> Network:
        sketch = Sketch([1, 1])
        axes = sketch.constant(np.array([1]))
        total = sketch.apply("ReduceSum", sketch.constant(terms[None]), axes)
        both = sketch.apply("Concat", total, sketch.constant(np.array([[other]])), axis=1)
        model = sketch.model(sketch.apply("Add", sketch.apply("Relu", "x"), both))
        path = tmp_path / "sum.onnx"
        path.write_bytes(model.SerializeToString())
        return load_network(path, domain=(0.0, 1.0))

    half = np.random.default_rng(6).normal(0, 0.3, 1000)
    terms = np.concatenate([half, -half[::-1]])
    plain = network_with(0.0, terms)
    point = np.zeros((1, 1), np.float32)
    seen = float(plain.replay(point)[0, 0])
    read = float(plain(torch.from_numpy(point))[0, 0])
    assert read != seen
    sign = np.sign(read - seen)
    network = network_with(sign * (seen + read) / 2, sign * terms)
    query = Query(instance_at(network, [0.2]), 0.01)
    result = kind().verify(network, query, Limits(seconds=2.0))
    assert result.verdict is not Verdict.ROBUST, "another order of the sum gives the other class"
    assert kind(arithmetic=REAL).unsupported(network, query.instance.norm) is None


@pytest.mark.parametrize("kind", PIECEWISE)
@pytest.mark.parametrize(("seed", "inputs"), [(0, 2), (1, 14)])
def test_a_possible_overflow_is_told(kind: Kind, seed: int, inputs: int) -> None:
    """Few inputs are split themselves, many are not; the unit overflows near one corner."""
    case = fragile("overflowing-unit", seed)
    assert case.network.input_shape == (inputs,)
    verifier = kind(arithmetic=FLOAT)
    result = verifier.verify(case.network, Query(case.instance, case.eps), Limits(seconds=SECONDS))
    assert result.verdict is not Verdict.ROBUST
    assert "may overflow" in result.message


def test_an_integer_solver_is_not_asked_about_numbers_too_large_for_it() -> None:
    """HiGHS takes a program with numbers of 3e6 for infeasible that is not; found by a search."""
    case = fragile("absorbing", 391)
    query = Query(case.instance, 0.4)
    assert find_break(case.network, case.instance, 0.4, seed=case.seed) is not None
    for branches in (0, 4096):
        verifier = Milp(branches=branches)
        result = verifier.verify(case.network, query, Limits(seconds=5.0))
        assert result.verdict is not Verdict.ROBUST
