"""Random models of products and elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hypothesis import assume

from radii.testing._graphs import Sketch
from radii.testing.operator_models._base import Draw, any_shape, broadcastable, values


def unary(operator: str, **options: Any) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        sketch, value = values(draw, any_shape(draw), **options)
        return sketch.model(sketch.apply(operator, value))

    return build


def binary(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = any_shape(draw)
        sketch, value = values(draw, shape)
        if draw.flag():
            numbers = draw.normal(*broadcastable(draw, shape))
            other = sketch.constant(numbers + np.copysign(0.5, numbers))
        elif draw.flag():
            squared = sketch.apply("Mul", value, value)
            other = sketch.apply("Add", squared, sketch.constant(1.0))
        else:
            sizes = [1] * draw.integer(0, 2) + [int(np.prod(shape))]
            flat = sketch.apply("Reshape", value, sketch.constant(np.array(sizes)))
            row = sketch.apply("ReduceMean", flat, keepdims=1)
            other = sketch.apply("Sigmoid", row)
        pair = (value, other) if draw.flag() else (other, value)
        if operator == "Div" and pair[1] == value:
            positive = sketch.apply("Sigmoid", value)
            pair = (other, sketch.apply("Add", positive, sketch.constant(0.5)))
        return sketch.model(sketch.apply(operator, *pair))

    return build


def bound(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        sketch, value = values(draw, any_shape(draw))
        limits = [sketch.constant(draw.normal(*[1] * draw.integer(0, 2))) for _ in range(2)]
        parts = [value, *limits[: draw.integer(0, 2)]]
        return sketch.model(sketch.apply(operator, *(parts[i] for i in draw.order(len(parts)))))

    return build


def reciprocal(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw))
    positive = sketch.apply("Add", sketch.apply("Sigmoid", value), sketch.constant(0.5))
    return sketch.model(sketch.apply("Reciprocal", positive))


def total(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    parts = [value]
    if draw.flag():
        parts.append(sketch.apply("Tanh", value))
    if draw.flag():
        parts.append(sketch.constant(draw.normal(*broadcastable(draw, shape))))
    return sketch.model(sketch.apply("Sum", *(parts[i] for i in draw.order(len(parts)))))


def gemm(draw: Draw) -> onnx.ModelProto:
    rows, inner, columns = (draw.integer(1, 4) for _ in range(3))
    flips = {"transA": draw.integer(0, 1), "transB": draw.integer(0, 1)}
    left = [inner, rows] if flips["transA"] else [rows, inner]
    right = [columns, inner] if flips["transB"] else [inner, columns]
    variable = draw.choice("left", "right", "both")
    sketch, value = values(draw, right if variable == "right" else left)
    pair = {
        "left": lambda: (value, sketch.constant(draw.normal(*right))),
        "right": lambda: (sketch.constant(draw.normal(*left)), value),
        "both": lambda: (value, _product_of(sketch, draw, value, left, right)),
    }[variable]()
    third = draw.choice((), (columns,), (1, columns), (rows, columns), (rows, 1), (1,), None, "x")
    if third is None and sketch.opset < 11:
        third = (columns,)
    extra: list[str] = []
    if third == "x":
        mean = sketch.apply("ReduceMean", value, keepdims=1)
        extra = [sketch.apply("Reshape", mean, sketch.constant(np.array([1])))]
    elif third is not None:
        extra = [sketch.constant(draw.normal(*third))]
    scales = {"alpha": draw.choice(1.0, 0.5), "beta": draw.choice(1.0, -2.0)}
    return sketch.model(sketch.apply("Gemm", *pair, *extra, **flips, **scales))


def _product_of(sketch: Sketch, draw: Draw, value: str, source: list[int], shape: list[int]) -> str:
    """A value of the given shape that depends on another one."""
    flat = sketch.apply("Reshape", value, sketch.constant(np.array([1, int(np.prod(source))])))
    weight = sketch.constant(draw.normal(int(np.prod(source)), int(np.prod(shape))))
    product = sketch.apply("MatMul", flat, weight)
    return sketch.apply("Reshape", product, sketch.constant(np.array(shape)))


def matmul(draw: Draw) -> onnx.ModelProto:
    inner = draw.integer(1, 4)
    stack = [draw.integer(1, 3) for _ in range(draw.integer(0, 2))]
    left = draw.choice([inner], [*stack, draw.integer(1, 4), inner])
    right = draw.choice([inner], [inner, draw.integer(1, 4)], [*stack, inner, draw.integer(1, 4)])
    variable = draw.choice("left", "right", "both")
    if variable == "both":
        assume(min(len(left), len(right)) > 1)
    sketch, value = values(draw, right if variable == "right" else left)
    pair = {
        "left": lambda: (value, sketch.constant(draw.normal(*right))),
        "right": lambda: (sketch.constant(draw.normal(*left)), value),
        "both": lambda: (value, _product_of(sketch, draw, value, left, right)),
    }[variable]()
    return sketch.model(sketch.apply("MatMul", *pair))
