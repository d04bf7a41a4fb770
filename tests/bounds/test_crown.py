"""CROWN and alpha-CROWN hold every value, and are never looser than what they build on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from radii.bounds import (
    alpha_crown_bounds,
    box_of,
    crown_bounds,
    fuse,
    interval_bounds,
    without_softmax,
)
from radii.bounds._affine_maps import adds_plainly
from radii.networks import Interval, LinearMap, MatrixMap, Network, SparseMap
from radii.problem import REAL, Ball, Box, Halfspaces, Norm
from radii.testing import LinearClassifier, NetworkFamily, Sketch, random_network

POINTS = 10_000
DTYPES = [torch.float64, torch.float32]


def smooth_network(seed: int, activation: str, *, final: str | None = None) -> Network:
    """Two layers of an activation with a residual sum, and perhaps an operator on the outputs."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, 4])

    def dense(value: str, width: int, size: int) -> str:
        weight = sketch.constant(rng.normal(0, 3 / np.sqrt(width), (width, size)))
        return sketch.apply("Gemm", value, weight, sketch.constant(rng.normal(0, 0.5, size)))

    first = sketch.apply(activation, dense("x", 4, 8))
    second = sketch.apply("Add", sketch.apply(activation, dense(first, 8, 8)), first)
    outputs = dense(second, 8, 3)
    return sketch.network(sketch.apply(final, outputs, axis=1) if final else outputs)


