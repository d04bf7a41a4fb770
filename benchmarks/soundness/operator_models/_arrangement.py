"""Random models of operators that move, copy, drop or sum entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import assume

from benchmarks.soundness.operator_models._base import Draw, any_shape, models_of, values, with_axes


@models_of("Flatten")
def _flatten(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    lowest = 0 if sketch.opset < 11 else -len(shape)
    axis = {"axis": draw.integer(lowest, len(shape))} if draw.flag() else {}
    return sketch.model(sketch.apply("Flatten", value, **axis))


@models_of("Reshape")
def _reshape(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 2)
    sketch, value = values(draw, shape)
    order = draw.order(len(shape))
    wanted = [shape[i] for i in order]
    wanted = [0 if wanted[i] == shape[i] and draw.flag() else wanted[i] for i in range(len(wanted))]
    if draw.flag():
        wanted[draw.integer(0, len(wanted) - 1)] = -1
    return sketch.model(sketch.apply("Reshape", value, sketch.constant(np.array(wanted))))


@models_of("Transpose")
def _transpose(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    order = {"perm": draw.order(len(shape))} if draw.flag() else {}
    return sketch.model(sketch.apply("Transpose", value, **order))


@models_of("Squeeze")
def _squeeze(draw: Draw) -> onnx.ModelProto:
    shape = [draw.choice(1, 2, 3) for _ in range(draw.integer(2, 4))]
    sketch, value = values(draw, shape)
    ones = [i for i, size in enumerate(shape) if size == 1]
    axes = [i - len(shape) if sketch.opset >= 11 and draw.flag() else i for i in ones]
    return with_axes(sketch, "Squeeze", value, axes if axes and draw.flag() else None, 13)


@models_of("Unsqueeze")
def _unsqueeze(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 1, 3)
    sketch, value = values(draw, shape)
    rank = len(shape) + draw.integer(1, 2)
    axes = draw.order(rank)[: rank - len(shape)]
    axes = [i - rank if sketch.opset >= 11 and draw.flag() else i for i in axes]
    return with_axes(sketch, "Unsqueeze", value, axes, 13)


@models_of("ReduceMean", "ReduceSum")
def _reduce(draw: Draw) -> onnx.ModelProto:
    since = 18 if draw.operator == "ReduceMean" else 13
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    axes = draw.axes(len(shape))
    if sketch.opset < 11:
        axes = [axis % len(shape) for axis in axes]
    attributes: dict[str, Any] = {"keepdims": draw.integer(0, 1)} if draw.flag() else {}
    if sketch.opset >= since and draw.flag():
        attributes["noop_with_empty_axes"] = draw.integer(0, 1)
    chosen = axes if draw.flag() else None
    return with_axes(sketch, draw.operator, value, chosen, since, **attributes)


@models_of("Expand")
def _expand(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    wanted = [draw.integer(2, 3) if size == 1 else draw.choice(1, size) for size in shape]
    wanted = [draw.integer(1, 2), *wanted] if draw.flag() else wanted[draw.integer(0, 1) :]
    return sketch.model(sketch.apply("Expand", value, sketch.constant(np.array(wanted, np.int64))))


@models_of("Concat")
def _concat(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    axis = draw.integer(0, len(shape) - 1)
    other = [draw.integer(1, 3) if i == axis else size for i, size in enumerate(shape)]
    parts = [value, sketch.apply("Relu", value), sketch.constant(draw.normal(*other)), value]
    order = draw.order(4)[: draw.integer(1, 4)]
    assume(order != [2])
    spelled = axis - len(shape) if sketch.opset >= 11 and draw.flag() else axis
    return sketch.model(sketch.apply("Concat", *(parts[i] for i in order), axis=spelled))


@models_of("Split")
def _split(draw: Draw) -> onnx.ModelProto:
    sizes = [draw.integer(1, 3) for _ in range(draw.integer(1, 3))]
    even = draw.flag()
    sizes = [sizes[0]] * len(sizes) if even else sizes
    rank = draw.integer(1, 3)
    axis = draw.integer(0, rank - 1)
    shape = [sum(sizes) if i == axis else draw.integer(1, 3) for i in range(rank)]
    sketch, value = values(draw, shape)
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


@models_of("Slice")
def _slice_axes(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    old = sketch.opset < 10
    axes = sorted({axis % len(shape) for axis in draw.axes(len(shape))})
    steps = [1 if old else draw.choice(1, 1, 2, -1, -2) for _ in axes]
    starts, stops = [], []
    for axis, step in zip(axes, steps, strict=True):
        start = draw.integer(0, shape[axis] - 1)
        start = start - shape[axis] if draw.flag() else start
        if draw.integer(0, 5) == 0:  # before the first entry
            start = -shape[axis] - draw.integer(1, 9)
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


@models_of("Gather")
def _gather(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape)
    axis = draw.integer(0, len(shape) - 1)
    lowest = 0 if sketch.opset < 11 else -shape[axis]
    wanted = draw.choice((), (2,), (1, 3))
    indices = draw.rng.integers(lowest, shape[axis], wanted)
    kind = draw.choice(np.int32, np.int64)
    return sketch.model(
        sketch.apply("Gather", value, sketch.constant(indices, dtype=kind), axis=axis)
    )


@models_of("Pad")
def _pad(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 2)
    rank = len(shape)
    sketch, value = values(draw, shape)
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


@models_of("Cast")
def _cast(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), double=False)
    wide = sketch.apply("Cast", value, to=onnx.TensorProto.DOUBLE)
    return sketch.model(sketch.apply("Cast", wide, to=onnx.TensorProto.FLOAT))


@models_of("Dropout")
def _dropout(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), double=False)
    if sketch.opset < 12:
        return sketch.model(sketch.apply("Dropout", value, ratio=0.5))
    inputs = [sketch.constant(np.array(0.5, np.float32))] if draw.flag() else []
    return sketch.model(sketch.apply("Dropout", value, *inputs))


@models_of("Shape")
def _shape_arithmetic(draw: Draw) -> onnx.ModelProto:
    """The flattening that exporters write: Shape, Gather, Unsqueeze, Concat, Reshape."""
    shape = any_shape(draw, 2)
    sketch, value = values(draw, shape, oldest=9)
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
