"""Largest and smallest entries of two values and along axes, sums along an axis, and TopK's values.

A smallest entry is minus the largest of what is negated. All are exact but for the sums.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from radii.networks.operators._arithmetic import scaled
from radii.networks.operators._arrangement import Concat, Expand, Reshape, Transpose
from radii.networks.operators._base import (
    OnnxNode,
    OperatorKind,
    broadcast,
    translates,
)
from radii.networks.operators._convolution_maps import Window
from radii.networks.operators._max_pool import MaxPool
from radii.networks.operators._piecewise_linear import Abs, Clip
from radii.networks.operators._pooling import ReduceSum
from radii.networks.operators._resizing import AlongAxis


def largest_along_last(call: OnnxNode, node: int) -> int:
    """The node of the largest entries along the last axis, flattened."""
    shape = call.shape_of(node)
    rows = call.emit(Reshape((1, math.prod(shape[:-1]), shape[-1])), node)
    window = Window((shape[-1],), (1,), (1,), ((0, 0),))
    return call.emit(Reshape((math.prod(shape[:-1]),)), call.emit(MaxPool(window), rows))


def extreme_of(call: OnnxNode) -> int:
    """Max or Min of any number of values, at least two of which are no single constants."""
    sign = 1.0 if call.proto.op_type == "Max" else -1.0
    positions = range(len(call.proto.input))
    shape = broadcast(*(call.shape(p) for p in positions))
    column = (math.prod(shape), 1)
    constants: list[Tensor | None] = []
    nodes = []
    for position in positions:
        if call.is_constant(position):
            values = (sign * call.weight(position)).expand(shape).reshape(column)
            constants.append(values.clone())
        else:
            own = call.emit(Expand(shape), scaled(call, call.node(position), sign))
            nodes.append(call.emit(Reshape(column), own))
            constants.append(None)
    table = call.emit(Concat(1, constants), *nodes)
    result = call.emit(Reshape(shape), largest_along_last(call, table))
    return scaled(call, result, sign)


@translates("Max", "Min", kind=OperatorKind.PIECEWISE_LINEAR)
def _bound(call: OnnxNode) -> int:
    """Of one value and single numbers a Clip with one side open; else the largest of all."""
    variables = [p for p in range(len(call.proto.input)) if not call.is_constant(p)]
    constants = [p for p in range(len(call.proto.input)) if call.is_constant(p)]
    if len(variables) != 1 or any(call.constant(p).size != 1 for p in constants):
        return extreme_of(call)
    result = call.node(variables[0])
    rank = max(call.rank(p) for p in variables + constants)
    for position in constants:
        limit = float(call.weight(position))
        lowest, highest = (limit, torch.inf) if call.proto.op_type == "Max" else (-torch.inf, limit)
        result = call.emit(Clip(lowest, highest), result)
    missing = rank - call.rank(variables[0])
    if missing:
        result = call.emit(Reshape((1,) * missing + call.shape(variables[0])), result)
    return result


@translates("ReduceMax", "ReduceMin", kind=OperatorKind.PIECEWISE_LINEAR)
def _reduce_extreme(call: OnnxNode) -> int:
    """No axes at all mean every axis, or none with `noop_with_empty_axes`."""
    shape = call.shape(0)
    axes = call.axes(1, rank=len(shape))
    if not axes:
        if call.int_attribute("noop_with_empty_axes", 0):
            return call.node(0)
        axes = list(range(len(shape)))
    sign = 1.0 if call.proto.op_type == "ReduceMax" else -1.0
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    ordered = call.emit(Transpose([*kept, *axes]), scaled(call, call.node(0), sign))
    rows = (math.prod(shape[axis] for axis in kept), math.prod(shape[axis] for axis in axes))
    result = largest_along_last(call, call.emit(Reshape(rows), ordered))
    keep = bool(call.int_attribute("keepdims", 1))
    sizes = [1 if axis in axes else size for axis, size in enumerate(shape)]
    final = tuple(size for axis, size in enumerate(sizes) if keep or axis in kept)
    return scaled(call, call.emit(Reshape(final), result), sign)


@translates("ReduceL1", kind=OperatorKind.PIECEWISE_LINEAR)
def _reduce_l1(call: OnnxNode) -> int:
    """The sum of absolute values."""
    rank = call.rank(0)
    axes = call.axes(1, rank=rank)
    if not axes and call.int_attribute("noop_with_empty_axes", 0):
        raise call.unsupported("over no axes")
    keep = bool(call.int_attribute("keepdims", 1))
    sizes = call.emit(Abs(), call.node(0))
    return call.emit(ReduceSum(axes or range(rank), keep=keep), sizes)


@translates("CumSum")
def _cumulative_sum(call: OnnxNode) -> int:
    """A product with a triangle of ones."""
    shape = call.shape(0)
    (given,) = call.integers(1)
    axis = call.axis(given, len(shape))
    offset = -1 if call.int_attribute("exclusive", 0) else 0
    ones = torch.ones(shape[axis], shape[axis], dtype=torch.float64)
    triangle = ones.tril(offset)
    if call.int_attribute("reverse", 0):
        triangle = triangle.T.contiguous()
    return call.emit(AlongAxis(triangle, axis), call.node(0))
