"""Linear maps: the same as the operators that state them, and as their own matrices."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from radii.networks import (
    ComposedMap,
    ConvolutionMap,
    LinearMap,
    MatrixMap,
    Network,
    Node,
    Operator,
    OperatorKind,
    ScaleMap,
    SelectionMap,
    SparseMap,
    SumMap,
    TransposedMap,
    Window,
    composed,
    summed,
)

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def check(held: LinearMap) -> None:
    """All that a map says of itself agrees with its matrix."""
    matrix = held.matrix()
    dense = torch.from_numpy(matrix.toarray())
    assert dense.shape == (held.outputs, held.inputs)
    assert matrix.nnz == np.count_nonzero(matrix.toarray())
    points, rows = normal(2, 3, held.inputs), normal(2, 3, held.outputs, seed=1)
    torch.testing.assert_close(held.pushed(points), points @ dense.t())
    torch.testing.assert_close(held.pulled(rows), rows @ dense)
    units = torch.from_numpy(np.random.default_rng(2).integers(0, held.outputs, (2, 4)))
    torch.testing.assert_close(held.chosen(units), dense[units])
    spread, least = held.spread(points.abs()), points.abs() @ dense.abs().t()
    assert bool((spread >= least * (1 - 1e-12)).all())
    if not isinstance(held, ComposedMap | SumMap):
        torch.testing.assert_close(spread, least)
    if held.inputs and held.outputs and not isinstance(held, ComposedMap | SumMap):
        used = dense != 0
        assert held.terms >= max(int(used.sum(0).max()), int(used.sum(1).max()))
    assert not held.is_zero or matrix.nnz == 0
    if held.dense is not None:
        torch.testing.assert_close(held.dense, dense)
    single = held.to(torch.float32)
    pulled, pushed = single.pulled(rows.float()), single.pushed(points.float())
    assert {pulled.dtype, pushed.dtype, single.chosen(units).dtype} == {torch.float32}
    torch.testing.assert_close(pulled.double(), rows @ dense, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(pushed.double(), points @ dense.t(), rtol=1e-3, atol=1e-3)
    again = pickle.loads(pickle.dumps(held))
    torch.testing.assert_close(again.pulled(rows), held.pulled(rows), rtol=0, atol=0)


def check_operator(node: Node, shapes: list[tuple[int, ...]]) -> None:
    operator = node.operator
    assert type(operator).linear_maps is not Operator.linear_maps or operator.is_exact
    maps = operator.linear_maps(*shapes)
    points = [normal(3, *shape, seed=number) for number, shape in enumerate(shapes)]
    expected = operator(*points) - operator(*(torch.zeros_like(point) for point in points))
    found = [held.pushed(point.reshape(3, -1)) for held, point in zip(maps, points, strict=True)]
    torch.testing.assert_close(torch.stack(found).sum(0), expected.reshape(3, -1))
    by_gradients = operator._gradients(tuple(shapes))
    for held, slow in zip(maps, by_gradients, strict=True):
        assert abs(held.matrix() - slow.matrix()).max() < 1e-12
        check(held)


@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
def test_every_affine_operator_states_its_maps(operator: str) -> None:
    @settings(RELAXED, max_examples=10, database=None, derandomize=True)
    @given(model=operator_models(operator))
    def check_model(model: object) -> None:
        data = model.SerializeToString()  # type: ignore[attr-defined]
        network = Network.from_bytes(data, domain=(-2, 2), name=operator)
        graph = network.graph.in_dtype(torch.float64)
        for node in graph.nodes[1:]:
            if node.kind is OperatorKind.AFFINE and node.size:
                check_operator(node, [graph.nodes[i].shape for i in node.inputs])

    check_model()


@settings(RELAXED, max_examples=60, derandomize=True)
@given(data=st.data())
def test_convolutions_and_their_transposes(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    axes, groups = draw(1, 3), draw(1, 2)
    kernel = tuple(draw(1, 3) for _ in range(axes))
    window = Window(
        kernel,
        tuple(draw(1, 3) for _ in range(axes)),
        tuple(draw(1, 2) for _ in range(axes)),
        tuple((draw(-1, 2), draw(-1, 2)) for _ in range(axes)),
    )
    sizes = [reach + 2 + draw(0, 2) for reach in window.reach]
    weight = normal(2 * groups, draw(1, 2), *kernel, seed=draw(0, 99))
    held = ConvolutionMap(weight, sizes, window=window, batch=draw(1, 2), groups=groups)
    check(held)
    check(TransposedMap(held))
    for scaled in (
        held.with_scaled_results(per_channel(held.result)),
        held.with_scaled_arguments(per_channel(held.shape)),
    ):
        assert scaled is not None
        check(scaled)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(60))
def test_strided_convolutions_in_float32_are_pulled_by_their_phases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, (down, across) = rng.integers(1, 6, 2), rng.integers(1, 4, 2)
    pads = rng.integers(-1, 4, (2, 2))
    window = Window(
        (int(kernel[0]), int(kernel[1])),
        (int(down), int(across) + int(down == across == 1)),
        (1, 1),
        ((int(pads[0, 0]), int(pads[0, 1])), (int(pads[1, 0]), int(pads[1, 1]))),
    )
    sizes = [int(side) for side in kernel + rng.integers(2, 6, 2)]
    held = ConvolutionMap(normal(3, 2, *window.kernel, seed=seed), sizes, window=window)
    single = held.to(torch.float32)
    assert single._has_phases and not held._has_phases
    rows = normal(4, held.outputs, seed=seed)
    torch.testing.assert_close(
        single.pulled(rows.float()).double(), held.pulled(rows), rtol=1e-4, atol=1e-4
    )


def per_channel(shape: tuple[int, ...]) -> Tensor:
    along = normal(shape[1]).reshape(-1, *(1,) * (len(shape) - 2))
    return along.expand(shape).flatten()


def plain(kernel: int, stride: int = 1, pad: int = 0) -> Window:
    return Window((kernel, kernel), (stride, stride), (1, 1), ((pad, pad), (pad, pad)))


def some_maps() -> list[LinearMap]:
    """Of 32 values: 2 channels of 4 x 4, and maps from 32 to 32."""
    places = torch.tensor([3, -1, *range(30)])
    sparse = normal(32, 32, seed=5) * (normal(32, 32, seed=6) > 1)
    return [
        ScaleMap.identity(32),
        ScaleMap(normal(32)),
        ScaleMap(per_channel((1, 2, 4, 4))),
        SelectionMap(places, 32),
        SelectionMap(torch.arange(31, -1, -1), 32),
        SparseMap(MatrixMap(sparse).matrix()),
        MatrixMap(normal(32, 32, seed=3)),
        MatrixMap(normal(4, 4, seed=4), outer=2, inner=4),
        MatrixMap(normal(4, 4, seed=4), outer=8),
        ConvolutionMap(normal(2, 2, 3, 3), (4, 4), window=plain(3, pad=1)),
        ConvolutionMap(normal(2, 2, 1, 1), (4, 4), window=plain(1)),
        TransposedMap(ConvolutionMap(normal(2, 2, 3, 3), (4, 4), window=plain(3, pad=1))),
    ]


def test_maps_one_after_another_and_side_by_side() -> None:
    for first, second in itertools.product(some_maps(), repeat=2):
        both, total = composed(first, second), summed(first, second)
        expected = second.matrix() @ first.matrix()
        assert abs(both.matrix() - expected).max() < 1e-12
        assert abs(total.matrix() - (first.matrix() + second.matrix())).max() < 1e-12
        assert both.work <= first.work + second.work
        check(both)
        check(total)


def test_long_chains_of_maps() -> None:
    rng = np.random.default_rng(0)
    maps = some_maps()
    for _ in range(20):
        parts = [maps[i] for i in rng.integers(0, len(maps), 5)]
        expected = np.eye(32)
        for part in parts:
            expected = part.matrix() @ expected
        both = composed(composed(*parts[:2]), composed(*parts[2:]))
        np.testing.assert_allclose(both.matrix().toarray(), expected, atol=1e-9)
        check(both)


def test_chains_become_as_simple_as_they_are() -> None:
    convolution = ConvolutionMap(normal(3, 2, 3, 3), (8, 8), window=plain(3, 2, 1))
    normalized = composed(
        ScaleMap(per_channel((1, 2, 8, 8))), convolution, ScaleMap(per_channel((1, 3, 4, 4)))
    )
    assert isinstance(normalized, ConvolutionMap) and normalized.rounded == 2
    assert isinstance(composed(normalized, ScaleMap(normal(48))), ComposedMap)
    mixing = ConvolutionMap(normal(2, 3, 1, 1), (4, 4), window=plain(1))
    assert isinstance(composed(convolution, mixing), ConvolutionMap)
    assert isinstance(composed(ScaleMap.identity(128), convolution), ConvolutionMap)
    pooled = composed(convolution, MatrixMap(normal(1, 16), outer=3), MatrixMap(normal(1, 3)))
    assert isinstance(pooled, MatrixMap) and pooled.work == 128
    moved = composed(SelectionMap(torch.arange(31, -1, -1), 32), MatrixMap(normal(5, 32)))
    assert moved.dense is not None
    assert composed(SelectionMap(torch.tensor([1, 0]), 2), SelectionMap(torch.tensor([1, 0]), 2))


def test_paths_that_cancel_leave_nothing() -> None:
    nothing = summed(ScaleMap.identity(4), ScaleMap(-torch.ones(4, dtype=torch.float64)))
    assert nothing.is_zero
    assert composed(nothing, MatrixMap(normal(3, 4))).is_zero
    assert not MatrixMap(normal(3, 4)).is_zero


def test_rounding_is_counted() -> None:
    first, second = MatrixMap(normal(4, 50)), MatrixMap(normal(50, 4))
    assert composed(second, first).rounded == 50
    assert ComposedMap([first, second]).rounded == 100 and ComposedMap([first, second]).terms == 102
    assert composed(second, ScaleMap(normal(50))).rounded == 1


def test_another_packages_operator_needs_no_rule() -> None:
    class Twisted(Operator):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x.flip(1) * 2 - y.cumsum(1) + 1

    first, second = Twisted().linear_maps((3,), (3,))
    check(first)
    check(second)
    np.testing.assert_array_equal(first.matrix().toarray(), 2 * np.eye(3)[::-1])
    np.testing.assert_array_equal(second.matrix().toarray(), -np.tril(np.ones((3, 3))))
