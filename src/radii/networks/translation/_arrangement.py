"""Operators that move, copy or drop entries. Shapes are static, so many are a Reshape."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from radii.errors import NetworkError
from radii.networks.operators._arrangement import (
    Concat,
    Expand,
    Pad,
    Reshape,
    Select,
    Slice,
    Transpose,
)
from radii.networks.translation._base import MAX_VALUES, OnnxNode


def flatten(call: OnnxNode) -> int:
    shape = call.shape(0)
    axis = call.int_attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return call.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.node(0))


def reshape(call: OnnxNode) -> int:
    """Zeros copy the input's axis unless `allowzero`; one -1 takes what is left."""
    shape = call.shape(0)
    wanted = call.integers(1)
    if not call.int_attribute("allowzero", 0):
        wanted = [
            shape[i] if size == 0 and i < len(shape) else size for i, size in enumerate(wanted)
        ]
    known = math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) == 1 and known > 0:
        wanted[wanted.index(-1)] = math.prod(shape) // known
    if math.prod(wanted) != math.prod(shape) or min(wanted, default=0) < 0:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' reshapes {shape} "
            f"to {tuple(call.integers(1))}, which holds another number of entries"
        )
    return call.emit(Reshape(tuple(wanted)), call.node(0))


def squeeze(call: OnnxNode) -> int:
    shape = call.shape(0)
    given = call.axes(1, rank=len(shape))
    axes = [i for i, size in enumerate(shape) if size == 1] if given is None else given
    if any(shape[axis] != 1 for axis in axes):
        raise call.unsupported(f"of axes {axes} of a value of shape {shape}")
    kept = tuple(size for i, size in enumerate(shape) if i not in axes)
    return call.emit(Reshape(kept), call.node(0))


def unsqueeze(call: OnnxNode) -> int:
    shape = call.shape(0)
    count = len(call.integers(1) if call.has(1) else call.ints_attribute("axes") or [])
    axes = call.axes(1, rank=len(shape) + count) or []
    sizes = iter(shape)
    result = [1 if i in axes else next(sizes) for i in range(len(shape) + len(axes))]
    return call.emit(Reshape(tuple(result)), call.node(0))


def transpose(call: OnnxNode) -> int:
    order = call.ints_attribute("perm") or list(reversed(range(call.rank(0))))
    return call.emit(Transpose(order), call.node(0))


def expand(call: OnnxNode) -> int:
    return call.emit(Expand(tuple(call.integers(1))), call.node(0))


def concat(call: OnnxNode) -> int:
    positions = [p for p in range(len(call.proto.input)) if call.has(p)]
    axis = call.axis(call.int_attribute("axis", 1), call.rank(positions[0]))
    constants = [call.weight(p) if call.is_constant(p) else None for p in positions]
    variables = [call.node(p) for p in positions if not call.is_constant(p)]
    return call.emit(Concat(axis, constants), *variables)


def split(call: OnnxNode) -> list[int]:
    """Sizes are an attribute before opset 13, then an input; without them, parts are equal."""
    axis = call.axis(call.int_attribute("axis", 0), call.rank(0))
    length = call.shape(0)[axis]
    sizes = call.integers(1) if call.has(1) else call.ints_attribute("split")
    if sizes is None:
        count = len(call.proto.output)
        part = -(-length // count)
        sizes = [part] * (count - 1) + [length - part * (count - 1)]
    if sum(sizes) != length or min(sizes) < 0:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' splits {length} entries into {sizes}"
        )
    starts = np.cumsum([0, *sizes])
    source = call.node(0)
    return [
        call.emit(Slice(axis, int(start), int(start) + size), source)
        for start, size in zip(starts, sizes, strict=False)
    ]


def slice_axes(call: OnnxNode) -> int:
    """Bounds are attributes before opset 10, inputs since."""
    shape = call.shape(0)
    if call.has(1):
        starts, stops = call.integers(1), call.integers(2)
        steps = call.integers(4) if call.has(4) else [1] * len(starts)
    else:
        starts = call.ints_attribute("starts") or []
        stops = call.ints_attribute("ends") or []
        steps = [1] * len(starts)
    axes = call.axes(3, rank=len(shape))
    axes = list(range(len(starts))) if axes is None else axes
    result = call.node(0)
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        if step < 0:  # ONNX begins at the first entry where Python would take none
            start = max(start, -shape[axis])
        chosen = range(shape[axis])[slice(start, stop, step)]
        if step > 0:
            bounds = (chosen.start, max(chosen.start, chosen.stop), step)
            result = call.emit(Slice(axis, *bounds), result)
        else:
            result = call.emit(Select(axis, torch.tensor(list(chosen), dtype=torch.long)), result)
    return result


def gather(call: OnnxNode) -> int:
    shape = call.shape(0)
    axis = call.axis(call.int_attribute("axis", 0), len(shape))
    indices = np.asarray(call.constant(1), dtype=np.int64)
    positions = np.where(indices < 0, indices + shape[axis], indices)
    picked = call.emit(Select(axis, torch.from_numpy(positions.ravel().copy())), call.node(0))
    if indices.ndim == 1:
        return picked
    return call.emit(Reshape((*shape[:axis], *indices.shape, *shape[axis + 1 :])), picked)


def pad(call: OnnxNode) -> int:
    """Pads and the value are attributes before opset 11, inputs since."""
    shape = call.shape(0)
    flat = call.integers(1) if call.has(1) else call.ints_attribute("pads") or []
    axes = call.axes(3, rank=len(shape))
    axes = list(range(len(shape))) if axes is None else axes
    if len(flat) != 2 * len(axes) or max(flat, default=0) > MAX_VALUES:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' has pads {flat} for {len(axes)} axes"
        )
    pads = [(0, 0)] * len(shape)
    for axis, before, after in zip(axes, flat[: len(axes)], flat[len(axes) :], strict=True):
        pads[axis] = (before, after)
    mode = call.text_attribute("mode", "constant")
    if mode == "constant":
        fill = float(call.weight(2)) if call.has(2) else call.float_attribute("value", 0.0)
        return call.emit(Pad(pads, fill), call.node(0))
    if mode not in ("reflect", "edge", "wrap"):
        raise call.unsupported(f"with mode {mode}")
    result = call.node(0)
    for axis, (before, after) in enumerate(pads):
        if (before, after) != (0, 0):
            positions = _padded_positions(shape[axis], before, after, mode)
            result = call.emit(Select(axis, torch.from_numpy(positions)), result)
    return result


def _padded_positions(length: int, before: int, after: int, mode: str) -> npt.NDArray[np.int64]:
    """Which entries of an axis a padded axis holds; negative pads crop."""
    positions = np.arange(length, dtype=np.int64)[max(0, -before) : length - max(0, -after)]
    widths = (max(0, before), max(0, after))
    match mode:
        case "reflect":
            return np.pad(positions, widths, mode="reflect")
        case "edge":
            return np.pad(positions, widths, mode="edge")
        case _:
            return np.pad(positions, widths, mode="wrap")
