"""Sums and means over axes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from radii.networks.operators._base import Operator, Shape


class _OverAxes(Operator):
    """`axes` are non-negative and do not count the batch axis."""

    def __init__(self, axes: Sequence[int], *, keep: bool) -> None:
        super().__init__()
        self.axes = tuple(axes)
        self.keep = keep
        self._behind_batch = [axis + 1 for axis in self.axes]

    def result_shape(self, *shapes: Shape) -> Shape:
        sizes = [(1 if axis in self.axes else size) for axis, size in enumerate(shapes[0])]
        return tuple(size for axis, size in enumerate(sizes) if self.keep or axis not in self.axes)


class ReduceMean(_OverAxes):
    """The mean over some axes."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(self._behind_batch, keepdim=self.keep)


class ReduceSum(_OverAxes):
    """The sum over some axes."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(self._behind_batch, keepdim=self.keep)
