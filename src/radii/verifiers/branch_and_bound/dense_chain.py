"""Linear bounds over many boxes of inputs for a chain of dense layers of ReLU units.

The same bounds as CROWN's, for the networks that input splitting meets most, at a fraction of the
work. Going forward, each unit is an affine form (a zonotope): a centre, a part for each input and
one for each unit before it that may be on or off. That costs little and settles most units. Where
that nearly suffices, the others are bounded by a backward pass as well, and both are intersected.

Rounding of inner layers is bounded without a look at the coefficients: slopes are at most 1, so
what a sum before layer k is off counts at most |W| ... |W| times in a unit of a later layer. Only
the last rows, which proofs rest on, add up their own absolute values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.bounds.affine_maps import FUSED, Layer, LayeredNetwork
from radii.bounds.rounding import EXTRA_TERMS
from radii.networks.operators import Relu

__all__ = ["DenseChain", "Findings"]

ENTRIES_AT_ONCE = 1 << 20
"""How many coefficients the forms of one part of a batch may hold, most of which are not needed."""

LARGEST = 1e150
"""Beyond, nothing is known: a chord between such bounds would be rounded to anything."""

MOST_UNITS = 4096
"""Of the whole network: beyond, a single box's forms would not fit the cache by far."""


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """For each box linear functions `slopes @ x + constants` below each row, rounding included.

    `influence` is (boxes, inputs): how much of the looseness each input causes.
    """

    slopes: Tensor
    constants: Tensor
    influence: Tensor


@dataclass(slots=True, eq=False)
class _Layers:
    """What is known of the layers so far, each (boxes, units).

    The lines below and above each unit, `rise` the offset of the upper one; what a value and the
    sum it comes from add up at most, in absolute terms.
    """

    lower: list[Tensor]
    upper: list[Tensor]
    rise: list[Tensor]
    sizes: list[Tensor]
    sums: list[Tensor]


