"""Batch normalisation in inference."""

from __future__ import annotations

from torch import Tensor

from radii.networks.operators._base import Operator, Shape

__all__ = ["BatchNorm"]


class BatchNorm(Operator):
    """scale * x + shift, with one pair of numbers for each channel (the second axis).

    `shift_size` is the sum of the absolute values that the shift is computed from: the file has
    a mean and a shift that may nearly cancel.
    """

    scale: Tensor
    shift: Tensor
    shift_size: Tensor

    def __init__(self, scale: Tensor, shift: Tensor, shift_size: Tensor | None = None) -> None:
        super().__init__()
        self._constant("scale", scale)
        self._constant("shift", shift)
        self._constant("shift_size", shift.abs() if shift_size is None else shift_size)

    def result_shape(self, *shapes: Shape) -> Shape:
        channels = shapes[0][1]
        if {tuple(self.scale.shape), tuple(self.shift.shape)} != {(channels,)}:
            raise ValueError(f"{channels} channels but {self.scale.numel()} scales")
        return shapes[0]

    def forward(self, x: Tensor) -> Tensor:
        along = (-1, *(1,) * (x.dim() - 3))
        return x * self.scale.view(along) + self.shift.view(along)
