"""Elementary functions of each entry: Exp, Log, Erf, Atan, Softplus, Selu, Celu, Sin and Cos."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._arithmetic import AddConstant, scaled
from radii.networks.operators._base import (
    NumberType,
    OnnxNode,
    OperatorKind,
    Shape,
    translates,
)
from radii.networks.operators._curved import CurvedFunction, Piece
from radii.networks.operators._intervals import ELEMENTARY_ULPS, Interval
from radii.networks.operators._kernel_errors import ErrorMeasure, measured
from radii.networks.operators._piecewise_linear import Clip
from radii.networks.operators._smooth import SlopedLines, SmoothFunction

EXP_ERROR = measured("Exp", 1.279, at=-37.86869, measure=ErrorMeasure.RESULT)


@translates("Exp")
class Exp(CurvedFunction):
    """exp(x)."""

    kernel_error = EXP_ERROR
    pieces = (Piece(math.inf, 1),)
    scale = 0.0

    def base(self, z: Tensor) -> Tensor:
        return z.exp()

    def base_slope(self, z: Tensor) -> Tensor:
        return z.exp()

    def base_point(self, slope: Tensor, number: int) -> Tensor:
        return slope.log()


@translates("Log")
class Log(CurvedFunction):
    """log(x) of positive numbers; nothing is known of an interval that holds others."""

    kernel_error = measured("Log", 2.352, at=2.833285, measure=ErrorMeasure.RESULT_OR_ONE)
    is_activation = False
    pieces = (Piece(math.inf, -1),)

    def base(self, z: Tensor) -> Tensor:
        return z.log()

    def base_slope(self, z: Tensor) -> Tensor:
        return z.reciprocal()

    def base_point(self, slope: Tensor, number: int) -> Tensor:
        return slope.reciprocal()

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        values = self.widened(Interval(self(x.low), self(x.high)))
        is_positive = x.low > 0
        return Interval(
            torch.where(is_positive, values.low, -torch.inf),
            torch.where(is_positive, values.high, torch.inf),
        )

    def relaxation(self, shape: Shape, arguments: Interval) -> SlopedLines:
        """Where it is not defined on all of an interval, its arguments count as unbounded."""
        low = torch.where(arguments.low > 0, arguments.low, -torch.inf)
        return SlopedLines.of(self, Interval(low, arguments.high))

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """Subnormal numbers may count as 0."""
        error = super().value_error(arguments, values, number, widening)
        return torch.where(arguments.low > number.smallest * widening, error, torch.inf)

    def has_slopes(self, shape: Shape) -> bool:
        return False

    def slopes(self, x: Interval) -> Interval:
        least = x.high.reciprocal().clamp(min=0)
        return Interval(least, torch.where(x.low > 0, x.low.reciprocal(), torch.inf))


@translates("Erf")
class Erf(CurvedFunction):
    """The error function."""

    kernel_error = measured("Erf", 1.001, at=-1.199788)
    pieces = (Piece(0.0, 1), Piece(math.inf, -1))

    def base(self, z: Tensor) -> Tensor:
        return torch.erf(z)

    def base_slope(self, z: Tensor) -> Tensor:
        return (2 / math.sqrt(math.pi)) * (-z * z).exp()


@translates("Atan")
class Atan(CurvedFunction):
    """The arc tangent."""

    kernel_error = measured("Atan", 3.767, at=-1.588644)
    pieces = (Piece(0.0, 1), Piece(math.inf, -1))

    def base(self, z: Tensor) -> Tensor:
        return z.atan()

    def base_slope(self, z: Tensor) -> Tensor:
        return 1 / (1 + z * z)

    def base_point(self, slope: Tensor, number: int) -> Tensor:
        point = (1 / slope - 1).clamp(min=0).sqrt()
        return -point if number == 0 else point


def softplus(z: Tensor) -> Tensor:
    """log(1 + exp(z)), in torch's own function exact to 2e-9 only."""
    return torch.logaddexp(z, torch.zeros_like(z))


@translates("Softplus")
class Softplus(CurvedFunction):
    """log(1 + exp(x))."""

    kernel_error = measured("Softplus", 2.915, at=0.5659049, measure=ErrorMeasure.RESULT_OR_ONE)
    pieces = (Piece(math.inf, 1),)

    def base(self, z: Tensor) -> Tensor:
        return softplus(z)

    def base_slope(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)

    def base_point(self, slope: Tensor, number: int) -> Tensor:
        return torch.logit(slope.clamp(0, 1))


class ExponentialUnit(CurvedFunction):
    """height * x where x >= 0, else height * alpha * (exp(pace * x) - 1), with alpha > 0; the first
    is height * pace * x where the pace is not 1."""

    pieces = (Piece(0.0, 1), Piece(math.inf, 0, 1.0))
    kernel_error = EXP_ERROR

    def __init__(self, alpha: float, *, pace: float = 1.0, height: float = 1.0) -> None:
        super().__init__(pace=pace, height=height)
        self.alpha = alpha
        self.scale = max(1.0, alpha)

    def base(self, z: Tensor) -> Tensor:
        return F.elu(z, self.alpha)

    def base_slope(self, z: Tensor) -> Tensor:
        return self.alpha * z.clamp(max=0).exp()

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """Of exp, its argument, the difference and two products; of values that are products."""
        exponential = self.alpha * (self.kernel_error.units(number.unit) + 4)
        size = self.height * exponential + 3 * values.magnitude
        return size * (number.unit * widening) + number.smallest * widening * max(1.0, self.height)