class DenseChain:
    """Layers of ReLU units, each reading only the one before it, in float64."""

    def __init__(self, layers: tuple[Layer, ...], output: Layer) -> None:
        every = (*layers, output)
        self.weights = [next(iter(layer.maps.values())).matrix for layer in every]
        self.turned = [weight.t().contiguous() for weight in self.weights]
        self.magnitudes = [weight.abs() for weight in self.turned]
        self.offsets = [layer.offset for layer in every]
        self.depth = len(layers)
        self.inputs = self.weights[0].shape[1]
        self.widest = max(self.inputs, *(len(offset) for offset in self.offsets))
        self.units = sum(layer.size for layer in layers)
        terms = self.inputs + self.units + self.widest + self.depth + EXTRA_TERMS
        self.share = 4 * (torch.finfo(torch.float64).eps * terms + FUSED)
        """What one layer's arithmetic may be off, relative to the absolute values it adds up."""

    @classmethod
    def of(cls, network: LayeredNetwork) -> DenseChain | None:
        """The chain that a network is; None if it is none, or so large that this would not pay."""
        source = 0
        for layer in (*network.layers, network.output):
            is_dense = all(held.is_dense for held in layer.maps.values())
            if set(layer.maps) != {source} or not is_dense:
                return None
            if layer is not network.output and not isinstance(layer.operator, Relu):
                return None
            source = layer.node
        units = sum(layer.size for layer in network.layers)
        if not network.layers or units > MOST_UNITS:
            return None
        return cls(network.layers, network.output)

    def bounds(
        self, low: Tensor, high: Tensor, rows: Tensor, poll: Callable[[], None], *, tight: bool
    ) -> Findings:
        """Bounds of rows (rows, outputs) over each box; `poll` is called every few boxes.

        If they are to be `tight`, inner units are bounded by backward passes as well: as CROWN
        does, and at some three times the work.
        """
        first_low, first_high = self._first(low, high)
        counts = ((first_low < 0) & (first_high > 0)).sum(1)
        order = counts.argsort()
        at_once = max(1, ENTRIES_AT_ONCE // (self.widest * (self.inputs + self.units)))
        parts = []
        for first in range(0, len(order), at_once):
            poll()
            index = order[first : first + at_once]
            parts.append(self._part(low[index], high[index], rows, tight))
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        return Findings(
            torch.cat([part.slopes for part in parts])[back],
            torch.cat([part.constants for part in parts])[back],
            torch.cat([part.influence for part in parts])[back],
        )

    def _first(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        middle, reach = low / 2 + high / 2, high / 2 - low / 2
        centre, radius = middle @ self.turned[0] + self.offsets[0], reach @ self.magnitudes[0]
        return centre - radius, centre + radius

    def _part(self, low: Tensor, high: Tensor, rows: Tensor, tight: bool) -> Findings:
        middle = low / 2 + high / 2
        reach = (torch.maximum(high - middle, middle - low)) * (1 + self.share)
        layers = _Layers([], [], [], [], [])
        centre, forms = middle, torch.diag_embed(reach)
        size = middle.abs() + reach
        error = self.share * size
        influence = torch.zeros_like(low)
        least, most = low, high
        for number in range(self.depth):
            offset = self.offsets[number]
            centre = centre @ self.turned[number] + offset
            forms = forms @ self.turned[number]
            total = size @ self.magnitudes[number] + offset.abs()
            error = error @ self.magnitudes[number] + self.share * total
            radius = forms.abs().sum(1)
            if number:  # the interval of each value alone can be narrower than its form
                from_below, from_above = least.clamp_min(0), most.clamp_min(0)
                inner = (from_below / 2 + from_above / 2) @ self.turned[number] + offset
                outer = (from_above / 2 - from_below / 2) @ self.magnitudes[number]
                least, most = _around(inner, outer + error)
                near_least, near_most = _around(centre, radius + error)
                least, most = torch.maximum(least, near_least), torch.minimum(most, near_most)
            else:
                least, most = _around(centre, radius + error)
            if number and tight:
                least, most = self._tightened(layers, middle, reach, least, most, error)
            is_bent = (least < 0) & (most > 0)
            upper = torch.where(is_bent, most / (most - least), (least >= 0).to(least))
            rise = torch.where(is_bent, -upper * least, 0.0)
            layers.lower.append(torch.where(is_bent, (most >= -least).to(least), upper))
            layers.upper.append(upper)
            layers.rise.append(rise)
            layers.sums.append(total)
            size = (centre.abs() + radius + error) * upper + rise
            centre = centre * upper + rise / 2
            error = error + self.share * size
            layers.sizes.append(size)
            shares = forms[:, : self.inputs].abs()
            shares = shares / shares.sum(1, keepdim=True).clamp_min(1e-300)
            influence = influence + torch.bmm(shares, rise[..., None]).squeeze(2)
            forms = self._with_errors(forms * upper[:, None], rise / 2, is_bent)
        slopes, constants = self._last(layers, rows, middle, reach)
        return Findings(slopes, constants, torch.where(torch.isfinite(influence), influence, 0.0))

    def _with_errors(self, forms: Tensor, halves: Tensor, is_bent: Tensor) -> Tensor:
        """The forms, and one more part for each bent unit: half of what its lines are apart."""
        units = _places(is_bent)
        if units.shape[1] == 0:
            return forms
        own = torch.zeros(*units.shape, forms.shape[2], dtype=forms.dtype, device=forms.device)
        own.scatter_(2, units[..., None], halves.gather(1, units)[..., None])
        return torch.cat([forms, own], 1)

    def _tightened(
        self,
        layers: _Layers,
        middle: Tensor,
        reach: Tensor,
        least: Tensor,
        most: Tensor,
        error: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The bounds of a layer's arguments with a backward pass for those around 0."""
        units = _places((least < 0) & (most > 0))
        count = units.shape[1]
        if count == 0:
            return least, most
        number = len(layers.upper)
        chosen, offset = self.weights[number][units], self.offsets[number][units]
        held, constants = torch.cat([chosen, -chosen], 1), torch.cat([offset, -offset], 1)
        for before in range(number - 1, -1, -1):
            held, constants = _lowered(layers, before, held, constants)
            constants = constants + held @ self.offsets[before]
            held = held @ self.weights[before]
        values = constants + torch.bmm(held, middle[..., None]).squeeze(2)
        values = values - torch.bmm(held.abs(), reach[..., None]).squeeze(2)
        slack = error.gather(1, units)
        below = _known(values[:, :count] - slack)
        above = -_known(values[:, count:] - slack)
        below = torch.maximum(below, least.gather(1, units))
        above = torch.minimum(above, most.gather(1, units))
        return least.scatter(1, units, below), most.scatter(1, units, above)

    def _last(
        self, layers: _Layers, rows: Tensor, middle: Tensor, reach: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Linear functions below the rows, with all that rounding can take from them."""
        count = len(middle)
        last = layers.sizes[-1] @ self.magnitudes[-1] + self.offsets[-1].abs()
        size = last @ rows.abs().t()
        constants = (rows @ self.offsets[-1]).expand(count, -1)
        held = (rows @ self.weights[-1]).expand(count, -1, -1)
        for number in range(self.depth - 1, -1, -1):
            size = size + torch.bmm(held.abs(), layers.sizes[number][..., None]).squeeze(2)
            held, constants = _lowered(layers, number, held, constants)
            size = size + torch.bmm(held.abs(), layers.sums[number][..., None]).squeeze(2)
            constants = constants + held @ self.offsets[number]
            held = held @ self.weights[number]
        of_input = middle.abs() + reach
        size = size + torch.bmm(held.abs(), of_input[..., None]).squeeze(2)
        return held, constants - self.share * size


def _lowered(
    layers: _Layers, number: int, held: Tensor, constants: Tensor
) -> tuple[Tensor, Tensor]:
    """Coefficients on values as coefficients on arguments, bounded from below.

    With |a| beside a no case is told apart: the lower line counts (a + |a|) / 2 times.
    """
    lower, upper = layers.lower[number], layers.upper[number]
    magnitude = held.abs()
    below = held - magnitude
    constants = constants + torch.bmm(below, layers.rise[number][..., None]).squeeze(2) / 2
    mean, half = ((lower + upper) / 2)[:, None], ((lower - upper) / 2)[:, None]
    return torch.addcmul(held * mean, magnitude, half), constants


def _places(chosen: Tensor) -> Tensor:
    """The numbers of the chosen units of each box, filled up with others to equally many."""
    most = int(chosen.sum(1).amax())
    return chosen.to(torch.int8).argsort(1, descending=True)[:, :most]


def _around(centre: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of an interval, as far as they are known."""
    return _known(centre - radius), -_known(-centre - radius)


def _known(values: Tensor) -> Tensor:
    """What is no number, or so large that sums of it may overflow, is no bound."""
    return torch.where(values.abs() < LARGEST, values, -torch.inf)
