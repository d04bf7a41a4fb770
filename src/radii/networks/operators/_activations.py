"""Nonlinear functions of one value."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import Operator, OperatorKind, Shape, broadcast, with_rank


class Relu(Operator):
    """max(x, 0)."""

    kind = OperatorKind.PIECEWISE_LINEAR

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)


class LeakyRelu(Operator):
    """x where x >= 0, else slope * x."""

    kind = OperatorKind.PIECEWISE_LINEAR

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.slope)


class PRelu(Operator):
    """x where x >= 0, else slope * x; the slope broadcasts to x's shape."""

    kind = OperatorKind.PIECEWISE_LINEAR
    slope: Tensor

    def __init__(self, slope: Tensor) -> None:
        super().__init__()
        self._constant("slope", slope)

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(shapes[0], tuple(self.slope.shape))

    def forward(self, x: Tensor) -> Tensor:
        x = with_rank(x, self.slope.dim())
        return torch.where(x < 0, x * self.slope, x)


class Clip(Operator):
    """min(max(x, low), high); either side may be infinite."""

    kind = OperatorKind.PIECEWISE_LINEAR

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, x: Tensor) -> Tensor:
        return torch.clamp(x, self.low, self.high)


class Sigmoid(Operator):
    """1 / (1 + exp(-x))."""

    kind = OperatorKind.SMOOTH

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)


class Tanh(Operator):
    """The hyperbolic tangent."""

    kind = OperatorKind.SMOOTH

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x)


class Softmax(Operator):
    """Softmax along one axis, counted without the batch axis and never negative."""

    kind = OperatorKind.SMOOTH

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x, self.axis + 1)


class LogSoftmax(Operator):
    """The logarithm of Softmax along one axis, counted without the batch axis."""

    kind = OperatorKind.SMOOTH

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.log_softmax(x, self.axis + 1)
