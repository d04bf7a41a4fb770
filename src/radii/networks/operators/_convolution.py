"""Sliding windows, convolutions over one to three spatial axes, and batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.errors import NetworkError
from radii.networks.operators._base import (
    OnnxNode,
    Operator,
    Shape,
    SumOfProducts,
    WeightedSum,
    translates,
)
from radii.networks.operators._convolution_maps import (
    CONVOLVE,
    CONVOLVE_TRANSPOSED,
    ConvolutionMap,
    TransposedMap,
    Window,
)
from radii.networks.operators._maps import LinearMap, ScaleMap

MAX_SPATIAL_AXES = 3
"""What torch convolves and pools."""

MAX_EXTENT = 2**20
"""No kernel, dilation or padding is larger than this along one axis, unless a file is damaged."""

BATCH_NORM_TERMS = 4
"""Roundings on the longest path of a batch normalisation, beyond what every operator is granted:
its factor is a quotient by a root."""


class Convolution(WeightedSum):
    """Convolution of values (N, C, *spatial) with weight (M, C / groups, *kernel), bias (M,)."""

    bias: Tensor | None

    def __init__(
        self, weight: Tensor, bias: Tensor | None, *, window: Window, groups: int = 1
    ) -> None:
        super().__init__()
        self._constant("weight", weight)
        self._constant("bias", bias)
        self.window = window
        self.groups = groups
        self._convolve = CONVOLVE[weight.dim() - 2]
        # torch pads both sides alike; another padding goes ahead of the convolution.
        self._ahead = [] if window.is_symmetric else window.innermost_first
        self._padding = tuple(0 if self._ahead else before for before, _ in window.pads)

    def result_shape(self, *shapes: Shape) -> Shape:
        batch, channels, *sizes = shapes[0]
        outputs = self.weight.shape[0]
        if channels != self.weight.shape[1] * self.groups or outputs % self.groups:
            raise ValueError(
                f"{channels} channels do not fit weights of shape {tuple(self.weight.shape)} "
                f"in {self.groups} groups"
            )
        return (batch, outputs, *self.window.result_size(sizes))

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._ahead:
            images = F.pad(images, self._ahead)
        window = self.window
        result: Tensor = self._convolve(
            images,
            self.weight,
            self.bias,
            window.strides,
            self._padding,
            window.dilations,
            self.groups,
        )
        return result.view(*x.shape[:2], *result.shape[1:])

    def make_linear_part(self) -> Operator:
        return _without_bias(self.make_magnitude())

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        batch, _, *sizes = shapes[0]
        window, groups = self.window, self.groups
        return (ConvolutionMap(self.weight, sizes, window=window, batch=batch, groups=groups),)

    def _counts(self) -> Tensor:
        return self.weight.ne(0).flatten(1).sum(1)


class TransposedConvolution(WeightedSum):
    """The transpose of a convolution, with weight (C, M / groups, *kernel) and bias (M,).

    The window's pads are cropped from the result; `extra` entries are added after each axis.
    """

    bias: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        *,
        window: Window,
        extra: Sequence[int],
        groups: int = 1,
    ) -> None:
        super().__init__()
        self._constant("weight", weight)
        self._constant("bias", bias)
        self.window = window
        self.extra = tuple(extra)
        self.groups = groups
        self._convolve = CONVOLVE_TRANSPOSED[weight.dim() - 2]
        limits = zip(self.extra, window.strides, window.dilations, strict=True)
        self._at_once = window.is_symmetric and all(e < max(s, d) for e, s, d in limits)

    def result_shape(self, *shapes: Shape) -> Shape:
        batch, channels, *sizes = shapes[0]
        if channels != self.weight.shape[0] or channels % self.groups:
            raise ValueError(
                f"{channels} channels do not fit weights of shape {tuple(self.weight.shape)} "
                f"in {self.groups} groups"
            )
        window = self.window
        rows = zip(sizes, window.strides, window.reach, window.pads, self.extra, strict=True)
        places = tuple((n - 1) * s + reach - b - a + e for n, s, reach, (b, a), e in rows)
        if min(places) < 1:
            raise ValueError(f"pads {window.pads} crop the whole result")
        return (batch, self.weight.shape[1] * self.groups, *places)

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        result = self._directly(images) if self._at_once else self._cropped(images)
        return result.view(*x.shape[:2], *result.shape[1:])

    def _directly(self, images: Tensor) -> Tensor:
        window = self.window
        padding = tuple(before for before, _ in window.pads)
        result: Tensor = self._convolve(
            images,
            self.weight,
            self.bias,
            window.strides,
            padding,
            self.extra,
            self.groups,
            window.dilations,
        )
        return result

    def _cropped(self, images: Tensor) -> Tensor:
        """torch crops both sides alike, so here the whole result is made, then cropped."""
        window = self.window
        whole: Tensor = self._convolve(
            images, self.weight, None, window.strides, 0, 0, self.groups, window.dilations
        )
        sides = [(-b, e - a) for (b, a), e in zip(window.pads, self.extra, strict=True)]
        result = F.pad(whole, [side for pair in reversed(sides) for side in pair])
        if self.bias is None:
            return result
        return result + self.bias.view(-1, *(1,) * len(window.kernel))

    def make_linear_part(self) -> Operator:
        return _without_bias(self.make_magnitude())

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        batch, _, *sizes = self.result_shape(*shapes)
        pairs = zip(self.window.pads, self.extra, strict=True)
        pads = tuple((before, after - extra) for (before, after), extra in pairs)
        window = replace(self.window, pads=pads)
        groups = self.groups
        back = ConvolutionMap(self.weight, sizes, window=window, batch=batch, groups=groups)
        return (TransposedMap(back),)

    def _counts(self) -> Tensor:
        """Every weight of a group may meet in one place."""
        used: Tensor = self.weight.ne(0).unflatten(0, (self.groups, -1))
        return used.flatten(3).sum((1, 3))


def _without_bias(convolution: Operator) -> Operator:
    convolution.register_buffer("bias", None)
    return convolution


class BatchNorm(SumOfProducts):
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
        """From the four numbers that a file has for each channel."""
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

    def make_magnitude(self) -> BatchNorm:
        return BatchNorm(self.scale.abs(), self.shift_size)

    def make_linear_part(self) -> BatchNorm:
        return BatchNorm(self.scale.abs(), torch.zeros_like(self.shift))

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return BATCH_NORM_TERMS

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        along = self.scale.reshape(-1, *(1,) * (len(shapes[0]) - 2))
        return (ScaleMap(along.expand(shapes[0]).flatten(), rounded=1),)

    def reach(self, *largest: Tensor) -> Tensor:
        result: Tensor = BatchNorm(self.scale_reach, self.shift_reach)(*largest)
        return result

    def factors(self) -> Tensor:
        return self.scale_reach


# Translators.


def spatial_window(call: OnnxNode, kernel: Sequence[int] | None) -> Window:
    """The window over the node's first input, with `auto_pad` resolved as for a convolution."""
    sizes = call.shape(0)[2:]
    if not 1 <= len(sizes) <= MAX_SPATIAL_AXES:
        raise call.unsupported(f"of a value of shape {call.shape(0)}")
    axes = len(sizes)
    sides = tuple(kernel or ())
    strides = tuple(call.ints_attribute("strides") or (1,) * axes)
    dilations = tuple(call.ints_attribute("dilations") or (1,) * axes)
    pads = call.ints_attribute("pads") or [0] * (2 * axes)
    lengths = {len(sides), len(strides), len(dilations), len(pads) // 2}
    smallest, largest = min((*sides, *strides, *dilations)), max((*sides, *dilations, *pads))
    if lengths != {axes} or smallest < 1 or largest > MAX_EXTENT:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' ({call.proto.op_type}) has a kernel, "
            f"strides, dilations or pads that do not fit a value of shape {call.shape(0)}"
        )
    window = Window(sides, strides, dilations, tuple(zip(pads[:axes], pads[axes:], strict=True)))
    match call.text_attribute("auto_pad", "NOTSET"):
        case "NOTSET":
            return window
        case "VALID":
            totals = [0] * axes
        case "SAME_UPPER" | "SAME_LOWER":
            if max(dilations) > 1 and call.proto.op_type != "ConvTranspose":  # runtimes differ
                raise call.unsupported("with auto_pad SAME and dilations")
            rows = zip(sizes, window.reach, strides, strict=True)
            totals = [(-(-n // s) - 1) * s + reach - n for n, reach, s in rows]
            if min(totals) < -1:  # runtimes do not agree on what to crop
                raise call.unsupported("with auto_pad SAME and a stride far above its kernel")
            totals = [max(0, total) for total in totals]
        case other:
            raise call.unsupported(f"with auto_pad {other}")
    return Window(sides, strides, dilations, _halved_padding(call, totals))


def _halved_padding(call: OnnxNode, totals: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each total padding in two halves; the odd one goes where `auto_pad` says."""
    halves = [(total // 2, total - total // 2) for total in totals]
    if call.text_attribute("auto_pad", "NOTSET") == "SAME_UPPER":
        return tuple(halves)
    return tuple((large, small) for small, large in halves)


@translates("Conv", note="1 to 3 spatial axes")
def _convolve(call: OnnxNode) -> int:
    weight = call.weight(1)
    window = spatial_window(call, weight.shape[2:])
    groups = call.int_attribute("group", 1)
    operator = Convolution(weight, call.optional_weight(2), window=window, groups=groups)
    return call.emit(operator, call.node(0))


@translates("ConvTranspose", note="1 to 3 spatial axes")
def _convolve_transposed(call: OnnxNode) -> int:
    """The crop is given as pads, or follows from the wanted output shape or from `auto_pad`."""
    weight = call.weight(1)
    window = spatial_window(call, weight.shape[2:])
    sizes = call.shape(0)[2:]
    extra = call.ints_attribute("output_padding") or [0] * len(sizes)
    wanted = call.ints_attribute("output_shape")
    if wanted is None and call.text_attribute("auto_pad", "NOTSET").startswith("SAME"):
        wanted = [size * stride for size, stride in zip(sizes, window.strides, strict=True)]
    if wanted is not None:
        rows = zip(sizes, window.strides, window.reach, extra, wanted[-len(sizes) :], strict=True)
        missing = [(n - 1) * s + reach + e - goal for n, s, reach, e, goal in rows]
        if call.ints_attribute("output_shape") is None and min(missing) < 0:
            raise call.unsupported("with auto_pad SAME and a stride above its kernel")
        # Where more is wanted than the full result has, the rest is added behind it.
        extra = [e + max(0, -m) for e, m in zip(extra, missing, strict=True)]
        pads = _halved_padding(call, [max(0, m) for m in missing])
        window = Window(window.kernel, window.strides, window.dilations, pads)
    operator = TransposedConvolution(
        weight,
        call.optional_weight(2),
        window=window,
        extra=extra,
        groups=call.int_attribute("group", 1),
    )
    return call.emit(operator, call.node(0))


@translates("BatchNormalization")
def _batch_normalize(call: OnnxNode) -> int:
    # Before opset 14, one that gives the batch's statistics normalises by them.
    if call.int_attribute("training_mode", 0) or any(call.proto.output[1:]):
        raise call.unsupported("in training mode")
    if not call.int_attribute("spatial", 1):
        raise call.unsupported("with spatial = 0")
    scale, shift, mean, variance = (call.weight(position) for position in (1, 2, 3, 4))
    root = torch.sqrt(variance + call.float_attribute("epsilon", 1e-5))
    if not math.isfinite(float((scale / root).abs().sum())):
        raise call.unsupported("with a negative variance")
    return call.emit(BatchNorm.of_file(scale, shift, mean, root), call.node(0))
