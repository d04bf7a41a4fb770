"""What an operator is: a module that maps batches of values to a batch of values."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar

import numpy as np
from torch import Tensor, nn

Shape = tuple[int, ...]


class OperatorKind(Enum):
    """What a verifier may assume of an operator, jointly in all its inputs."""

    AFFINE = auto()
    PIECEWISE_LINEAR = auto()
    SMOOTH = auto()


class Operator(nn.Module):
    """One step of a network. Constants are buffers, so that they follow a dtype and a device.

    Every argument and the result of `forward` is a tensor (B, *shape) for B independent inputs,
    where `shape` is the shape that the value has in the ONNX graph with a batch of 1.
    """

    kind: ClassVar[OperatorKind] = OperatorKind.AFFINE

    gain: float = 1.0
    """How many times larger, or smaller, than with the constants as they are here what the file
    computes on the way may be: it may apply a common factor of them before or after."""

    def _constant(self, name: str, value: Tensor | None) -> None:
        self.register_buffer(name, value)

    def result_shape(self, *shapes: Shape) -> Shape:
        """The shape of the result from those of the inputs, none with the batch axis.

        A ValueError says that they do not fit. Nothing is computed, whatever sizes a file claims.
        """
        return shapes[0]


class Input(Operator):
    """The network's input itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def broadcast(*shapes: Shape) -> Shape:
    """The common shape of values that are combined elementwise; a ValueError if there is none."""
    return np.broadcast_shapes(*shapes)


def with_rank(x: Tensor, rank: int) -> Tensor:
    """A batch whose values have at least `rank` axes: axes of length 1 go right behind the batch.

    ONNX aligns shapes at their last axes; the batch axis in front must take no part in that.
    """
    missing = rank - (x.dim() - 1)
    return x if missing <= 0 else x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