@translates("Selu", kind=OperatorKind.SMOOTH)
def _selu(call: OnnxNode) -> int:
    alpha, gamma = call.float_attribute("alpha", 1.6732632), call.float_attribute("gamma", 1.050701)
    if not (0 < alpha < math.inf and 0 < gamma < math.inf):
        raise call.unsupported(f"with alpha {alpha:g} and gamma {gamma:g}")
    return call.emit(ExponentialUnit(alpha, height=gamma), call.node(0))


@translates("Celu", kind=OperatorKind.SMOOTH)
def _celu(call: OnnxNode) -> int:
    alpha = call.float_attribute("alpha", 1.0)
    if not 0 < alpha < math.inf:
        raise call.unsupported(f"with alpha {alpha:g}")
    return call.emit(ExponentialUnit(1.0, pace=1 / alpha, height=alpha), call.node(0))


@translates("HardSigmoid", kind=OperatorKind.PIECEWISE_LINEAR)
def _hard_sigmoid(call: OnnxNode) -> int:
    """max(0, min(1, alpha x + beta))."""
    alpha, beta = call.float_attribute("alpha", 0.2), call.float_attribute("beta", 0.5)
    product = scaled(call, call.node(0), alpha)
    shifted = AddConstant(torch.tensor(beta, dtype=torch.float64))
    return call.emit(Clip(0.0, 1.0), call.emit(shifted, product))


# Waves.


LARGEST_PHASE = 1e6
"""Beyond, crests are not told from their neighbourhood well enough: nothing but the range of a wave
is used."""


class Wave(SmoothFunction):
    """A sine that has its crests at `crest` + 2 pi n."""

    crest: ClassVar[float]
    is_activation = True

    def slope_at(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def turn(self, slope: Tensor, sign: float) -> Tensor:
        """One point at which the wave has this slope and bends up (1) or down (-1)."""
        raise NotImplementedError

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        return _range_of_wave(self(x.low), self(x.high), x, self.crest)

    def slopes(self, x: Interval) -> Interval:
        """The slope is a wave as well, a quarter ahead."""
        ahead = self.crest - math.pi / 2
        return _range_of_wave(self.slope_at(x.low), self.slope_at(x.high), x, ahead)

    def contacts(
        self, low: Tensor, high: Tensor, slope: Tensor, sign: float
    ) -> tuple[list[Tensor], Tensor | float]:
        """On all turning points the wave minus a line is a line, so that the first and the last in
        the interval are enough."""
        turn = self.turn(slope.clamp(-1, 1), sign)
        period = 2 * math.pi
        first = turn + period * ((low - turn) / period).ceil()
        last = turn + period * ((high - turn) / period).floor()
        inside = (torch.minimum(torch.maximum(z, low), high) for z in (first, last))
        # Where the phase is large, the least value of a wave minus a line is at least that of the
        # two apart.
        far = torch.maximum(low.abs(), high.abs()) > LARGEST_PHASE
        lost = torch.where(far, 2 + slope.abs() * (high - low), 0.0)
        return [low, high, *inside], torch.nan_to_num(lost, nan=torch.inf)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        error = WAVE_ERROR.units(number.unit) * number.unit * widening
        return torch.full_like(arguments.low, error)


def _range_of_wave(at_low: Tensor, at_high: Tensor, x: Interval, crest: float) -> Interval:
    """Values of a wave with crests at `crest` + 2 pi n, from those at the ends of an interval."""

    def has(place: float) -> Tensor:
        period = 2 * math.pi
        slack = 8 * torch.finfo(x.low.dtype).eps * (1 + x.magnitude)
        first = ((x.low - slack - place) / period).ceil()
        return first <= ((x.high + slack - place) / period).floor()

    values = Interval(torch.minimum(at_low, at_high), torch.maximum(at_low, at_high))
    values = values.widened(ELEMENTARY_ULPS)
    far = ~(x.magnitude <= LARGEST_PHASE)
    low = torch.where(far | has(crest + math.pi), -1.0, values.low)
    high = torch.where(far | has(crest), 1.0, values.high)
    spread = ELEMENTARY_ULPS * torch.finfo(low.dtype).eps
    return Interval(low - spread, high + spread).clamped(-1.0, 1.0)


@translates("Sin")
class Sin(Wave):
    """The sine."""

    crest = math.pi / 2

    def forward(self, x: Tensor) -> Tensor:
        return x.sin()

    def slope_at(self, x: Tensor) -> Tensor:
        return x.cos()

    def turn(self, slope: Tensor, sign: float) -> Tensor:
        return -sign * slope.acos()


@translates("Cos")
class Cos(Wave):
    """The cosine."""

    crest = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return x.cos()

    def slope_at(self, x: Tensor) -> Tensor:
        return -x.sin()

    def turn(self, slope: Tensor, sign: float) -> Tensor:
        return math.pi + slope.asin() if sign > 0 else -slope.asin()


WAVE_ERROR = measured("Sin", 1.725, at=-2479.512)
measured("Cos", 1.655, at=-831.7344)
