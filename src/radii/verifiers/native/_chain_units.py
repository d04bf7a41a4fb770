"""The ReLU units of one layer of a chain over many boxes, as lines below and above them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds import UnitLines
from radii.networks import ReluLines, prefers_right
from radii.verifiers.native._cuts import CentredFunctions, least_at_violations


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
