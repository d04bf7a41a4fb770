"""Operators that move, copy or drop entries of a value and compute nothing.

Shapes are static, so that many ONNX operators are a Reshape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from radii.errors import NetworkError
from radii.networks.operators._base import (
    MAX_VALUES,
    OnnxNode,
    Operator,
    Shape,
    broadcast,
    translates,
    with_rank,
)
from radii.networks.operators._maps import LinearMap, ScaleMap


class _Movement(Operator):
    """Entries of the input alone, at other places."""

    is_exact = True
    inserts_constants = False


class Reshape(_Movement):
    """The same entries in the same order under another shape; also Flatten, Squeeze, Unsqueeze."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def result_shape(self, *shapes: Shape) -> Shape:
        if math.prod(shapes[0]) != math.prod(self.shape):
            raise ValueError(f"shape {shapes[0]} cannot become {self.shape}")
        return self.shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], *self.shape)

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        return (ScaleMap.identity(math.prod(shapes[0])),)


class Transpose(_Movement):
    """Axes in another order."""

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        self.order = tuple(order)

    def result_shape(self, *shapes: Shape) -> Shape:
        if sorted(self.order) != list(range(len(shapes[0]))):
            raise ValueError(f"{self.order} is not an order of the axes of {shapes[0]}")
        return tuple(shapes[0][axis] for axis in self.order)

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, *(axis + 1 for axis in self.order))


class Slice(_Movement):
    """x[..., start:stop:step, ...] along one axis, for 0 <= start <= stop and step > 0."""

    def __init__(self, axis: int, start: int, stop: int, step: int = 1) -> None:
        super().__init__()
        self.axis, self.start, self.stop, self.step = axis, start, stop, step

    def result_shape(self, *shapes: Shape) -> Shape:
        length = len(range(shapes[0][self.axis])[self.start : self.stop : self.step])
        return (*shapes[0][: self.axis], length, *shapes[0][self.axis + 1 :])

    def forward(self, x: Tensor) -> Tensor:
        index = [slice(None)] * (self.axis + 1) + [slice(self.start, self.stop, self.step)]
        return x[tuple(index)]


class Select(_Movement):
    """The entries of one axis at the given positions, in their order; none is negative."""

    positions: Tensor

    def __init__(self, axis: int, positions: Tensor) -> None:
        super().__init__()
        self.axis = axis
        self._constant("positions", positions)

    def result_shape(self, *shapes: Shape) -> Shape:
        length, positions = len(self.positions), self.positions
        if length and not 0 <= int(positions.min()) <= int(positions.max()) < shapes[0][self.axis]:
            raise ValueError(f"a position is outside axis {self.axis} of {shapes[0]}")
        return (*shapes[0][: self.axis], length, *shapes[0][self.axis + 1 :])

    def forward(self, x: Tensor) -> Tensor:
        return torch.index_select(x, self.axis + 1, self.positions)


