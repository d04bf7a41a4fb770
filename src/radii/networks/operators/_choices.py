"""Values that are chosen by other values: Where, and the places of largest entries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.networks.operators._arithmetic import scaled
from radii.networks.operators._arrangement import Concat, Expand, Reshape, picked
from radii.networks.operators._base import (
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    broadcast,
    translates,
)
from radii.networks.operators._intervals import Interval
from radii.networks.operators._lines import Lines, PulledRows, Relaxation

TRUTH = 0.5
"""A truth value above this is true: 0 and 1 may be off by what is rounded."""


class Choose(Operator):
    """x where a condition holds, else y; all three of one size, one behind the other."""

    kind = OperatorKind.SMOOTH

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def parts(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The condition, x and y, flattened."""
        condition, x, y = values.reshape(len(values), 3, -1).unbind(1)
        return condition, x, y

    def result_shape(self, *shapes: Shape) -> Shape:
        if math.prod(shapes[0]) != 3 * math.prod(self.shape):
            raise ValueError(f"{shapes[0]} does not hold three values of shape {self.shape}")
        return self.shape

    def forward(self, values: Tensor) -> Tensor:
        condition, x, y = self.parts(values)
        return torch.where(condition > TRUTH, x, y).reshape(-1, *self.shape)

    def enclosure(self, *inputs: Interval) -> Interval:
        low, high = self.parts(inputs[0].low), self.parts(inputs[0].high)
        sides = []
        for side, outer in ((low, torch.minimum), (high, torch.maximum)):
            either = outer(side[1], side[2])
            chosen = torch.where(low[0] > TRUTH, side[1], either)
            sides.append(torch.where(high[0] <= TRUTH, side[2], chosen).reshape(-1, *self.shape))
        return Interval(*sides)

    def value_error(self, *_: object) -> None:
        return None

    def relaxation(self, shape: Shape, arguments: Interval) -> Relaxation:
        return _Choices.of(self, arguments)


@dataclass(frozen=True, slots=True, eq=False)
class _Choices(Relaxation, Lines):
    """Where the condition is known, the value itself; else between its two bounds. `x` and `y` are
    1 where these are the value, (regions, units)."""

    x: Tensor
    y: Tensor
    low: Tensor
    high: Tensor
    is_open: Tensor

    @classmethod
    def of(cls, operator: Choose, arguments: Interval) -> _Choices:
        (low, *_), (high, *_) = (operator.parts(s) for s in (arguments.low, arguments.high))
        values = operator.enclosure(arguments)
        is_open = (low <= TRUTH) & (high > TRUTH)
        open_low, open_high = (
            torch.where(is_open, side.flatten(1), 0.0) for side in (values.low, values.high)
        )
        x, y = (low > TRUTH).to(low), (high <= TRUTH).to(low)
        return cls(x, y, open_low, open_high, is_open)

    @property
    def start(self) -> None:
        return None

    @property
    def is_loose(self) -> Tensor:
        return self.is_open.repeat(1, 3)

    def taken(self, index: Tensor) -> _Choices:
        parts = (self.x, self.y, self.low, self.high, self.is_open)
        return _Choices(*(part[index] for part in parts))

    def lines(self, choices: Tensor | None = None) -> Lines:
        return self

    def pulled(self, rows: Tensor) -> PulledRows:
        on_x, on_y = rows * self.x[:, None], rows * self.y[:, None]
        held = torch.where(rows > 0, self.low[:, None], self.high[:, None])
        constants = torch.where(self.is_open[:, None], rows * held, 0.0)
        on_arguments = torch.cat([torch.zeros_like(rows), on_x, on_y], 2)
        return PulledRows(on_arguments, constants.sum(2), constants.abs().sum(2))

    def turned(self, directions: Tensor) -> Tensor:
        _, on_x, on_y = directions.chunk(3, 2)
        return on_x * self.x[:, None] + on_y * self.y[:, None]

    def gaps(self, arguments: Tensor) -> Tensor:
        return self.high - self.low


