"""Random models of convolutions, poolings and batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from hypothesis import assume

from radii.testing._graphs import Sketch
from radii.testing.operator_models._base import Draw, any_shape, values


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


def conv(draw: Draw) -> onnx.ModelProto:
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


def conv_transpose(draw: Draw) -> onnx.ModelProto:
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


def pool(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = _images(draw, draw.choice(1, 2, 2, 2, 3))
        sketch, value = values(draw, shape, double=False)
        kernel = [draw.integer(1, 3) for _ in shape[2:]]
        since = 10 if operator == "MaxPool" else 19
        attributes = _window(draw, shape[2:], kernel, dilated=sketch.opset >= since, short=True)
        if sketch.opset >= 10 and "auto_pad" not in attributes:
            attributes["ceil_mode"] = draw.integer(0, 1)
        if operator == "AveragePool":
            attributes["count_include_pad"] = draw.integer(0, 1)
        return sketch.model(sketch.apply(operator, value, kernel_shape=kernel, **attributes))

    return build


def global_pool(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        sketch, value = values(draw, _images(draw, draw.choice(1, 2, 3)), double=False)
        return sketch.model(sketch.apply(operator, value))

    return build


def batch_norm(draw: Draw) -> onnx.ModelProto:
    shape = [draw.integer(1, 3), draw.integer(1, 3), *any_shape(draw, 1, 2)][: draw.integer(2, 4)]
    sketch, value = values(draw, shape)
    vectors = [draw.normal(shape[1]) for _ in range(3)] + [draw.rng.uniform(0.1, 2, shape[1])]
    names = [sketch.constant(vector) for vector in vectors]
    attributes = {"epsilon": draw.choice(1e-5, 0.1)} if draw.flag() else {}
    return sketch.model(sketch.apply("BatchNormalization", value, *names, **attributes))