class Expand(_Movement):
    """Broadcast against a shape."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(shapes[0], self.shape)

    def forward(self, x: Tensor) -> Tensor:
        x = with_rank(x, len(self.shape))
        return x.expand(x.shape[0], *broadcast(tuple(x.shape[1:]), self.shape))


class Pad(Operator):
    """A constant around the value; `pads` holds (before, after) for each axis, negative to crop."""

    is_exact = True

    def __init__(self, pads: Sequence[tuple[int, int]], fill: float = 0.0) -> None:
        super().__init__()
        self.pads = tuple(pads)
        self.fill = fill
        self._innermost_first = [side for pair in reversed(self.pads) for side in pair]

    def result_shape(self, *shapes: Shape) -> Shape:
        pairs = zip(shapes[0], self.pads, strict=True)
        result = tuple(size + before + after for size, (before, after) in pairs)
        if min(result, default=0) < 0:
            raise ValueError(f"pads {self.pads} crop more than shape {shapes[0]} has")
        return result

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self._innermost_first, value=self.fill)

    def make_magnitude(self) -> Pad:
        return Pad(self.pads, abs(self.fill))

    def make_linear_part(self) -> Pad:
        return Pad(self.pads)


class Concat(Operator):
    """Values, and constants between them, one after another along an axis.

    `constants` has one entry for each part, None where the part is the next of the inputs.
    """

    is_exact = True

    def __init__(self, axis: int, constants: Sequence[Tensor | None]) -> None:
        super().__init__()
        self.axis = axis
        self._names = [None if c is None else f"part_{i}" for i, c in enumerate(constants)]
        for name, constant in zip(self._names, constants, strict=True):
            if name is not None:
                self._constant(name, constant)

    def result_shape(self, *shapes: Shape) -> Shape:
        values = iter(shapes)
        parts = [
            next(values) if name is None else tuple(getattr(self, name).shape)
            for name in self._names
        ]
        around = {(*part[: self.axis], *part[self.axis + 1 :]) for part in parts}
        if len(around) != 1 or len({len(part) for part in parts}) != 1:
            raise ValueError(f"shapes {parts} cannot be joined along axis {self.axis}")
        length = sum(part[self.axis] for part in parts)
        return (*parts[0][: self.axis], length, *parts[0][self.axis + 1 :])

    def forward(self, *inputs: Tensor) -> Tensor:
        batch = inputs[0].shape[0]
        values = iter(inputs)
        parts = []
        for name in self._names:
            if name is None:
                parts.append(next(values))
            else:
                constant: Tensor = getattr(self, name)
                parts.append(constant.expand(batch, *constant.shape))
        return torch.cat(parts, self.axis + 1)

    def make_linear_part(self) -> Operator:
        linear = self._with_absolute_constants()
        for name, part in dict(linear.named_buffers()).items():
            setattr(linear, name, torch.zeros_like(part))
        return linear


# Translators.


def joined(call: OnnxNode, *nodes: int) -> int:
    """The node of several values, flattened, one behind the other: a nonlinear operator reads one
    value."""
    flat = [call.emit(Reshape((math.prod(call.shape_of(node)),)), node) for node in nodes]
    return call.emit(Concat(0, [None] * len(flat)), *flat)


def picked(call: OnnxNode, node: int, places: npt.NDArray[np.integer]) -> int:
    """The node of the entries at these places of a flattened value, in the shape of the places."""
    flat = call.emit(Reshape((math.prod(call.shape_of(node)),)), node)
    positions = torch.from_numpy(places.ravel().astype(np.int64))
    return call.emit(Reshape(places.shape), call.emit(Select(0, positions), flat))


def moved(call: OnnxNode) -> int:
    """Of an operator that only moves entries, and may insert constants: where each entry of the
    result comes from, as ONNX's reference implementation says it of their numbers."""
    variables = [p for p in range(len(call.proto.input)) if call.has(p) and not call.is_constant(p)]
    zeros = {p: np.zeros(call.shape(p)) for p in variables}
    inserted = call.evaluated(zeros)
    places = np.full(inserted.shape, -1)
    first = 0
    for position in variables:
        size = zeros[position].size
        numbers = np.arange(1, size + 1, dtype=np.float64).reshape(zeros[position].shape)
        found = call.evaluated({**zeros, position: numbers})
        places = np.where(found == inserted, places, first + (found - inserted).astype(int) - 1)
        first += size
    is_inserted = places < 0
    flat = [call.emit(Reshape((zeros[p].size,)), call.node(p)) for p in variables]
    constants: list[Tensor | None] = [None] * len(flat)
    if is_inserted.any():
        held, place = np.unique(inserted[is_inserted], return_inverse=True)
        if not np.isfinite(held).all():
            raise call.unsupported("that inserts constants which are NaN or infinite")
        places[is_inserted] = first + place.ravel()
        constants.append(torch.from_numpy(held.astype(np.float64)))
    whole = flat[0] if len(constants) == 1 else call.emit(Concat(0, constants), *flat)
    return picked(call, whole, places)


for _operator in ("DepthToSpace", "GatherND", "SpaceToDepth", "Tile", "Trilu"):
    translates(_operator)(moved)


@translates("GatherElements")
def _gather_elements(call: OnnxNode) -> int:
    shape = call.shape(0)
    axis = call.axis(call.int_attribute("axis", 0), len(shape))
    indices = np.asarray(call.constant(1), dtype=np.int64)
    sizes = [size if i == axis else indices.shape[i] for i, size in enumerate(shape)]
    numbers = np.arange(math.prod(shape)).reshape(shape)[tuple(map(slice, sizes))]
    places = np.take_along_axis(
        numbers, np.where(indices < 0, indices + shape[axis], indices), axis
    )
    return picked(call, call.node(0), places)


