"""Bounds of affine functions over the part of a box where a violation may be.

A violation makes a cut, slopes @ x + constant, at most 0. For every weight w >= 0 a function f of
the input is at a violation at least the least of f + w cut over the box. Along w that least value
is concave and bends where one input's slope changes its sign, so the best w is one of few.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.verifiers.branch_and_bound.clipping import ROUNDING, Weighed

__all__ = ["Centred", "centred_cut", "known_only", "least_at_violations"]


LARGEST = 1e150
"""Beyond, nothing is known: a chord between such bounds would be rounded to anything."""


@dataclass(frozen=True, slots=True, eq=False)
class Centred:
    """Functions slopes @ u + constants of u in [-1, 1]: a box seen from its middle, by its reach.

    `slopes` is (boxes, functions, inputs), `constants` (boxes, functions).
    """

    slopes: Tensor
    constants: Tensor

    def taken(self, boxes: Tensor) -> Centred:
        return Centred(self.slopes[boxes], self.constants[boxes])


def centred_cut(mixture: Weighed, low: Tensor, high: Tensor, reach: Tensor) -> Centred:
    """The best mixture of a violation's cuts, one for each box, less its rounding.

    `reach` may be a little more than half of a side.
    """
    magnitude = mixture.slopes.abs()
    size = (magnitude * torch.maximum(low.abs(), high.abs())).sum(1) + mixture.values.abs()
    constants = mixture.values + (magnitude * (high / 2 - low / 2)).sum(1) - ROUNDING * size
    return Centred((mixture.slopes * reach)[:, None], constants[:, None])


def least_at_violations(functions: Centred, cut: Centred) -> Tensor:
    """The least value of each function where the box's cut is at most 0, less its rounding."""
    slopes, turn = functions.slopes, cut.slopes
    is_opposed = slopes * turn < 0
    weights, order = torch.where(is_opposed, -slopes / turn, torch.inf).sort(2)
    steps = turn.abs()
    first = cut.constants + torch.where(is_opposed, steps, -steps).sum(2)
    ahead = first[..., None] - 2 * steps.expand_as(slopes).gather(2, order).cumsum(2)
    place = (ahead > 0).sum(2, keepdim=True).clamp_max(slopes.shape[2] - 1)
    weight = weights.gather(2, place).squeeze(2)
    weight = torch.where((first > 0) & torch.isfinite(weight), weight, 0.0)
    values = functions.constants + weight * cut.constants
    values = values - (slopes + weight[..., None] * turn).abs().sum(2)
    size = functions.constants.abs() + weight * (cut.constants.abs() + steps.sum(2))
    values = values - ROUNDING * (size + slopes.abs().sum(2))
    return known_only(values)


def known_only(values: Tensor) -> Tensor:
    """Lower bounds; what is no number, or so large that sums of it may overflow, is none."""
    return torch.where(values.abs() < LARGEST, values, -torch.inf)
