"""Random models of operators that move entries by places which are constants."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.soundness.operator_models._base import Draw, any_shape, models_of, values


@models_of("DepthToSpace", "SpaceToDepth")
def _blocks(draw: Draw) -> onnx.ModelProto:
    block = draw.integer(1, 2)
    channels, height, width = (draw.integer(1, 2) for _ in range(3))
    if draw.operator == "DepthToSpace":
        shape = [draw.integer(1, 2), channels * block * block, height, width]
        mode = {"mode": draw.choice("DCR", "CRD")} if draw.flag() else {}
        sketch, value = values(draw, shape, oldest=11)
        return sketch.model(sketch.apply("DepthToSpace", value, blocksize=block, **mode))
    shape = [draw.integer(1, 2), channels, height * block, width * block]
    sketch, value = values(draw, shape, oldest=13)
    return sketch.model(sketch.apply("SpaceToDepth", value, blocksize=block))


def _places(draw: Draw, size: int, shape: list[int]) -> np.ndarray:
    return draw.rng.integers(-size, size, shape)


@models_of("GatherElements")
def _gather_elements(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 1, 3)
    axis = draw.integer(0, len(shape) - 1)
    sketch, value = values(draw, shape, oldest=13)
    sizes = [draw.integer(1, 4) if i == axis else size for i, size in enumerate(shape)]
    places = sketch.constant(_places(draw, shape[axis], sizes))
    return sketch.model(sketch.apply("GatherElements", value, places, axis=axis))


@models_of("GatherND")
def _gather_nd(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 2, 3)
    depth = draw.integer(1, len(shape))
    places = np.stack([_places(draw, size, [draw.integer(1, 1), 3]) for size in shape[:depth]], -1)
    sketch, value = values(draw, shape, oldest=13)
    return sketch.model(sketch.apply("GatherND", value, sketch.constant(places)))


@models_of("Tile")
def _tile(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw)
    sketch, value = values(draw, shape, oldest=13)
    repeats = sketch.constant(np.array([draw.integer(1, 2) for _ in shape]))
    return sketch.model(sketch.apply("Tile", value, repeats))


@models_of("Trilu")
def _triangle(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw, 2, 3), oldest=14)
    given = [sketch.constant(np.array(draw.integer(-2, 2)))] if draw.flag() else []
    return sketch.model(sketch.apply("Trilu", value, *given, upper=draw.integer(0, 1)))


@models_of("ScatterElements")
def _scatter_elements(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 1, 3)
    axis = draw.integer(0, len(shape) - 1)
    sketch, value = values(draw, shape, oldest=13)
    count = draw.integer(1, shape[axis])
    sizes = [*shape[:axis], count, *shape[axis + 1 :]]
    order = draw.rng.permutation(shape[axis])[:count]  # no place twice
    along = order.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    places = sketch.constant(np.broadcast_to(along, sizes).copy())
    updates = sketch.constant(draw.normal(*sizes))
    if draw.flag():
        return sketch.model(sketch.apply("ScatterElements", value, places, updates, axis=axis))
    ends = (sketch.constant(np.array([each])) for each in (0, count, axis))
    own = sketch.apply("Tanh", sketch.apply("Slice", value, *ends))
    base = value if draw.flag() else sketch.constant(draw.normal(*shape))
    return sketch.model(sketch.apply("ScatterElements", base, places, own, axis=axis))


@models_of("ScatterND")
def _scatter_nd(draw: Draw) -> onnx.ModelProto:
    shape = any_shape(draw, 1, 3)
    sketch, value = values(draw, shape, oldest=13)
    rows = draw.rng.permutation(shape[0])[: draw.integer(1, shape[0])]
    places = sketch.constant(rows[:, None])
    updates = draw.normal(len(rows), *shape[1:])
    if draw.flag():
        return sketch.model(sketch.apply("ScatterND", value, places, sketch.constant(updates)))
    changed = sketch.apply("Gather", sketch.apply("Tanh", value), sketch.constant(rows), axis=0)
    base = value if draw.flag() else sketch.constant(draw.normal(*shape))
    return sketch.model(sketch.apply("ScatterND", base, places, changed))
