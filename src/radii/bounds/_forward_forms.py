"""Forward linear bounds for networks with few inputs: each value as an affine form of the inputs.

Over the box x = m + R t, |t_i| <= 1, a value is kept as

    v = c + G t + e,    |e| <= r

with an own remainder r for each entry (an affine form whose other noise terms are merged; DeepZ,
Singh et al. 2018, keeps them apart). A linear map W gives W c, W G and |W| r; a unit whose lines
leave a band of the same slope k around it gives k c + offset, k G and |k| r + half of the band's
width. That is a forward pass for each input and two more: for a handful of inputs far less than a
backward pass for each unit, which it settles in many cases. It knows nothing of a row that is asked
for, so that the backward pass is tighter where it is affordable.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.bounds._affine_maps import Layer, LayeredNetwork, slack, underflow
from radii.bounds._relu_form import Fusion
from radii.networks import Interval, LinearBand

FORM_INPUTS = 32
"""Up to so many inputs, forms are cheap beside what a backward pass for each unit takes."""

FORM_ENTRIES = 1 << 25
"""How many coefficients the forms of a whole network may hold over all regions: 256 MB."""

LARGEST_FORM = 1e100
"""Beyond, nothing is known: sums of such numbers might overflow."""


def has_forward_forms(fusion: Fusion) -> bool:
    """Whether a network has few enough inputs for affine forms."""
    return fusion.graph.nodes[0].size <= FORM_INPUTS


@dataclass(frozen=True, slots=True, eq=False)
class ForwardForm:
    """Values c + G t + e over a batch of boxes: `centre` and `radius` are (regions, n), `slopes`
    (regions, inputs, n)."""

    centre: Tensor
    slopes: Tensor
    radius: Tensor

    @property
    def size(self) -> Tensor:
        """The largest absolute value that it stands for."""
        return self.centre.abs() + self.slopes.abs().sum(1) + self.radius

    def interval(self) -> Interval:
        """What it encloses, and what adding it up rounds."""
        spread = self.slopes.abs().sum(1) + self.radius
        spread = spread + slack(self.centre.abs() + spread, self.slopes.shape[1] + 2)
        is_known = (self.centre.abs() < LARGEST_FORM) & (spread < LARGEST_FORM)
        return Interval(
            torch.where(is_known, self.centre - spread, -torch.inf),
            torch.where(is_known, self.centre + spread, torch.inf),
        )


class ForwardForms:
    """The forms of all values of a network over a batch of boxes, layer by layer."""

    def __init__(self, box: Interval) -> None:
        middle, radius = box.centred()
        self._forms = {0: ForwardForm(middle, torch.diag_embed(radius), torch.zeros_like(middle))}

    @classmethod
    def of(cls, network: LayeredNetwork, box: Interval) -> ForwardForms | None:
        """None where there are too many inputs, regions or units, or sides without an end."""
        values = sum(layer.size for layer in network.layers)
        is_small = network.inputs <= FORM_INPUTS and box.low.numel() * values <= FORM_ENTRIES
        if not is_small or not bool(torch.isfinite(box.high - box.low).all()):
            return None
        return cls(box)

    def arguments(self, layer: Layer, loss: Tensor) -> ForwardForm:
        """What a layer reads; `loss` is what a coefficient of 1 on each argument loses."""
        some = self._forms[0]
        centre = layer.offset.expand(len(some.centre), -1)
        slopes = centre.new_zeros(len(centre), some.slopes.shape[1], layer.size)
        radius, size = torch.zeros_like(centre), centre.abs()
        for source, held in layer.maps.items():
            form = self._forms[source]
            centre = centre + held.pushed(form.centre)
            slopes = slopes + held.pushed(form.slopes)
            radius = radius + held.spread(form.radius)
            size = size + held.spread(form.size)
            known = form.size
            radius = radius + underflow(Interval(-known, known))
        # Each of the coefficients is a sum that is rounded relative to what it adds up.
        return ForwardForm(centre, slopes, radius + loss + slack(size, layer.terms + 2))

    def add(
        self, node: int, arguments: ForwardForm, band: LinearBand | None, values: Interval
    ) -> None:
        """The values of a layer that reads these arguments: by the band around them, or between
        the bounds that are known of them."""
        middle, spread = values.centred()
        flat = arguments.slopes.new_zeros(*arguments.slopes.shape[:2], middle.shape[1])
        form = ForwardForm(middle, flat, spread)
        if band is not None:
            centre = band.pushed(arguments.centre[:, None])[:, 0] + band.offset
            slopes = band.pushed(arguments.slopes)
            radius = band.spread(arguments.radius) + band.radius
            size = band.spread(arguments.size) + band.offset.abs() + radius
            radius = radius + slack(size, band.terms + 4)
            is_known = torch.isfinite(centre) & torch.isfinite(radius)
            # A form that stands for more than is known of the values is worse than that alone.
            is_known &= slopes.isfinite().all(1) & (radius <= spread)
            form = ForwardForm(
                torch.where(is_known, centre, middle),
                torch.where(is_known[:, None], slopes, 0.0),
                torch.where(is_known, radius, spread),
            )
        self._forms[node] = form
