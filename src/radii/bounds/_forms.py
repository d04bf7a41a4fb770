"""Arguments of products as affine forms of the inputs, from the linear bounds of CROWN.

Lines from below and from above have slopes of their own; the form has their mean, and its radius
holds what both leave.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.bounds._affine_maps import Layer
from radii.bounds._linear import LinearBounds, State
from radii.networks import AffineForms, ProductPlanes, Relaxation

FORM_ENTRIES = 1 << 24
"""Up to so many coefficients forms are kept: 128 MB in float64."""

FORM_ROUNDING = 2.0**-36
"""What sums over inputs may be off in float64, relative to the absolute values they add up."""

Entries = tuple[Tensor, Tensor]
"""Regions (regions, 1) and arguments (regions, rows) of them."""


class GatheredForms:
    """The forms of one layer's arguments over each region, as far as they are known.

    For argument i of a region: steps (in units of the region's sides), the value that they leave at
    the centre, and by how much that is off.
    """

    def __init__(self, state: State, layer: Layer) -> None:
        centre, sides = state.supports.box.centred()
        self.centre, self.sides = centre, sides
        shape = len(state), layer.size
        self.steps = centre.new_zeros(*shape, centre.shape[1])
        self.middle, self.radius = centre.new_zeros(shape), centre.new_full(shape, torch.inf)

    @classmethod
    def of(
        cls, state: State, layer: Layer, relaxation: Relaxation, loss: Tensor
    ) -> GatheredForms | None:
        """None where forms are of no use, or too large. Arguments that read the input alone are
        known from the start."""
        entries = len(state) * layer.size * state.network.inputs
        if not isinstance(relaxation, ProductPlanes) or entries > FORM_ENTRIES:
            return None
        if loss.dtype != torch.float64:
            return None
        gathered = cls(state, layer)
        if layer.reads_input_only:
            gathered._read(layer, loss)
        return gathered

    def _read(self, layer: Layer, loss: Tensor) -> None:
        everything = torch.arange(layer.size, device=loss.device).expand(len(loss), -1)
        where = torch.arange(len(loss), device=loss.device)[:, None], everything
        slopes = layer.maps[0].chosen(everything)
        offset = layer.offset.expand(len(loss), -1)
        self._keep(where, slopes, slopes, offset - loss, offset + loss)

    def put(self, where: Entries, found: LinearBounds) -> None:
        """Bounds of arguments, and behind them those of the same negated."""
        below, above = found.slopes.chunk(2, 1)
        least, most = found.constants.chunk(2, 1)
        self._keep(where, below, -above, least, -most)

    def _keep(
        self, where: Entries, below: Tensor, above: Tensor, least: Tensor, most: Tensor
    ) -> None:
        """below x + least <= argument <= above x + most."""
        regions = where[0].squeeze(1)
        centre, sides = self.centre[regions][..., None], self.sides[regions][..., None]
        mean, half = below / 2 + above / 2, above / 2 - below / 2
        moved = (half @ centre).squeeze(2)
        spread = (half.abs() @ sides).squeeze(2)
        low, high = least - moved - spread, most + moved + spread
        size = ((mean.abs() + half.abs()) @ (centre.abs() + sides)).squeeze(2)
        size = size + least.abs() + most.abs()
        self.steps[where] = mean * sides.mT
        self.middle[where] = (mean @ centre).squeeze(2) + low / 2 + high / 2
        self.radius[where] = (high / 2 - low / 2).clamp_min(0) + FORM_ROUNDING * size

    def around(self, centre: Tensor, radius: Tensor) -> AffineForms:
        """The forms around these centres of intervals, which have this radius: those that are not
        known are the intervals."""
        own = self.radius + (self.middle - centre).abs() * (1 + FORM_ROUNDING)
        known = torch.isfinite(own) & torch.isfinite(self.steps).all(2)
        steps = torch.where(known[..., None], self.steps, 0.0)
        return AffineForms(steps, torch.where(known, own, radius))
