"""Functions x * g(x) of each entry: Gelu, Silu (Swish), Mish and HardSwish.

Files hold them as operators of their own, or as the product that they are (`_composites.py`). Their
errors cover both: a kernel's, and what the operators of the product may round one by one. With a
gate in [0, 1] that is off by d, and rounded by u in each of n products, x * g is off by |x| (d + n
u).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import NumberType, OnnxNode, OperatorKind, translates
from radii.networks.operators._curved import CurvedFunction, Piece
from radii.networks.operators._elementary import Erf, Softplus, softplus
from radii.networks.operators._kernel_errors import ErrorMeasure, measured
from radii.networks.operators._tanh import Sigmoid, Tanh

SIXTH = float(np.float32(1 / 6))
"""As attributes hold it."""

_BY_ARGUMENT = ErrorMeasure.ARGUMENT_OR_ONE


class _Gated(CurvedFunction):
    """x * g(x) with g between 0 and 1."""

    def gate_units(self, number: NumberType) -> float:
        """How far the gate may be off where it is computed by operators, in units."""
        raise NotImplementedError

    def units(self, number: NumberType) -> float:
        """At most four products and one factor to scale by."""
        return max(self.kernel_error.units(number.unit), self.gate_units(number) + 5)


class Gelu(_Gated):
    """x * Phi(x), with the normal distribution's Phi(x) = (1 + erf(x / sqrt(2))) / 2."""

    kernel_error = measured("Gelu", 1.918, at=1.14912, measure=_BY_ARGUMENT)
    pieces = (Piece(-math.sqrt(2), -1), Piece(math.sqrt(2), 1), Piece(math.inf, -1))
    extrema = (-0.7517915246935645,)

    def base(self, z: Tensor) -> Tensor:
        return F.gelu(z)

    def base_slope(self, z: Tensor) -> Tensor:
        density = (-z * z / 2).exp() / math.sqrt(2 * math.pi)
        return (1 + torch.erf(z / math.sqrt(2))) / 2 + z * density

    def gate_units(self, number: NumberType) -> float:
        """erf, its argument (z erf'(z) is at most 1/2, times three roundings), and 1 + erf."""
        return (Erf.kernel_error.units(number.unit) + 1.5 + 2) / 2


class TanhGelu(_Gated):
    """x * (1 + tanh(rate * (x + cubic * x^3))) / 2, the approximation of Gelu."""

    kernel_error = measured("Gelu by tanh", 3.339, at=4.138657, measure=_BY_ARGUMENT)

    rates = (0.78, 0.82)
    cubics = (0.044, 0.0455)
    """Between these it bends as Gelu does; sqrt(2 / pi) and 0.044715 are what everybody takes."""

    def __init__(
        self,
        rate: float = math.sqrt(2 / math.pi),
        cubic: float = 0.044715,
        *,
        pace: float = 1.0,
        height: float = 1.0,
    ) -> None:
        super().__init__(pace=pace, height=height)
        self.rate, self.cubic = rate, cubic
        bends = [_root(self.curvature, *bracket) for bracket in ((-2.0, -1.0), (1.0, 2.0))]
        self.pieces = (Piece(bends[0], -1), Piece(bends[1], 1), Piece(math.inf, -1))
        self.extrema = (_root(self.base_slope, -1.0, -0.5),)

    @classmethod
    def is_known(cls, rate: float, cubic: float) -> bool:
        """Whether the function of these is known to have three pieces."""
        (least, most), (least_cubic, most_cubic) = cls.rates, cls.cubics
        return least <= rate <= most and least_cubic <= cubic <= most_cubic

    def _argument(self, z: Tensor) -> Tensor:
        return 2 * self.rate * (z + self.cubic * z**3)

    def base(self, z: Tensor) -> Tensor:
        """By a sigmoid, which does not cancel where the tanh is near -1."""
        return z * torch.sigmoid(self._argument(z))

    def base_slope(self, z: Tensor) -> Tensor:
        gate = torch.sigmoid(self._argument(z))
        return gate + z * gate * (1 - gate) * 2 * self.rate * (1 + 3 * self.cubic * z**2)

    def curvature(self, z: Tensor) -> Tensor:
        """The second derivative."""
        gate = torch.sigmoid(self._argument(z))
        rise = 2 * self.rate * (1 + 3 * self.cubic * z**2)
        steep = gate * (1 - gate)
        bend = rise**2 * (1 - 2 * gate) + 12 * self.rate * self.cubic * z
        return steep * (2 * rise + z * bend)

    def gate_units(self, number: NumberType) -> float:
        """tanh, its argument (w tanh'(w) is below 1/2, times eight roundings), and 1 + tanh."""
        return (Tanh.kernel_error.units(number.unit) + 4 + 2) / 2


