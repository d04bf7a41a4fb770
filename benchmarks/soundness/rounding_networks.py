"""Random networks of every kind that rounds in its own way, each made from a seed alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.soundness.families import FRAGILE_FAMILIES, fragile
from benchmarks.soundness.known import KNOWN_CASES
from radii.networks import Network
from radii.testing import NetworkFamily, Sketch, random_network

Random = np.random.Generator
Float64 = npt.NDArray[np.float64]


def _add_dense(sketch: Sketch, rng: Random, value: str, inputs: int, units: int) -> str:
    weight = sketch.constant(rng.normal(0, 1.5 / np.sqrt(inputs), (inputs, units)))
    return sketch.apply("Gemm", value, weight, sketch.constant(rng.normal(0, 0.3, units)))


def _bent(activation: str, **attributes: int) -> Callable[[Random], Network]:
    """Dense layers with a smooth function in between, of arguments small and large."""

    def made(rng: Random) -> Network:
        inputs, width = (int(rng.integers(2, 9)) for _ in range(2))
        sketch = Sketch([1, inputs])
        value, before = "x", inputs
        for _ in range(int(rng.integers(1, 4))):
            value = _add_dense(sketch, rng, value, before, width)
            factor = sketch.constant(np.array(10.0 ** rng.uniform(-2, 2)))
            value = sketch.apply(activation, sketch.apply("Mul", value, factor), **attributes)
            before = width
        return sketch.network(_add_dense(sketch, rng, value, width, 3))

    return made


def _headed(rng: Random) -> Network:
    sketch = Sketch([1, 6])
    value = sketch.apply("Relu", _add_dense(sketch, rng, "x", 6, 9))
    head = str(rng.choice(["Softmax", "LogSoftmax"]))
    return sketch.network(sketch.apply(head, _add_dense(sketch, rng, value, 9, 4), axis=1))


def _image(rng: Random, side: int = 5) -> tuple[Sketch, str, int]:
    """A convolution of a small image, and its channels; its result is as large as the image."""
    channels = int(rng.integers(1, 4))
    sketch = Sketch([1, 2, side, side])
    weight = sketch.constant(rng.normal(0, 0.5, (channels, 2, 3, 3)))
    bias = [sketch.constant(rng.normal(0, 0.3, channels))] if rng.random() < 0.7 else []
    return sketch, sketch.apply("Conv", "x", weight, *bias, pads=[1] * 4), channels


def _ended(sketch: Sketch, rng: Random, value: str, size: int) -> Network:
    flat = sketch.apply("Flatten", sketch.apply("Relu", value))
    return sketch.network(_add_dense(sketch, rng, flat, size, 3))


def _add_batch_norm(sketch: Sketch, rng: Random, value: str, channels: int) -> str:
    parts = (
        rng.normal(0, 10 ** rng.uniform(-2, 2), channels),
        rng.normal(0, 1, channels),
        rng.normal(0, 10 ** rng.uniform(-2, 2), channels),
        10 ** rng.uniform(-4, 2, channels),
    )
    names = [sketch.constant(part) for part in parts]
    return sketch.apply("BatchNormalization", value, *names, epsilon=1e-5)


def _normalising_network(rng: Random) -> Network:
    """Batch normalisation behind a convolution, into which a runtime folds it, and behind ReLU."""
    sketch, value, channels = _image(rng)
    value = _add_batch_norm(sketch, rng, value, channels)
    if rng.random() < 0.5:
        value = _add_batch_norm(sketch, rng, sketch.apply("Relu", value), channels)
    return _ended(sketch, rng, value, channels * 25)


def _residual_network(rng: Random) -> Network:
    sketch, value, channels = _image(rng)
    weight = sketch.constant(rng.normal(0, 0.5, (channels, channels, 3, 3)))
    inner = sketch.apply("Conv", sketch.apply("Relu", value), weight, pads=[1] * 4)
    if rng.random() < 0.5:
        inner = _add_batch_norm(sketch, rng, inner, channels)
    return _ended(sketch, rng, sketch.apply("Add", inner, value), channels * 25)


def _averaging(rng: Random) -> Network:
    """Means and sums over windows, channels and images, in front of and behind a ReLU."""
    sketch, value, channels = _image(rng)
    if rng.random() < 0.5:
        value = sketch.apply("Relu", value)
    match int(rng.integers(4)):
        case 0:
            pads = int(rng.integers(2))
            shape = {"kernel_shape": [2, 2], "pads": [pads] * 4, "count_include_pad": pads}
            value, size = sketch.apply("AveragePool", value, **shape), (4 + 2 * pads) ** 2
        case 1:
            value, size = sketch.apply("GlobalAveragePool", value), 1
        case 2:
            value, size = sketch.apply("ReduceMean", value, axes=[2], keepdims=1), 5
        case _:
            value = sketch.apply("ReduceSum", value, sketch.constant(np.array([3])), keepdims=1)
            size = 5
    return _ended(sketch, rng, value, channels * size)


def _preprocessing(rng: Random) -> Network:
    """(x - mean) / std in front of convolutions of bytes or of numbers up to 1."""
    sketch = Sketch([1, 2, 5, 5])
    largest = float(rng.choice([1.0, 255.0]))
    mean = sketch.constant(largest * rng.uniform(0.3, 0.6, (1, 2, 1, 1)))
    std = largest * 10.0 ** rng.uniform(-2, 0, (1, 2, 1, 1))
    value = sketch.apply("Sub", "x", mean)
    if rng.random() < 0.5:
        value = sketch.apply("Div", value, sketch.constant(std))
    else:
        value = sketch.apply("Mul", value, sketch.constant(1 / std))
    weight = sketch.constant(rng.normal(0, 0.5, (3, 2, 3, 3)))
    value = sketch.apply("Relu", sketch.apply("Conv", value, weight))
    value = sketch.apply("MaxPool", value, kernel_shape=[2, 2])
    flat = sketch.apply("Flatten", value)
    return sketch.network(_add_dense(sketch, rng, flat, 12, 3), domain=(0.0, largest))


def _scaling(rng: Random) -> Network:
    """Gemm with alpha and beta, and factors before and after a product, which a runtime moves."""
    inputs, width = (int(rng.integers(2, 30)) for _ in range(2))
    sketch = Sketch([1, inputs])
    value, before = "x", inputs
    for _ in range(2):
        first, second = (float(10 ** rng.uniform(-3, 3)) for _ in range(2))
        weight = rng.normal(0, 1, (before, width)) / first
        if rng.random() < 0.5:
            bias = sketch.constant(rng.normal(0, 1, width) / second)
            turned = int(rng.integers(2))
            weight = weight.T if turned else weight
            scales = {"alpha": first, "beta": second, "transB": turned}
            value = sketch.apply("Gemm", value, sketch.constant(weight), bias, **scales)
        else:
            value = sketch.apply("Mul", value, sketch.constant(np.array(first)))
            value = sketch.apply("MatMul", value, sketch.constant(weight))
            value = sketch.apply("Div", value, sketch.constant(np.array(second)))
        value, before = sketch.apply("Relu", value), width
    return sketch.network(_add_dense(sketch, rng, value, width, 3))


def _underflowing(rng: Random) -> Network:
    """Weights, factors and results at the lower end of float32, or so large that sums overflow."""
    sketch = Sketch([1, 5])
    size = float(rng.choice([1e-44, 1e-38, 1e-30, 1e30, 5e37, 2e38]))
    weight = sketch.constant(size * rng.uniform(-1, 1, (5, 4)))
    value = sketch.apply("MatMul", "x", weight)
    if rng.random() < 0.5:
        value = sketch.apply("Relu", value)
    value = sketch.apply("Mul", value, sketch.constant(np.array(min(1 / size, 1e38))))
    match int(rng.integers(3)):
        case 0:
            value = sketch.apply("Tanh", value)
        case 1:
            limits = (sketch.constant(np.array(side)) for side in (-1.0, 1.0))
            value = sketch.apply("Clip", value, *limits)
        case _:
            value = sketch.apply("ReduceMean", value, axes=[1], keepdims=1)
            value = sketch.apply("Concat", value, value, value, value, axis=1)
    return sketch.network(_add_dense(sketch, rng, value, 4, 3))


def _doubled(rng: Random) -> Network:
    """A file in float64."""
    family = [NetworkFamily.DENSE, NetworkFamily.RESIDUAL, NetworkFamily.CLIPPED][
        int(rng.integers(3))
    ]
    return random_network(family, int(rng.integers(2**31)), dtype=np.float64)


def _cast(rng: Random) -> Network:
    """A file in float64 that goes on in float32."""
    inputs = int(rng.integers(2, 9))
    sketch = Sketch([1, inputs], dtype=np.float64)
    value = "x"
    if rng.random() < 0.5:
        value = sketch.apply("Relu", _add_dense(sketch, rng, "x", inputs, inputs))
    value = sketch.apply("Cast", value, to=1)
    weight = sketch.constant(rng.normal(0, 1, (inputs, 6)), np.float32)
    value = sketch.apply("Tanh", sketch.apply("MatMul", value, weight))
    weight = sketch.constant(rng.normal(0, 1, (6, 3)), np.float32)
    return sketch.network(sketch.apply("Cast", sketch.apply("MatMul", value, weight), to=11))


_MADE: dict[str, Callable[[Random], Network]] = {
    "tanh": _bent("Tanh"),
    "sigmoid": _bent("Sigmoid"),
    "softmax": _bent("Softmax", axis=1),
    "softmax head": _headed,
    "batch normalisation": _normalising_network,
    "residual convolutions": _residual_network,
    "means and sums": _averaging,
    "preprocessing": _preprocessing,
    "moved factors": _scaling,
    "ends of float32": _underflowing,
    "float64": _doubled,
    "cast": _cast,
}


def _seeded(name: str) -> Callable[[int], Network]:
    return lambda seed: _MADE[name](np.random.default_rng([seed, *name.encode()]))


def _of_family(family: NetworkFamily) -> Callable[[int], Network]:
    return lambda seed: random_network(family, seed)


def _fragile(family: str) -> Callable[[int], Network]:
    return lambda seed: fragile(family, seed).network


ROUNDING_NETWORKS: dict[str, Callable[[int], Network]] = {
    **{family.value: _of_family(family) for family in NetworkFamily},
    **{name: _seeded(name) for name in _MADE},
    **{f"fragile {name}": _fragile(name) for name in (*KNOWN_CASES, *FRAGILE_FAMILIES)},
}
"""A network of each kind for each seed."""
