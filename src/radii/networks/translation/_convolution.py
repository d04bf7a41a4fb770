"""Convolutions and batch normalisation."""

from __future__ import annotations

import math

import torch

from radii.networks.operators._convolution import Convolution, TransposedConvolution
from radii.networks.operators._normalization import BatchNorm
from radii.networks.operators._windows import Window
from radii.networks.translation._base import OnnxNode
from radii.networks.translation._windows import halved_padding, spatial_window


def convolve(call: OnnxNode) -> int:
    weight = call.weight(1)
    window = spatial_window(call, weight.shape[2:])
    groups = call.int_attribute("group", 1)
    operator = Convolution(weight, call.optional_weight(2), window=window, groups=groups)
    return call.emit(operator, call.node(0))


def convolve_transposed(call: OnnxNode) -> int:
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
        # Where more is wanted than the full result has, the rest is added behind it.
        extra = [e + max(0, -m) for e, m in zip(extra, missing, strict=True)]
        pads = halved_padding(call, [max(0, m) for m in missing])
        window = Window(window.kernel, window.strides, window.dilations, pads)
    operator = TransposedConvolution(
        weight,
        call.optional_weight(2),
        window=window,
        extra=extra,
        groups=call.int_attribute("group", 1),
    )
    return call.emit(operator, call.node(0))


def batch_normalize(call: OnnxNode) -> int:
    if call.int_attribute("training_mode", 0):
        raise call.unsupported("in training mode")
    if not call.int_attribute("spatial", 1):
        raise call.unsupported("with spatial = 0")
    scale, shift, mean, variance = (call.weight(position) for position in (1, 2, 3, 4))
    root = torch.sqrt(variance + call.float_attribute("epsilon", 1e-5))
    if not math.isfinite(float((scale / root).abs().sum())):
        raise call.unsupported("with a negative variance")
    return call.emit(BatchNorm.of_file(scale, shift, mean, root), call.node(0))
