"""Random networks whose rounding is larger than their margin.

Each computes something twice, in two ways that are equal in real arithmetic (see `_layers`), and
adds the difference, which is exactly 0, to the margin of the label. The margin is then chosen near
the size of the rounding that the runtime shows. The real network is robust wherever it should be;
the one that runs is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper

from benchmarks.soundness.known import KNOWN_CASES, FragileCase, fragile_case
from benchmarks.soundness.layers import (
    Activation,
    Flattening,
    FragileAffine,
    FragileBatchNorm,
    FragileConvolution,
    FragileLayer,
    FragileResidual,
    Pool,
    Shift,
    permuted,
    scaled,
)
from benchmarks.soundness.search import session_of
from radii.problem import OneToOne
from radii.testing import Sketch

Float64 = npt.NDArray[np.float64]
Random = np.random.Generator

DIGITS = 9
"""Binary digits of a weight, so that multiples of it by small numbers are exact."""
PROBES = 64
"""Inputs at which the rounding is looked at."""
RIM = 1.0
"""How far inside a corner something happens, in the sum of all inputs, as a share of the domain."""
LIFT = 1000.0
"""Of logits, from the plane inside the corner to the corner."""
LARGEST_GAIN = 2.0**120
MARGIN_SHARES = (0.02, 0.3, 1.0, 2.0, 4.0)
"""The margin as a multiple of the rounding that was seen."""


@dataclass(frozen=True, slots=True, eq=False)
class _Body:
    """Layers that are computed twice, behind a front that is computed once."""

    shape: tuple[int, ...]
    layers: list[FragileLayer]
    width: int
    front: tuple[float, float] | None = None
    domain: tuple[float, float] = (0.0, 1.0)
    has_doubles: bool = False
    """Whether the runtime has float64 kernels for all of it."""

    @property
    def inputs(self) -> int:
        """Channels of an image, features of a flat input."""
        return self.shape[0]

    @property
    def first(self) -> FragileAffine | FragileConvolution:
        """What sees the input."""
        layer = (
            self.layers[0].main if isinstance(self.layers[0], FragileResidual) else self.layers[0]
        )
        assert isinstance(layer, FragileAffine | FragileConvolution)
        return layer

    @property
    def is_homogeneous(self) -> bool:
        activations = [layer for layer in self.layers if isinstance(layer, Activation)]
        return all(activation.is_homogeneous for activation in activations)


def generated(family: str, seed: int) -> FragileCase:
    """The network of this family and seed. The margin is that of class 0."""
    for attempt in count():
        rng = np.random.default_rng([seed, attempt, *family.encode()])
        with np.errstate(all="ignore"):
            case = _attempted(family, seed, rng)
        if case is not None and case.instance.holds:
            return case
    raise AssertionError("count() ends")


def _attempted(family: str, seed: int, rng: Random) -> FragileCase | None:
    """None where a weight does not fit into the number type."""
    plan = _plan(rng, FRAGILE_FAMILIES[family](rng))
    gain, rounding = 2.0**20, 2.0**-20
    seen = _rounding(plan, rng)
    if seen > 0:
        rounding = seen
        gain = min(LARGEST_GAIN, 2.0 ** round(math.log2(10 ** rng.uniform(-2, 1) / seen)))
    margin = float(rng.choice(MARGIN_SHARES)) * gain * rounding
    sketch, output = _built(replace(plan, gain=gain, margin=margin))
    if not all(np.isfinite(numpy_helper.to_array(weight)).all() for weight in sketch.weights):
        return None
    low, high = plan.body.domain
    network = sketch.network(output, domain=plan.body.domain)
    asked = OneToOne(1) if plan.rises_third else None
    return fragile_case(family, seed, network, eps=(high - low) / 2, property=asked)


@dataclass(frozen=True, slots=True, eq=False)
class _FragilePlan:
    """Everything about a network but the size of its margin.

    `outward` and `twins` are the weights of both results in the outputs; `drift` lets the second
    class come closer along a direction of inputs, in units of the margin. `corner` is a direction
    of signs (or zeros): near the corner it points to, a third class rises where the network ends in
    a Softmax over three; elsewhere the label does, and hides the rounding. With `is_buried` the
    results cancel in front of one more layer of ReLUs.
    """

    body: _Body
    twin: list[FragileLayer]
    outward: Float64
    twins: Float64
    joined: bool
    head: str
    drift: Float64
    corner: Float64
    is_buried: bool
    dtype: type[np.floating]
    amplifier: float
    gain: float = 1.0
    margin: float = 0.0

    @property
    def rises_third(self) -> bool:
        """Whether a third class rises, past which the first two are compared."""
        return bool(self.corner.any() and self.head == "Softmax" and self.outward.shape[1] == 3)


def _plan(rng: Random, body: _Body) -> _FragilePlan:
    exponent = _exponent(rng, body) if body.is_homogeneous else 0
    if exponent:
        body = replace(body, layers=scaled(body.layers, 2.0**exponent))
    classes = int(rng.integers(2, 4))
    outward = np.zeros((body.width, classes))
    outward[:, 0] = _random_weights(rng, body.width)
    if rng.random() < 0.5:
        outward[:, 1] = _random_weights(rng, body.width)
    if body.is_homogeneous and rng.random() < 0.6:
        factor = float(rng.choice([3.0, 5.0, 0.75]))
        twin, twins = scaled(body.layers, factor), -outward
        outward = factor * outward
    else:
        twin, order = permuted(body.layers, body.inputs, rng)
        twins = -outward[order]
    # A result that overflows or underflows is brought back in two steps, as far as that goes.
    back = 2.0 ** min(-exponent, 100)
    rest = 2.0 ** max(0, -exponent - 100)
    size = math.prod(body.shape)
    drift = np.zeros(size)
    if rng.random() < 0.4:
        drift = rng.normal(size=size)
        drift *= rng.uniform(0.5, 2.0) / np.abs(drift).sum()
    return _FragilePlan(
        body=body,
        twin=twin,
        outward=outward * back,
        twins=twins * back,
        joined=bool(rng.random() < 0.5),
        head=str(rng.choice(["", "Softmax", "LogSoftmax"], p=[0.8, 0.1, 0.1])),
        drift=drift,
        is_buried=bool(rng.random() < 0.4),
        corner=rng.choice([-1.0, 1.0], size) * (rng.random() < 0.3),
        dtype=np.float64 if body.has_doubles and rng.random() < 0.15 else np.float32,
        amplifier=rest,
    )


def _exponent(rng: Random, body: _Body) -> int:
    """A power of two that takes results to the end of float32, on either side; mostly 0."""
    choice = rng.random()
    if choice < 0.7:
        return 0
    if choice < 0.85:
        return -int(rng.integers(110, 140))
    first = body.first
    reach = np.abs(first.weight).sum(axis=0).max() + np.abs(first.bias).max()
    return int(math.log2(float(np.finfo(np.float32).max) / reach)) + int(rng.integers(-2, 3))


def _built(plan: _FragilePlan) -> tuple[Sketch, str]:
    sketch = Sketch(["n", *plan.body.shape], dtype=plan.dtype)
    value = _fronted(sketch, plan.body)
    both = []
    for layers in (plan.body.layers, plan.twin):
        result = value
        for layer in layers:
            result = layer.apply(sketch, result)
        both.append(result)
    outputs = _combined(sketch, plan, both)
    if plan.head:
        outputs = sketch.apply(plan.head, outputs, axis=1)
    return sketch, outputs


def _fronted(sketch: Sketch, body: _Body) -> str:
    if body.front is None:
        return "x"
    mean, std = (sketch.constant(np.array(value)) for value in body.front)
    return sketch.apply("Div", sketch.apply("Sub", "x", mean), std)


def _combined(sketch: Sketch, plan: _FragilePlan, both: list[str]) -> str:
    """The outputs: the difference of both results, times the gain, plus the margin."""
    gain = plan.gain * plan.amplifier
    inner = plan.gain if gain <= LARGEST_GAIN else 1.0
    outward, twins = inner * plan.outward, inner * plan.twins
    if plan.joined:
        weight = sketch.constant(np.vstack([outward, twins]))
        value = sketch.apply("MatMul", sketch.apply("Concat", *both, axis=1), weight)
    else:
        parts = zip(both, (outward, twins), strict=True)
        value = sketch.apply(
            "Add", *(sketch.apply("MatMul", part, sketch.constant(w)) for part, w in parts)
        )
    if gain != inner:
        value = sketch.apply("Mul", value, sketch.constant(np.array(gain / inner)))
    classes = plan.outward.shape[1]
    margins = np.zeros(classes)
    margins[0] = plan.margin
    margins[2:] = -plan.margin
    if plan.is_buried and plan.margin:
        above = 2.0 ** math.ceil(math.log2(16 * plan.margin))
        value = sketch.apply("Add", value, sketch.constant(np.full(classes, above)))
        value = sketch.apply("Relu", value)
        margins -= above
    value = sketch.apply("Add", value, sketch.constant(margins))
    if not plan.margin:  # where the rounding is measured, by itself
        return value
    flat = sketch.apply("Flatten", "x") if len(plan.body.shape) > 1 else "x"
    if plan.corner.any():
        value = sketch.apply("Add", value, _raising(sketch, plan, flat))
    return sketch.apply("Add", value, _drifting(sketch, plan, flat)) if plan.drift.any() else value


def _drifting(sketch: Sketch, plan: _FragilePlan, flat: str) -> str:
    low, high = plan.body.domain
    weight = np.zeros((plan.drift.size, plan.outward.shape[1]))
    weight[:, 1] = plan.drift * plan.margin * 2 / (high - low)
    bias = -weight.sum(axis=0) * (low + high) / 2
    return sketch.apply("Gemm", flat, sketch.constant(weight), sketch.constant(bias))


def _raising(sketch: Sketch, plan: _FragilePlan, flat: str) -> str:
    """One unit that is 0 on one side of a plane just inside the corner."""
    low, high = plan.body.domain
    classes = plan.outward.shape[1]
    lifts_third = plan.rises_third
    most = float(np.where(plan.corner > 0, high, -low).sum())
    inside = most - RIM * (high - low)
    sign = 1.0 if lifts_third else -1.0
    column = sketch.constant(sign * plan.corner[:, None])
    unit = sketch.apply("Gemm", flat, column, sketch.constant(np.array([-sign * inside])))
    weight = np.zeros((1, classes))
    weight[0, 2 if lifts_third else 0] = LIFT / (high - low)
    return sketch.apply("MatMul", sketch.apply("Relu", unit), sketch.constant(weight))


def _rounding(plan: _FragilePlan, rng: Random) -> float:
    """The largest difference between both results, which are equal, at some inputs."""
    sketch, output = _built(replace(plan, head=""))
    session = session_of(sketch.model(output).SerializeToString())
    low, high = plan.body.domain
    size = math.prod(plan.body.shape)
    places = rng.random((PROBES, size))
    first = plan.body.first
    if isinstance(first, FragileAffine) and len(first.weight) == size:
        column = first.weight[:, rng.integers(first.weight.shape[1], size=PROBES // 2)].T
        ahead = (column > 0) ^ (rng.random((PROBES // 2, 1)) < 0.5)
        places[: PROBES // 2] = np.abs(~ahead - places[: PROBES // 2] * 2.0 ** -rng.integers(2, 9))
    points = (low + places * (high - low)).reshape(PROBES, *plan.body.shape)
    with np.errstate(all="ignore"):
        outputs = session.run(None, {"x": points.astype(plan.dtype)})[0]
        differences = np.abs(outputs[:, 0] - outputs[:, 1]).astype(np.float64)
    finite = differences[np.isfinite(differences)]
    return float(finite.max(initial=0.0))


def _random_weights(rng: Random, *shape: int) -> Float64:
    return np.asarray(rng.integers(-(2**DIGITS), 2**DIGITS + 1, shape) * 2.0**-DIGITS, np.float64)


def _affine(rng: Random, inputs: int, units: int, *, is_first: bool = False) -> FragileAffine:
    """Weights of few digits, with biases that are small, huge, or let units live at a corner."""
    weight = _random_weights(rng, inputs, units)
    bias = _random_weights(rng, units)
    choice = rng.random()
    if choice < 0.25:
        bias = bias * 2.0 ** rng.integers(4, 16)
    elif choice < 0.75 and is_first:
        least, most = np.minimum(weight, 0).sum(axis=0), np.maximum(weight, 0).sum(axis=0)
        share = rng.choice([0.5, 0.8, 0.9, 0.97], units)
        bias = -np.round((least + share * (most - least)) * 2**DIGITS) * 2.0**-DIGITS
    form = str(rng.choice(["gemm", "transposed", "matmul", "alpha", "scaled"]))
    gain = 2.0 ** int(rng.choice([-126, -20, -3, 1, 20, 126], p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.1]))
    return FragileAffine(weight, bias, form, gain)


def _dense_body(rng: Random, activation: Callable[[], Activation], depth: int) -> _Body:
    inputs = int(rng.integers(2, 41))
    layers: list[FragileLayer] = []
    width = inputs
    for place in range(depth):
        units = int(rng.integers(1, 7 - depth))
        layers += [_affine(rng, width, units, is_first=place == 0), activation()]
        width = units
    return _Body((inputs,), layers, width, has_doubles=layers[1].operator == "Relu")  # type: ignore[attr-defined]


def _relu() -> Activation:
    return Activation("Relu")


def _one_layer(rng: Random) -> _Body:
    return _dense_body(rng, _relu, 1)


def _deep(rng: Random) -> _Body:
    return _dense_body(rng, _relu, int(rng.integers(2, 5)))


def _leaky(rng: Random) -> _Body:
    slope = 2.0 ** -int(rng.integers(1, 8))
    return _dense_body(rng, lambda: Activation("LeakyRelu", slope=slope), int(rng.integers(1, 3)))


def _clipped(rng: Random) -> _Body:
    low, high = sorted(_random_weights(rng, 2) * 2.0 ** rng.integers(0, 12))
    return _dense_body(rng, lambda: Activation("Clip", low=low, high=high), int(rng.integers(1, 3)))


def _absorbing(rng: Random) -> _Body:
    """Large numbers are added and taken away between the layers."""
    body = _dense_body(rng, _relu, int(rng.integers(1, 3)))
    amount = 2.0 ** int(rng.integers(4, 20))
    layers: list[FragileLayer] = []
    for layer in body.layers:
        layers += [layer, Shift(amount)] if rng.random() < 0.6 else [layer]
    return replace(body, layers=layers)


def _residual_body(rng: Random) -> _Body:
    inputs, units = int(rng.integers(2, 31)), int(rng.integers(1, 5))
    first = FragileResidual(
        _affine(rng, inputs, units, is_first=True), _relu(), _affine(rng, inputs, units)
    )
    layers: list[FragileLayer] = [first]
    if rng.random() < 0.5:
        layers.append(
            FragileResidual(_affine(rng, units, units), _relu(), _affine(rng, units, units))
        )
    return _Body((inputs,), layers, units, has_doubles=True)


def _normalised(rng: Random) -> _Body:
    """(x - mean) / std in front, with bytes or with numbers between 0 and 1 as inputs."""
    body = _dense_body(rng, _relu, int(rng.integers(1, 3)))
    mean, std, domain = rng.uniform(-1e3, 1e3), 10.0 ** rng.uniform(-4, 1), (0.0, 1.0)
    if rng.random() < 0.5:
        mean, std, domain = rng.uniform(100, 150), rng.uniform(0.5, 80), (0.0, 255.0)
    return replace(body, front=(float(mean), float(std)), domain=domain)


def _normalising_body(rng: Random) -> _Body:
    """Batch normalisation behind each affine map: a mean far away, a variance close to 0."""
    inputs = int(rng.integers(2, 31))
    layers: list[FragileLayer] = []
    width = inputs
    for place in range(int(rng.integers(1, 3))):
        units = int(rng.integers(1, 5))
        affine = _affine(rng, width, units, is_first=place == 0)
        layers += [affine, _fragile_batch_norm(rng, affine.bias), _relu()]
        width = units
    return _Body((inputs,), layers, width)


def _fragile_batch_norm(rng: Random, centre: Float64) -> FragileBatchNorm:
    """Mean and shift either cancel what is in front, or each other."""
    channels = len(centre)
    scale = _random_weights(rng, channels) + 1
    shift = _random_weights(rng, channels)
    mean = centre + _random_weights(rng, channels)
    variance = 2.0 ** rng.uniform(-40, 4, channels)
    epsilon = 10.0 ** float(rng.uniform(-12, -3))
    if rng.random() < 0.4:
        mean = _random_weights(rng, channels) * 2.0 ** rng.integers(0, 16)
        factor = scale / np.sqrt(variance + epsilon)
        shift = (mean * factor).astype(np.float32).astype(np.float64)
    return FragileBatchNorm(scale, shift, mean, variance, epsilon)


def _convolutional_body(rng: Random, *, pool: str = "", norm: bool = False) -> _Body:
    colours, rows = int(rng.integers(1, 3)), int(rng.integers(4, 6))
    channels, kernel = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    pad, stride = int(rng.integers(0, 2)), 2
    weight = _random_weights(rng, channels, colours, kernel, kernel)
    bias = _random_weights(rng, channels)
    if rng.random() < 0.5:
        bias = bias * 2.0 ** rng.integers(4, 16)
    layers: list[FragileLayer] = [FragileConvolution(weight, bias, pad, stride)]
    if norm:
        layers.append(_fragile_batch_norm(rng, bias))
    layers.append(_relu())
    side = (rows + 2 * pad - kernel) // stride + 1
    if pool and side >= 2:
        layers.append(Pool(pool, 2, 1))
        side -= 1
    layers.append(Flattening(side * side))
    shape = (colours, rows, rows)
    return _Body(shape, layers, channels * side * side)


def _smooth(rng: Random, operator: str) -> _Body:
    inputs, units = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    weight, bias = _random_weights(rng, inputs, units), _random_weights(rng, units)
    if rng.random() < 0.5:
        weight, bias = 4 * weight, bias + rng.choice([-12.0, -5.0, 5.0, 12.0])
    layers: list[FragileLayer] = [FragileAffine(weight, bias), Activation(operator)]
    return _Body((inputs,), layers, units)


FRAGILE_FAMILIES: dict[str, Callable[[Random], _Body]] = {
    "dense": _one_layer,
    "deep": _deep,
    "leaky": _leaky,
    "clipped": _clipped,
    "absorbing": _absorbing,
    "residual": _residual_body,
    "normalised": _normalised,
    "batch-norm": _normalising_body,
    "convolutional": _convolutional_body,
    "average-pool": lambda rng: _convolutional_body(rng, pool="AveragePool"),
    "max-pool": lambda rng: _convolutional_body(rng, pool="MaxPool"),
    "convolution-norm": lambda rng: _convolutional_body(rng, norm=True),
    "tanh": lambda rng: _smooth(rng, "Tanh"),
    "sigmoid": lambda rng: _smooth(rng, "Sigmoid"),
}
"""What is computed twice, by the name of the family."""


# Networks made to be fragile in floating point, and a search for inputs that break them.
#
# For tests of proofs: no proof may cover an input at which the runtime breaks the property.


def fragile(family: str, seed: int) -> FragileCase:
    """The case of a family, be it one of `KNOWN_CASES` or of `FRAGILE_FAMILIES`."""
    return KNOWN_CASES[family](seed) if family in KNOWN_CASES else generated(family, seed)