@translates("ScatterElements", "ScatterND")
def _scatter(call: OnnxNode) -> int:
    """Of places that are constants."""
    if call.text_attribute("reduction", "none") != "none":
        raise call.unsupported(f"with reduction {call.text_attribute('reduction', 'none')}")
    call.constant(1)
    return moved(call)


@translates("Flatten")
def _flatten(call: OnnxNode) -> int:
    shape = call.shape(0)
    axis = call.int_attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return call.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.node(0))


@translates("Reshape")
def _reshape(call: OnnxNode) -> int:
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


@translates("Squeeze")
def _squeeze(call: OnnxNode) -> int:
    shape = call.shape(0)
    given = call.axes(1, rank=len(shape))
    axes = [i for i, size in enumerate(shape) if size == 1] if given is None else given
    if any(shape[axis] != 1 for axis in axes):
        raise call.unsupported(f"of axes {axes} of a value of shape {shape}")
    kept = tuple(size for i, size in enumerate(shape) if i not in axes)
    return call.emit(Reshape(kept), call.node(0))


@translates("Unsqueeze")
def _unsqueeze(call: OnnxNode) -> int:
    shape = call.shape(0)
    count = len(call.integers(1) if call.has(1) else call.ints_attribute("axes") or [])
    axes = call.axes(1, rank=len(shape) + count) or []
    sizes = iter(shape)
    result = [1 if i in axes else next(sizes) for i in range(len(shape) + len(axes))]
    return call.emit(Reshape(tuple(result)), call.node(0))


@translates("Transpose")
def _transpose(call: OnnxNode) -> int:
    order = call.ints_attribute("perm") or list(reversed(range(call.rank(0))))
    return call.emit(Transpose(order), call.node(0))


@translates("Expand")
def _expand(call: OnnxNode) -> int:
    return call.emit(Expand(tuple(call.integers(1))), call.node(0))


@translates("Concat")
def _concat(call: OnnxNode) -> int:
    positions = [p for p in range(len(call.proto.input)) if call.has(p)]
    axis = call.axis(call.int_attribute("axis", 1), call.rank(positions[0]))
    constants = [call.weight(p) if call.is_constant(p) else None for p in positions]
    variables = [call.node(p) for p in positions if not call.is_constant(p)]
    return call.emit(Concat(axis, constants), *variables)


@translates("Split")
def _split(call: OnnxNode) -> list[int]:
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


NO_END = (2**31 - 1, 2**63 - 1)
"""Ends of slices by which some runtimes mean: as far as it goes."""


@translates("Slice")
def _slice_axes(call: OnnxNode) -> int:
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
        if step < 0 and stop in NO_END:  # back to the first entry, or nothing
            raise call.unsupported("with a negative step, on whose end runtimes do not agree")
        if step < 0:  # ONNX begins at the first entry where Python would take none
            start = max(start, -shape[axis])
        chosen = range(shape[axis])[slice(start, stop, step)]
        if step > 0:
            bounds = (chosen.start, max(chosen.start, chosen.stop), step)
            result = call.emit(Slice(axis, *bounds), result)
        else:
            result = call.emit(Select(axis, torch.tensor(list(chosen), dtype=torch.long)), result)
    return result


@translates("Gather")
def _gather(call: OnnxNode) -> int:
    shape = call.shape(0)
    axis = call.axis(call.int_attribute("axis", 0), len(shape))
    indices = np.asarray(call.constant(1), dtype=np.int64)
    positions = np.where(indices < 0, indices + shape[axis], indices)
    picked = call.emit(Select(axis, torch.from_numpy(positions.ravel().copy())), call.node(0))
    if indices.ndim == 1:
        return picked
    return call.emit(Reshape((*shape[:axis], *indices.shape, *shape[axis + 1 :])), picked)


@translates("Pad", note="constant, reflect, edge, wrap")
def _pad(call: OnnxNode) -> int:
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
