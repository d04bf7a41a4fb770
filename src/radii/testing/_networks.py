"""Small networks for tests of attacks and verifiers: random ones of each kind, and linear ones.

Everything is made from a seed alone. A linear classifier knows its radius in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from radii.networks import Network
from radii.problem import Instance, Norm, OneToAny, Property
from radii.testing._graphs import Sketch

Float64 = npt.NDArray[np.float64]


class NetworkFamily(StrEnum):
    """The kinds of random networks."""

    DENSE = "dense"
    CONVOLUTIONAL = "convolutional"
    POOLING = "pooling"
    RESIDUAL = "residual"
    LEAKY = "leaky"
    PRELU = "prelu"
    CLIPPED = "clipped"


def random_network(
    family: NetworkFamily,
    seed: int,
    *,
    units: int = 40,
    inputs: int | None = None,
    outputs: int = 3,
    domain: tuple[float, float] = (0.0, 1.0),
    dtype: npt.DTypeLike = np.float32,
) -> Network:
    """A random network with at most `units` hidden units in one to three hidden layers.

    `inputs` counts the features of a flat input; it does not apply to convolutions, whose input is
    a small image. `seed` decides depth, widths and weights. Outputs are centred over the domain,
    so that most inputs have another class nearby.
    """
    build = (
        _convolutional_network
        if family in (NetworkFamily.CONVOLUTIONAL, NetworkFamily.POOLING)
        else _flat
    )
    plan = _NetworkPlan(family, units, inputs, outputs, domain, dtype)
    key = [seed, *family.value.encode()]
    first = build(np.random.default_rng(key), plan, np.zeros(outputs))
    rng = np.random.default_rng([seed, 0])
    points = rng.uniform(*domain, size=(CENTRING_POINTS, *first.input_shape))
    centre = first.replay(points.astype(dtype)).mean(axis=0)
    return build(np.random.default_rng(key), plan, -centre.astype(np.float64))


CENTRING_POINTS = 65


@dataclass(frozen=True, slots=True)
class _NetworkPlan:
    family: NetworkFamily
    units: int
    inputs: int | None
    outputs: int
    domain: tuple[float, float]
    dtype: npt.DTypeLike


def _flat(rng: np.random.Generator, plan: _NetworkPlan, bias: Float64) -> Network:
    """Dense layers, with the activation of the family between them."""
    size = plan.inputs if plan.inputs is not None else int(rng.integers(2, 7))
    sketch = Sketch([1, size], dtype=plan.dtype)
    value, width = "x", size
    depth = int(rng.integers(1, 4))
    for _ in range(depth):
        wide = int(rng.integers(min(2, plan.units // depth), plan.units // depth + 1))
        layer = _activated(sketch, rng, plan.family, _dense(sketch, rng, value, width, wide), wide)
        if plan.family is NetworkFamily.RESIDUAL:
            layer = sketch.apply("Add", layer, _dense(sketch, rng, value, width, wide))
        value, width = layer, wide
    return _classifier(sketch, rng, plan, value, width, bias)


def _convolutional_network(rng: np.random.Generator, plan: _NetworkPlan, bias: Float64) -> Network:
    """A convolution with ReLU, then the largest or the mean of small windows, then dense."""
    side = 4 if plan.units >= 32 else 3
    channels = max(1, plan.units // (side * side))
    sketch = Sketch([1, 1, side, side], dtype=plan.dtype)
    weight = sketch.constant(rng.normal(0, 0.5, (channels, 1, 3, 3)))
    shift = sketch.constant(rng.normal(0, 0.3, channels))
    value = sketch.apply("Relu", sketch.apply("Conv", "x", weight, shift, pads=[1, 1, 1, 1]))
    operator = "MaxPool" if plan.family is NetworkFamily.POOLING else "AveragePool"
    value = sketch.apply(operator, value, kernel_shape=[2, 2], strides=[1, 1])
    width = channels * (side - 1) ** 2
    return _classifier(sketch, rng, plan, sketch.apply("Flatten", value), width, bias)


def _classifier(
    sketch: Sketch,
    rng: np.random.Generator,
    plan: _NetworkPlan,
    value: str,
    width: int,
    bias: Float64,
) -> Network:
    weight = sketch.constant(rng.normal(0, 1.5 / np.sqrt(width), (width, plan.outputs)))
    outputs = sketch.apply("Gemm", value, weight, sketch.constant(bias))
    return sketch.network(outputs, domain=plan.domain)


def _dense(sketch: Sketch, rng: np.random.Generator, value: str, width: int, size: int) -> str:
    weight = sketch.constant(rng.normal(0, 1.5 / np.sqrt(width), (width, size)))
    return sketch.apply("Gemm", value, weight, sketch.constant(rng.normal(0, 0.3, size)))


def _activated(
    sketch: Sketch, rng: np.random.Generator, family: NetworkFamily, value: str, width: int
) -> str:
    match family:
        case NetworkFamily.LEAKY:
            return sketch.apply("LeakyRelu", value, alpha=float(rng.uniform(0.01, 0.5)))
        case NetworkFamily.PRELU:
            slopes = sketch.constant(rng.uniform(-0.3, 1.5, width))
            return sketch.apply("PRelu", value, slopes)
        case NetworkFamily.CLIPPED:
            low, high = sketch.constant(np.array(-0.2)), sketch.constant(np.array(0.8))
            return sketch.apply("Clip", value, low, high)
        case _:
            return sketch.apply("Relu", value)


def instance_at(
    network: Network,
    x: npt.ArrayLike,
    *,
    norm: Norm = Norm.LINF,
    property: Property | None = None,  # noqa: A002
    label: int | None = None,
    index: int = 0,
) -> Instance:
    """The instance of an input; its label is what the network predicts unless one is given."""
    point = np.asarray(x, network.input_dtype).reshape(network.input_shape)
    outputs = network.replay(point[None])[0]
    return Instance(
        network=network.fingerprint,
        index=index,
        input=point,
        label=int(np.argmax(outputs)) if label is None else label,
        outputs=outputs,
        property=OneToAny() if property is None else property,
        norm=norm,
        domain=network.domain,
        outputs_are_probabilities=network.outputs_are_probabilities,
    )


def random_instance(network: Network, seed: int, *, norm: Norm = Norm.LINF) -> Instance:
    """An instance at a random input of the domain."""
    rng = np.random.default_rng([seed, 1])
    low, high = network.domain.box(network.input_shape)
    return instance_at(network, rng.uniform(low, high), norm=norm, index=seed)


@dataclass(frozen=True, slots=True, eq=False)
class LinearClassifier:
    """Outputs `weights @ x + bias`, on a domain so wide that no ball of interest is clipped."""

    weights: Float64
    bias: Float64
    network: Network

    @classmethod
    def random(
        cls, seed: int, *, inputs: int = 5, outputs: int = 4, dtype: npt.DTypeLike = np.float64
    ) -> LinearClassifier:
        """A random linear classifier, exact in `dtype`."""
        rng = np.random.default_rng([seed, 2])
        weights = rng.normal(size=(outputs, inputs)).astype(dtype)
        bias = rng.normal(size=outputs).astype(dtype)
        sketch = Sketch([1, inputs], dtype=dtype)
        value = sketch.apply("Gemm", "x", sketch.constant(weights.T), sketch.constant(bias))
        network = sketch.network(value, domain=(-1000.0, 1000.0))
        return cls(weights.astype(np.float64), bias.astype(np.float64), network)

    def radius(self, x: npt.ArrayLike, label: int, norm: Norm) -> float:
        """The distance from x to the nearest input where another class is at least as large."""
        outputs = self.weights @ np.asarray(x, np.float64).ravel() + self.bias
        dual = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}[norm]
        distances = [
            (outputs[label] - outputs[rival])
            / np.linalg.norm(self.weights[label] - self.weights[rival], dual)
            for rival in range(len(outputs))
            if rival != label
        ]
        return max(0.0, float(min(distances)))

    def become_radius(self, x: npt.ArrayLike, target: int, norm: Norm) -> float:
        """The distance from x to the nearest input where no class is above `target`; maybe inf."""
        point = np.asarray(x, np.float64).ravel()
        rows = np.delete(self.weights, target, 0) - self.weights[target]
        needed = -(rows @ point + np.delete(self.bias, target) - self.bias[target])
        return _least_length(rows, needed, norm)


def _least_length(rows: Float64, needed: Float64, norm: Norm) -> float:
    """The least length of a step d with rows @ d <= needed; inf without one."""
    count = rows.shape[1]
    if norm is Norm.L2:  # the nearest point lies on a face: all of them are tried
        faces = chain.from_iterable(combinations(range(len(rows)), k) for k in range(len(rows) + 1))
        steps = (np.linalg.pinv(rows[list(face)]) @ needed[list(face)] for face in faces)
        fitting = [d for d in steps if np.all(rows @ d <= needed + 1e-9)]
        return min((float(np.linalg.norm(d)) for d in fitting), default=np.inf)
    # d = forth - back, with as many bounds on its entries as the norm needs: one, or one each.
    limits = np.ones((count, 1)) if norm is Norm.LINF else np.eye(count)
    both = np.hstack([np.eye(count), np.eye(count), -limits])
    program = linprog(
        np.concatenate([np.zeros(2 * count), np.ones(limits.shape[1])]),
        np.vstack([np.hstack([rows, -rows, np.zeros((len(rows), limits.shape[1]))]), both]),
        np.concatenate([needed, np.zeros(count)]),
    )
    return float(program.fun) if program.success else np.inf
