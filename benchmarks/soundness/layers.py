"""Layers whose function can be written down twice: with other weights, the same in real arithmetic.

A stack of layers has two kinds of twins. A permuted one computes the same with its units in another
order, so that sums round otherwise. A scaled one computes three times as much, say, from weights
that are three times as large: exact in any number type, since weights here have few digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from radii.testing import Sketch

Float64 = npt.NDArray[np.float64]
UnitOrder = npt.NDArray[np.intp]


class FragileLayer(ABC):
    """One step of a stack: nodes of a sketch, and its twins."""

    @abstractmethod
    def apply(self, sketch: Sketch, value: str) -> str:
        """The name of the layer's result."""

    def scaled(self, factor: float, is_first: bool) -> FragileLayer:
        """Gives `factor` times as much when it is given that much more, or is the first."""
        return self

    def permuted(
        self, order: UnitOrder, rng: np.random.Generator
    ) -> tuple[FragileLayer, UnitOrder]:
        """With inputs (or channels) in the given order; and the order of what it then gives."""
        return self, order


@dataclass(frozen=True, slots=True, eq=False)
class FragileAffine(FragileLayer):
    """x @ weight + bias. `form` is how it is written; `gain` a power of two that cancels."""

    weight: Float64
    bias: Float64
    form: str = "gemm"
    gain: float = 1.0

    def apply(self, sketch: Sketch, value: str) -> str:
        bias = sketch.constant(self.bias)
        match self.form:
            case "transposed":
                weight = sketch.constant(self.weight.T)
                return sketch.apply("Gemm", value, weight, bias, transB=1)
            case "alpha":
                weight = sketch.constant(self.weight / self.gain)
                beta = sketch.constant(self.bias * self.gain)
                scales = {"alpha": self.gain, "beta": 1 / self.gain}
                return sketch.apply("Gemm", value, weight, beta, **scales)
            case "matmul":
                product = sketch.apply("MatMul", value, sketch.constant(self.weight))
                return sketch.apply("Add", product, bias)
            case "scaled":
                gain = sketch.constant(np.array(self.gain))
                weight = sketch.constant(self.weight / self.gain)
                product = sketch.apply("MatMul", sketch.apply("Mul", value, gain), weight)
                return sketch.apply("Add", product, bias)
        return sketch.apply("Gemm", value, sketch.constant(self.weight), bias)

    def scaled(self, factor: float, is_first: bool) -> FragileAffine:
        weight = factor * self.weight if is_first else self.weight
        return replace(self, weight=weight, bias=factor * self.bias)

    def permuted(
        self, order: UnitOrder, rng: np.random.Generator
    ) -> tuple[FragileAffine, UnitOrder]:
        after = rng.permutation(len(self.bias))
        return self.ordered(order, after), after

    def ordered(self, before: UnitOrder, after: UnitOrder) -> FragileAffine:
        return replace(self, weight=self.weight[before][:, after], bias=self.bias[after])


@dataclass(frozen=True, slots=True, eq=False)
class FragileConvolution(FragileLayer):
    """Of images, with weight (M, C, k, k) and bias (M,)."""

    weight: Float64
    bias: Float64
    pad: int
    stride: int

    def apply(self, sketch: Sketch, value: str) -> str:
        weight, bias = sketch.constant(self.weight), sketch.constant(self.bias)
        shape = {"pads": [self.pad] * 4, "strides": [self.stride] * 2}
        return sketch.apply("Conv", value, weight, bias, **shape)

    def scaled(self, factor: float, is_first: bool) -> FragileConvolution:
        weight = factor * self.weight if is_first else self.weight
        return replace(self, weight=weight, bias=factor * self.bias)

    def permuted(
        self, order: UnitOrder, rng: np.random.Generator
    ) -> tuple[FragileConvolution, UnitOrder]:
        after = rng.permutation(len(self.bias))
        weight = self.weight[after][:, order]
        return replace(self, weight=weight, bias=self.bias[after]), after