def _root(function: Callable[[Tensor], Tensor], low: float, high: float) -> float:
    """Where a function that rises or falls through 0 between these does so."""
    from scipy.optimize import brentq

    def at(z: float) -> float:
        return float(function(torch.tensor(z, dtype=torch.float64)))

    return float(brentq(at, low, high, xtol=1e-15))


class Silu(_Gated):
    """x * sigmoid(x)."""

    kernel_error = replace(Sigmoid.kernel_error, measure=_BY_ARGUMENT)
    pieces = (Piece(-2.3993572805154677, -1), Piece(2.3993572805154677, 1), Piece(math.inf, -1))
    extrema = (-1.2784645427610738,)

    def base(self, z: Tensor) -> Tensor:
        return F.silu(z)

    def base_slope(self, z: Tensor) -> Tensor:
        gate = torch.sigmoid(z)
        return gate * (1 + z * (1 - gate))

    def gate_units(self, number: NumberType) -> float:
        """sigmoid, and its argument: z sigmoid'(z) is below 1/4, times three roundings."""
        return self.kernel_error.units(number.unit) + 1


@translates("Mish")
class Mish(_Gated):
    """x * tanh(log(1 + exp(x)))."""

    kernel_error = measured("Mish", 5.04, at=5.020752, measure=_BY_ARGUMENT)
    pieces = (Piece(-2.256376396360793, -1), Piece(1.4905711794854284, 1), Piece(math.inf, -1))
    extrema = (-1.1924312145154953,)

    def base(self, z: Tensor) -> Tensor:
        return z * torch.tanh(softplus(z))

    def base_slope(self, z: Tensor) -> Tensor:
        gate = torch.tanh(softplus(z))
        return gate + z * torch.sigmoid(z) * (1 - gate) * (1 + gate)

    def gate_units(self, number: NumberType) -> float:
        """tanh, and softplus, whose error is relative to at most max(1, s): times tanh'(s), 1."""
        return Tanh.kernel_error.units(number.unit) + Softplus.kernel_error.units(number.unit)


class ClippedGate(_Gated):
    """x * min(max(slope * x + offset, low), high) with slope > 0 and 0 <= low < high."""

    kernel_error = measured("HardSwish", 1.354, at=2.279808, measure=_BY_ARGUMENT)

    def __init__(
        self, slope: float, offset: float, low: float, high: float, *, height: float = 1.0
    ) -> None:
        super().__init__(height=height)
        self.slope, self.offset, self.low, self.high = slope, offset, low, high
        self.scale = max(1.0, high + abs(offset))
        first, last = (low - offset) / slope, (high - offset) / slope
        self.pieces = (Piece(first, 0, low), Piece(last, 1), Piece(math.inf, 0, high))
        least = -offset / (2 * slope)
        self.extrema = (first, last, *((least,) if first < least < last else ()))

    def base(self, z: Tensor) -> Tensor:
        return z * (self.slope * z + self.offset).clamp(self.low, self.high)

    def base_slope(self, z: Tensor) -> Tensor:
        return 2 * self.slope * z + self.offset

    def base_point(self, slope: Tensor, number: int) -> Tensor:
        return (slope - self.offset) / (2 * self.slope)

    def gate_units(self, number: NumberType) -> float:
        """Where it is not clipped, slope * x is at most high + |offset|; three roundings."""
        return 3 * (self.high + 2 * abs(self.offset)) + 5 * max(1.0, self.high)


@translates("Gelu", kind=OperatorKind.SMOOTH)
def _gelu(call: OnnxNode) -> int:
    match call.text_attribute("approximate", "none"):
        case "none":
            return call.emit(Gelu(), call.node(0))
        case "tanh":
            return call.emit(TanhGelu(), call.node(0))
    raise call.unsupported("with another approximation than tanh")


@translates("HardSwish", kind=OperatorKind.SMOOTH)
def _hard_swish(call: OnnxNode) -> int:
    """x * max(0, min(1, x / 6 + 1 / 2)), with 1 / 6 as a float32."""
    return call.emit(ClippedGate(SIXTH, 0.5, 0.0, 1.0), call.node(0))
