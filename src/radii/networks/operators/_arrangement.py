"""Operators that move, copy or drop entries of a value and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import Operator, Shape, broadcast, with_rank


class Reshape(Operator):
    """The same entries in the same order under another shape; also Flatten, Squeeze, Unsqueeze."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def result_shape(self, *shapes: Shape) -> Shape:
        if math.prod(shapes[0]) != math.prod(self.shape):
            raise ValueError(f"shape {shapes[0]} cannot become {self.shape}")
        return self.shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], *self.shape)


class Transpose(Operator):
    """Axes in another order."""

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        self.order = tuple(order)

    def result_shape(self, *shapes: Shape) -> Shape:
        if sorted(self.order) != list(range(len(shapes[0]))):
            raise ValueError(f"{self.order} is not an order of the axes of {shapes[0]}")
        return tuple(shapes[0][axis] for axis in self.order)

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, *(axis + 1 for axis in self.order))


class Slice(Operator):
    """x[..., start:stop:step, ...] along one axis, for 0 <= start <= stop and step > 0."""

    def __init__(self, axis: int, start: int, stop: int, step: int = 1) -> None:
        super().__init__()
        self.axis, self.start, self.stop, self.step = axis, start, stop, step

    def result_shape(self, *shapes: Shape) -> Shape:
        length = len(range(shapes[0][self.axis])[self.start : self.stop : self.step])
        return (*shapes[0][: self.axis], length, *shapes[0][self.axis + 1 :])

    def forward(self, x: Tensor) -> Tensor:
        index = [slice(None)] * (self.axis + 1) + [slice(self.start, self.stop, self.step)]
        return x[tuple(index)]


class Select(Operator):
    """The entries of one axis at the given positions, in their order; none is negative."""

    positions: Tensor

    def __init__(self, axis: int, positions: Tensor) -> None:
        super().__init__()
        self.axis = axis
        self._constant("positions", positions)

    def result_shape(self, *shapes: Shape) -> Shape:
        length = len(self.positions)
        if (
            length
            and not 0
            <= int(self.positions.min())
            <= int(self.positions.max())
            < (shapes[0][self.axis])
        ):
            raise ValueError(f"a position is outside axis {self.axis} of {shapes[0]}")
        return (*shapes[0][: self.axis], length, *shapes[0][self.axis + 1 :])

    def forward(self, x: Tensor) -> Tensor:
        return torch.index_select(x, self.axis + 1, self.positions)


class Expand(Operator):
    """Broadcast against a shape."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(shapes[0], self.shape)

    def forward(self, x: Tensor) -> Tensor:
        x = with_rank(x, len(self.shape))
        return x.expand(x.shape[0], *broadcast(tuple(x.shape[1:]), self.shape))


class Pad(Operator):
    """A constant around the value; `pads` holds (before, after) for each axis, negative to crop."""

    def __init__(self, pads: Sequence[tuple[int, int]], fill: float = 0.0) -> None:
        super().__init__()
        self.pads = tuple(pads)
        self.fill = fill
        self._innermost_first = [side for pair in reversed(self.pads) for side in pair]

    def result_shape(self, *shapes: Shape) -> Shape:
        pairs = zip(shapes[0], self.pads, strict=True)
        result = tuple(size + before + after for size, (before, after) in pairs)
        if min(result, default=0) < 0:
            raise ValueError(f"pads {self.pads} crop more than shape {shapes[0]} has")
        return result

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self._innermost_first, value=self.fill)


class Concat(Operator):
    """Values, and constants between them, one after another along an axis.

    `constants` has one entry a part, None where the part is the next of the inputs.
    """

    def __init__(self, axis: int, constants: Sequence[Tensor | None]) -> None:
        super().__init__()
        self.axis = axis
        self._names = [None if c is None else f"part_{i}" for i, c in enumerate(constants)]
        for name, constant in zip(self._names, constants, strict=True):
            if name is not None:
                self._constant(name, constant)

    def result_shape(self, *shapes: Shape) -> Shape:
        values = iter(shapes)
        parts = [
            next(values) if name is None else tuple(getattr(self, name).shape)
            for name in self._names
        ]
        around = {(*part[: self.axis], *part[self.axis + 1 :]) for part in parts}
        if len(around) != 1 or len({len(part) for part in parts}) != 1:
            raise ValueError(f"shapes {parts} cannot be joined along axis {self.axis}")
        length = sum(part[self.axis] for part in parts)
        return (*parts[0][: self.axis], length, *parts[0][self.axis + 1 :])

    def forward(self, *inputs: Tensor) -> Tensor:
        batch = inputs[0].shape[0]
        values = iter(inputs)
        parts = []
        for name in self._names:
            if name is None:
                parts.append(next(values))
            else:
                constant: Tensor = getattr(self, name)
                parts.append(constant.expand(batch, *constant.shape))
        return torch.cat(parts, self.axis + 1)
