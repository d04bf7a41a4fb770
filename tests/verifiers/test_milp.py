"""The verifier on HiGHS: its programs, its tolerances, its limits, and known radii."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import BUSY_SECONDS
from radii.errors import SpecificationError, UnsupportedQuery
from radii.networks import Network, load_network
from radii.problem import REAL, Box, Instance, Norm, Query, Specification, Verdict
from radii.testing import (
    LinearClassifier,
    NetworkFamily,
    Sketch,
    instance_at,
    random_instance,
    random_network,
)
from radii.verifiers import Enumeration, Limits, Milp, Verifier, get
from radii.verifiers._case import BoundedProblem
from radii.verifiers.milp._encoding import Encoding
from radii.verifiers.milp._programs import depth_goal, exact_program, relaxed_program
from radii.verifiers.milp._tightening import MilpOptions

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason="the published networks (../shared/data) are not here"
)


def true_columns(encoding: Encoding, point: np.ndarray) -> np.ndarray:
    """The value of every column at given values of the input's columns."""
    columns = np.zeros(len(encoding.low))
    columns[: len(point)] = point
    units = [
        (int(c), encoding.hinges.inputs.rows(np.array([k])))
        for k, c in enumerate(encoding.hinges.columns)
    ]
    units += [(unit.column, unit.inputs) for unit in encoding.maxima]
    maxima = {unit.column for unit in encoding.maxima}
    for column, inputs in sorted(units, key=lambda unit: unit[0]):
        value = inputs.at(columns).max()
        columns[column] = value if column in maxima else max(0.0, value)
    return columns


def input_points(encoding: Encoding, instance: Instance, eps: float) -> np.ndarray:
    """Random values of the input's columns, all within the ball."""
    rng = np.random.default_rng(0)
    inside = instance.ball(eps).sample(rng, 50).reshape(50, -1)
    inside[0] = instance.input.ravel()
    if instance.norm is not Norm.L1:
        return inside
    steps = inside - instance.input.ravel()
    up = encoding.inputs.matrix.maximum(0).T @ np.maximum(steps, 0).T
    down = encoding.inputs.matrix.minimum(0).T @ np.maximum(-steps, 0).T
    return np.asarray(up - down).T


