"""Bounds of affine functions over the part of a box where a violation may be.

A violation makes a cut, slopes @ x + constant, at most 0. For every weight w >= 0 a function f of
the input is at a violation at least the least of f + w cut over the box (Lagrangian duality). Along
w that least value is concave and bends where one input's slope changes its sign, so the best w is
one of few, as in a fractional knapsack (Clip-and-Verify, Zhou et al. 2025, bounds the same way).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds import UnitLines
from radii.networks import ReluLines, prefers_right
from radii.verifiers.native._boxes import SUM_ROUNDING, CutMixture

LARGEST_KNOWN = 1e150
"""Beyond, nothing is known: a chord between such bounds would be rounded to anything."""


@dataclass(frozen=True, slots=True, eq=False)
class CentredFunctions:
    """Functions slopes @ u + constants of u in [-1, 1]: a box seen from its middle, by its reach.

    `slopes` is (boxes, functions, inputs), `constants` (boxes, functions).
    """

    slopes: Tensor
    constants: Tensor

    def taken(self, boxes: Tensor) -> CentredFunctions:
        return CentredFunctions(self.slopes[boxes], self.constants[boxes])


def centred_cut(mixture: CutMixture, low: Tensor, high: Tensor, reach: Tensor) -> CentredFunctions:
    """The best mixture of a violation's cuts, one for each box, less its rounding.

    `reach` may be a little more than half of a side.
    """
    magnitude = mixture.slopes.abs()
    size = (magnitude * torch.maximum(low.abs(), high.abs())).sum(1) + mixture.values.abs()
    constants = mixture.values + (magnitude * (high / 2 - low / 2)).sum(1) - SUM_ROUNDING * size
    return CentredFunctions((mixture.slopes * reach)[:, None], constants[:, None])


def least_at_violations(functions: CentredFunctions, cut: CentredFunctions) -> Tensor:
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
    values = values - SUM_ROUNDING * (size + slopes.abs().sum(2))
    return known_only(values)


def known_only(values: Tensor) -> Tensor:
    """Lower bounds; what is no number, or so large that sums of it may overflow, is none."""
    return torch.where(values.abs() < LARGEST_KNOWN, values, -torch.inf)


# The ReLU units of one layer of a chain over many boxes, as lines below and above them.


@dataclass(frozen=True, slots=True, eq=False)
class ChainUnits:
    """What is known of a layer's units, each (boxes, units).

    `least` and `most` are what they read, `lines` those around what they give; `size` and `total`
    what a value, and the sum it comes from, add up at most in absolute terms; `error` is what the
    network itself rounds in computing what the units read. `functions` are below what the units at
    `places` read, and behind those below its negative.
    """

    least: Tensor
    most: Tensor
    lines: UnitLines
    size: Tensor
    total: Tensor
    error: Tensor
    places: Tensor
    functions: CentredFunctions

    def taken(self, boxes: Tensor) -> ChainUnits:
        return ChainUnits(
            self.least[boxes],
            self.most[boxes],
            self.lines.taken(boxes),
            self.size[boxes],
            self.total[boxes],
            self.error[boxes],
            self.places[boxes],
            self.functions.taken(boxes),
        )

    def at_violations(self, cuts: list[tuple[CentredFunctions, Tensor]]) -> ChainUnits:
        """The same where one of the cuts is at most 0, of those that are not closed."""
        count = self.places.shape[1]
        if count == 0:
            return self
        found = torch.stack(
            [
                torch.where(is_closed[:, None], torch.inf, least_at_violations(self.functions, cut))
                for cut, is_closed in cuts
            ]
        ).amin(0)
        below = torch.maximum(self.least.gather(1, self.places), found[:, :count])
        above = torch.minimum(self.most.gather(1, self.places), -found[:, count:])
        least = self.least.scatter(1, self.places, below)
        most = self.most.scatter(1, self.places, above)
        return replace(self, least=least, most=most, lines=relu_lines(least, most))


def relu_lines(least: Tensor, most: Tensor) -> UnitLines:
    """The lines of CROWN around ReLU between these bounds of its argument."""
    around = ReluLines.of(least, most)
    lower = around.lower_slope(prefers_right(least, most))
    parts = (lower, torch.zeros_like(lower), around.upper_slope, around.upper_offset)
    return UnitLines(*(part[:, None] for part in parts))
