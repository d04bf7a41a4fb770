"""Elementary functions of each entry: Exp, Erf, Atan, Softplus, Selu, Celu and HardSigmoid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from radii_check._builder import Builder, Call, Reader
from radii_check._curves import Curve, kernel_units
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._numbers import Numbers
from radii_check._piece_curves import BY_VALUE, OF_VALUE, PieceCurve
from radii_check.operators._arithmetic import add, multiply
from radii_check.operators._piecewise_linear import clipped, piecewise_linear

EXP_ERROR, ERF_ERROR, ATAN_ERROR, SOFTPLUS_ERROR = 1.5, 1.5, 4.0, 3.0
"""Of ONNX Runtime over the numbers of float32, in units of 2^-24."""


def erf(z: Array, num: Numbers) -> Array:
    if num.exact:
        return num.map_balls(lambda a: a.erf(), z)
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(z), float)


def logistic(z: Array, num: Numbers) -> Array:
    """1 / (1 + exp(-z)); below -700 it is nothing."""
    return np.asarray(1 / (1 + np.exp(-num.maximum(z, -700.0))))


def softplus(z: Array, num: Numbers) -> Array:
    return np.asarray(num.maximum(z, 0.0) + np.log1p(np.exp(-abs(z))))


class Exp(PieceCurve):
    pieces = ((math.inf, 1),)
    scale, measure = 0.0, OF_VALUE

    def rounded_units(self, is_single: bool) -> float:
        return kernel_units(EXP_ERROR, is_single)

    def base(self, z: Array, num: Numbers) -> Array:
        return np.asarray(np.exp(num.minimum(z, 700.0)))

    def base_slope(self, z: Array, num: Numbers) -> Array:
        return self.base(z, num)


class Erf(PieceCurve):
    pieces = ((0.0, 1), (math.inf, -1))

    def rounded_units(self, is_single: bool) -> float:
        return kernel_units(ERF_ERROR, is_single)

    def base(self, z: Array, num: Numbers) -> Array:
        return erf(z, num)

    def base_slope(self, z: Array, num: Numbers) -> Array:
        return np.asarray(np.exp(num.maximum(-z * z, -700.0)) * (2 / math.sqrt(math.pi)))


class Atan(PieceCurve):
    pieces = ((0.0, 1), (math.inf, -1))

    def rounded_units(self, is_single: bool) -> float:
        return kernel_units(ATAN_ERROR, is_single)

    def base(self, z: Array, num: Numbers) -> Array:
        return num.map_balls(lambda a: a.atan(), z) if num.exact else np.arctan(z)

    def base_slope(self, z: Array, num: Numbers) -> Array:
        return np.asarray(1 / (1 + z * z))


class Softplus(PieceCurve):
    pieces = ((math.inf, 1),)
    measure = BY_VALUE

    def rounded_units(self, is_single: bool) -> float:
        return kernel_units(SOFTPLUS_ERROR, is_single)

    def base(self, z: Array, num: Numbers) -> Array:
        return softplus(z, num)

    def base_slope(self, z: Array, num: Numbers) -> Array:
        return logistic(z, num)


class ExponentialUnit(PieceCurve):
    """z where z >= 0, else alpha (exp(z) - 1), with alpha > 0."""

    pieces = ((0.0, 1), (math.inf, 0))

    def __init__(self, alpha: float, pace: float = 1.0, height: float = 1.0) -> None:
        super().__init__(pace, height)
        self.alpha, self.scale = alpha, max(1.0, alpha)

    def rounded_units(self, is_single: bool) -> float:
        return self.alpha * (kernel_units(EXP_ERROR, is_single) + 4)

    def error(
        self, reached: Array | float, size: Array, unit: Any, smallest: Any, is_single: bool
    ) -> Array:
        """Of exp, its argument, the difference and two products; of values that are products."""
        relative = self.height * self.rounded_units(is_single) + 3 * size
        return np.asarray(relative * unit + smallest * max(1.0, self.height))

    def base(self, z: Array, num: Numbers) -> Array:
        return np.asarray(num.maximum(z, 0.0) + self.alpha * np.expm1(num.minimum(z, 0.0)))

    def base_slope(self, z: Array, num: Numbers) -> Array:
        return np.asarray(self.alpha * np.exp(num.minimum(z, 0.0)))


def attribute(call: Call, name: str, default: float) -> float:
    return float(np.float32(call.attributes.get(name, default)))


def selu(builder: Builder, call: Call) -> int:
    alpha, gamma = attribute(call, "alpha", 1.6732632), attribute(call, "gamma", 1.050701)
    require_known(0 < alpha < math.inf and 0 < gamma < math.inf, "Selu so set")
    return builder.unit("Selu", call.first, curve=ExponentialUnit(alpha, height=gamma))


def celu(builder: Builder, call: Call) -> int:
    alpha = attribute(call, "alpha", 1.0)
    require_known(0 < alpha < math.inf, "Celu with such an alpha")
    return builder.unit("Celu", call.first, curve=ExponentialUnit(1.0, 1 / alpha, alpha))


def hard_sigmoid(builder: Builder, call: Call) -> int:
    """max(0, min(1, alpha z + beta))."""
    alpha, beta = attribute(call, "alpha", 0.2), attribute(call, "beta", 0.5)
    scaled = call.first if alpha == 1.0 else multiply(builder, call.first, alpha)
    return clipped(builder, add(builder, scaled, beta), 0.0, 1.0)


def absolute(builder: Builder, call: Call) -> int:
    return piecewise_linear(builder, "Copy", call.first, -1.0, 0.0, [(0.0, 2.0)], abs)


def unary(kind: str, curve: Curve) -> Reader:
    """Reads an operator that is a curve, whatever its attributes."""
    return lambda builder, call: builder.unit(kind, call.first, curve=curve)


READERS: dict[str, Reader] = {
    "Abs": absolute,
    "Atan": unary("Atan", Atan()),
    "Celu": celu,
    "Erf": unary("Erf", Erf()),
    "Exp": unary("Exp", Exp()),
    "HardSigmoid": hard_sigmoid,
    "Selu": selu,
    "Softplus": unary("Softplus", Softplus()),
}
