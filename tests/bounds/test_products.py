"""Products, softmax and norms inside a network: closed forms, and executions within the bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.soundness.observed_errors import every_execution
from radii.bounds import alpha_crown_bounds, crown_bounds
from radii.networks import Interval, MatMul, Multiply, Network, Softmax
from radii.networks.operators._remainders import quadratic_range
from radii.problem import REAL, Box
from radii.testing import Sketch

CENTRE = np.array([1.0, -2.0])
RADIUS = np.array([0.5, 0.25])


def product_of_two() -> Network:
    sketch = Sketch([1, 2], dtype=np.float64)
    ends = [sketch.constant(np.eye(2)[:, [i]]) for i in range(2)]
    x, y = (sketch.apply("MatMul", "x", end) for end in ends)
    return sketch.network(sketch.apply("Mul", x, y), domain=(-4, 4))


def test_the_planes_of_a_product_leave_what_mccormick_leaves() -> None:
    """The middle planes are off by the product of both radii from the tangent plane; the best
    ones reach the corner that is least."""
    box = Box(CENTRE - RADIUS, CENTRE + RADIUS)
    middle = crown_bounds(product_of_two(), [box], arithmetic=REAL)
    # |a| s + r |b| + r s around a b, as intervals of a product have it on one side.
    assert float(middle.low) == pytest.approx(-2 - 0.25 - 1 - 0.125)
    assert float(middle.high) == pytest.approx(-0.5 * 1.75)  # the corner, from plain intervals
    best = alpha_crown_bounds(product_of_two(), [box], arithmetic=REAL)
    assert float(best.low) == pytest.approx(1.5 * -2.25)


@pytest.mark.parametrize("turn", [0.0, 1.0])
def test_the_outer_planes_touch_a_product_along_two_edges(turn: float) -> None:
    low, high = (torch.from_numpy(CENTRE + sign * RADIUS)[None] for sign in (-1, 1))
    planes = Multiply((1,), (1,)).relaxation((2,), Interval(low, high))
    chosen = torch.full((2, 1, 1, 1), turn, dtype=torch.float64)
    for sign in (1.0, -1.0):
        bound = planes.lines(chosen).pulled(torch.full((1, 1, 1), sign, dtype=torch.float64))
        assert bound.rows is not None
        gaps = []
        for x in (low[0, 0], high[0, 0]):
            for y in (low[0, 1], high[0, 1]):
                plane = bound.constant + (bound.rows.flatten() @ torch.stack([x, y]))
                gaps.append(float(sign * x * y - plane))
        assert sorted(gaps) == pytest.approx([0, 0, 0, 4 * float(np.prod(RADIUS))], abs=1e-12)


def test_planes_of_a_matrix_product_are_those_of_its_products() -> None:
    rng = np.random.default_rng(0)
    centre, radius = rng.normal(size=(1, 18)), rng.uniform(size=(1, 18))
    held = Interval(torch.from_numpy(centre - radius), torch.from_numpy(centre + radius))
    rows = torch.from_numpy(rng.normal(size=(1, 5, 6)))
    choices = torch.from_numpy(rng.uniform(size=(2, 1, 5, 6)))
    found = MatMul((2, 3), (3, 2)).relaxation((18,), _taken(held, range(12)))
    bound = found.lines(choices[..., :4]).pulled(rows[..., :4])
    single = Multiply((1,), (1,))
    total = torch.zeros(1, 5, 12, dtype=torch.float64)
    constant = torch.zeros(1, 5, dtype=torch.float64)
    for i, j in np.ndindex(2, 2):
        for k in range(3):
            pair, unit = [3 * i + k, 6 + 2 * k + j], [2 * i + j]
            part = single.relaxation((2,), _taken(held, pair)).lines(choices[..., unit])
            own = part.pulled(rows[..., unit])
            assert own.rows is not None
            total[..., pair] += own.rows
            constant += own.constant
    torch.testing.assert_close(bound.rows, total)
    torch.testing.assert_close(bound.constant, constant)


def test_the_square_of_a_form_reaches_the_square_of_its_range() -> None:
    forms = torch.tensor([[[3.0, -1.0, 0.5]], [[-2.0, 0.0, 4.0]]], dtype=torch.float64)
    pairs = torch.tensor([0, 1]), torch.tensor([0, 1])
    low, high = quadratic_range(forms, forms, pairs)
    assert high.tolist() == pytest.approx([4.5**2, 6.0**2], rel=1e-4)
    assert torch.all(low <= 0) and torch.all(low > -1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_quadratic_forms_stay_in_their_range(seed: int) -> None:
    """At corners and between; a sum of many products has far less than its parts have alone."""
    rng = np.random.default_rng(seed)
    terms, inputs = (int(number) for number in rng.integers(1, (9, 40)))
    left, right = (torch.from_numpy(rng.normal(size=(3, terms, inputs))) for _ in range(2))
    left[1] *= 1e-8
    right[:, :, : inputs // 2] = 0
    pairs = torch.tensor([0, 1, 2, 0]), torch.tensor([2, 1, 0, 1])
    low, high = quadratic_range(left, right, pairs)
    points = np.concatenate(
        [rng.uniform(-1, 1, (200, inputs)), rng.choice([-1.0, 1.0], (500, inputs))]
    )
    at = [torch.einsum("pki,ni->npk", side, torch.from_numpy(points)) for side in (left, right)]
    values = (at[0][:, pairs[0]] * at[1][:, pairs[1]]).sum(2)
    assert torch.all((low <= values) & (values <= high))
    alone = (left.abs().sum(2)[pairs[0]] * right.abs().sum(2)[pairs[1]]).sum(1)
    if terms == 8:
        assert torch.all(high < alone)


def _taken(held: Interval, entries: list[int] | range) -> Interval:
    return Interval(held.low[:, list(entries)], held.high[:, list(entries)])


def test_equal_coefficients_on_probabilities_are_their_sum() -> None:
    """However open the probabilities are, they add up to 1."""
    low = torch.tensor([[-3.0, -1.0, 0.0, 2.0, -5.0, -1.0]], dtype=torch.float64)
    lines = Softmax(1).relaxation((2, 3), Interval(low, low + 4)).lines()
    bound = lines.pulled(torch.full((1, 1, 6), -2.5, dtype=torch.float64))
    assert float(bound.constant) == pytest.approx(-5)
    assert bound.rows is not None and not bound.rows.any()


def test_softmax_of_two_has_the_tangent_of_a_sigmoid() -> None:
    """At the centre a line below touches; for two terms the slope is that of the sigmoid of the
    difference."""
    point = torch.tensor([[0.3, -0.4]], dtype=torch.float64)
    lines = Softmax(0).relaxation((2,), Interval(point - 1e-5, point + 1e-5)).lines()
    bound = lines.pulled(torch.tensor([[[1.0, 0.0]]], dtype=torch.float64))
    share = float(torch.sigmoid(point[0, 0] - point[0, 1]))
    slope = share * (1 - share)
    assert bound.rows is not None
    assert bound.rows.flatten().tolist() == pytest.approx([slope, -slope], rel=1e-4)
    value = bound.constant + (bound.rows * point[:, None]).sum()
    assert float(value) == pytest.approx(share, abs=1e-9)


def normed(operator: str, offset: float, dtype: type[np.floating] = np.float32) -> Network:
    """A norm of values whose mean is large against what they deviate by."""
    rng = np.random.default_rng(1)
    sketch = Sketch([1, 3], dtype=dtype, opset=23)
    hidden = sketch.apply("MatMul", "x", sketch.constant(rng.normal(size=(3, 12))))
    shifted = sketch.apply("Add", hidden, sketch.constant(np.array(offset)))
    match operator:
        case "LayerNormalization":
            norm = sketch.apply(operator, shifted, sketch.constant(np.ones(12)), epsilon=1e-2)
        case "InstanceNormalization":
            maps = sketch.apply("Reshape", shifted, sketch.constant(np.array([1, 2, 6])))
            ones, zeros = sketch.constant(np.ones(2)), sketch.constant(np.zeros(2))
            maps = sketch.apply(operator, maps, ones, zeros, epsilon=1e-2)
            norm = sketch.apply("Reshape", maps, sketch.constant(np.array([1, 12])))
        case _:
            last = sketch.constant(np.array([-1]))
            mean = sketch.apply("ReduceMean", shifted, last)
            apart = sketch.apply("Sub", shifted, mean)
            square = sketch.apply("Pow", apart, sketch.constant(np.array(2.0)))
            variance = sketch.apply("ReduceMean", square, last)
            epsilon = sketch.constant(np.array(1e-2))
            root = sketch.apply("Sqrt", sketch.apply("Add", variance, epsilon))
            norm = sketch.apply("Div", apart, root)
    weight = sketch.constant(rng.normal(size=(12, 2)))
    return sketch.network(sketch.apply("MatMul", norm, weight), domain=(-2, 2))


@pytest.mark.parametrize("operator", ["LayerNormalization", "InstanceNormalization", "in pieces"])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_no_execution_of_a_norm_leaves_its_bounds(operator: str, offset: float) -> None:
    """ONNX Runtime subtracts the square of the mean from the mean of squares, also where the file
    does not say so; at a point, bounds are what that may round, and not much more."""
    network = normed(operator, offset)
    executions = list(every_execution(network))
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.uniform(-1, 1, 3).astype(np.float32)
        bounds = crown_bounds(network, [Box(x.astype(np.float64), x.astype(np.float64))])
        low, high = bounds.low[0].numpy(), bounds.high[0].numpy()
        assert np.all(high - low < (1e-3 if offset == 0 else 0.3))
        for _, values in executions:
            outputs = values(x)[network.graph.output].ravel()
            assert np.all((low <= outputs) & (outputs <= high))
