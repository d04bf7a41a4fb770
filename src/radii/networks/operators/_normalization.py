"""Batch normalisation in inference."""

from __future__ import annotations

from torch import Tensor

from radii.networks.operators._base import Operator, Shape


class BatchNorm(Operator):
    """scale * x + shift, with one pair of numbers for each channel (the second axis).

    The file has (x - mean) / root * factor + offset: `of_file` keeps what that may add up on the
    way. `shift_size` is the sum of the absolute values that the shift is computed from: the mean
    and the offset may nearly cancel. `scale_reach` and `shift_reach` are the same with factors and
    quotients that are below 1 left out, as if they came last.
    """

    scale: Tensor
    shift: Tensor
    shift_size: Tensor
    scale_reach: Tensor
    shift_reach: Tensor

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self._constant("scale", scale)
        self._constant("shift", shift)
        self._constant("shift_size", shift.abs())
        self._constant("scale_reach", scale.abs().clamp_min(1.0))
        self._constant("shift_reach", shift.abs())

    @classmethod
    def of_file(cls, factor: Tensor, offset: Tensor, mean: Tensor, root: Tensor) -> BatchNorm:
        """From the four numbers a channel that a file has."""
        scale = factor / root
        made = cls(scale, offset - mean * scale)
        made.shift_size = offset.abs() + (mean * scale).abs()
        made.scale_reach = factor.abs().clamp_min(1.0) * root.reciprocal().clamp_min(1.0)
        made.shift_reach = offset.abs() + mean.abs() * made.scale_reach
        return made

    def result_shape(self, *shapes: Shape) -> Shape:
        channels = shapes[0][1]
        if {tuple(self.scale.shape), tuple(self.shift.shape)} != {(channels,)}:
            raise ValueError(f"{channels} channels but {self.scale.numel()} scales")
        return shapes[0]

    def forward(self, x: Tensor) -> Tensor:
        along = (-1, *(1,) * (x.dim() - 3))
        return x * self.scale.view(along) + self.shift.view(along)
