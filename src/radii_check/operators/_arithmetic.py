"""Sums, and products with constants, entry by entry."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from onnx import TensorProto

from radii_check._builder import Builder, Call, Reader, Value, is_node, weight_of
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._linear_maps import Scale
from radii_check._numbers import Numbers


def add(builder: Builder, x: Value, other: Value, sign: float = 1.0) -> int:
    """x + sign * other, of which one may be a constant."""
    if not is_node(x):
        negated = other if sign > 0 else multiply(builder, other, -1.0)
        return add(builder, negated, x)
    other_shape = builder.shape(other)
    shape = np.broadcast_shapes(builder.shape(x), other_shape)
    own = builder.broadcast(x, shape)
    if is_node(other):
        signs = () if sign > 0 else (Scale(np.full(math.prod(shape), sign)),)
        maps = own, builder.broadcast(other, shape) + signs
        return builder.affine([x, other], maps, shape, terms=3)
    is_row = math.prod(other_shape) in (1, *other_shape[-1:]) and shape == builder.shape(x)
    constant = sign * weight_of(other)
    return builder.affine([x], [own], shape, constant, terms=2, joins="row" if is_row else "")


def multiply(builder: Builder, x: Value, other: Value, divides: bool = False) -> int:
    """x * other, or x / other, of which `other` must be a constant (or x, in a product)."""
    if not is_node(x) and not divides:
        x, other = other, x
    is_constant = is_node(x) and not is_node(other)
    is_known = is_constant and (np.all(other) or not divides)
    require_known(is_known, "Mul or Div of such values")
    factor = weight_of(other)
    shape = np.broadcast_shapes(builder.shape(x), factor.shape)
    largest = (1 / abs(factor) if divides else abs(factor)).max(initial=1.0)
    single = float(abs(factor).item()) if factor.size == 1 else 0.0
    scale = Scale(np.broadcast_to(factor, shape).ravel(), divides)
    maps = [(*builder.broadcast(x, shape), scale)]
    return builder.affine([x], maps, shape, terms=2, factor=largest, single=single)


def total(builder: Builder, values: list[Value]) -> int:
    """The sum of any number of values, nodes first."""
    nodes_first = sorted(values, key=lambda value: not is_node(value))
    return int(functools.reduce(functools.partial(add, builder), nodes_first))


def batch_normalization(builder: Builder, call: Call) -> int:
    """(x - mean) / root * factor + offset with root = sqrt(variance + epsilon), that is
    x * (factor / root) + (offset - mean * factor / root); one number of each for each channel."""
    is_inference = not call.attributes.get("training_mode", 0) and call.attributes.get("spatial", 1)
    require_known(is_inference, "BatchNormalization so set")
    num, shape = builder.num, builder.shape(call.first)
    along_channels = (-1, *(1,) * (len(shape) - 2))
    constants = (weight_of(value).reshape(along_channels) for value in call.inputs[1:5])
    factor, offset, mean, variance = (
        num.array(np.broadcast_to(constant, shape).ravel()) for constant in constants
    )
    root = np.sqrt(variance + float(np.float32(call.attributes.get("epsilon", 1e-5))))
    scale = factor / root
    require_known(np.isfinite(num.floor(scale)), "BatchNormalization of no variance")
    shift = (offset - mean * scale).reshape(shape)
    largest = _largest_on_the_way(num, factor, root)
    gain = largest + (abs(offset) + abs(mean) * largest).max(initial=0.0)
    added = abs(offset) + abs(mean * scale)
    maps = [(Scale(scale),)]
    return builder.affine([call.first], maps, shape, shift, terms=4, gain=gain, added=added)


def _largest_on_the_way(num: Numbers, factor: Array, root: Array) -> Any:
    """How much larger a number may become before the other factor makes it smaller."""
    return (num.maximum(abs(factor), 1.0) * num.maximum(1 / root, 1.0)).max(initial=1.0)


def cast(builder: Builder, call: Call) -> int:
    """To float32 every entry is rounded once; to float64 nothing happens."""
    x, to = call.first, call.attributes["to"]
    is_float = to in (TensorProto.FLOAT, TensorProto.DOUBLE)
    require_known(is_float, "Cast to other types than floats")
    if to == TensorProto.FLOAT and builder.has_doubles:
        builder.is_single = True
        return builder.affine([x], [()], builder.shape(x), terms=1)
    builder.has_doubles |= to == TensorProto.DOUBLE
    return int(x)


def dropout(_: Builder, call: Call) -> int:
    training = call.optional(2)
    is_inference = training is None or not np.any(training)
    require_known(is_inference, "Dropout in training mode")
    return int(call.first)


READERS: dict[str, Reader] = {
    "Add": lambda builder, call: add(builder, call.inputs[0], call.inputs[1]),
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "Div": lambda builder, call: multiply(builder, call.inputs[0], call.inputs[1], divides=True),
    "Dropout": dropout,
    "Identity": lambda _, call: int(call.first),
    "Neg": lambda builder, call: multiply(builder, call.first, -1.0),
    "Sub": lambda builder, call: add(builder, call.inputs[0], call.inputs[1], -1.0),
    "Sum": lambda builder, call: total(builder, list(call.inputs)),
}
