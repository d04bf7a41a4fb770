"""Random models of functions that jump, of comparisons, truth values and choices."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.soundness.operator_models._base import (
    Draw,
    any_shape,
    broadcastable,
    models_of,
    values,
)
from radii.testing._graphs import Sketch


@models_of("Ceil", "Floor", "Sign")
def _step(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), oldest=13)
    factor = sketch.constant(draw.choice(0.5, 1.0, 3.3))
    return sketch.model(sketch.apply(draw.operator, sketch.apply("Mul", value, factor)))


@models_of("Round")
def _round(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), oldest=13)
    return sketch.model(sketch.apply("Round", sketch.apply("Mul", value, sketch.constant(2.2))))


@models_of("ThresholdedRelu")
def _thresholded(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), oldest=10, double=False)
    given = {"alpha": draw.choice(0.0, 0.3)} if draw.flag() else {}
    return sketch.model(sketch.apply("ThresholdedRelu", value, **given))


def _other(draw: Draw, sketch: Sketch, value: str, shape: list[int]) -> str:
    """What a value is compared or combined with: a constant, or another value."""
    if draw.flag():
        return sketch.constant(draw.normal(*broadcastable(draw, shape)))
    return sketch.apply("Mul", sketch.apply("Mul", value, value), sketch.constant(0.7))


def _compared(draw: Draw, sketch: Sketch, value: str, shape: list[int]) -> str:
    """A truth value for each entry, of the shape or one it broadcasts to."""
    pair = [value, _other(draw, sketch, value, shape)]
    return sketch.apply(draw.choice("Greater", "Less"), *(pair if draw.flag() else pair[::-1]))


def _shown(sketch: Sketch, truth: str) -> onnx.ModelProto:
    """Truth values as the numbers 0 and 1."""
    kind = TensorProto.FLOAT if sketch.dtype == np.float32 else TensorProto.DOUBLE
    return sketch.model(sketch.apply("Cast", truth, to=kind))


@models_of("Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def _order(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, oldest=13)
    pair = [value, _other(draw, sketch, value, shape)]
    return _shown(sketch, sketch.apply(draw.operator, *(pair if draw.flag() else pair[::-1])))


@models_of("Equal")
def _equal(draw: Draw) -> onnx.ModelProto:
    """Of whole numbers; floats are seldom equal."""
    sketch, value = values(draw, any_shape(draw), oldest=13)
    if draw.flag():
        whole = sketch.apply("Cast", value, to=TensorProto.INT64)
        other = sketch.constant(np.array(draw.integer(-1, 1)))
        return _shown(sketch, sketch.apply("Equal", whole, other))
    return _shown(sketch, sketch.apply("Equal", sketch.apply("Relu", value), sketch.constant(0.0)))


@models_of("And", "Or", "Xor", "Not")
def _logic(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, oldest=13)
    first = sketch.apply("Greater", value, sketch.constant(draw.normal(1)))
    if draw.operator == "Not":
        return _shown(sketch, sketch.apply("Not", first))
    if draw.flag():
        second = sketch.constant(draw.rng.random(broadcastable(draw, shape)) < 0.5)
    else:
        second = sketch.apply("Less", value, sketch.constant(draw.normal(1)))
    return _shown(sketch, sketch.apply(draw.operator, first, second))


@models_of("Where")
def _where(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, oldest=16)
    if draw.flag():
        condition = _compared(draw, sketch, value, shape)
    else:
        condition = sketch.constant(draw.rng.random(broadcastable(draw, shape)) < 0.5)
    other = sketch.apply("Tanh", value) if draw.flag() else sketch.constant(draw.normal(1))
    pair = [value, other] if draw.flag() else [other, value]
    return sketch.model(sketch.apply("Where", condition, *pair))


@models_of("ArgMax", "ArgMin")
def _place(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 2)
    sketch, value = values(draw, shape, oldest=13)
    axis = {"axis": draw.integer(-len(shape), len(shape) - 1)} if draw.flag() else {}
    keep = {"keepdims": draw.integer(0, 1)} if draw.flag() else {}
    place = sketch.apply(draw.operator, value, **axis, **keep)
    kind = TensorProto.FLOAT if sketch.dtype == np.float32 else TensorProto.DOUBLE
    return sketch.model(sketch.apply("Cast", place, to=kind))
