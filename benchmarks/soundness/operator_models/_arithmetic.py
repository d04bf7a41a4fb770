"""Random models of arithmetic, products, convolutions, poolings and nonlinear functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import assume

from benchmarks.soundness.operator_models._base import (
    Draw,
    any_shape,
    broadcastable,
    models_of,
    values,
    with_axes,
)
from radii.testing._graphs import Sketch


@models_of("Identity", "Neg", "Relu", "Sigmoid", "Tanh")
def _unary(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw))
    return sketch.model(sketch.apply(draw.operator, value))


@models_of("Add", "Div", "Mul", "Sub")
def _binary(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    if draw.flag():
        numbers = draw.normal(*broadcastable(draw, shape))
        other = sketch.constant(numbers + np.copysign(0.5, numbers))
    elif draw.flag():
        weight = sketch.constant(np.sign(draw.normal(*shape)) * 0.5)
        shift = sketch.constant(draw.normal(*broadcastable(draw, shape)) + 4.0)
        other = sketch.apply("Add", sketch.apply("Mul", value, weight), shift)
        if draw.operator == "Div":
            other = sketch.apply("Add", sketch.apply("Sigmoid", other), sketch.constant(0.5))
    elif draw.flag():
        squared = sketch.apply("Mul", value, value)
        other = sketch.apply("Add", squared, sketch.constant(1.0))
    else:
        sizes = [1] * draw.integer(0, 2) + [int(np.prod(shape))]
        flat = sketch.apply("Reshape", value, sketch.constant(np.array(sizes)))
        row = sketch.apply("ReduceMean", flat, keepdims=1)
        other = sketch.apply("Sigmoid", row)
    pair = (value, other) if draw.flag() else (other, value)
    if draw.operator == "Div" and pair[1] == value:
        positive = sketch.apply("Sigmoid", value)
        pair = (other, sketch.apply("Add", positive, sketch.constant(0.5)))
    return sketch.model(sketch.apply(draw.operator, *pair))


@models_of("Max", "Min")
def _bound(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    limits = [sketch.constant(draw.normal(*[1] * draw.integer(0, 2))) for _ in range(2)]
    parts = [value, *limits[: draw.integer(0, 2)]]
    if draw.integer(0, 3) == 0:
        parts.append(sketch.constant(draw.normal(*broadcastable(draw, shape))))
    if draw.integer(0, 3) == 0:
        parts.append(sketch.apply("Mul", value, sketch.constant(-0.5)))
    return sketch.model(sketch.apply(draw.operator, *(parts[i] for i in draw.order(len(parts)))))


@models_of("Reciprocal")
def _reciprocal(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw))
    positive = sketch.apply("Add", sketch.apply("Sigmoid", value), sketch.constant(0.5))
    return sketch.model(sketch.apply("Reciprocal", positive))


@models_of("Sqrt")
def _square_root(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw))
    least = sketch.constant(draw.choice(0.01, 0.5))
    return sketch.model(sketch.apply("Sqrt", sketch.apply("Add", _squares(sketch, value), least)))


@models_of("Pow")
def _power(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw))
    exponent = draw.choice(1.0, 2.0, 3.0, 4.0, 7.0, 0.5, -0.5, -1.0, -2.0)
    if exponent < 1:
        value = sketch.apply("Add", _squares(sketch, value), sketch.constant(0.5))
    return sketch.model(sketch.apply("Pow", value, sketch.constant(np.array(exponent))))


@models_of("ReduceL2", "ReduceSumSquare")
def _reduced_squares(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    value = sketch.apply("Add", value, sketch.constant(draw.choice(0.0, 3.0)))
    axes = draw.axes(len(shape))
    if sketch.opset < 11:
        axes = [axis % len(shape) for axis in axes]
    attributes: dict[str, Any] = {"keepdims": draw.integer(0, 1)} if draw.flag() else {}
    chosen = axes if draw.flag() else None
    return with_axes(sketch, draw.operator, value, chosen, 18, **attributes)


def _squares(sketch: Sketch, value: str) -> str:
    return sketch.apply("Mul", value, value)


@models_of("Sum")
def _total(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    parts = [value]
    if draw.flag():
        parts.append(sketch.apply("Tanh", value))
    if draw.flag():
        parts.append(sketch.constant(draw.normal(*broadcastable(draw, shape))))
    return sketch.model(sketch.apply("Sum", *(parts[i] for i in draw.order(len(parts)))))


@models_of("Gemm")
def _gemm(draw: Draw) -> onnx.ModelProto:
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


@models_of("MatMul")
def _matmul(draw: Draw) -> onnx.ModelProto:
    inner = draw.integer(1, 4)
    stack = [draw.integer(1, 3) for _ in range(draw.integer(0, 2))]
    left = draw.choice([inner], [*stack, draw.integer(1, 4), inner])
    right = draw.choice([inner], [inner, draw.integer(1, 4)], [*stack, inner, draw.integer(1, 4)])
    variable = draw.choice("left", "right", "both")
    sketch, value = values(draw, right if variable == "right" else left)
    pair = {
        "left": lambda: (value, sketch.constant(draw.normal(*right))),
        "right": lambda: (sketch.constant(draw.normal(*left)), value),
        "both": lambda: (value, _product_of(sketch, draw, value, left, right)),
    }[variable]()
    return sketch.model(sketch.apply("MatMul", *pair))


@models_of("PRelu")
def _prelu(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, double=False)
    sizes = [size if draw.flag() else 1 for size in shape[draw.integer(0, len(shape) - 1) :]]
    return sketch.model(sketch.apply("PRelu", value, sketch.constant(draw.normal(*sizes))))


@models_of("LeakyRelu")
def _leaky_relu(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), double=False)
    slope = {"alpha": draw.choice(0.1, 0.0, -0.5, 2.0)} if draw.flag() else {}
    return sketch.model(sketch.apply("LeakyRelu", value, **slope))


@models_of("Elu")
def _elu(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), double=False)
    alpha = {"alpha": draw.choice(0.5, 0.0, 0.1, 2.0)} if draw.flag() else {}
    return sketch.model(sketch.apply("Elu", value, **alpha))


@models_of("Clip")
def _clip(draw: Draw) -> onnx.ModelProto:
    sketch = draw.sketch(draw.shape(2), double=False)
    low, high = draw.choice(-0.5, -np.inf, None), draw.choice(0.25, np.inf, None)
    if sketch.opset < 11:
        sides = {"min": low, "max": high}
        finite = {k: v for k, v in sides.items() if v is not None and np.isfinite(v)}
        return sketch.model(sketch.apply("Clip", "x", **finite))
    bounds = ["" if v is None else sketch.constant(np.array(float(v))) for v in (low, high)]
    return sketch.model(sketch.apply("Clip", "x", *bounds))


@models_of("Softmax", "LogSoftmax")
def _softmax(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 2)
    sketch, value = values(draw, shape)
    lowest = 0 if sketch.opset < 11 else -len(shape)
    axis = {"axis": draw.integer(lowest, len(shape) - 1)} if draw.flag() else {}
    return sketch.model(sketch.apply(draw.operator, value, **axis))


def _images(draw: Draw, axes: int) -> list[int]:
    return [draw.integer(1, 2), draw.integer(1, 2) * 2, *(draw.integer(3, 7) for _ in range(axes))]


def _window(
    draw: Draw, sizes: list[int], kernel: list[int], *, dilated: bool = True, short: bool = False
) -> dict[str, Any]:
    """Attributes of a window that fits; with `short`, padding stays below the kernel."""
    axes = range(len(sizes))
    most = [(kernel[i] - 1 if sizes[i] > 1 else 0) if short else 2 for i in axes]
    before, after = ([draw.integer(0, most[i]) for i in axes] for _ in range(2))
    strides = [draw.integer(1, 3) for _ in axes]
    dilations = [draw.integer(1, 2) if dilated else 1 for _ in axes]
    given: dict[str, Any] = {}
    if draw.flag():
        given["strides"] = strides
    if dilated and draw.flag():
        given["dilations"] = dilations
    reach = [given.get("dilations", [1] * 3)[i] * (kernel[i] - 1) + 1 for i in axes]
    padding = draw.choice("none", "pads", "VALID", "SAME_UPPER", "SAME_LOWER")
    if padding == "pads":
        given["pads"] = before + after
    elif padding != "none":
        given["auto_pad"] = padding
        if padding.startswith("SAME"):
            given.pop("dilations", None)
            if any(stride > k for stride, k in zip(strides, kernel, strict=True)):
                given.pop("strides", None)  # ONNX Runtime refuses to crop in poolings
            return given
    padded = [sizes[i] + sum(given.get("pads", [0] * 6)[i :: len(sizes)]) for i in axes]
    assume(all(padded[i] >= reach[i] for i in axes))
    return given


@models_of("Conv")
def _conv(draw: Draw) -> onnx.ModelProto:
    shape = _images(draw, draw.choice(1, 2, 2, 2, 3))
    sketch, value = values(draw, shape, double=False)
    groups = draw.choice(1, 2, shape[1])
    kernel = [draw.integer(1, 3) for _ in shape[2:]]
    outputs = groups * draw.integer(1, 2)
    weight = sketch.constant(draw.normal(outputs, shape[1] // groups, *kernel))
    bias = [sketch.constant(draw.normal(outputs))] if draw.flag() else []
    attributes = _window(draw, shape[2:], kernel)
    named = {"kernel_shape": kernel} if draw.flag() else {}
    return sketch.model(
        sketch.apply("Conv", value, weight, *bias, group=groups, **named, **attributes)
    )


@models_of("ConvTranspose")
def _conv_transpose(draw: Draw) -> onnx.ModelProto:
    shape = _images(draw, draw.choice(1, 2, 2))
    sketch, value = values(draw, shape, double=False)
    groups = draw.choice(1, 2)
    axes = range(len(shape) - 2)
    kernel, strides, dilations = ([draw.integer(1, 3) for _ in axes] for _ in range(3))
    weight = sketch.constant(draw.normal(shape[1], draw.integer(1, 2), *kernel))
    outputs = groups * int(_constant_shape(sketch, weight)[1])
    bias = [sketch.constant(draw.normal(outputs))] if draw.flag() else []
    given: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
    full = [(shape[i + 2] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 for i in axes]
    match draw.choice("none", "pads", "output_shape", "SAME_UPPER", "SAME_LOWER"):
        case "pads":
            sides = [draw.integer(0, (full[i] - 1) // 2) for i in [*axes, *axes]]
            given["pads"] = sides
            extra = [draw.integer(0, strides[i] - 1) for i in axes]
            if draw.flag():
                given["output_padding"] = extra
        case "output_shape":
            given["output_shape"] = [draw.integer(1, full[i]) for i in axes]
        case "none":
            pass
        case automatic:
            assume(all(full[i] >= shape[i + 2] * strides[i] for i in axes))
            given["auto_pad"] = automatic
    return sketch.model(sketch.apply("ConvTranspose", value, weight, *bias, **given))


def _constant_shape(sketch: Sketch, constant: str) -> list[int]:
    """The shape of a constant of the sketch."""
    stored = {tensor.name: tensor for tensor in sketch.weights}
    for node in sketch.nodes:
        if node.op_type == "Constant":
            stored[node.output[0]] = node.attribute[0].t
    return list(stored[constant].dims)


@models_of("AveragePool", "MaxPool")
def _pool(draw: Draw) -> onnx.ModelProto:
    shape = _images(draw, draw.choice(1, 2, 2, 2, 3))
    sketch, value = values(draw, shape, double=False)
    kernel = [draw.integer(1, 3) for _ in shape[2:]]
    since = 10 if draw.operator == "MaxPool" else 19
    attributes = _window(draw, shape[2:], kernel, dilated=sketch.opset >= since, short=True)
    if sketch.opset >= 10 and "auto_pad" not in attributes:
        attributes["ceil_mode"] = draw.integer(0, 1)
    if draw.operator == "AveragePool":
        attributes["count_include_pad"] = draw.integer(0, 1)
    return sketch.model(sketch.apply(draw.operator, value, kernel_shape=kernel, **attributes))


@models_of("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, _images(draw, draw.choice(1, 2, 3)), double=False)
    return sketch.model(sketch.apply(draw.operator, value))


@models_of("BatchNormalization")
def _batch_norm(draw: Draw) -> onnx.ModelProto:
    shape = [draw.integer(1, 3), draw.integer(1, 3), *any_shape(draw, 1, 2)][: draw.integer(2, 4)]
    sketch, value = values(draw, shape)
    vectors = [draw.normal(shape[1]) for _ in range(3)] + [draw.rng.uniform(0.1, 2, shape[1])]
    names = [sketch.constant(vector) for vector in vectors]
    attributes = {"epsilon": draw.choice(1e-5, 0.1)} if draw.flag() else {}
    return sketch.model(sketch.apply("BatchNormalization", value, *names, **attributes))


@models_of("LayerNormalization", "RMSNormalization")
def _layer_norm(draw: Draw) -> onnx.ModelProto:
    is_plain = draw.operator == "LayerNormalization"
    shape = [*any_shape(draw, 1, 2), draw.integer(2, 5)]
    oldest = 17 if is_plain else 23
    sketch, value = values(draw, shape, oldest=oldest, double=False)
    axis = draw.integer(-len(shape), len(shape) - 1)
    scale = sketch.constant(draw.normal(*shape[axis:]))
    shift = [sketch.constant(draw.normal(*shape[axis:]))] if is_plain and draw.flag() else []
    named = {"axis": axis} if axis != -1 or draw.flag() else {}
    return sketch.model(
        sketch.apply(draw.operator, value, scale, *shift, epsilon=_epsilon(draw), **named)
    )


def _epsilon(draw: Draw) -> float:
    """Of one entry, a norm is a step at 0 with a small one."""
    return float(draw.choice(0.1, 1.0))


@models_of("InstanceNormalization")
def _instance_norm(draw: Draw) -> onnx.ModelProto:
    shape = [1, draw.integer(1, 3), *(draw.integer(2, 4) for _ in range(draw.integer(1, 2)))]
    sketch, value = values(draw, shape, double=False)
    names = [sketch.constant(draw.normal(shape[1])) for _ in range(2)]
    epsilon = _epsilon(draw)
    return sketch.model(sketch.apply("InstanceNormalization", value, *names, epsilon=epsilon))


@models_of("GroupNormalization")
def _group_norm(draw: Draw) -> onnx.ModelProto:
    groups = draw.integer(1, 2)
    channels = groups * draw.integer(1, 2)
    shape = [1, channels, *(draw.integer(2, 3) for _ in range(draw.integer(1, 2)))]
    sketch, value = values(draw, shape, oldest=21, double=False)
    names = [sketch.constant(draw.normal(channels)) for _ in range(2)]
    attributes = {"num_groups": groups, "epsilon": _epsilon(draw)}
    return sketch.model(sketch.apply("GroupNormalization", value, *names, **attributes))
