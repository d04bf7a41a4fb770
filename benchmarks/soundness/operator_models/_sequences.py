"""Random models of recurrent layers, and of values that are made larger or smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from benchmarks.soundness.operator_models._base import Draw, any_shape, models_of, values, with_axes


@models_of("GRU", "LSTM", "RNN")
def _recurrent(draw: Draw) -> onnx.ModelProto:
    steps, batch, inputs, size = (draw.integer(1, 3) for _ in range(4))
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[draw.operator]
    direction = draw.choice("forward", "reverse", "bidirectional")
    sides = 2 if direction == "bidirectional" else 1
    sketch, value = values(draw, [steps, batch, inputs], oldest=14, double=False)
    weights = [draw.normal(sides, gates * size, n) for n in (inputs, size)]
    given = [sketch.constant(weight) for weight in weights]
    attributes: dict[str, Any] = {"hidden_size": size, "direction": direction}
    if draw.operator == "GRU":
        attributes["linear_before_reset"] = draw.integer(0, 1)
    if draw.operator == "RNN" and draw.flag():
        attributes["activations"] = [draw.choice("Relu", "Tanh", "Sigmoid")] * sides
    if draw.flag():
        given.append(sketch.constant(draw.normal(sides, 2 * gates * size)))
        if draw.flag():
            given += ["", sketch.constant(draw.normal(sides, batch, size))]
            if draw.operator == "LSTM":
                given.append(sketch.constant(draw.normal(sides, batch, size)))
    return sketch.model(sketch.apply(draw.operator, value, *given, **attributes))


@models_of("Resize")
def _resize(draw: Draw) -> onnx.ModelProto:
    mode = draw.choice("nearest", "linear", "cubic")
    least = 4 if mode == "cubic" else 1
    shape = [1, draw.integer(1, 2), *(draw.integer(least, 5) for _ in range(2))]
    sketch, value = values(draw, shape, oldest=13, double=False)
    factors = [draw.choice(1.0, 2.0, 4.0) for _ in range(2)]
    attributes = {"mode": mode}
    if mode == "nearest":
        attributes["nearest_mode"] = draw.choice("floor", "ceil", "round_prefer_floor")
    places = draw.choice("half_pixel", "pytorch_half_pixel", "asymmetric")
    attributes["coordinate_transformation_mode"] = places
    if draw.flag():
        scales = sketch.constant(np.array([1.0, 1.0, *factors]), np.float32)
        return sketch.model(sketch.apply("Resize", value, "", scales, **attributes))
    sizes = [*shape[:2], *(int(n * f) for n, f in zip(shape[2:], factors, strict=True))]
    given = sketch.constant(np.array(sizes))
    return sketch.model(sketch.apply("Resize", value, "", "", given, **attributes))


@models_of("Upsample")
def _upsample(draw: Draw) -> onnx.ModelProto:
    """Of opset 9, the last that has it."""
    shape = [1, draw.integer(1, 2), *(draw.integer(1, 4) for _ in range(2))]
    sketch, value = values(draw, shape, oldest=9, newest=9, double=False)
    scales = np.array([1.0, 1.0, *(draw.choice(1.0, 2.0, 3.0) for _ in range(2))])
    return sketch.model(sketch.apply("Upsample", value, sketch.constant(scales), mode="nearest"))


@models_of("ReduceMax", "ReduceMin", "ReduceL1")
def _reduced_extreme(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, oldest=13)
    axes = draw.axes(len(shape)) if draw.flag() else None
    if axes is not None:
        axes = sorted({axis % len(shape) for axis in axes})
    keep = {"keepdims": draw.integer(0, 1)} if draw.flag() else {}
    return with_axes(sketch, draw.operator, value, axes, 18, **keep)


@models_of("CumSum")
def _cumulative(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, oldest=11)
    axis = sketch.constant(np.array(draw.integer(-len(shape), len(shape) - 1)))
    given = {name: draw.integer(0, 1) for name in ("exclusive", "reverse")}
    return sketch.model(sketch.apply("CumSum", value, axis, **given))


@models_of("Einsum")
def _einsum(draw: Draw) -> onnx.ModelProto:
    equation = draw.choice("bij,bjk->bik", "ij,jk->ki", "bhqd,bhkd->bhqk", "ij,ij->ij", "ij->j")
    given, _, _ = equation.partition("->")
    sizes = {letter: draw.integer(1, 3) for letter in "bdhijkq"}
    shapes = [[sizes[letter] for letter in term] for term in given.split(",")]
    place = draw.integer(0, len(shapes) - 1)
    sketch, value = values(draw, shapes[place], oldest=13, double=False)
    parts = [sketch.constant(draw.normal(*shape)) for shape in shapes]
    parts[place] = value
    if len(shapes) == 2 and draw.flag():
        flat = sketch.apply("Reshape", value, sketch.constant(np.array([1, -1])))
        weight = draw.normal(int(np.prod(shapes[place])), int(np.prod(shapes[1 - place])))
        other = sketch.apply("MatMul", flat, sketch.constant(weight))
        shape = sketch.constant(np.array(shapes[1 - place]))
        parts[1 - place] = sketch.apply("Reshape", other, shape)
    return sketch.model(sketch.apply("Einsum", *parts, equation=equation))
