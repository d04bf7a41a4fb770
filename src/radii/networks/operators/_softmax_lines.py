"""Softmax inside a network: linear functions of its arguments below and above each probability.

p_i = exp(t_i) with t_i = z_i - log sum exp(z_j). The logarithm is convex, and exp lies between its
tangents and its chord (Wei et al., 2023, whose bounds of log-sum-exp these are tangents of):

    above   p_i <= chord of exp over the range of t_i, at  z_i - (tangent of log sum exp at c)
    below   p_i >= tangent of exp, at  z_i - (tangent of log A),  A = sum of chords of exp(z_j)

The point c is free for each side of each p_i: a choice of 0 is where p_i is least on the box, 1
where it is largest, 0.5 the centre.

Probabilities add up to 1, so that any number may be taken off all coefficients of a row: what is
lost is least for their median, weighed by how far each probability is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.networks.operators._intervals import Interval
from radii.networks.operators._lines import Lines, PulledRows, Relaxation

CHORD_ULPS = 16
"""By how many units in the last place of what is added up an offset is moved outward."""

SIZE_FACTOR = 32.0
"""How often the numbers in a line are rounded, at most: they count so many times in its size."""


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxLines(Relaxation):
    """Of several softmaxes: `entries` (softmaxes, terms) are numbers of entries of the argument.

    All others are (regions, softmaxes, terms): the arguments, and intervals of the logarithms of
    the probabilities.
    """

    entries: Tensor
    arguments: Interval
    logarithms: Interval

    @classmethod
    def of(cls, entries: Tensor, arguments: Interval, logarithms: Interval) -> SoftmaxLines:
        """From flattened intervals (regions, entries)."""
        held = entries.to(arguments.low.device)
        return cls(
            held,
            Interval(arguments.low[:, held], arguments.high[:, held]),
            Interval(logarithms.low[:, held], logarithms.high[:, held]),
        )

    @property
    def start(self) -> Tensor:
        low = self.arguments.low
        return low.new_full((2, len(low), 1, self.entries.numel()), 0.5)

    @property
    def is_loose(self) -> Tensor:
        varies = self.arguments.low < self.arguments.high
        return varies.flatten(1)[:, _inverse(self.entries)]

    def taken(self, index: Tensor) -> SoftmaxLines:
        sides = (self.arguments, self.logarithms)
        arguments, logarithms = (Interval(each.low[index], each.high[index]) for each in sides)
        return SoftmaxLines(self.entries, arguments, logarithms)

    def lines(self, choices: Tensor | None = None) -> Lines:
        low, high = self.arguments.low[:, None], self.arguments.high[:, None]
        if choices is None:
            middle = (low / 2 + high / 2).unsqueeze(3)
            points = middle, middle
        else:
            chosen = choices[..., self.entries].unsqueeze(-1)
            own = torch.eye(low.shape[-1], dtype=torch.bool, device=low.device)
            shares = torch.where(own, chosen, 1 - chosen)
            spread = (high - low).unsqueeze(3)
            points = tuple(low.unsqueeze(3) + share * spread for share in shares)
        below = _Below.touching(points[0], low, high)
        sides = (self.logarithms.low[:, None], self.logarithms.high[:, None])
        above = _Above.touching(points[1], Interval(*sides), Interval(low, high))
        open_by = sides[1].exp() - sides[0].exp()
        return _ProbabilityLines(self.entries, below, above, open_by, low / 2 + high / 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """p_i >= scale_i * (z_i - sum of share_i * slope_k * z_k) + offset_i."""

    scale: Tensor
    share: Tensor
    slope: Tensor
    offset: Tensor
    size: Tensor

    @classmethod
    def touching(cls, points: Tensor, low: Tensor, high: Tensor) -> _Below:
        """At points (regions, rows, softmaxes, terms, terms), which may be 1 instead of terms.

        Every argument is taken less the largest one that any may have, which changes no
        probability.
        """
        top = high.amax(-1, keepdim=True)
        left, right = low - top, high - top
        slope, start = _chord_of_exp(left, right)
        at = points - top.unsqueeze(-1)
        total = (slope.unsqueeze(3) * at + start.unsqueeze(3)).sum(-1)
        own = at.diagonal(dim1=-2, dim2=-1) if at.shape[-2] > 1 else at.squeeze(-2)
        exponent = own - total.log()
        scale, share = exponent.exp(), total.reciprocal()
        starts, slopes = start.sum(-1, keepdim=True), slope.sum(-1, keepdim=True)
        parts = 2 - exponent - total.log() - share * starts
        offset = scale * (parts - top * (1 - share * slopes))
        reached = (slope * left.abs() + start.abs()).sum(-1, keepdim=True)
        numbers = 2 + exponent.abs() + total.log().abs() + left.abs() + top.abs()
        size = scale * (numbers + share * (reached + slopes * top.abs()))
        return cls(scale, share, slope, offset, size * SIZE_FACTOR)

    def pulled(self, rows: Tensor) -> Tensor:
        """Rows >= 0."""
        own = rows * self.scale
        return own - self.slope * (own * self.share).sum(-1, keepdim=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Above:
    """p_i <= scale_i * (z_i - sum of weight_ik z_k) + offset_i."""

    scale: Tensor
    weight: Tensor
    offset: Tensor
    size: Tensor

    @classmethod
    def touching(cls, points: Tensor, logarithms: Interval, arguments: Interval) -> _Above:
        scale, start = _chord_of_exp(logarithms.low, logarithms.high)
        weight = points.softmax(-1)
        level = points.logsumexp(-1) - (weight * points).sum(-1)
        offset = start - scale * level
        largest = arguments.magnitude.amax(-1, keepdim=True)
        reached = logarithms.magnitude + 1 + 4 * largest
        return cls(scale, weight, offset, (start.abs() + scale * reached) * SIZE_FACTOR)

    def pulled(self, rows: Tensor) -> Tensor:
        """Rows <= 0."""
        own = rows * self.scale
        if self.weight.shape[-2] == 1:
            return own - own.sum(-1, keepdim=True) * self.weight.squeeze(-2)
        return own - torch.einsum("rmgi,rmgik->rmgk", own, self.weight)


def _chord_of_exp(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """A line above exp on each interval: whatever the slope is, it is above at both ends."""
    bottom, top = low.exp(), high.exp()
    width = high - low
    rise = (top - bottom) / torch.where(width > 0, width, 1.0)
    slope = torch.where(width > 0, rise, top).clamp_min(0)
    start = torch.maximum(bottom - slope * low, top - slope * high)
    numbers = torch.finfo(low.dtype)
    size = top + slope * torch.maximum(low.abs(), high.abs())
    return slope, start + CHORD_ULPS * (numbers.eps * size + numbers.tiny)


@dataclass(frozen=True, slots=True, eq=False)
class _ProbabilityLines(Lines):
    """Chosen lines; `open_by` are the widths of the probabilities' intervals, and `middle` the
    centres of the arguments', (regions, 1, softmaxes, terms)."""

    entries: Tensor
    below: _Below
    above: _Above
    open_by: Tensor
    middle: Tensor

    def pulled(self, rows: Tensor) -> PulledRows:
        held = rows[..., self.entries]
        level = _weighted_median(held, self.open_by)
        apart = held - level
        above, below = apart.clamp_min(0), apart.clamp_max(0)
        on_arguments = self.below.pulled(above) + self.above.pulled(below)
        constant = (above * self.below.offset + below * self.above.offset).sum((2, 3))
        size = (above * self.below.size - below * self.above.size).sum((2, 3))
        size = size + (held.abs() + level.abs()).sum((2, 3))
        places = _inverse(self.entries)
        return PulledRows(on_arguments.flatten(2)[..., places], constant + level.sum((2, 3)), size)

    def taken(self, index: Tensor) -> _ProbabilityLines:
        below = _Below(*(held[index] for held in _tensors(self.below)))
        above = _Above(*(held[index] for held in _tensors(self.above)))
        return _ProbabilityLines(
            self.entries, below, above, self.open_by[index], self.middle[index]
        )

    def turned(self, directions: Tensor) -> Tensor:
        share = self.middle.softmax(-1)
        held = directions[..., self.entries]
        moved = share * (held - (share * held).sum(-1, keepdim=True))
        return moved.flatten(2)[..., _inverse(self.entries)]

    def gaps(self, arguments: Tensor) -> Tensor:
        return self.open_by.flatten(2).squeeze(1)[..., _inverse(self.entries)]


def _tensors(held: _Below | _Above) -> list[Tensor]:
    return [getattr(held, name) for name in held.__slots__]


def _inverse(entries: Tensor) -> Tensor:
    """Where each entry of the argument is, once they are ordered by softmaxes."""
    return entries.flatten().argsort()


def _weighted_median(values: Tensor, weights: Tensor) -> Tensor:
    """Along the last axis, which is kept."""
    ordered, order = values.sort(-1)
    reached = weights.expand_as(values).gather(-1, order).cumsum(-1)
    place = (reached >= reached[..., -1:] / 2).to(torch.int8).argmax(-1, keepdim=True)
    return ordered.gather(-1, place)
