"""Means and sums over windows, or over axes."""

from __future__ import annotations

import math

import numpy as np

from radii_check._builder import Attributes, Builder, Call, Reader
from radii_check._errors import require_known
from radii_check._linear_maps import Scale, Window, gather
from radii_check.operators._convolution import windows


def without_ceil_mode(builder: Builder, x: int, attributes: Attributes) -> tuple[Attributes, bool]:
    """A pool's attributes with the padding behind its input that makes room for the last windows,
    instead of `ceil_mode`; and whether that is more padding than it states."""
    if not attributes.get("ceil_mode", 0):
        return attributes, False
    is_padded_by_hand = attributes.get("auto_pad", b"NOTSET") == b"NOTSET"
    require_known(is_padded_by_hand, "of a pool with ceil_mode and auto_pad")
    sizes, kernel = builder.shape(x)[2:], attributes["kernel_shape"]
    ones = [1] * len(sizes)
    strides, dilations = attributes.get("strides", ones), attributes.get("dilations", ones)
    pads = attributes.get("pads", [0] * (2 * len(sizes)))
    before, behind = np.reshape(pads, (2, -1))
    reach = (np.array(kernel) - 1) * dilations + 1
    missing = -(np.array(sizes) + before + behind - reach) % strides
    last_starts = sizes + before + behind + missing - reach
    beyond = "of a pool with ceil_mode and a window behind its input, on which runtimes differ,"
    require_known(last_starts < sizes + before, beyond)
    return attributes | {"pads": [*before, *(behind + missing)]}, bool(missing.any())


def average_pool(builder: Builder, call: Call) -> int:
    """The mean of each window; without a kernel the mean of all."""
    x = call.first
    batch, channels, *sizes = builder.shape(x)
    attributes, has_more_padding = without_ceil_mode(builder, x, call.attributes)
    kernel = attributes.get("kernel_shape", sizes)
    index, window_counts = windows(builder, x, kernel, attributes)
    taps, entries_inside = index.shape[1], (index >= 0).sum(1)
    require_known(entries_inside, "AveragePool with a window in the padding")
    counts_padding = attributes.get("count_include_pad", 0)
    differing = "AveragePool with ceil_mode and count_include_pad, on which runtimes differ,"
    require_known(not (counts_padding and has_more_padding), differing)
    counts = np.full(len(index), taps) if counts_padding else entries_inside
    sums = Window(np.ones((1, 1, taps)), index, math.prod(sizes), batch * channels)
    means = Scale(np.tile(counts, sums.outer).astype(float), divides=True)
    shape = (batch, channels, *window_counts)
    rounding = {"terms": taps, "starts_sum": True, "gain": float(taps)}
    return builder.affine([x], [(sums, means)], shape, **rounding)


def reduction(builder: Builder, call: Call, is_mean: bool) -> int:
    """The sum or the mean over axes, which are an input or an attribute; by default all."""
    x, attributes = call.first, call.attributes
    shape, size = builder.shape(x), builder.size(x)
    stated = call.optional(1) if call.optional(1) is not None else attributes.get("axes", [])
    if not len(stated) and attributes.get("noop_with_empty_axes", 0):
        return int(x)
    axes = [int(axis) % len(shape) for axis in stated] or list(range(len(shape)))
    others = [axis for axis in range(len(shape)) if axis not in axes]
    count = math.prod(shape[axis] for axis in axes)
    divisor = float(count if is_mean else 1)
    reduced_last = np.arange(size).reshape(shape).transpose(*others, *axes)
    sums = Window(np.ones((1, count, 1)), np.zeros((1, 1), int), 1, size // count)
    means = Scale(np.full(size // count, divisor), divides=True)
    kept = [shape[axis] if axis in others else 1 for axis in range(len(shape))]
    result = kept if attributes.get("keepdims", 1) else [shape[axis] for axis in others]
    rounding = {"terms": count, "starts_sum": True, "gain": divisor}
    return builder.affine([x], [(*gather(reduced_last, size), sums, means)], result, **rounding)


READERS: dict[str, Reader] = {
    "AveragePool": average_pool,
    "GlobalAveragePool": average_pool,
    "ReduceMean": lambda builder, call: reduction(builder, call, is_mean=True),
    "ReduceSum": lambda builder, call: reduction(builder, call, is_mean=False),
}
