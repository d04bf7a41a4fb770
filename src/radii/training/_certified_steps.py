"""The operations of a torch module, each with its interval rule and its linear bounds.

Everything here is differentiable and computes in the type of its inputs without widening: the
figures steer training. What holds of a trained network is proven by `radii.bounds` alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.grad import conv2d_input

from radii.bounds import Constants, Maxima, PiecewiseLinear, Relaxation
from radii.networks import Hinges, Interval, MaxPool

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueBounds:
    """A value for each input of a batch, and an interval that holds it on each input's region."""

    value: Tensor
    low: Tensor
    high: Tensor

    def centred(self) -> tuple[Tensor, Tensor]:
        return (self.low + self.high) / 2, (self.high - self.low) / 2

    def flat(self) -> Interval:
        return Interval(self.low.flatten(1), self.high.flatten(1))


class CertifiedStep(ABC):
    """One operation; `sources` are the numbers of the steps whose values it reads.

    Rows are coefficients (B, rows, *shape) on a value of shape (B, *shape).
    """

    is_affine: ClassVar[bool] = True

    def __init__(self, sources: Sequence[int], shape: Shape) -> None:
        self.sources = tuple(sources)
        self.shape = shape

    @abstractmethod
    def known(self, *inputs: ValueBounds) -> ValueBounds:
        """The value and its interval, from those of the sources."""

    @abstractmethod
    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        """Rows on each source and constants (B, rows) that bound rows on the value from below."""


class InputStep(CertifiedStep):
    """The module's input."""

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        raise AssertionError("the input is given, not computed")

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        raise AssertionError("nothing lies ahead of the input")


