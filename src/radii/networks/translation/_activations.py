"""Nonlinear functions of one value."""

from __future__ import annotations

import math

import numpy as np

from radii.networks.operators._activations import (
    Clip,
    LeakyRelu,
    LogSoftmax,
    PRelu,
    Relu,
    Sigmoid,
    Softmax,
    Tanh,
)
from radii.networks.operators._arrangement import Reshape
from radii.networks.translation._base import OnnxNode

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

SOFTMAX_ALONG_ONE_AXIS = 13
"""From this opset on, Softmax normalises one axis; before, all axes from the given one on."""


def relu(call: OnnxNode) -> int:
    return call.emit(Relu(), call.node(0))


def leaky_relu(call: OnnxNode) -> int:
    return call.emit(LeakyRelu(call.float_attribute("alpha", 0.01)), call.node(0))


def prelu(call: OnnxNode) -> int:
    return call.emit(PRelu(call.weight(1)), call.node(0))


def clip(call: OnnxNode) -> int:
    """Bounds are attributes before opset 11, inputs since."""
    low = call.constant(1).item() if call.has(1) else call.float_attribute("min", -math.inf)
    high = call.constant(2).item() if call.has(2) else call.float_attribute("max", math.inf)
    if math.isnan(low) or math.isnan(high):
        raise call.unsupported("with a bound that is NaN")
    # Exporters write the largest float where they mean that a side is open.
    low = -math.inf if low <= -LARGEST_FLOAT32 else float(low)
    high = math.inf if high >= LARGEST_FLOAT32 else float(high)
    return call.emit(Clip(low, high), call.node(0))


def sigmoid(call: OnnxNode) -> int:
    return call.emit(Sigmoid(), call.node(0))


def tanh(call: OnnxNode) -> int:
    return call.emit(Tanh(), call.node(0))


def softmax(call: OnnxNode) -> int:
    make = Softmax if call.proto.op_type == "Softmax" else LogSoftmax
    shape = call.shape(0)
    if call.opset >= SOFTMAX_ALONG_ONE_AXIS:
        return call.emit(make(call.axis(call.int_attribute("axis", -1), len(shape))), call.node(0))
    axis = call.axis(call.int_attribute("axis", 1), len(shape))
    if math.prod(shape[axis + 1 :]) == 1:
        return call.emit(make(axis), call.node(0))
    rows = call.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.node(0))
    return call.emit(Reshape(shape), call.emit(make(1), rows))
