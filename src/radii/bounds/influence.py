"""Which inputs the looseness of a relaxation comes from.

A unit's lines are apart because its argument varies; how much of that each input causes is read off
the derivative of the argument, taken along the middle of all lines on the way. Cutting the input
with the largest share shrinks the gaps most.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.bounds.linear import State

__all__ = ["input_influence"]


def input_influence(state: State) -> Tensor:
    """For each region (regions, inputs) the sum of all units' gaps, shared out among the inputs."""
    box = state.supports.box
    widths = (box.high - box.low)[:, :, None]
    unit = torch.eye(state.network.inputs, dtype=widths.dtype, device=widths.device)
    turned = {0: unit.expand(len(state), -1, -1)}
    influence = torch.zeros_like(box.low)
    tiny = torch.finfo(widths.dtype).tiny
    for layer, lines, arguments in zip(
        state.network.layers, state.lines, state.arguments, strict=True
    ):
        held = widths.new_zeros(len(state), state.network.inputs, layer.size)
        for source, affine in layer.maps.items():
            held = held + affine.pushed(turned[source])
        turned[layer.node] = lines.turned(held)
        reach = turned[layer.node].abs() * widths
        shares = reach / reach.sum(1, keepdim=True).clamp_min(tiny)
        gaps = lines.gaps(arguments.low / 2 + arguments.high / 2)
        influence = influence + (shares @ gaps[..., None]).squeeze(2)
    return torch.where(torch.isfinite(influence), influence, 0.0)