def choose(call: OnnxNode) -> int:
    """Where: each of the three inputs may be a constant."""
    shape = broadcast(*(call.shape(p) for p in range(3)))
    if call.is_constant(0):
        return _choose_by_constant(call, np.broadcast_to(call.constant(0).astype(bool), shape))
    parts = [_expanded(call, position, shape) for position in range(3)]
    size = math.prod(shape)
    constants = [p.reshape(size) if isinstance(p, Tensor) else None for p in parts]
    flat = [call.emit(Reshape((size,)), p) for p in parts if isinstance(p, int)]
    return call.emit(Choose(shape), call.emit(Concat(0, constants), *flat))


def _expanded(call: OnnxNode, position: int, shape: Shape) -> int | Tensor:
    if call.is_constant(position):
        return call.weight(position).expand(shape).clone()
    return call.emit(Expand(shape), call.node(position))


def _choose_by_constant(call: OnnxNode, condition: np.ndarray) -> int:
    """Entries of one value or the other: both one behind the other, and a selection of them."""
    shape, size = condition.shape, condition.size
    parts = [_expanded(call, position, shape) for position in (1, 2)]
    constants = [p.reshape(size) if isinstance(p, Tensor) else None for p in parts]
    flat = [call.emit(Reshape((size,)), p) for p in parts if isinstance(p, int)]
    both = call.emit(Concat(0, constants), *flat)
    places = np.where(condition.ravel(), np.arange(size), size + np.arange(size))
    return picked(call, both, places.reshape(shape))


class ArgMax(Operator):
    """The place of the largest entry along an axis, of several the first, or the last."""

    kind = OperatorKind.SMOOTH

    def __init__(self, axis: int, *, keep: bool, last: bool) -> None:
        super().__init__()
        self.axis, self.keep, self.last = axis, keep, last

    def result_shape(self, *shapes: Shape) -> Shape:
        middle = (1,) if self.keep else ()
        return (*shapes[0][: self.axis], *middle, *shapes[0][self.axis + 1 :])

    def places(self, x: Tensor) -> Tensor:
        """0, 1, 2, ... along the axis."""
        sizes = [1] * x.dim()
        sizes[self.axis + 1] = x.shape[self.axis + 1]
        return torch.arange(sizes[self.axis + 1], dtype=x.dtype, device=x.device).reshape(sizes)

    def first_of(self, marked: Tensor, places: Tensor) -> Tensor:
        """The least place of those that are marked."""
        none = torch.full_like(places, torch.inf)
        return torch.where(marked, places, none).amin(self.axis + 1, keepdim=self.keep)

    def last_of(self, marked: Tensor, places: Tensor) -> Tensor:
        none = torch.full_like(places, -torch.inf)
        return torch.where(marked, places, none).amax(self.axis + 1, keepdim=self.keep)

    def forward(self, x: Tensor) -> Tensor:
        is_largest = x == x.amax(self.axis + 1, keepdim=True)
        chosen = (self.last_of if self.last else self.first_of)(is_largest, self.places(x))
        return chosen + 0 * x.sum(self.axis + 1, keepdim=self.keep)

    def enclosure(self, *inputs: Interval) -> Interval:
        """Those that may be the largest have an upper bound of at least every lower one."""
        (x,) = inputs
        is_possible = x.high >= x.low.amax(self.axis + 1, keepdim=True)
        places = self.places(x.low)
        return Interval(self.first_of(is_possible, places), self.last_of(is_possible, places))

    def value_error(self, *_: object) -> None:
        return None


@translates("ArgMax", "ArgMin", kind=OperatorKind.SMOOTH)
def _extreme_place(call: OnnxNode) -> int:
    axis = call.axis(call.int_attribute("axis", 0), call.rank(0))
    keep, last = call.int_attribute("keepdims", 1), call.int_attribute("select_last_index", 0)
    sign = 1.0 if call.proto.op_type == "ArgMax" else -1.0
    operator = ArgMax(axis, keep=bool(keep), last=bool(last))
    return call.emit(operator, scaled(call, call.node(0), sign))