@dataclass(frozen=True, slots=True, eq=False)
class FragileBatchNorm(FragileLayer):
    """(x - mean) / sqrt(variance + epsilon) * scale + shift, one of each a channel."""

    scale: Float64
    shift: Float64
    mean: Float64
    variance: Float64
    epsilon: float

    def apply(self, sketch: Sketch, value: str) -> str:
        parts = (self.scale, self.shift, self.mean, self.variance)
        names = [sketch.constant(part) for part in parts]
        return sketch.apply("BatchNormalization", value, *names, epsilon=self.epsilon)

    def scaled(self, factor: float, is_first: bool) -> FragileBatchNorm:
        if is_first:
            return replace(self, scale=factor * self.scale, shift=factor * self.shift)
        return replace(self, mean=factor * self.mean, shift=factor * self.shift)

    def permuted(
        self, order: UnitOrder, rng: np.random.Generator
    ) -> tuple[FragileBatchNorm, UnitOrder]:
        parts = ("scale", "shift", "mean", "variance")
        return replace(self, **{part: getattr(self, part)[order] for part in parts}), order


@dataclass(frozen=True, slots=True)
class Pool(FragileLayer):
    """AveragePool or MaxPool over squares."""

    operator: str
    side: int
    stride: int

    def apply(self, sketch: Sketch, value: str) -> str:
        shape = {"kernel_shape": [self.side] * 2, "strides": [self.stride] * 2}
        return sketch.apply(self.operator, value, **shape)


@dataclass(frozen=True, slots=True)
class Shift(FragileLayer):
    """Adds a number and takes it away again: what is small beside it is lost."""

    amount: float

    def apply(self, sketch: Sketch, value: str) -> str:
        amount = sketch.constant(np.array(self.amount))
        return sketch.apply("Sub", sketch.apply("Add", value, amount), amount)

    def scaled(self, factor: float, is_first: bool) -> Shift:
        return Shift(factor * self.amount)


@dataclass(frozen=True, slots=True)
class Activation(FragileLayer):
    """A function of each entry. `low` and `high` are the limits of Clip, `slope` is LeakyRelu's."""

    operator: str
    slope: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def apply(self, sketch: Sketch, value: str) -> str:
        match self.operator:
            case "LeakyRelu":
                return sketch.apply("LeakyRelu", value, alpha=self.slope)
            case "Clip":
                limits = (sketch.constant(np.array(side)) for side in (self.low, self.high))
                return sketch.apply("Clip", value, *limits)
        return sketch.apply(self.operator, value)

    def scaled(self, factor: float, is_first: bool) -> Activation:
        return replace(self, low=factor * self.low, high=factor * self.high)

    @property
    def is_homogeneous(self) -> bool:
        """A multiple of the argument (and of limits) gives that multiple of the value."""
        return self.operator not in ("Tanh", "Sigmoid")


@dataclass(frozen=True, slots=True, eq=False)
class FragileResidual(FragileLayer):
    """activation(main(x)) + side(x)."""

    main: FragileAffine
    activation: Activation
    side: FragileAffine

    def apply(self, sketch: Sketch, value: str) -> str:
        main = self.activation.apply(sketch, self.main.apply(sketch, value))
        return sketch.apply("Add", main, self.side.apply(sketch, value))

    def scaled(self, factor: float, is_first: bool) -> FragileResidual:
        parts = (self.main, self.activation, self.side)
        return FragileResidual(*(part.scaled(factor, is_first) for part in parts))  # type: ignore[arg-type]

    def permuted(
        self, order: UnitOrder, rng: np.random.Generator
    ) -> tuple[FragileResidual, UnitOrder]:
        after = rng.permutation(len(self.main.bias))
        main, side = (part.ordered(order, after) for part in (self.main, self.side))
        return replace(self, main=main, side=side), after


@dataclass(frozen=True, slots=True)
class Flattening(FragileLayer):
    """From channels of `area` entries each to one axis."""

    area: int

    def apply(self, sketch: Sketch, value: str) -> str:
        return sketch.apply("Flatten", value)

    def permuted(self, order: UnitOrder, rng: np.random.Generator) -> tuple[Flattening, UnitOrder]:
        entries = order[:, None] * self.area + np.arange(self.area)
        return self, entries.ravel()


def scaled(layers: Sequence[FragileLayer], factor: float) -> list[FragileLayer]:
    """The stack that gives `factor` times as much."""
    weighted = next(i for i, layer in enumerate(layers) if not isinstance(layer, Pool | Flattening))
    return [layer.scaled(factor, place <= weighted) for place, layer in enumerate(layers)]


def permuted(
    layers: Sequence[FragileLayer], inputs: int, rng: np.random.Generator
) -> tuple[list[FragileLayer], UnitOrder]:
    """The stack with units in another order, and the order of what it gives."""
    order, found = np.arange(inputs), []
    for layer in layers:
        twin, order = layer.permuted(order, rng)
        found.append(twin)
    return found, order
