"""Maxima over sliding windows, with planes below and above the largest entry of a window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import OnnxNode, Operator, OperatorKind, Shape, translates
from radii.networks.operators._convolution import spatial_window
from radii.networks.operators._convolution_maps import Window
from radii.networks.operators._intervals import Interval
from radii.networks.operators._lines import Lines, PulledRows, Relaxation, along
from radii.networks.operators._pooling import refuse_empty, rounded_up
from radii.networks.operators._slopes import Float64, IntervalMatrix

_MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


class MaxPool(Operator):
    """The largest entry of each window of values (N, C, *spatial); padding never wins."""

    kind = OperatorKind.PIECEWISE_LINEAR
    inserts_constants = False

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window = window
        self._pool = _MAXIMA[len(window.kernel)]
        pairs = zip(window.pads, window.kernel, strict=True)
        fits = window.is_symmetric and all(before <= k // 2 for (before, _), k in pairs)
        self._ahead = [] if fits else window.innermost_first
        self._padding = tuple(before if fits else 0 for before, _ in window.pads)

    def result_shape(self, *shapes: Shape) -> Shape:
        return (*shapes[0][:2], *self.window.result_size(shapes[0][2:]))

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._ahead:
            images = F.pad(images, self._ahead, value=-math.inf)
        window = self.window
        result: Tensor = self._pool(
            images, window.kernel, window.strides, self._padding, window.dilations
        )
        return result.view(*x.shape[:2], *result.shape[1:])

    def enclosure(self, *inputs: Interval) -> Interval:
        return self._monotone_enclosure(*inputs)

    def value_error(self, *_: object) -> None:
        return None

    def has_slopes(self, shape: Shape) -> bool:
        return True

    def chain_rule(
        self, rows: IntervalMatrix, shape: Shape, low: Float64, high: Float64
    ) -> IntervalMatrix:
        """A window passes its row to its largest entry; to each that may be, if in doubt."""
        centre = np.zeros((len(rows.centre), len(low)))
        radius = np.zeros_like(centre)
        for unit, window in enumerate(self.candidates(shape).numpy()):
            places = np.unique(window[window >= 0])
            possible = places[high[places] >= low[places].max()]
            half = 0.0 if len(possible) == 1 else 0.5
            own, spread = rows.centre[:, unit], rows.radius[:, unit]
            for place in possible:
                centre[:, place] += own * (1 - half)
                radius[:, place] += spread + half * np.abs(own)
        return IntervalMatrix(centre, radius)

    def candidates(self, shape: Shape) -> Tensor:
        """Integers (result size, window size), both row-major; -1 stands for padding."""
        positions = torch.arange(math.prod(shape)).reshape(shape)
        padded = F.pad(positions, self.window.innermost_first, value=-1)
        window = self.window
        for axis in range(len(window.kernel)):
            reach, stride = window.reach[axis], window.strides[axis]
            padded = padded.unfold(axis + 2, reach, stride)[..., :: window.dilations[axis]]
        return padded.reshape(math.prod(self.result_shape(shape)), math.prod(window.kernel))


# Planes below and above them.


@dataclass(frozen=True, slots=True, eq=False)
class Maxima(Relaxation):
    """Below: the entry with the largest lower bound. Above: its bound L plus what others exceed it.

    max z_j <= L + sum of max(0, z_j - L), and each term is below its chord. The largest upper bound
    alone holds as well, and so does any mixture: a choice of 1 takes the sum, 0 the bound.
    `places` (results, window) are entries of the argument; weights are (regions, results, window).
    """

    places: Tensor
    arguments: int
    below: Tensor
    above: Tensor
    offset: Tensor
    offset_size: Tensor
    top: Tensor
    choices: Tensor

    @classmethod
    def of(cls, candidates: Tensor, arguments: Interval) -> Maxima:
        """`candidates` are those of `MaxPool`: -1 stands for padding."""
        held = candidates.to(arguments.low.device)
        is_real, places = held >= 0, held.clamp_min(0)
        low = torch.where(is_real, arguments.low[:, places], -torch.inf)
        high = torch.where(is_real, arguments.high[:, places], -torch.inf)
        largest, winner = low.max(2, keepdim=True)
        below = torch.zeros_like(low).scatter(2, winner, 1.0)
        exceeds = (high > largest) & is_real
        width = torch.where(exceeds, high - low, 1.0)
        width = torch.where(torch.isfinite(width), width, torch.nan)  # no chord if it overflows
        weight = torch.where(exceeds, (high - largest) / width, 0.0)
        pulled_down = torch.where(exceeds, weight * low, 0.0)
        offset = largest.squeeze(2) - pulled_down.sum(2)
        top = high.amax(2)
        middle = largest.squeeze(2) + torch.where(exceeds, weight * width / 2, 0.0).sum(2)
        prefers_sum = ((middle <= top) | (exceeds.sum(2) <= 1)).to(low)
        sizes = largest.squeeze(2).abs() + pulled_down.abs().sum(2)
        choices = torch.stack([prefers_sum, prefers_sum])
        return cls(places, arguments.low.shape[1], below, weight, offset, sizes, top, choices)

    @property
    def start(self) -> Tensor:
        return self.choices[:, :, None]

    @property
    def is_loose(self) -> Tensor:
        """The entries of windows that more than one entry may win."""
        is_open = (self.below != self.above).any(2, keepdim=True).expand_as(self.above)
        marks = torch.zeros(len(self.above), self.arguments, device=self.above.device)
        flat = is_open.flatten(1).to(marks.dtype)
        return marks.index_add(1, self.places.flatten(), flat) > 0

    def taken(self, index: Tensor) -> Maxima:
        return Maxima(
            self.places,
            self.arguments,
            self.below[index],
            self.above[index],
            self.offset[index],
            self.offset_size[index],
            self.top[index],
            self.choices[:, index],
        )

    def lines(self, choices: Tensor | None = None) -> Lines:
        _, share = self.start if choices is None else choices
        return _Planes(
            self.places,
            self.arguments,
            self.below[:, None],
            self.above[:, None],
            self.offset[:, None],
            self.offset_size[:, None],
            self.top[:, None],
            share,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Planes(Lines):
    """As `Maxima`, with an axis for rows, along which only `share` may differ."""

    places: Tensor
    arguments: int
    below: Tensor
    above: Tensor
    offset: Tensor
    offset_size: Tensor
    top: Tensor
    share: Tensor

    def pulled(self, rows: Tensor) -> PulledRows:
        above, below = rows.clamp_min(0), rows.clamp_max(0)
        on_sum, on_top = below * self.share, below * (1 - self.share)
        spread = above[..., None] * self.below + on_sum[..., None] * self.above
        empty = rows.new_zeros(*rows.shape[:2], self.arguments)
        on_arguments = empty.index_add(2, self.places.flatten(), spread.flatten(2))
        constant = along(on_sum, self.offset) + along(on_top, self.top)
        size = -along(on_sum, self.offset_size) - along(on_top, self.top.abs())
        return PulledRows(on_arguments, constant, size)

    def taken(self, index: Tensor) -> _Planes:
        return _Planes(
            self.places,
            self.arguments,
            self.below[index],
            self.above[index],
            self.offset[index],
            self.offset_size[index],
            self.top[index],
            self.share[index],
        )

    def turned(self, directions: Tensor) -> Tensor:
        spread = directions[:, :, self.places].abs()
        return (spread * torch.maximum(self.below, self.above)).sum(3)

    def gaps(self, arguments: Tensor) -> Tensor:
        held = arguments[:, self.places]
        below, above = (held * self.below[:, 0]).sum(2), (held * self.above[:, 0]).sum(2)
        on_sum = above + self.offset[:, 0]
        share = self.share[:, 0]
        return share * on_sum + (1 - share) * self.top[:, 0] - below


# Translators.


@translates("MaxPool", kind=OperatorKind.PIECEWISE_LINEAR)
def _max_pool(call: OnnxNode) -> int:
    window = rounded_up(call, spatial_window(call, call.ints_attribute("kernel_shape")))
    refuse_empty(call, window)
    return call.emit(MaxPool(window), call.node(0))


@translates("GlobalMaxPool", kind=OperatorKind.PIECEWISE_LINEAR)
def _global_max_pool(call: OnnxNode) -> int:
    sizes = call.shape(0)[2:]
    if not 1 <= len(sizes) <= 3:
        raise call.unsupported(f"of a value of shape {call.shape(0)}")
    ones = (1,) * len(sizes)
    return call.emit(MaxPool(Window(sizes, ones, ones, ((0, 0),) * len(sizes))), call.node(0))
