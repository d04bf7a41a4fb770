"""Maxima over sliding windows."""

from __future__ import annotations

import functools
import math

import numpy as np

from radii_check._builder import Builder, Call, Reader
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._linear_maps import Scale, gather, scatter
from radii_check.operators._convolution import windows
from radii_check.operators._pooling import without_ceil_mode


def max_pool(builder: Builder, call: Call) -> int:
    """A chain over the entries z_1, z_2, ... of each window: m = z_1, then m + max(0, z_i - m).

    Each max(0, z_i - m) is a unit. The entries of a window are taken in ascending order; the i-th
    step has units for those windows that have an i-th entry inside of the image.
    """
    x, num = call.first, builder.num
    batch, channels, *sizes = builder.shape(x)
    attributes, _ = without_ceil_mode(builder, x, call.attributes)
    kernel = attributes.get("kernel_shape", sizes)
    index, window_counts = windows(builder, x, kernel, attributes)
    require_known((index >= 0).any(1), "MaxPool with a window in the padding")

    count = builder.size(x)
    channel_starts = np.arange(batch * channels)[:, None, None] * math.prod(sizes)
    entries = np.where(index >= 0, channel_starts + index, count)  # `count` in the padding
    steps = np.sort(entries.reshape(-1, index.shape[1]), axis=1).T
    argument = builder.unit("Copy", x)
    shape = (batch, channels, *window_counts)
    value = builder.affine([argument], [gather(steps[0], count)], shape)
    for step in steps[1:]:
        inside = np.flatnonzero(step < count)
        minus_value = (*gather(inside, len(step)), Scale(np.full(len(inside), -1.0)))
        maps = [gather(step[inside], count), minus_value]
        difference = builder.affine([argument, value], maps, inside.shape)
        units = builder.unit("Relu", difference)
        value = builder.affine([value, units], [(), scatter(inside, len(step))], shape)

    inside_steps = np.where(steps < count, steps, steps[0])

    def maximum(z: Array) -> Array:
        return functools.reduce(num.maximum, (z[step] for step in inside_steps))

    return builder.unit("Copy", value, read=argument, function=maximum)


READERS: dict[str, Reader] = {"GlobalMaxPool": max_pool, "MaxPool": max_pool}
