"""Smooth functions of each entry, by their turning points."""

from __future__ import annotations

import math

import numpy as np

from radii_check._builder import Builder, Call, Reader
from radii_check._curves import BentCurve, kernel_units
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._numbers import Numbers


class Elu(BentCurve):
    """z where z >= 0, else alpha (exp(z) - 1), with alpha > 0."""

    kernel_error = 1.5
    """Of ONNX Runtime with alpha 1, measured over all numbers of float32, in units of 2^-24."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.scale = alpha, max(1.0, alpha)

    def rounded_units(self, is_single: bool) -> float:
        """Of exp, of the difference and of the product."""
        return self.alpha * (kernel_units(self.kernel_error, is_single) + 2) + 1

    def values(self, z: Array, num: Numbers) -> Array:
        return num.maximum(z, 0.0) + self.alpha * np.expm1(num.minimum(z, 0.0))

    def slopes(self, low: Array, high: Array) -> tuple[Array, Array]:
        """alpha exp(z) where z <= 0, and 1 where z >= 0."""
        least, most = (self.alpha * np.exp(np.minimum(end, 0.0)) for end in (low, high))
        return (
            np.where(low > 0, 1.0, np.where(high < 0, least, np.minimum(least, 1.0))),
            np.where(low > 0, 1.0, np.where(high < 0, most, np.maximum(most, 1.0))),
        )

    def turning_points(self, slope: Array, num: Numbers) -> list[Array]:
        return [num.minimum(np.log(slope / self.alpha), 0.0)]


def elu(builder: Builder, call: Call) -> int:
    alpha = float(np.float32(call.attributes.get("alpha", 1.0)))
    require_known(0 <= alpha < math.inf, "Elu with such an alpha")
    curve = Elu(alpha) if alpha else None
    return builder.unit("Elu" if alpha else "Relu", call.first, curve=curve)


READERS: dict[str, Reader] = {"Elu": elu}
