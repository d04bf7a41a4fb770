"""Random small ONNX models, one strategy for each operator that networks may use.

Attributes, opset, shapes and the place of constants are drawn by hypothesis; weights come from a
seeded generator. Every model is valid for ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hypothesis import assume
from hypothesis import strategies as st

from radii.testing.graphs import Sketch

__all__ = ["OPERATOR_MODELS", "operator_models"]

NEWEST_OPSET = 26
"""The newest opset that ONNX Runtime 1.31 reads."""


class Draw:
    """What a model's author asks hypothesis for."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def flag(self) -> bool:
        return self._draw(st.booleans())

    def choice(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def order(self, count: int) -> list[int]:
        return self._draw(st.permutations(range(count)))

    def axes(self, rank: int, *, least: int = 1) -> list[int]:
        """Different axes, some of them counted from the end."""
        chosen = self._draw(st.lists(st.integers(0, rank - 1), min_size=least, unique=True))
        return [axis - rank if self.flag() else axis for axis in chosen]

    def shape(self, low: int = 1, high: int = 4) -> list[int]:
        """The shape of a value, with a batch axis of 1 ahead."""
        return [1, *(self.integer(1, 4) for _ in range(self.integer(low - 1, high - 1)))]

    def normal(self, *shape: int) -> np.ndarray[Any, Any]:
        return self.rng.normal(0, 1, shape)

    def sketch(self, shape: list[int], *, oldest: int = 8, double: bool = True) -> Sketch:
        """A model whose batch may be symbolic, fixed or, by an earlier reshape, elsewhere."""
        opset = self.integer(oldest, NEWEST_OPSET)
        dtype = np.float64 if double and self.integer(0, 4) == 0 else np.float32
        batch: Any = "batch" if len(shape) > 1 and self.flag() else shape[0]
        return Sketch([batch, *shape[1:]], opset=opset, dtype=dtype, inline=self.flag())

    def rearranged(self, sketch: Sketch, shape: list[int]) -> str:
        """The input in the given shape, which may have another size than 1 in front."""
        return sketch.apply("Reshape", "x", sketch.constant(np.array(shape, dtype=np.int64)))


def _values(draw: Draw, shape: list[int], **options: Any) -> tuple[Sketch, str]:
    """A value of any shape that depends on the input, whose batch axis need not come first."""
    sketch = draw.sketch([1, int(np.prod(shape))], **options)
    return sketch, draw.rearranged(sketch, shape)


def _any_shape(draw: Draw, low: int = 1, high: int = 4) -> list[int]:
    return [draw.integer(1, 4) for _ in range(draw.integer(low, high))]


def _broadcastable(draw: Draw, shape: list[int]) -> list[int]:
    """A shape that broadcasts with `shape`, shorter or longer than it."""
    kept = shape[draw.integer(0, len(shape)) :]
    sizes = [size if draw.flag() else 1 for size in kept]
    longer = len(kept) == len(shape) and draw.flag()
    return [draw.integer(1, 3), *sizes] if longer else sizes


def _unary(operator: str, **options: Any) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        sketch, value = _values(draw, _any_shape(draw), **options)
        return sketch.model(sketch.apply(operator, value))

    return build


def _binary(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = _any_shape(draw)
        sketch, value = _values(draw, shape)
        if draw.flag():
            numbers = draw.normal(*_broadcastable(draw, shape))
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


def _bound(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        sketch, value = _values(draw, _any_shape(draw))
        limits = [sketch.constant(draw.normal(*[1] * draw.integer(0, 2))) for _ in range(2)]
        parts = [value, *limits[: draw.integer(0, 2)]]
        return sketch.model(sketch.apply(operator, *(parts[i] for i in draw.order(len(parts)))))

    return build


def _total(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    parts = [value]
    if draw.flag():
        parts.append(sketch.apply("Tanh", value))
    if draw.flag():
        parts.append(sketch.constant(draw.normal(*_broadcastable(draw, shape))))
    return sketch.model(sketch.apply("Sum", *(parts[i] for i in draw.order(len(parts)))))


def _gemm(draw: Draw) -> onnx.ModelProto:
    rows, inner, columns = (draw.integer(1, 4) for _ in range(3))
    flips = {"transA": draw.integer(0, 1), "transB": draw.integer(0, 1)}
    left = [inner, rows] if flips["transA"] else [rows, inner]
    right = [columns, inner] if flips["transB"] else [inner, columns]
    variable = draw.choice("left", "right", "both")
    sketch, value = _values(draw, right if variable == "right" else left)
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


def _matmul(draw: Draw) -> onnx.ModelProto:
    inner = draw.integer(1, 4)
    stack = [draw.integer(1, 3) for _ in range(draw.integer(0, 2))]
    left = draw.choice([inner], [*stack, draw.integer(1, 4), inner])
    right = draw.choice([inner], [inner, draw.integer(1, 4)], [*stack, inner, draw.integer(1, 4)])
    variable = draw.choice("left", "right", "both")
    if variable == "both":
        assume(min(len(left), len(right)) > 1)
    sketch, value = _values(draw, right if variable == "right" else left)
    pair = {
        "left": lambda: (value, sketch.constant(draw.normal(*right))),
        "right": lambda: (sketch.constant(draw.normal(*left)), value),
        "both": lambda: (value, _product_of(sketch, draw, value, left, right)),
    }[variable]()
    return sketch.model(sketch.apply("MatMul", *pair))


def _prelu(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape, double=False)
    sizes = [size if draw.flag() else 1 for size in shape[draw.integer(0, len(shape) - 1) :]]
    return sketch.model(sketch.apply("PRelu", value, sketch.constant(draw.normal(*sizes))))


def _leaky_relu(draw: Draw) -> onnx.ModelProto:
    sketch, value = _values(draw, _any_shape(draw), double=False)
    slope = {"alpha": draw.choice(0.1, 0.0, -0.5, 2.0)} if draw.flag() else {}
    return sketch.model(sketch.apply("LeakyRelu", value, **slope))


def _clip(draw: Draw) -> onnx.ModelProto:
    sketch = draw.sketch(draw.shape(2), double=False)
    low, high = draw.choice(-0.5, -np.inf, None), draw.choice(0.25, np.inf, None)
    if sketch.opset < 11:
        sides = {"min": low, "max": high}
        finite = {k: v for k, v in sides.items() if v is not None and np.isfinite(v)}
        return sketch.model(sketch.apply("Clip", "x", **finite))
    bounds = ["" if v is None else sketch.constant(np.array(float(v))) for v in (low, high)]
    return sketch.model(sketch.apply("Clip", "x", *bounds))


def _softmax(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = _any_shape(draw, 2)
        sketch, value = _values(draw, shape)
        lowest = 0 if sketch.opset < 11 else -len(shape)
        axis = {"axis": draw.integer(lowest, len(shape) - 1)} if draw.flag() else {}
        return sketch.model(sketch.apply(operator, value, **axis))

    return build


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


def _conv(draw: Draw) -> onnx.ModelProto:
    shape = _images(draw, draw.choice(1, 2, 2, 2, 3))
    sketch, value = _values(draw, shape, double=False)
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


def _conv_transpose(draw: Draw) -> onnx.ModelProto:
    shape = _images(draw, draw.choice(1, 2, 2))
    sketch, value = _values(draw, shape, double=False)
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


def _pool(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = _images(draw, draw.choice(1, 2, 2, 2, 3))
        sketch, value = _values(draw, shape, double=False)
        kernel = [draw.integer(1, 3) for _ in shape[2:]]
        since = 10 if operator == "MaxPool" else 19
        attributes = _window(draw, shape[2:], kernel, dilated=sketch.opset >= since, short=True)
        if sketch.opset >= 10 and "auto_pad" not in attributes:
            attributes["ceil_mode"] = draw.integer(0, 1)
        if operator == "AveragePool":
            attributes["count_include_pad"] = draw.integer(0, 1)
        return sketch.model(sketch.apply(operator, value, kernel_shape=kernel, **attributes))

    return build


def _global_pool(operator: str) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        sketch, value = _values(draw, _images(draw, draw.choice(1, 2, 3)), double=False)
        return sketch.model(sketch.apply(operator, value))

    return build


def _batch_norm(draw: Draw) -> onnx.ModelProto:
    shape = [draw.integer(1, 3), draw.integer(1, 3), *_any_shape(draw, 1, 2)][: draw.integer(2, 4)]
    sketch, value = _values(draw, shape)
    vectors = [draw.normal(shape[1]) for _ in range(3)] + [draw.rng.uniform(0.1, 2, shape[1])]
    names = [sketch.constant(vector) for vector in vectors]
    attributes = {"epsilon": draw.choice(1e-5, 0.1)} if draw.flag() else {}
    return sketch.model(sketch.apply("BatchNormalization", value, *names, **attributes))


def _flatten(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    lowest = 0 if sketch.opset < 11 else -len(shape)
    axis = {"axis": draw.integer(lowest, len(shape))} if draw.flag() else {}
    return sketch.model(sketch.apply("Flatten", value, **axis))


def _reshape(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw, 2)
    sketch, value = _values(draw, shape)
    order = draw.order(len(shape))
    wanted = [shape[i] for i in order]
    wanted = [0 if wanted[i] == shape[i] and draw.flag() else wanted[i] for i in range(len(wanted))]
    if draw.flag():
        wanted[draw.integer(0, len(wanted) - 1)] = -1
    return sketch.model(sketch.apply("Reshape", value, sketch.constant(np.array(wanted))))


def _transpose(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    order = {"perm": draw.order(len(shape))} if draw.flag() else {}
    return sketch.model(sketch.apply("Transpose", value, **order))


def _with_axes(
    sketch: Sketch, operator: str, value: str, axes: list[int] | None, since: int, **attributes: Any
) -> onnx.ModelProto:
    """Apply an operator whose axes are an attribute before the opset `since`, then an input."""
    if axes is None:
        return sketch.model(sketch.apply(operator, value, **attributes))
    if sketch.opset < since:
        return sketch.model(sketch.apply(operator, value, axes=axes, **attributes))
    given = sketch.constant(np.array(axes, dtype=np.int64))
    return sketch.model(sketch.apply(operator, value, given, **attributes))


def _squeeze(draw: Draw) -> onnx.ModelProto:
    shape = [draw.choice(1, 2, 3) for _ in range(draw.integer(2, 4))]
    sketch, value = _values(draw, shape)
    ones = [i for i, size in enumerate(shape) if size == 1]
    axes = [i - len(shape) if sketch.opset >= 11 and draw.flag() else i for i in ones]
    return _with_axes(sketch, "Squeeze", value, axes if axes and draw.flag() else None, 13)


def _unsqueeze(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw, 1, 3)
    sketch, value = _values(draw, shape)
    rank = len(shape) + draw.integer(1, 2)
    axes = draw.order(rank)[: rank - len(shape)]
    axes = [i - rank if sketch.opset >= 11 and draw.flag() else i for i in axes]
    return _with_axes(sketch, "Unsqueeze", value, axes, 13)


def _reduce(operator: str, since: int) -> Callable[[Draw], onnx.ModelProto]:
    def build(draw: Draw) -> onnx.ModelProto:
        shape = _any_shape(draw)
        sketch, value = _values(draw, shape)
        axes = draw.axes(len(shape))
        if sketch.opset < 11:
            axes = [axis % len(shape) for axis in axes]
        attributes: dict[str, Any] = {"keepdims": draw.integer(0, 1)} if draw.flag() else {}
        if sketch.opset >= since and draw.flag():
            attributes["noop_with_empty_axes"] = draw.integer(0, 1)
        chosen = axes if draw.flag() else None
        return _with_axes(sketch, operator, value, chosen, since, **attributes)

    return build


def _expand(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    wanted = [draw.integer(2, 3) if size == 1 else draw.choice(1, size) for size in shape]
    wanted = [draw.integer(1, 2), *wanted] if draw.flag() else wanted[draw.integer(0, 1) :]
    return sketch.model(sketch.apply("Expand", value, sketch.constant(np.array(wanted, np.int64))))


def _concat(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    axis = draw.integer(0, len(shape) - 1)
    other = [draw.integer(1, 3) if i == axis else size for i, size in enumerate(shape)]
    parts = [value, sketch.apply("Relu", value), sketch.constant(draw.normal(*other)), value]
    order = draw.order(4)[: draw.integer(1, 4)]
    assume(order != [2])
    spelled = axis - len(shape) if sketch.opset >= 11 and draw.flag() else axis
    return sketch.model(sketch.apply("Concat", *(parts[i] for i in order), axis=spelled))


def _split(draw: Draw) -> onnx.ModelProto:
    sizes = [draw.integer(1, 3) for _ in range(draw.integer(1, 3))]
    even = draw.flag()
    sizes = [sizes[0]] * len(sizes) if even else sizes
    rank = draw.integer(1, 3)
    axis = draw.integer(0, rank - 1)
    shape = [sum(sizes) if i == axis else draw.integer(1, 3) for i in range(rank)]
    sketch, value = _values(draw, shape)
    spelled = axis - rank if sketch.opset >= 11 and draw.flag() else axis
    inputs: list[str] = [value]
    attributes: dict[str, Any] = {"axis": spelled}
    if even and draw.flag():
        attributes.update({"num_outputs": len(sizes)} if sketch.opset >= 18 else {})
    elif sketch.opset >= 13:
        inputs.append(sketch.constant(np.array(sizes, dtype=np.int64)))
    else:
        attributes["split"] = sizes
    parts = sketch.apply_many("Split", len(sizes), *inputs, **attributes)
    chosen = [parts[i] for i in draw.order(len(parts))[: draw.integer(1, len(parts))]]
    return sketch.model(sketch.apply("Concat", *chosen, axis=axis))


def _slice(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    old = sketch.opset < 10
    axes = sorted({axis % len(shape) for axis in draw.axes(len(shape))})
    steps = [1 if old else draw.choice(1, 1, 2, -1, -2) for _ in axes]
    starts, stops = [], []
    for axis, step in zip(axes, steps, strict=True):
        start = draw.integer(0, shape[axis] - 1)
        start = start - shape[axis] if draw.flag() else start
        stop = draw.choice(2**31 - 1, shape[axis]) if step > 0 else -(2**31)
        starts.append(start)
        stops.append(stop)
    named = axes != list(range(len(axes))) or draw.flag()
    if old:
        given = {"axes": axes} if named else {}
        return sketch.model(sketch.apply("Slice", value, starts=starts, ends=stops, **given))
    vectors = [starts, stops, axes if named else None, steps]
    if all(step == 1 for step in steps) and draw.flag():
        vectors.pop()
    names = ["" if v is None else sketch.constant(np.array(v, np.int64)) for v in vectors]
    return sketch.model(sketch.apply("Slice", value, *names))


def _gather(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw)
    sketch, value = _values(draw, shape)
    axis = draw.integer(0, len(shape) - 1)
    lowest = 0 if sketch.opset < 11 else -shape[axis]
    wanted = draw.choice((), (2,), (1, 3))
    indices = draw.rng.integers(lowest, shape[axis], wanted)
    kind = draw.choice(np.int32, np.int64)
    return sketch.model(
        sketch.apply("Gather", value, sketch.constant(indices, dtype=kind), axis=axis)
    )


def _pad(draw: Draw) -> onnx.ModelProto:
    shape = _any_shape(draw, 2)
    rank = len(shape)
    sketch, value = _values(draw, shape)
    modes = ["constant", "reflect", "edge"] + (["wrap"] if sketch.opset >= 19 else [])
    mode = draw.choice(*modes)
    lowest = -1 if mode == "constant" else 0
    limits = [(lowest if size > 2 else 0, size - 1 if mode != "edge" else 2) for size in shape]
    pads = [draw.integer(low, max(0, high)) for low, high in limits + limits]
    attributes: dict[str, Any] = {"mode": mode} if mode != "constant" or draw.flag() else {}
    if sketch.opset < 11:
        filled = {"value": 0.5} if draw.flag() else {}
        return sketch.model(sketch.apply("Pad", value, pads=pads, **filled, **attributes))
    names = [sketch.constant(np.array(pads, np.int64))]
    if draw.flag():
        names.append(sketch.constant(np.array(0.5)))
        if sketch.opset >= 18 and draw.flag():
            order = draw.order(rank)
            names[0] = sketch.constant(
                np.array([pads[i] for i in order] + [pads[i + rank] for i in order], np.int64)
            )
            names.append(sketch.constant(np.array(order, np.int64)))
    return sketch.model(sketch.apply("Pad", value, *names, **attributes))


def _cast(draw: Draw) -> onnx.ModelProto:
    sketch, value = _values(draw, _any_shape(draw), double=False)
    wide = sketch.apply("Cast", value, to=onnx.TensorProto.DOUBLE)
    return sketch.model(sketch.apply("Cast", wide, to=onnx.TensorProto.FLOAT))


def _dropout(draw: Draw) -> onnx.ModelProto:
    sketch, value = _values(draw, _any_shape(draw), double=False)
    if sketch.opset < 12:
        return sketch.model(sketch.apply("Dropout", value, ratio=0.5))
    inputs = [sketch.constant(np.array(0.5, np.float32))] if draw.flag() else []
    return sketch.model(sketch.apply("Dropout", value, *inputs))


def _shape_arithmetic(draw: Draw) -> onnx.ModelProto:
    """The flattening that exporters write: Shape, Gather, Unsqueeze, Concat, Reshape."""
    shape = _any_shape(draw, 2)
    sketch, value = _values(draw, shape, oldest=9)
    sizes = sketch.apply("Shape", value)
    first = sketch.apply("Gather", sizes, sketch.constant(np.array(0)), axis=0)
    rest = sketch.constant(np.array([-1]))
    if sketch.opset < 13:
        row = sketch.apply("Unsqueeze", first, axes=[0])
    else:
        row = sketch.apply("Unsqueeze", first, sketch.constant(np.array([0])))
    wanted = sketch.apply("Concat", row, rest, axis=0)
    flat = sketch.apply("Reshape", value, wanted)
    filled = sketch.apply("ConstantOfShape", sketch.apply("Shape", flat))
    zeros = sketch.apply("Cast", filled, to=onnx.helper.np_dtype_to_tensor_dtype(sketch.dtype))
    return sketch.model(sketch.apply("Add", flat, zeros))


OPERATOR_MODELS: dict[str, Callable[[Draw], onnx.ModelProto]] = {
    "Add": _binary("Add"),
    "AveragePool": _pool("AveragePool"),
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Div": _binary("Div"),
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool("GlobalAveragePool"),
    "GlobalMaxPool": _global_pool("GlobalMaxPool"),
    "Identity": _unary("Identity"),
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _softmax("LogSoftmax"),
    "MatMul": _matmul,
    "Max": _bound("Max"),
    "MaxPool": _pool("MaxPool"),
    "Min": _bound("Min"),
    "Mul": _binary("Mul"),
    "Neg": _unary("Neg"),
    "PRelu": _prelu,
    "Pad": _pad,
    "ReduceMean": _reduce("ReduceMean", 18),
    "ReduceSum": _reduce("ReduceSum", 13),
    "Relu": _unary("Relu"),
    "Reshape": _reshape,
    "Shape": _shape_arithmetic,
    "Sigmoid": _unary("Sigmoid"),
    "Slice": _slice,
    "Softmax": _softmax("Softmax"),
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _binary("Sub"),
    "Sum": _total,
    "Tanh": _unary("Tanh"),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


@st.composite
def operator_models(draw: st.DrawFn, operator: str) -> onnx.ModelProto:
    """Models that use the operator on a value which depends on the input."""
    return OPERATOR_MODELS[operator](Draw(draw))
