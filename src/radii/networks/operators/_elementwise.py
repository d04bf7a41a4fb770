"""Arithmetic between values, and between a value and a constant, with ONNX broadcasting."""

from __future__ import annotations

from torch import Tensor

from radii.networks.operators._base import Operator, OperatorKind, Shape, broadcast, with_rank


class _WithConstant(Operator):
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


class Scale(_WithConstant):
    """x * constant, elementwise."""

    def forward(self, x: Tensor) -> Tensor:
        return with_rank(x, self.constant.dim()) * self.constant


class DivideByConstant(_WithConstant):
    """x / constant, elementwise; a division, to round as ONNX Runtime does."""

    def forward(self, x: Tensor) -> Tensor:
        return with_rank(x, self.constant.dim()) / self.constant


class Cast(Operator):
    """x in a narrower number type: x itself but for one rounding, which the graph leaves out."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class _OfTwoValues(Operator):
    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(*shapes)


class Add(_OfTwoValues):
    """x + y of two values."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) + with_rank(y, x.dim() - 1)


class Subtract(_OfTwoValues):
    """x - y of two values."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) - with_rank(y, x.dim() - 1)


class Multiply(_OfTwoValues):
    """x * y of two values that both depend on the input."""

    kind = OperatorKind.SMOOTH

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) * with_rank(y, x.dim() - 1)


class Divide(_OfTwoValues):
    """x / y where y depends on the input."""

    kind = OperatorKind.SMOOTH

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, y.dim() - 1) / with_rank(y, x.dim() - 1)


class Reciprocal(Operator):
    """1 / x."""

    kind = OperatorKind.SMOOTH

    def forward(self, x: Tensor) -> Tensor:
        return x.reciprocal()
