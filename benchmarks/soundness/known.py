"""Networks that broke a proof on the runtime, each with random variants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.networks import Network
from radii.problem import Instance, OneToOne, Property
from radii.testing import Sketch, instance_at

Float64 = npt.NDArray[np.float64]

BALL_CENTRE, BALL_RADIUS = 0.5, 0.5
"""Balls around the middle of the domain [0, 1] reach all of it."""
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
QUANTUM = 2.0**-8
"""Weights are multiples of it, so that three times a weight is exact."""


@dataclass(frozen=True, slots=True, eq=False)
class FragileCase:
    """An instance whose property holds in real arithmetic further out than on the runtime.

    `eps` is where the trouble is: a ball of this radius holds it, or may.
    """

    family: str
    seed: int
    network: Network
    instance: Instance
    eps: float


def fragile_case(
    family: str,
    seed: int,
    network: Network,
    *,
    eps: float = BALL_RADIUS,
    label: int = 0,
    property: Property | None = None,  # noqa: A002
) -> FragileCase:
    """The case whose ball is centred in the middle of the domain."""
    low, high = network.domain.box(network.input_shape)
    middle = np.asarray(low + BALL_CENTRE * (high - low))
    instance = instance_at(network, middle, property=property, label=label, index=seed)
    return FragileCase(family, seed, network, instance, eps)


def overflowing_unit(seed: int) -> FragileCase:
    """A unit overflows near one corner and is then multiplied by 0: the outputs are NaN there."""
    rng = np.random.default_rng([seed, 11])
    inputs = int(rng.choice([2, 14]))
    shares = rng.uniform(0.6, 1.0, inputs)
    shares /= shares.sum()
    corner = rng.choice([-1.0, 1.0], inputs)
    if shares[corner < 0].sum() > 0.5:  # the bias below must itself be a float32
        corner = -corner
    # The largest sum, at the corner, is a little above the largest float32.
    weight = corner * shares * LARGEST_FLOAT32 * rng.uniform(1.01, 1.3)
    units = int(rng.integers(1, 4))
    place = int(rng.integers(units))
    columns = rng.normal(0, 0.1, (inputs, units))
    biases = rng.normal(0, 0.1, units)
    columns[:, place], biases[place] = weight, -weight[corner < 0].sum()
    sketch = Sketch(["n", inputs])
    hidden = sketch.apply("Gemm", "x", sketch.constant(columns), sketch.constant(biases))
    hidden = sketch.apply("Relu", hidden)
    outward = rng.normal(0, 0.01, (units, 2))
    outward[place] = 0.0
    margin = np.array([float(rng.uniform(0.5, 2.0)), 0.0])
    logits = sketch.apply("Gemm", hidden, sketch.constant(outward), sketch.constant(margin))
    return fragile_case("overflowing-unit", seed, sketch.network(logits))


def cancelled_logits(seed: int) -> FragileCase:
    """Two units with large biases cancel exactly; Softmax hides their rounding where it is near 1.

    A third unit holds the label up everywhere but near one corner.
    """
    rng = np.random.default_rng([seed, 12])
    inputs = int(rng.integers(16, 25))
    slopes = _random_quanta(rng, inputs)
    bias = float(rng.integers(2**9, 2**10)) * 2.0 ** int(rng.integers(5, 9))
    corner, threshold = _near_corner(rng, inputs)
    columns = np.column_stack([slopes, 3 * slopes, -corner])
    biases = np.array([bias, 3 * bias, threshold])
    sketch = Sketch(["n", inputs])
    first = sketch.apply("Gemm", "x", sketch.constant(columns), sketch.constant(biases))
    # They cancel inside a second layer, whose values, 1 and the third unit, show nothing of it.
    inner = sketch.constant([[3.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    hidden = sketch.apply("Relu", first)
    hidden = sketch.apply("Gemm", hidden, inner, sketch.constant([1.0, 0.0]))
    hidden = sketch.apply("Relu", hidden)
    guard = 2.0 ** int(rng.integers(6, 9))
    margin = float(rng.uniform(0.9, 1.6)) * 2.0**-24 * 3 * bias
    outward, offset = sketch.constant([[1.0, 0.0], [guard, 0.0]]), sketch.constant([margin - 1, 0])
    logits = sketch.apply("Gemm", hidden, outward, offset)
    network = sketch.network(sketch.apply("Softmax", logits, axis=1))
    return fragile_case("cancelled-logits", seed, network)


def distant_corner(seed: int) -> FragileCase:
    """Two units that live near one corner only, and cancel there with huge weights."""
    rng = np.random.default_rng([seed, 13])
    inputs = int(rng.integers(16, 25))
    gain = 2.0 ** int(rng.choice([20, 21, 22]))
    slopes = np.abs(_random_quanta(rng, inputs)) + QUANTUM
    corner = rng.choice([-1.0, 1.0], inputs)
    weight = corner * slopes
    # 0.9 of the way from the opposite corner, rounded to what float32 holds three times.
    threshold = weight[corner < 0].sum() + 0.9 * slopes.sum()
    threshold = np.round(threshold / QUANTUM) * QUANTUM
    columns = np.column_stack([weight, 3 * weight])
    biases = np.array([-threshold, -3 * threshold])
    sketch = Sketch(["n", inputs])
    hidden = sketch.apply("Gemm", "x", sketch.constant(columns), sketch.constant(biases))
    hidden = sketch.apply("Relu", hidden)
    outward = np.array([[3 * gain, 0.0], [-gain, 0.0]])
    margin = sketch.constant([float(rng.uniform(0.2, 1.0)), 0.0])
    logits = sketch.apply("Gemm", hidden, sketch.constant(outward), margin)
    return fragile_case("distant-corner", seed, sketch.network(logits))


def underflowing_softmax(seed: int) -> FragileCase:
    """Near one corner a third class rises so far that label and target both underflow to 0."""
    rng = np.random.default_rng([seed, 14])
    inputs = int(rng.integers(10, 25))
    corner, threshold = _near_corner(rng, inputs)
    sketch = Sketch(["n", inputs])
    column, bias = sketch.constant(corner[:, None]), sketch.constant([-threshold])
    hidden = sketch.apply("Relu", sketch.apply("Gemm", "x", column, bias))
    lift = float(rng.uniform(300, 2000))
    margin = sketch.constant([float(rng.uniform(0.5, 3.0)), 0.0, -5.0])
    outward = sketch.constant([[0.0, 0.0, lift]])
    logits = sketch.apply("Gemm", hidden, outward, margin)
    network = sketch.network(sketch.apply("Softmax", logits, axis=1))
    return fragile_case("underflowing-softmax", seed, network, property=OneToOne(1))


def rescaled_product(seed: int) -> FragileCase:
    """A product whose factors are scaled by a power of two and back, less the product as it is.

    ONNX Runtime turns (x * s) @ W into s * (x @ W), where products underflow, or a sum overflows,
    that do neither in the file. So the margin is far above the rounding of the file's operators.
    """
    rng = np.random.default_rng([seed, 15])
    inputs = int(rng.integers(8, 25))
    slopes = np.abs(_random_quanta(rng, inputs)) / 2 + 0.5
    sketch = Sketch(["n", inputs])
    inner, outer = 100, -138
    if rng.random() < 0.5:  # the largest sum overflows, that of the centre does not
        outer = math.floor(128 - math.log2(slopes.sum())) + 1
        inner = -outer
    rescaled = sketch.apply("Mul", "x", sketch.constant(np.array(2.0**inner)))
    rescaled = sketch.apply("MatMul", rescaled, sketch.constant(slopes[:, None] * 2.0**outer))
    rescaled = sketch.apply("Relu", rescaled)
    rescaled = sketch.apply("Mul", rescaled, sketch.constant(np.array(2.0 ** -(inner + outer))))
    plain = sketch.apply("Relu", sketch.apply("MatMul", "x", sketch.constant(slopes[:, None])))
    difference = sketch.apply("Sub", plain, rescaled)
    margin = float(rng.uniform(0.2, 0.6)) * 2.0**-14 * slopes.sum()
    weight, offset = sketch.constant([[1.0, 0.0]]), sketch.constant([margin, 0.0])
    network = sketch.network(sketch.apply("Gemm", difference, weight, offset))
    return fragile_case("rescaled-product", seed, network)


KNOWN_CASES: dict[str, Callable[[int], FragileCase]] = {
    "overflowing-unit": overflowing_unit,
    "cancelled-logits": cancelled_logits,
    "distant-corner": distant_corner,
    "underflowing-softmax": underflowing_softmax,
    "rescaled-product": rescaled_product,
}


def _random_quanta(rng: np.random.Generator, count: int) -> Float64:
    return np.asarray(rng.integers(-(2**9), 2**9 + 1, count) * QUANTUM, np.float64)


def _near_corner(rng: np.random.Generator, inputs: int) -> tuple[Float64, float]:
    """A direction of signs, and its value just inside the corner it points to."""
    corner = rng.choice([-1.0, 1.0], inputs)
    return corner, float((corner > 0).sum() - rng.choice([0.5, 1.0, 2.0]))
