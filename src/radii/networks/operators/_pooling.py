"""Means over sliding windows, and sums and means over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import (
    OnnxNode,
    Shape,
    SumOfProducts,
    translates,
)
from radii.networks.operators._convolution import spatial_window
from radii.networks.operators._convolution_maps import CONVOLVE, ConvolutionMap, Window
from radii.networks.operators._map_algebra import composed
from radii.networks.operators._maps import LinearMap, MatrixMap, ScaleMap

_MEANS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


class AveragePool(SumOfProducts):
    """The mean of each window of values (N, C, *spatial), padded with zeros.

    `weights` has one factor for each place of the window, where not all of its entries count; a
    result is the sum over the window, divided by the window's size, times this factor.
    """

    starts_sum = True
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
        result = CONVOLVE[self._axes](planes, self.ones, None, window.strides, 0, window.dilations)
        return result.view(*images.shape[:2], *result.shape[2:])

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        """Every channel for itself, as if it were an image of its own."""
        kernel = self.window.kernel
        weight = torch.full((1, 1, *kernel), 1 / math.prod(kernel), dtype=torch.float64)
        images, sizes = math.prod(shapes[0][:2]), shapes[0][2:]
        means = ConvolutionMap(weight, sizes, window=self.window, batch=images, rounded=1)
        if self.weights is None:
            return (means,)
        factors = self.weights.expand(images, *means.result[2:]).flatten()
        return (composed(means, ScaleMap(factors, rounded=1)),)

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return math.prod(self.window.kernel)

    def reach(self, *largest: Tensor) -> Tensor:
        """Not less than the sum where only a part of the window counts: that mean is larger."""
        return super().reach(*largest) * math.prod(self.window.kernel)

    def factors(self) -> None:
        return None


class _OverAxes(SumOfProducts):
    """`axes` are non-negative and do not count the batch axis."""

    starts_sum = True

    def __init__(self, axes: Sequence[int], *, keep: bool) -> None:
        super().__init__()
        self.axes = tuple(axes)
        self.keep = keep
        self._behind_batch = [axis + 1 for axis in self.axes]

    def result_shape(self, *shapes: Shape) -> Shape:
        sizes = [(1 if axis in self.axes else size) for axis, size in enumerate(shapes[0])]
        return tuple(size for axis, size in enumerate(sizes) if self.keep or axis not in self.axes)

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return max(1, inputs[0].numel() // max(1, result.numel()))

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        """One axis after another."""
        sizes = list(shapes[0])
        parts: list[LinearMap] = [ScaleMap.identity(math.prod(sizes))]
        for axis in self.axes:
            weight = torch.full((1, sizes[axis]), self._share(sizes[axis]), dtype=torch.float64)
            outer, inner = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
            parts.append(MatrixMap(weight, outer=outer, inner=inner, rounded=1))
            sizes[axis] = 1
        return (composed(*parts),)

    def _share(self, length: int) -> float:
        """The factor of each entry of an axis."""
        return 1.0


class ReduceMean(_OverAxes):
    """The mean over some axes."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(self._behind_batch, keepdim=self.keep)

    def _share(self, length: int) -> float:
        return 1 / max(1, length)

    def reach(self, *largest: Tensor) -> Tensor:
        """The sum."""
        result: Tensor = ReduceSum(self.axes, keep=self.keep)(*largest)
        return result


class ReduceSum(_OverAxes):
    """The sum over some axes."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(self._behind_batch, keepdim=self.keep)


# Translators.


@translates("AveragePool")
def _average_pool(call: OnnxNode) -> int:
    given = spatial_window(call, call.ints_attribute("kernel_shape"))
    window = rounded_up(call, given)
    refuse_empty(call, window)
    sizes = call.shape(0)[2:]
    counted = given.pads if call.int_attribute("count_include_pad", 0) else ((0, 0),) * len(sizes)
    factors = _factors(window, sizes, counted)
    needed = bool((factors != 1).any())
    return call.emit(AveragePool(window, factors if needed else None), call.node(0))


@translates("GlobalAveragePool")
def _global_average_pool(call: OnnxNode) -> int:
    return call.emit(ReduceMean(range(2, call.rank(0)), keep=True), call.node(0))


def rounded_up(call: OnnxNode, window: Window) -> Window:
    """With `ceil_mode`, the padding at the end that makes room for the last, partial window.

    A window that would start behind the input and its padding before it is left out.
    """
    if not call.int_attribute("ceil_mode", 0):
        return window
    pads = []
    rows = zip(call.shape(0)[2:], window.pads, window.reach, window.strides, strict=True)
    for size, (before, after), reach, stride in rows:
        places = math.ceil((size + before + after - reach) / stride) + 1
        if (places - 1) * stride >= size + before:
            places -= 1
        needed = (places - 1) * stride + reach - size - before
        pads.append((before, max(after, needed)))
    return Window(window.kernel, window.strides, window.dilations, tuple(pads))


def refuse_empty(call: OnnxNode, window: Window) -> None:
    """Windows that hold padding only: what they give is not defined."""
    sizes = call.shape(0)[2:]
    for axis, places in enumerate(window.result_size(sizes)):
        inside = F.pad(torch.ones(sizes[axis]), window.pads[axis])
        windows = inside.unfold(0, window.reach[axis], window.strides[axis])
        if bool((windows[:places, :: window.dilations[axis]].sum(1) == 0).any()):
            raise call.unsupported("with a window that holds padding only")


def _factors(window: Window, sizes: Sequence[int], counted: Sequence[tuple[int, int]]) -> Tensor:
    """For each place of the window its size divided by how many of its entries count."""
    factors = torch.ones((), dtype=torch.float64)
    places = window.result_size(sizes)
    for axis, size in enumerate(sizes):
        (before, after), (inside, behind) = window.pads[axis], counted[axis]
        counts = torch.ones(size + inside + behind, dtype=torch.float64)
        counts = F.pad(counts, (before - inside, after - behind))
        windows = counts.unfold(0, window.reach[axis], window.strides[axis])
        per_place = windows[: places[axis], :: window.dilations[axis]].sum(1)
        along = [1] * len(sizes)
        along[axis] = -1
        factors = factors * (window.kernel[axis] / per_place).reshape(along)
    return factors


@translates("ReduceMean", "ReduceSum")
def _reduce_axes(call: OnnxNode) -> int:
    """No axes at all mean every axis, or none with `noop_with_empty_axes`."""
    if call.is_whole(0) and call.proto.op_type == "ReduceMean":
        raise call.unsupported("of whole numbers")
    axes = call.axes(1, rank=call.rank(0))
    if not axes:
        if call.int_attribute("noop_with_empty_axes", 0):
            return call.node(0)
        axes = list(range(call.rank(0)))
    make = ReduceMean if call.proto.op_type == "ReduceMean" else ReduceSum
    return call.emit(make(axes, keep=bool(call.int_attribute("keepdims", 1))), call.node(0))
