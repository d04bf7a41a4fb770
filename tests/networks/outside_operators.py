"""Operators as another package would bring them: ONNX operators that radii itself does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radii.networks import (
    Add,
    FixedLines,
    Hinges,
    Interval,
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Relu,
    Scale,
    SumOfProducts,
)


def absolute(call: OnnxNode) -> int:
    """|x| = max(x, 0) + max(-x, 0), of operators that radii has."""
    x = call.node(0)
    minus_x = call.emit(Scale(torch.tensor(-1.0, dtype=torch.float64)), x)
    return call.emit(Add(), call.emit(Relu(), x), call.emit(Relu(), minus_x))


class Abs(Operator):
    """|x| by its own pieces: slope -1, and 2 more above 0."""

    kind = OperatorKind.PIECEWISE_LINEAR

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        crosses = (x.low < 0) & (x.high > 0)
        least = torch.minimum(x.low.abs(), x.high.abs())
        return Interval(torch.where(crosses, 0.0, least), x.magnitude)

    def hinges(self, shape: tuple[int, ...], result: tuple[int, ...]) -> Hinges:
        count = int(np.prod(shape))
        zeros = np.zeros((1, count))
        return Hinges(np.arange(count), np.full(count, -1.0), zeros[0], zeros, zeros + 2.0)

    def value_error(self, *_: object) -> None:
        return None


class CumulativeSum(SumOfProducts):
    """CumSum along the last axis: affine, each entry a sum of at most as many as the axis has."""

    starts_sum = True

    @classmethod
    def translate(cls, call: OnnxNode) -> int:
        (axis,) = call.integers(1)
        if call.axis(axis, call.rank(0)) != call.rank(0) - 1:
            raise call.unsupported("along another axis than the last")
        return call.emit(cls(), call.node(0))

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return result.shape[-1]


class DepthToSpace(Operator):
    """Only moves entries, so that nothing more is to be said."""

    is_exact = True

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    @classmethod
    def translate(cls, call: OnnxNode) -> int:
        if call.text_attribute("mode", "DCR") != "CRD":
            raise call.unsupported("with mode DCR")
        return call.emit(cls(call.int_attribute("blocksize", 1)), call.node(0))

    def result_shape(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        batch, channels, height, width = shapes[0]
        return (batch, channels // self.block**2, height * self.block, width * self.block)

    def forward(self, x: Tensor) -> Tensor:
        return torch.pixel_shuffle(x, self.block)


class Cosh(Operator):
    """The hyperbolic cosine: convex, so between a tangent and a chord."""

    kind = OperatorKind.SMOOTH

    def forward(self, x: Tensor) -> Tensor:
        return x.cosh()

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        nearest = torch.maximum(x.low, -x.high).clamp(min=0)
        return Interval(self(nearest), self(x.magnitude)).widened(16)

    def relaxation(self, shape: tuple[int, ...], arguments: Interval) -> Any:
        low, high = arguments.low, arguments.high
        slack = 1e-6 * (1 + arguments.magnitude) * self(arguments.magnitude)
        middle = low / 2 + high / 2
        slope = torch.sinh(middle)
        width = torch.where(high > low, high - low, 1.0)
        rise = (self(high) - self(low)) / width
        return FixedLines(
            slope,
            self(middle) - slope * middle - slack,
            rise,
            self(low) - rise * low + slack,
        )

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        return (1 + values.magnitude) * (64 * number.unit * widening)
