"""Maxima and means over sliding windows."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import Operator, OperatorKind, Shape
from radii.networks.operators._windows import Window

_MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_MEANS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_SUMS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


class MaxPool(Operator):
    """The largest entry of each window of values (N, C, *spatial); padding never wins."""

    kind = OperatorKind.PIECEWISE_LINEAR

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window = window
        self._pool = _MAXIMA[len(window.kernel)]
        pairs = zip(window.pads, window.kernel, strict=True)
        fits = window.is_symmetric and all(before <= k // 2 for (before, _), k in pairs)
        self._ahead = [] if fits else window.innermost_first
        self._padding = tuple(before if fits else 0 for before, _ in window.pads)

    def result_shape(self, *shapes: Shape) -> Shape:
        return (*shapes[0][:2], *self.window.result_size(shapes[0][2:]))

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._ahead:
            images = F.pad(images, self._ahead, value=-math.inf)
        window = self.window
        result: Tensor = self._pool(
            images, window.kernel, window.strides, self._padding, window.dilations
        )
        return result.view(*x.shape[:2], *result.shape[1:])

    def candidates(self, shape: Shape) -> Tensor:
        """For each entry of the result the entries of the flattened input it is the maximum of.

        Integers (result size, window size), both row-major; -1 stands for padding. `shape` is the
        input's, without the batch axis.
        """
        positions = torch.arange(math.prod(shape)).reshape(shape)
        padded = F.pad(positions, self.window.innermost_first, value=-1)
        window = self.window
        for axis in range(len(window.kernel)):
            reach, stride = window.reach[axis], window.strides[axis]
            padded = padded.unfold(axis + 2, reach, stride)[..., :: window.dilations[axis]]
        return padded.reshape(math.prod(self.result_shape(shape)), math.prod(window.kernel))


class AveragePool(Operator):
    """The mean of each window of values (N, C, *spatial), padded with zeros.

    `weights` has one factor for each place of the window, where not all of its entries count; a
    result is the sum over the window, divided by the window's size, times this factor.
    """

    weights: Tensor | None
    ones: Tensor | None

    def __init__(self, window: Window, weights: Tensor | None) -> None:
        super().__init__()
        self.window = window
        self._constant("weights", weights)
        dilated = any(d > 1 for d in window.dilations)
        ones = torch.full((1, 1, *window.kernel), 1 / math.prod(window.kernel), dtype=torch.float64)
        self._constant("ones", ones if dilated else None)
        self._axes = len(window.kernel)
        pairs = zip(window.pads, window.kernel, strict=True)
        fits = not dilated and window.is_symmetric and all(b <= k // 2 for (b, _), k in pairs)
        self._ahead = [] if fits else window.innermost_first
        self._padding = tuple(before if fits else 0 for before, _ in window.pads)

    def result_shape(self, *shapes: Shape) -> Shape:
        return (*shapes[0][:2], *self.window.result_size(shapes[0][2:]))

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._ahead:
            images = F.pad(images, self._ahead)
        means = self._means(images)
        if self.weights is not None:
            means = means * self.weights
        return means.reshape(*x.shape[:2], *means.shape[1:])

    def _means(self, images: Tensor) -> Tensor:
        window = self.window
        result: Tensor
        if self.ones is None:
            result = _MEANS[self._axes](images, window.kernel, window.strides, self._padding)
            return result
        planes = images.reshape(-1, 1, *images.shape[2:])
        result = _SUMS[self._axes](planes, self.ones, None, window.strides, 0, window.dilations)
        return result.view(*images.shape[:2], *result.shape[2:])
