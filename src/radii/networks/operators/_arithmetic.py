"""Arithmetic between values, and between a value and a constant, with ONNX broadcasting."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from radii.networks.operators._base import (
    OnnxNode,
    OperatorKind,
    Shape,
    SumOfProducts,
    broadcast,
    translates,
    with_rank,
)
from radii.networks.operators._bilinear import multiplied
from radii.networks.operators._map_algebra import broadcast_map, composed
from radii.networks.operators._maps import LinearMap, ScaleMap
from radii.networks.operators._powers import Reciprocal


class _Elementwise(SumOfProducts):
    """One sum or product for each entry."""

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return len(inputs) + 1


class _WithConstant(_Elementwise):
    constant: Tensor

    def __init__(self, constant: Tensor) -> None:
        super().__init__()
        self._constant("constant", constant)

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(shapes[0], tuple(self.constant.shape))


class AddConstant(_WithConstant):
    """x + constant."""

    def forward(self, x: Tensor) -> Tensor:
        return with_rank(x, self.constant.dim()) + self.constant

    def make_linear_part(self) -> AddConstant:
        return AddConstant(torch.zeros_like(self.constant))

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        return (broadcast_map(shapes[0], self.result_shape(*shapes)),)

    def factors(self) -> None:
        return None


class _WithFactor(_WithConstant):
    def single_factor(self) -> float | None:
        return abs(float(self.constant)) if self.constant.numel() == 1 else None

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        result = self.result_shape(*shapes)
        ones = torch.ones((1, *shapes[0]), dtype=torch.float64)
        factors = ScaleMap(self(ones).flatten(), rounded=1)
        return (composed(broadcast_map(shapes[0], result), factors),)


class Scale(_WithFactor):
    """x * constant, elementwise."""

    def forward(self, x: Tensor) -> Tensor:
        return with_rank(x, self.constant.dim()) * self.constant


class DivideByConstant(_WithFactor):
    """x / constant, elementwise; a division, to round as ONNX Runtime does."""

    def forward(self, x: Tensor) -> Tensor:
        return with_rank(x, self.constant.dim()) / self.constant

    def factors(self) -> Tensor:
        return self.constant.abs().reciprocal()


class Cast(SumOfProducts):
    """x in a narrower number type: x itself but for one rounding, which the graph leaves out."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return 1

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        return (ScaleMap.identity(math.prod(shapes[0])),)


class Add(_Elementwise):
    """x + y of two values."""

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(*shapes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) + with_rank(y, x.dim() - 1)

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        result = self.result_shape(*shapes)
        return tuple(broadcast_map(shape, result) for shape in shapes)


class Subtract(_Elementwise):
    """x - y of two values."""

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(*shapes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) - with_rank(y, x.dim() - 1)

    def make_magnitude(self) -> Add:
        return Add()

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        result = self.result_shape(*shapes)
        first, second = (broadcast_map(shape, result) for shape in shapes)
        negated = ScaleMap(-torch.ones(second.outputs, dtype=torch.float64))
        return first, composed(second, negated)


# Translators.


@translates("Add", "Sum")
def _add(call: OnnxNode) -> int:
    positions = range(len(call.proto.input))
    total = next(call.node(p) for p in positions if not call.is_constant(p))
    first = True
    for position in positions:
        if call.is_constant(position):
            total = call.emit(AddConstant(call.weight(position)), total)
        elif first:
            first = False
        else:
            total = call.emit(Add(), total, call.node(position))
    return total


@translates("Sub")
def _subtract(call: OnnxNode) -> int:
    if call.is_constant(1):
        return call.emit(AddConstant(-call.weight(1)), call.node(0))
    if call.is_constant(0):
        negative = scaled(call, call.node(1), -1.0)
        return call.emit(AddConstant(call.weight(0)), negative)
    return call.emit(Subtract(), call.node(0), call.node(1))


@translates("Mul", of_several=OperatorKind.SMOOTH)
def _multiply(call: OnnxNode) -> int:
    for constant, variable in ((0, 1), (1, 0)):
        if call.is_constant(constant):
            return call.emit(Scale(call.weight(constant)), call.node(variable))
    return multiplied(call, call.node(0), call.node(1))


@translates("Div", of_several=OperatorKind.SMOOTH)
def _divide(call: OnnxNode) -> int:
    if call.is_whole(0):
        raise call.unsupported("of whole numbers")
    if call.is_constant(1):
        divisor = call.weight(1)
        if not divisor.all():
            raise call.unsupported("by zero")
        return call.emit(DivideByConstant(divisor), call.node(0))
    if call.is_constant(0):
        return call.emit(Scale(call.weight(0)), call.emit(Reciprocal(), call.node(1)))
    return multiplied(call, call.node(0), call.emit(Reciprocal(), call.node(1)))


@translates("Neg")
def _negate(call: OnnxNode) -> int:
    return scaled(call, call.node(0), -1.0)


def scaled(call: OnnxNode, node: int, factor: float) -> int:
    if factor == 1.0:
        return node
    return call.emit(Scale(torch.tensor(factor, dtype=torch.float64)), node)