class _LinearStep(CertifiedStep):
    """W x + b for weights that a subclass knows how to apply."""

    @abstractmethod
    def _weight(self) -> Tensor: ...

    @abstractmethod
    def _bias(self) -> Tensor | None: ...

    @abstractmethod
    def _applied(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor: ...

    @abstractmethod
    def _adjoint(self, rows: Tensor, weight: Tensor, shape: torch.Size) -> Tensor:
        """Rows (B * rows, ...) on the result as rows on an argument of this shape."""

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        weight, bias = self._weight(), self._bias()
        middle, radius = x.centred()
        both = self._applied(torch.cat([x.value, middle]), weight, bias)
        value, centre = both.chunk(2)
        spread = self._applied(radius, weight.abs(), None)
        return ValueBounds(value, centre - spread, centre + spread)

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        shape = inputs[0].low.shape[1:]
        on_input = self._adjoint(rows.flatten(0, 1), self._weight(), shape)
        return [on_input.reshape(*rows.shape[:2], *shape)], self._constants(rows)

    def _constants(self, rows: Tensor) -> Tensor:
        bias = self._bias()
        if bias is None:
            return rows.new_zeros(rows.shape[:2])
        return self._summed(rows) @ bias

    @abstractmethod
    def _summed(self, rows: Tensor) -> Tensor:
        """Rows (B, rows, features): added up over places that share an entry of the bias."""


class DenseStep(_LinearStep):
    """nn.Linear."""

    def __init__(self, sources: Sequence[int], shape: Shape, layer: nn.Linear) -> None:
        super().__init__(sources, shape)
        self.layer = layer

    def _weight(self) -> Tensor:
        return self.layer.weight

    def _bias(self) -> Tensor | None:
        return self.layer.bias

    def _applied(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(x, weight, bias)

    def _adjoint(self, rows: Tensor, weight: Tensor, shape: torch.Size) -> Tensor:
        return rows @ weight

    def _summed(self, rows: Tensor) -> Tensor:
        return rows if rows.dim() == 3 else rows.flatten(2, -2).sum(2)


class ConvolutionStep(_LinearStep):
    """nn.Conv2d with zeros for padding."""

    def __init__(self, sources: Sequence[int], shape: Shape, layer: nn.Conv2d) -> None:
        super().__init__(sources, shape)
        self.layer = layer

    def _weight(self) -> Tensor:
        return self.layer.weight

    def _bias(self) -> Tensor | None:
        return self.layer.bias

    def _applied(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        held = self.layer
        return F.conv2d(x, weight, bias, held.stride, held.padding, held.dilation, held.groups)

    def _adjoint(self, rows: Tensor, weight: Tensor, shape: torch.Size) -> Tensor:
        held = self.layer
        back: Tensor = conv2d_input(
            (rows.shape[0], *shape),
            weight,
            rows,
            held.stride,
            0 if held.padding == "valid" else held.padding,
            held.dilation,
            held.groups,
        )
        return back

    def _summed(self, rows: Tensor) -> Tensor:
        return rows.sum((3, 4))


class ScaleStep(CertifiedStep):
    """scale * x + shift for constants that broadcast over the value."""

    def __init__(
        self, sources: Sequence[int], shape: Shape, scale: Tensor | float, shift: Tensor | float
    ) -> None:
        super().__init__(sources, shape)
        self.scale, self.shift = scale, shift

    def _map(self, _x: ValueBounds) -> tuple[Tensor | float, Tensor | float]:
        return self.scale, self.shift

    def _value(self, x: Tensor, scale: Tensor | float, shift: Tensor | float) -> Tensor:
        return x * scale + shift

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        scale, shift = self._map(x)
        middle, radius = x.centred()
        centre, spread = middle * scale + shift, radius * torch.as_tensor(scale).abs()
        return ValueBounds(self._value(x.value, scale, shift), centre - spread, centre + spread)

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        scale, shift = self._map(inputs[0])
        moved = torch.as_tensor(shift, dtype=rows.dtype, device=rows.device)
        constants = (rows * moved.expand(self.shape)).flatten(2).sum(2)
        return [rows * scale], constants


class BatchNormStep(ScaleStep):
    """Batch normalisation: with the statistics of the batch's own values while training."""

    def __init__(
        self, sources: Sequence[int], shape: Shape, layer: nn.BatchNorm1d | nn.BatchNorm2d
    ) -> None:
        super().__init__(sources, shape, 1.0, 0.0)
        self.layer = layer

    def _map(self, x: ValueBounds) -> tuple[Tensor, Tensor]:
        held = self.layer
        assert held.running_mean is not None and held.running_var is not None
        if held.training:
            variance, mean = torch.var_mean(x.value.transpose(0, 1).flatten(1), dim=1, correction=0)
        else:
            mean, variance = held.running_mean, held.running_var
        scale = torch.rsqrt(variance + held.eps)
        if held.affine:
            scale = scale * held.weight
        shift = -mean * scale
        if held.affine:
            shift = shift + held.bias
        entries = (-1, *(1,) * (len(self.shape) - 1))
        return scale.reshape(entries), shift.reshape(entries)

    def _value(self, x: Tensor, scale: Tensor | float, shift: Tensor | float) -> Tensor:
        value: Tensor = self.layer(x)  # counts the running statistics too
        return value


class ReshapeStep(CertifiedStep):
    """The same numbers in another shape."""

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        size = (-1, *self.shape)
        return ValueBounds(x.value.reshape(size), x.low.reshape(size), x.high.reshape(size))

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        shape = inputs[0].low.shape[1:]
        return [rows.reshape(*rows.shape[:2], *shape)], rows.new_zeros(rows.shape[:2])


class AveragePoolStep(CertifiedStep):
    """Means over windows: a linear map without negative entries."""

    def __init__(self, sources: Sequence[int], shape: Shape, layer: nn.Module) -> None:
        super().__init__(sources, shape)
        self.layer = layer

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        return ValueBounds(*self.layer(torch.cat([x.value, x.low, x.high])).chunk(3))

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        shape = inputs[0].low.shape[1:]
        like = rows.new_zeros(rows.shape[0] * rows.shape[1], *shape, requires_grad=True)
        with torch.enable_grad():
            (back,) = torch.autograd.grad(
                self.layer(like), like, rows.flatten(0, 1), create_graph=True
            )
        return [back.reshape(*rows.shape[:2], *shape)], rows.new_zeros(rows.shape[:2])


class SumStep(CertifiedStep):
    """The sum of two values, or their difference."""

    def __init__(self, sources: Sequence[int], shape: Shape, sign: int) -> None:
        super().__init__(sources, shape)
        self.sign = sign

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        x, y = inputs
        if self.sign > 0:
            return ValueBounds(x.value + y.value, x.low + y.low, x.high + y.high)
        return ValueBounds(x.value - y.value, x.low - y.high, x.high - y.low)

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        return [rows, rows * self.sign], rows.new_zeros(rows.shape[:2])


class _MonotoneStep(CertifiedStep):
    """Never decreasing in any entry of its argument, and not linear."""

    is_affine = False

    @abstractmethod
    def _function(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def _relaxed(self, x: ValueBounds) -> Relaxation: ...

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        return ValueBounds(*self._function(torch.cat([x.value, x.low, x.high])).chunk(3))

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        (x,) = inputs
        found = self._relaxed(x).lines().pulled(rows.flatten(2))
        if found.rows is None:
            return [rows.new_zeros(*rows.shape[:2], *x.low.shape[1:])], found.constant
        return [found.rows.reshape(*rows.shape[:2], *x.low.shape[1:])], found.constant


class ElementwiseStep(_MonotoneStep):
    """A function of each entry; without hinges it is bounded by constants when pulled."""

    def __init__(
        self, sources: Sequence[int], shape: Shape, layer: nn.Module, hinges: Hinges | None
    ) -> None:
        super().__init__(sources, shape)
        self.layer, self.hinges = layer, hinges

    def _function(self, x: Tensor) -> Tensor:
        value: Tensor = self.layer(x)
        return value

    def _relaxed(self, x: ValueBounds) -> Relaxation:
        if self.hinges is not None:
            return PiecewiseLinear.of(self.hinges, x.flat())
        return Constants(self._function(x.low).flatten(1), self._function(x.high).flatten(1))


class MaxPoolStep(_MonotoneStep):
    """The largest entry of each window."""

    def __init__(self, sources: Sequence[int], shape: Shape, pool: MaxPool, taken: Shape) -> None:
        super().__init__(sources, shape)
        self.pool = pool
        self.candidates = pool.candidates((1, *taken))
        assert len(self.candidates) == math.prod(shape)

    def _function(self, x: Tensor) -> Tensor:
        value: Tensor = self.pool(x[:, None])[:, 0]
        return value

    def _relaxed(self, x: ValueBounds) -> Relaxation:
        return Maxima.of(self.candidates, x.flat())