def broadcasting_network(seed: int) -> Network:
    """PRelu slopes of either sign that widen what they are applied to, and a maximum behind it."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, 1, 3, 3])
    slopes = sketch.constant(rng.uniform(-1, 2, (2, 1, 1)))
    value = sketch.apply(
        "PRelu", sketch.apply("Sub", "x", sketch.constant(np.float32(0.5))), slopes
    )
    value = sketch.apply(
        "MaxPool", value, kernel_shape=[2, 2], strides=[1, 1], pads=[1, 0, 0, 1], dilations=[1, 1]
    )
    value = sketch.apply("LeakyRelu", value, alpha=-0.4)
    weight = sketch.constant(rng.normal(0, 1, (18, 3)))
    return sketch.network(sketch.apply("MatMul", sketch.apply("Flatten", value), weight))


MAKERS: dict[str, Callable[[int], Network]] = {
    **{str(f): partial(random_network, f) for f in NetworkFamily},
    **{a: partial(smooth_network, activation=a) for a in ("Sigmoid", "Tanh")},
    **{f: partial(smooth_network, activation="Tanh", final=f) for f in ("Softmax", "LogSoftmax")},
    "broadcasting": broadcasting_network,
}


def points_of(region: Ball | Box, seed: int) -> torch.Tensor:
    """Random points of a region, many of them on its boundary."""
    rng = np.random.default_rng(seed)
    low, high = (side.reshape(region.shape) for side in box_of(region))
    inside = region.sample(rng, POINTS // 2)
    shares = rng.integers(0, 2, inside.shape)
    corners = low + shares * (high - low)
    if isinstance(region, Ball) and region.norm is not Norm.LINF:
        steps = corners - region.center
        order = {Norm.L2: 2, Norm.L1: 1}[region.norm]
        kept = steps * (rng.uniform(size=steps.shape) < 0.5)
        lengths = np.linalg.norm(kept.reshape(len(kept), -1), order, axis=1)
        scale = np.minimum(1, region.eps / np.maximum(lengths, 1e-12))
        corners = region.center + kept * scale.reshape(-1, *(1,) * (kept.ndim - 1))
    return torch.from_numpy(np.clip(np.concatenate([inside, corners]), low, high))


def regions_of(network: Network, seed: int, kind: Norm | None) -> list[Ball | Box]:
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 1, (3, *network.input_shape))
    sizes = (0.01, 0.1, 0.6)
    if kind is not None:
        return [Ball(c, e, kind, network.domain) for c, e in zip(centres, sizes, strict=True)]
    spreads = rng.uniform(0, 1, centres.shape) * rng.integers(0, 2, centres.shape)
    return [Box(c - e * s, c + e * s) for c, e, s in zip(centres, sizes, spreads, strict=True)]


def assert_holds(bounds: Interval, values: list[torch.Tensor]) -> None:
    for region, value in enumerate(values):
        slack = 1e-12 * (1 + value.abs().amax())
        assert bool((value >= bounds.low[region].double() - slack).all())
        assert bool((value <= bounds.high[region].double() + slack).all())


def assert_not_looser(tight: Interval, loose: Interval, slack: float = 0.0) -> None:
    room = slack * (1 + loose.magnitude)
    assert bool((tight.low >= loose.low - room).all())
    assert bool((tight.high <= loose.high + room).all())


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", [None, *Norm], ids=lambda kind: kind or "box")
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_no_point_leaves_the_bounds(name: str, kind: Norm | None) -> None:
    seed = 0 if kind is None else list(Norm).index(kind) + 1
    network = MAKERS[name](seed)
    regions = regions_of(network, seed, kind)
    with torch.no_grad():
        values = [network(points_of(region, seed)) for region in regions]
    low, high = (np.stack(side) for side in zip(*(box_of(r) for r in regions), strict=True))
    for dtype in DTYPES:
        interval = interval_bounds(network.graph, Interval.around(low, high, dtype=dtype))
        outputs = interval[network.graph.output]
        outputs = Interval(outputs.low.flatten(1), outputs.high.flatten(1))
        crown = crown_bounds(network, regions, dtype=dtype, arithmetic=REAL)
        alpha = alpha_crown_bounds(network, regions, steps=5, dtype=dtype, arithmetic=REAL)
        assert crown.low.dtype == alpha.low.dtype == dtype
        for bounds in (outputs, crown, alpha):
            assert_holds(bounds, values)
        assert_not_looser(crown, outputs, slack=1e-9 if dtype == torch.float64 else 1e-4)
        assert_not_looser(alpha, crown)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_outputs_hold_for_each_region(dtype: torch.dtype) -> None:
    network = random_network(NetworkFamily.RESIDUAL, 4)
    regions = regions_of(network, 4, Norm.LINF)
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(5, 3)), rng.normal(size=(3, 2, 3))
    with torch.no_grad():
        values = [network(points_of(region, 1)).numpy() for region in regions]
    for bound in (crown_bounds, alpha_crown_bounds):
        found = bound(network, regions, shared, dtype=dtype)
        assert_holds(found, [torch.from_numpy(value @ shared.T) for value in values])
        found = bound(network, regions, own, dtype=dtype)
        pairs = zip(values, own, strict=True)
        assert_holds(found, [torch.from_numpy(value @ rows.T) for value, rows in pairs])


@pytest.mark.parametrize("name", ["pooling", "clipped", "Sigmoid", "Softmax"])
@pytest.mark.parametrize("kind", [None, Norm.L2])
def test_regions_of_a_batch_do_not_mix(name: str, kind: Norm | None) -> None:
    network = MAKERS[name](1)
    regions = regions_of(network, 1, kind)
    together = alpha_crown_bounds(network, regions, steps=2, arithmetic=REAL)
    for row, region in enumerate(regions):
        alone = alpha_crown_bounds(network, [region], steps=2, arithmetic=REAL)
        torch.testing.assert_close(together.low[row], alone.low[0], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(together.high[row], alone.high[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", list(Norm))
def test_linear_classifiers_are_bounded_exactly(norm: Norm) -> None:
    classifier = LinearClassifier.random(3)
    centre = np.random.default_rng(0).normal(size=5)
    ball = Ball(centre, 0.7, norm, classifier.network.domain)
    dual = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}[norm]
    spread = 0.7 * np.linalg.norm(classifier.weights, dual, axis=1)
    middle = classifier.weights @ centre + classifier.bias
    found = crown_bounds(classifier.network, [ball], arithmetic=REAL)
    np.testing.assert_allclose(found.low[0], middle - spread, atol=1e-5)
    np.testing.assert_allclose(found.high[0], middle + spread, atol=1e-5)


def test_a_relu_network_has_the_bounds_computed_by_hand() -> None:
    """y = relu(x) + relu(-x) - 2x on [-1, 3]: at least x - 2x, at most (x + 3) / 2 - 2x."""
    sketch = Sketch([1, 1], dtype=np.float64)
    hidden = sketch.apply("Relu", sketch.apply("MatMul", "x", sketch.constant([[1.0, -1.0]])))
    bends = sketch.apply("MatMul", hidden, sketch.constant([[1.0], [1.0]]))
    line = sketch.apply("Mul", "x", sketch.constant(2.0))
    network = sketch.network(sketch.apply("Sub", bends, line))
    box = Box(np.array([-1.0]), np.array([3.0]))
    found = crown_bounds(network, [box], arithmetic=REAL)
    assert float(found.low) == pytest.approx(-3.0, abs=1e-9)
    assert float(found.high) == pytest.approx(3.0, abs=1e-9)


@pytest.mark.parametrize("family", [NetworkFamily.POOLING, NetworkFamily.RESIDUAL])
@pytest.mark.parametrize("form", ["structured", "dense", "sparse"])
def test_the_form_of_maps_does_not_change_bounds(
    family: NetworkFamily, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = random_network(family, 2)
    regions = regions_of(network, 2, Norm.LINF)
    expected = alpha_crown_bounds(network, regions, arithmetic=REAL)

    def formed(held: LinearMap, _: float) -> LinearMap:
        matrix = held.matrix()
        dense = MatrixMap(torch.from_numpy(matrix.toarray()))
        return {"structured": held, "dense": dense, "sparse": SparseMap(matrix)}[form]

    monkeypatch.setattr("radii.bounds._affine_maps._fastest", formed)
    again = random_network(family, 2)  # maps are prepared once for each network
    found = alpha_crown_bounds(again, regions, arithmetic=REAL)
    torch.testing.assert_close(found.low, expected.low, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.high, expected.high, rtol=1e-9, atol=1e-9)


def test_parts_give_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(NetworkFamily.DENSE, 2)
    regions = regions_of(network, 2, Norm.L1)
    whole = alpha_crown_bounds(network, regions, steps=2, arithmetic=REAL)
    monkeypatch.setattr("radii.bounds._crown.COEFFICIENTS_AT_ONCE", 1)
    monkeypatch.setattr("radii.bounds._crown.FEWEST_ROWS", 2)
    monkeypatch.setattr("radii.bounds._alpha.CHOICES_AT_ONCE", 1)
    parts = alpha_crown_bounds(network, regions, steps=2, arithmetic=REAL)
    torch.testing.assert_close(parts.low, whole.low, rtol=1e-9, atol=1e-9)


def test_unbounded_inputs_give_no_bound_rather_than_a_wrong_one() -> None:
    for name in ("dense", "Tanh", "clipped"):
        network = MAKERS[name](0)
        low = np.zeros(network.input_shape)
        box = Box(low, np.where(np.arange(low.size).reshape(low.shape) == 0, np.inf, low + 0.1))
        found = crown_bounds(network, [box], arithmetic=REAL)
        assert not bool(torch.isnan(found.low).any() | torch.isnan(found.high).any())
        points = np.repeat(low[None], 100, axis=0)
        points.reshape(100, -1)[:, 0] = np.geomspace(1e-3, 1e6, 100)
        with torch.no_grad():
            assert_holds(found, [network(torch.from_numpy(points))])


@pytest.mark.parametrize("final", ["Softmax", "LogSoftmax"])
def test_a_final_softmax_goes_where_outputs_are_only_compared(final: str) -> None:
    network = smooth_network(0, "Tanh", final=final)
    fusion = fuse(network)
    pair = Halfspaces(np.array([[1.0, -1.0, 0.0], [0.0, 2.0, -2.0]]), np.zeros(2))
    bare, violations = without_softmax(fusion, [pair], REAL)
    assert len(bare.stages) == len(fusion.stages) - 1 and violations == (pair,)
    shifted = Halfspaces(pair.matrix, np.full(2, 0.1))
    goes = len(without_softmax(fusion, [shifted])[0].stages) < len(fusion.stages)
    assert goes == (final == "LogSoftmax")
    single = Halfspaces(np.array([[1.0, 0.0, 0.0]]), np.zeros(1))
    assert without_softmax(fusion, [pair, single])[0] is fusion


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_single_points_test_the_rounding(name: str, dtype: torch.dtype) -> None:
    """Nothing but rounding is left of a region that is one point."""
    network = MAKERS[name](5)
    points = np.random.default_rng(5).uniform(0, 1, (200, *network.input_shape))
    found = crown_bounds(
        network, [Box(point, point) for point in points], dtype=dtype, arithmetic=REAL
    )
    with torch.no_grad():
        values = network(torch.from_numpy(points))
    assert_holds(found, [value[None] for value in values])
    widths = (found.high - found.low).amax()
    assert widths < (1e-8 if dtype == torch.float64 else 0.1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cancellation_does_not_break_the_bounds(dtype: torch.dtype) -> None:
    """Two equal halves of a network are subtracted: what is left is rounding."""
    rng = np.random.default_rng(0)
    sketch = Sketch([1, 20])
    first, second = rng.normal(0, 100, (20, 100)), rng.normal(0, 100, (100, 3))
    halves = []
    for _ in range(2):
        hidden = sketch.apply("Relu", sketch.apply("MatMul", "x", sketch.constant(first)))
        halves.append(sketch.apply("MatMul", hidden, sketch.constant(second)))
    network = sketch.network(sketch.apply("Sub", *halves))
    points = rng.uniform(0, 1, (50, 20)).astype(np.float32)
    found = crown_bounds(
        network, [Box(point, point) for point in points], dtype=dtype, arithmetic=REAL
    )
    assert bool((found.low <= 0).all() and (found.high >= 0).all())
    assert (found.high - found.low).max() < (1e-3 if dtype == torch.float64 else 1e3)


def test_float32_settles_nothing_where_its_products_are_rounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert adds_plainly()
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    assert not adds_plainly()
    monkeypatch.delenv("ONEDNN_DEFAULT_FPMATH_MODE")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert not adds_plainly()
    finally:
        torch.set_float32_matmul_precision(before)
    assert adds_plainly()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("big", "small"), [(1e28, 1e-18), (1e20, 1e-26)])
def test_coefficients_that_underflow_are_no_proof(
    big: float, small: float, dtype: torch.dtype
) -> None:
    """The product of two weights is 0 in float32, and meets a large value."""
    sketch = Sketch([1, 1], dtype=np.float64)

    def dense(value: str, weight: list[float], bias: list[float]) -> str:
        held = sketch.constant(np.array([weight])), sketch.constant(np.array(bias))
        return sketch.apply("Gemm", value, *held)

    first = sketch.apply("Relu", dense("x", [big], [-0.01 * big]))
    second = sketch.apply("Relu", dense(first, [1 / big], [-0.01]))
    third = sketch.apply("Relu", dense(second, [small], [-0.5 * small]))
    network = sketch.network(dense(third, [-1 / small, 1 / small], [0.3, -0.3]))
    box = Box(np.zeros(1), np.ones(1))
    bounds = crown_bounds(network, [box], [[1.0, -1.0]], arithmetic=REAL, dtype=dtype)
    assert bounds.low.item() <= -0.3599
