"""Poolings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._pooling import AveragePool, MaxPool
from radii.networks.operators._reductions import ReduceMean
from radii.networks.operators._windows import Window
from radii.networks.translation._base import OnnxNode
from radii.networks.translation._windows import spatial_window


def max_pool(call: OnnxNode) -> int:
    window = _rounded(call, spatial_window(call, call.ints_attribute("kernel_shape")))
    _refuse_empty(call, window)
    return call.emit(MaxPool(window), call.node(0))


def average_pool(call: OnnxNode) -> int:
    given = spatial_window(call, call.ints_attribute("kernel_shape"))
    window = _rounded(call, given)
    _refuse_empty(call, window)
    sizes = call.shape(0)[2:]
    counted = given.pads if call.int_attribute("count_include_pad", 0) else ((0, 0),) * len(sizes)
    factors = _factors(window, sizes, counted)
    needed = bool((factors != 1).any())
    return call.emit(AveragePool(window, factors if needed else None), call.node(0))


def global_average_pool(call: OnnxNode) -> int:
    return call.emit(ReduceMean(range(2, call.rank(0)), keep=True), call.node(0))


def global_max_pool(call: OnnxNode) -> int:
    sizes = call.shape(0)[2:]
    if not 1 <= len(sizes) <= 3:
        raise call.unsupported(f"of a value of shape {call.shape(0)}")
    ones = (1,) * len(sizes)
    return call.emit(MaxPool(Window(sizes, ones, ones, ((0, 0),) * len(sizes))), call.node(0))


def _rounded(call: OnnxNode, window: Window) -> Window:
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


def _refuse_empty(call: OnnxNode, window: Window) -> None:
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