@pytest.mark.sampled(7)
@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L1])
@pytest.mark.parametrize("family", list(NetworkFamily))
def test_programs_hold_every_true_value(family: NetworkFamily, norm: Norm) -> None:
    """Not one true trajectory is cut off, by either program: what every proof rests on."""
    for seed in range(2):
        network = random_network(family, seed, units=16)
        instance = random_instance(network, seed, norm=norm)
        specification = Specification(instance.ball(0.2), instance.requirement)
        encoding = MilpOptions().encoding(BoundedProblem(network, specification, Limits()))
        assert instance.requirement.violations is not None
        polyhedron = instance.requirement.violations[0]
        goal = depth_goal(encoding, polyhedron)
        relaxed, exact = relaxed_program(encoding, goal), exact_program(encoding, goal)
        for point in input_points(encoding, instance, 0.2):
            columns = true_columns(encoding, point)
            x = encoding.input_at(columns).reshape(1, *network.input_shape)
            with torch.no_grad():
                outputs = network(torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(encoding.outputs.at(columns), outputs[0], atol=1e-9)
            depth = polyhedron.depth(outputs)
            assert_feasible(relaxed, np.append(columns, depth + 1e-12))
            assert_feasible(
                exact, np.concatenate([columns, depth + 1e-12, pieces(encoding, columns)])
            )


def pieces(encoding: Encoding, columns: np.ndarray) -> np.ndarray:
    hinges = encoding.hinges
    unsettled = (hinges.low < 0) & (hinges.high > 0)
    chosen = [(hinges.inputs.at(columns) > 0)[unsettled].astype(float)]
    for unit in encoding.maxima:
        values = unit.inputs.at(columns)
        chosen.append((np.arange(len(values)) == np.argmax(values)).astype(float))
    return np.concatenate(chosen)


def assert_feasible(program: Any, values: np.ndarray) -> None:
    activity = program.rows.matrix @ values
    assert np.all(values >= program.low - 1e-13) and np.all(values <= program.high + 1e-13)
    assert np.all(activity >= program.rows.low) and np.all(activity <= program.rows.high)


def test_integers_alone_give_the_same_radius() -> None:
    for family in NetworkFamily:
        network = random_network(family, 2, units=12)
        norm = Norm.L1 if family in (NetworkFamily.DENSE, NetworkFamily.LEAKY) else Norm.LINF
        instance = random_instance(network, 5, norm=norm)
        branched = Milp(arithmetic=REAL).radius(network, instance, Limits(60))
        integers = Milp(branches=0, arithmetic=REAL).radius(network, instance, Limits(60))
        assert integers.stopped is None
        assert integers.optimum == pytest.approx(branched.optimum, abs=1e-6)
        assert integers.lower < branched.upper and branched.lower < integers.upper


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_classifiers_have_their_closed_form(norm: Norm, dtype: type) -> None:
    for seed in range(4):
        classifier = LinearClassifier.random(seed, dtype=dtype)
        point = np.random.default_rng(seed).normal(size=5)
        instance = instance_at(classifier.network, point, norm=norm)
        radius = classifier.radius(instance.input, instance.label, norm)
        answer = Milp().radius(classifier.network, instance, Limits(30))
        assert answer.optimum == pytest.approx(radius, abs=1e-6)
        assert answer.lower <= radius * (1 + 1e-12)
        assert answer.upper >= answer.lower
        assert answer.upper - answer.lower < 1e-5


def test_a_known_violation_saves_work_and_changes_nothing() -> None:
    network = random_network(NetworkFamily.DENSE, 7)
    instance = random_instance(network, 1)
    alone = Milp(arithmetic=REAL).radius(network, instance)
    helped = Milp(arithmetic=REAL).radius(network, instance, upper=1.5 * alone.upper)
    assert helped.optimum == pytest.approx(alone.optimum, abs=1e-7)


def test_an_input_that_breaks_the_property_has_radius_zero() -> None:
    network = random_network(NetworkFamily.DENSE, 0)
    right = random_instance(network, 0)
    wrong = instance_at(network, right.input, label=(right.label + 1) % 3)
    answer = Milp().radius(network, wrong)
    assert answer.lower == answer.upper == answer.optimum == 0.0


def test_a_property_that_nothing_breaks_is_proven_up_to_the_domain() -> None:
    sketch = Sketch([1, 2])
    hidden = sketch.apply("Relu", "x")
    weight = sketch.constant(np.array([[1.0, 0.0], [1.0, 0.0]]))
    bias = sketch.constant(np.array([1.0, 0.0]))
    network = sketch.network(sketch.apply("Gemm", hidden, weight, bias), domain=(0, 1))
    answer = Milp().radius(network, instance_at(network, [0.25, 0.5]))
    assert answer.lower == pytest.approx(0.75) and answer.witness is None


def test_a_margin_within_tolerance_is_unknown() -> None:
    sketch = Sketch([1, 1], dtype=np.float64)
    weight, bias = sketch.constant(np.ones((1, 2))), sketch.constant(np.array([1e-14, 0.0]))
    network = sketch.network(sketch.apply("Gemm", "x", weight, bias), domain=(0, 1))
    instance = instance_at(network, [0.5], label=0)
    assert instance.holds
    result = Milp().verify(network, Query(instance, 0.1))
    assert result.verdict is Verdict.UNKNOWN
    assert "tolerance" in result.message


def hard_case() -> tuple[Network, Query]:
    """Far beyond what a second can decide: 150 units, nearly all unsettled."""
    rng = np.random.default_rng(0)
    sketch = Sketch([1, 20])
    value, width = "x", 20
    for size in (50, 50, 50):
        weight = sketch.constant(rng.normal(0, 1.5 / np.sqrt(width), (width, size)))
        value = sketch.apply("Relu", sketch.apply("MatMul", value, weight))
        width = size
    weight = sketch.constant(np.abs(rng.normal(0, 0.2, (width, 2))) * [1.0, 0.98])
    bias = sketch.constant(np.array([6.0, 0.0]))
    network = sketch.network(sketch.apply("Gemm", value, weight, bias), domain=(-1, 1))
    return network, Query(instance_at(network, np.zeros(20), label=0), 0.9)


@pytest.mark.parametrize("branches", [0, 100_000])
def test_time_limits_are_honoured(branches: int) -> None:
    network, query = hard_case()
    started = time.monotonic()
    result = Milp(branches=branches).verify(network, query, Limits(1.5))
    assert time.monotonic() - started < 1.5 + BUSY_SECONDS
    assert result.verdict is Verdict.TIMEOUT


@pytest.mark.parametrize("branches", [0, 100_000])
def test_cancelling_is_honoured(branches: int) -> None:
    network, query = hard_case()
    cancelled = threading.Event()
    timer = threading.Timer(1.5, cancelled.set)
    timer.start()
    started = time.monotonic()
    result = Milp(branches=branches).verify(network, query, Limits(60, cancelled=cancelled.is_set))
    assert time.monotonic() - started < 1.5 + BUSY_SECONDS
    assert result.verdict is Verdict.CANCELLED
    timer.join()


def test_running_out_of_time_leaves_a_proven_lower_side() -> None:
    network, query = hard_case()
    answer = Milp().radius(network, query.instance, Limits(8.0))
    assert answer.stopped is Verdict.TIMEOUT
    assert 0 < answer.lower < answer.upper
    points = query.instance.ball(answer.lower).sample(np.random.default_rng(0), 500)
    with torch.no_grad():
        outputs = network(torch.from_numpy(points)).numpy()
    assert np.all(query.instance.requirement.margin(outputs, 0.0) > 0)


def test_a_memory_limit_is_an_answer() -> None:
    network, query = hard_case()
    assert Milp().verify(network, query, Limits(60, memory_bytes=1)).verdict is Verdict.MEMOUT


def test_networks_that_are_not_piecewise_linear_are_refused() -> None:
    sketch = Sketch([1, 2])
    network = sketch.network(sketch.apply("Sigmoid", "x"))
    assert "piecewise linear" in (Milp().unsupported(network, Norm.LINF) or "")
    with pytest.raises(UnsupportedQuery, match="piecewise linear"):
        Milp().radius(network, instance_at(network, [0.2, 0.4]))


@pytest.mark.parametrize("verifier", [Milp(), Enumeration()])
def test_an_unbounded_region_is_refused(verifier: Verifier) -> None:
    sketch = Sketch([1, 2])
    network = sketch.network(sketch.apply("Relu", "x"))
    box = Box(np.array([0.0, -np.inf]), np.array([1.0, 1.0]))
    requirement = instance_at(network, [0.2, 0.4]).requirement
    with pytest.raises(SpecificationError, match="unbounded"):
        verifier.decide(network, Specification(box, requirement), Limits())


def test_the_registry_names_what_it_has() -> None:
    assert isinstance(get("milp"), Milp)
    assert isinstance(get("enumeration"), Enumeration)
    with pytest.raises(SpecificationError, match="milp, enumeration"):
        get("oracle")


@needs_shared_data
@pytest.mark.parametrize("name", ["mnist_relu_3_50", "mnist-net_256x2"])
def test_published_networks_at_small_eps(name: str) -> None:
    network = load_network(SHARED_DATA / "jair" / "networks" / f"{name}.onnx", domain=(0, 1))
    arrays = np.load(SHARED_DATA / "jair" / "mnist_train_0_49.npz")
    image = (arrays["images"][0] / 255).astype(np.float32)
    instance = instance_at(network, image, label=int(arrays["labels"][0]))
    result = Milp().verify(network, Query(instance, 0.01), Limits(30))
    assert result.verdict is Verdict.ROBUST
