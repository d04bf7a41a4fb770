"""The ReLU units of one layer of a chain over many boxes, as lines below and above them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.verifiers.branch_and_bound.conditioning import Centred, least_at_violations

__all__ = ["Units", "lines", "lowered"]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What is known of a layer's units, each (boxes, units).

    `least` and `most` are what they read, `lower` and `upper` the slopes of lines below and above
    what they give, `rise` the offset of the upper one; `size` and `total` what a value, and the sum
    it comes from, add up at most in absolute terms; `error` is what the network itself rounds in
    computing what the units read. `functions` are below what the units at `places` read, and behind
    those below its negative.
    """

    least: Tensor
    most: Tensor
    lower: Tensor
    upper: Tensor
    rise: Tensor
    size: Tensor
    total: Tensor
    error: Tensor
    places: Tensor
    functions: Centred

    def taken(self, boxes: Tensor) -> Units:
        return Units(
            self.least[boxes],
            self.most[boxes],
            self.lower[boxes],
            self.upper[boxes],
            self.rise[boxes],
            self.size[boxes],
            self.total[boxes],
            self.error[boxes],
            self.places[boxes],
            self.functions.taken(boxes),
        )

    def at_violations(self, cuts: list[tuple[Centred, Tensor]]) -> Units:
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
        lower, upper, rise = lines(least, most)
        return replace(self, least=least, most=most, lower=lower, upper=upper, rise=rise)


def lines(least: Tensor, most: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of the lines below and above ReLU between two bounds, and the upper one's offset."""
    is_bent = (least < 0) & (most > 0)
    upper = torch.where(is_bent, most / (most - least), (least >= 0).to(least))
    rise = torch.where(is_bent, -upper * least, 0.0)
    lower = torch.where(is_bent, (most >= -least).to(least), upper)
    return lower, upper, rise


def lowered(units: Units, held: Tensor, constants: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients on values as coefficients on arguments, bounded from below.

    With |a| beside a no case is told apart: the lower line counts (a + |a|) / 2 times.
    """
    lower, upper = units.lower[:, None], units.upper[:, None]
    magnitude = held.abs()
    below = held - magnitude
    constants = constants + torch.bmm(below, units.rise[..., None]).squeeze(2) / 2
    mean, half = (lower + upper) / 2, (lower - upper) / 2
    return torch.addcmul(held * mean, magnitude, half), constants
