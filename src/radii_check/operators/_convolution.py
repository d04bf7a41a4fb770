"""Convolutions, and the windows that convolutions and pools share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import helper

from radii_check._builder import (
    Attributes,
    Builder,
    Call,
    Reader,
    rounding_of_products,
    run_reference,
    weight_of,
)
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._linear_maps import Window

WINDOW_ATTRIBUTES = ("auto_pad", "dilations", "pads", "strides", "output_padding")


def windows(
    builder: Builder,
    x: int,
    kernel: Sequence[int],
    attributes: Attributes,
    operator: str = "Conv",
) -> tuple[Array, Sequence[int]]:
    """The entries (windows, taps) of one channel in each window, -1 in the padding; and the number
    of windows along each axis.

    onnx's reference implementation convolves an image of the numbers 1, 2, 3, ... with as many
    kernels as there are taps, each of which is 1 at its tap and 0 elsewhere: the results are the
    numbers of the entries, and 0 in the padding.
    """
    sizes, taps = builder.shape(x)[2:], math.prod(kernel)
    _check_padding(sizes, kernel, attributes)
    settings = {name: attributes[name] for name in WINDOW_ATTRIBUTES if name in attributes}
    node = helper.make_node(operator, ["x", "w"], ["y"], kernel_shape=kernel, **settings)
    image = 1.0 + np.arange(math.prod(sizes)).reshape(1, 1, *sizes)
    channels = (taps, 1) if operator == "Conv" else (1, taps)
    one_tap_each = np.eye(taps).reshape(*channels, *kernel)
    (numbers,) = run_reference(node, {"x": image, "w": one_tap_each}, builder.opset)
    return numbers.reshape(taps, -1).T.astype(int) - 1, numbers.shape[2:]


def _check_padding(sizes: Sequence[int], kernel: Sequence[int], attributes: Attributes) -> None:
    """Automatic padding where runtimes do not agree."""
    is_automatic = attributes.get("auto_pad", b"").startswith(b"SAME")
    has_dilations = max(attributes.get("dilations", [1])) != 1
    dilated = "with dilations and auto_pad, on which runtimes do not agree,"
    require_known(not (is_automatic and has_dilations), dilated)
    strides = attributes.get("strides", [1] * len(sizes))
    is_near = [
        not is_automatic or (-(-size // stride) - 1) * stride + width - size >= -1
        for size, width, stride in zip(sizes, kernel, strides, strict=True)
    ]
    strided = "with auto_pad and strides far above its kernel, on which they do not,"
    require_known(is_near, strided)


def convolution(builder: Builder, call: Call, is_transposed: bool = False) -> int:
    """One matrix for all channels and taps, with zeros between groups."""
    attributes, groups = call.attributes, call.attributes.get("group", 1)
    batch, channels, *sizes = builder.shape(call.first)
    weight = weight_of(call.inputs[1])
    operator = "ConvTranspose" if is_transposed else "Conv"
    index, window_counts = windows(builder, call.first, weight.shape[2:], attributes, operator)
    if is_transposed:  # its weights are (channels, results of a group, ...)
        is_plain = "output_shape" not in attributes and "auto_pad" not in attributes
        require_known(is_plain, "ConvTranspose so padded")
        by_group = weight.reshape(groups, channels // groups, weight.shape[1], -1).swapaxes(1, 2)
    else:  # (results, channels of a group, ...)
        by_group = weight.reshape(groups, len(weight) // groups, weight.shape[1], -1)
    _, group_results, group_channels, taps = by_group.shape
    blocks = np.zeros((groups, group_results, groups, group_channels, taps))
    blocks[range(groups), :, range(groups)] = by_group
    matrix = blocks.reshape(groups * group_results, channels, -1)

    bias = call.optional(2)
    offset = np.zeros(len(matrix)) if bias is None else weight_of(bias)
    offset = offset.reshape(-1, *(1,) * len(sizes))
    maps = [(Window(matrix, index, math.prod(sizes), batch),)]
    shape = (batch, len(matrix), *window_counts)
    rounding = rounding_of_products(matrix, (1, 2))
    return builder.affine([call.first], maps, shape, offset, **rounding)


READERS: dict[str, Reader] = {
    "Conv": convolution,
    "ConvTranspose": lambda builder, call: convolution(builder, call, is_transposed=True),
}
