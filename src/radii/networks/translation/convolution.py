"""Convolutions."""

from __future__ import annotations

from radii.networks.operators import Convolution
from radii.networks.translation._base import Call

__all__ = ["convolve"]
from radii.networks.translation.windows import Window


def convolve(call: Call) -> int:
    weight = call.weight(1)
    window = Window.of(call, tuple(weight.shape[2:]))
    return call.emit(
        Convolution(
            weight,
            call.optional_weight(2),
            strides=window.strides,
            pads=window.pads,
            dilations=window.dilations,
            groups=call.int("group", 1),
        ),
        call.node(0),
    )
