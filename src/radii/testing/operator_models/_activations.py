"""Random models of nonlinear functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from radii.testing.operator_models._base import Draw, any_shape, values


def prelu(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, double=False)
    sizes = [size if draw.flag() else 1 for size in shape[draw.integer(0, len(shape) - 1) :]]
    return sketch.model(sketch.apply("PRelu", value, sketch.constant(draw.normal(*sizes))))


def leaky_relu(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), double=False)
    slope = {"alpha": draw.choice(0.1, 0.0, -0.5, 2.0)} if draw.flag() else {}
    return sketch.model(sketch.apply("LeakyRelu", value, **slope))


def clip(draw: Draw) -> onnx.ModelProto:
    sketch = draw.sketch(draw.shape(2), double=False)
    low, high = draw.choice(-0.5, -np.inf, None), draw.choice(0.25, np.inf, None)
    if sketch.opset < 11:
        sides = {"min": low, "max": high}
        finite = {k: v for k, v in sides.items() if v is not None and np.isfinite(v)}
        return sketch.model(sketch.apply("Clip", "x", **finite))
    bounds = ["" if v is None else sketch.constant(np.array(float(v))) for v in (low, high)]
    return sketch.model(sketch.apply("Clip", "x", *bounds))


def softmax(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = any_shape(draw, 2)
        sketch, value = values(draw, shape)
        lowest = 0 if sketch.opset < 11 else -len(shape)
        axis = {"axis": draw.integer(lowest, len(shape) - 1)} if draw.flag() else {}
        return sketch.model(sketch.apply(operator, value, **axis))

    return build
