"""Planes below and above the largest entry of a window."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.bounds.affine_maps import Layer
from radii.bounds.enclosure import Interval
from radii.bounds.relaxations import Lines, Pulled, Relaxation
from radii.networks.operators import MaxPool

__all__ = ["Maxima"]


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
    def of(cls, layer: Layer, arguments: Interval) -> Maxima:
        assert isinstance(layer.operator, MaxPool)
        held = layer.operator.candidates(layer.shape).to(arguments.low.device)
        is_real, places = held >= 0, held.clamp_min(0)
        low = torch.where(is_real, arguments.low[:, places], -torch.inf)
        high = torch.where(is_real, arguments.high[:, places], -torch.inf)
        largest, winner = low.max(2, keepdim=True)
        below = torch.zeros_like(low).scatter(2, winner, 1.0)
        exceeds = (high > largest) & is_real
        width = torch.where(exceeds, high - low, 1.0)
        weight = torch.where(exceeds, (high - largest) / width, 0.0)
        pulled_down = torch.where(exceeds, weight * low, 0.0)
        offset = largest.squeeze(2) - pulled_down.sum(2)
        top = high.amax(2)
        middle = largest.squeeze(2) + torch.where(exceeds, weight * width / 2, 0.0).sum(2)
        prefers_sum = ((middle <= top) | (exceeds.sum(2) <= 1)).to(low)
        sizes = largest.squeeze(2).abs() + pulled_down.abs().sum(2)
        choices = torch.stack([prefers_sum, prefers_sum])
        return cls(places, layer.size, below, weight, offset, sizes, top, choices)

    @property
    def start(self) -> Tensor:
        return self.choices

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
        return _Planes(self, (self.choices if choices is None else choices)[1])


@dataclass(frozen=True, slots=True, eq=False)
class _Planes(Lines):
    of: Maxima
    share: Tensor

    def pulled(self, rows: Tensor) -> Pulled:
        above, below = rows.clamp_min(0), rows.clamp_max(0)
        on_sum, on_top = below * self.share, below * (1 - self.share)
        spread = above[..., None] * self.of.below + on_sum[..., None] * self.of.above
        empty = rows.new_zeros(len(rows), self.of.arguments)
        on_arguments = empty.index_add(1, self.of.places.flatten(), spread.flatten(1))
        constant = (on_sum * self.of.offset + on_top * self.of.top).sum(1)
        size = on_sum.abs() * self.of.offset_size + on_top.abs() * self.of.top.abs()
        return Pulled(on_arguments, constant, size.sum(1))
