"""The operations of a torch module, each with its interval rule and its linear bounds.

Everything here is differentiable and computes in the type of its inputs without widening: the
figures steer training. What holds of a trained network is proven by `radii.bounds` alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

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


class LinearStep(CertifiedStep):
    """W x + b for the weights of a layer at the moment.

    `apply(x, weight, bias)` computes it, and `adjoint(rows, weight, shape)` makes of rows (n, ...)
    on the result rows on an argument of this shape.
    """

    def __init__(
        self,
        sources: Sequence[int],
        shape: Shape,
        layer: nn.Linear | nn.Conv2d,
        apply: Callable[..., Tensor],
        adjoint: Callable[..., Tensor],
    ) -> None:
        super().__init__(sources, shape)
        self.layer, self.apply, self.adjoint = layer, apply, adjoint

    @classmethod
    def dense(cls, sources: Sequence[int], shape: Shape, layer: nn.Linear) -> Self:
        """The step of a dense layer."""
        return cls(sources, shape, layer, F.linear, lambda rows, weight, _: rows @ weight)

    @classmethod
    def convolution(cls, sources: Sequence[int], shape: Shape, layer: nn.Conv2d) -> Self:
        """The step of a convolution with zeros for padding."""
        padding = 0 if layer.padding == "valid" else layer.padding
        window = (layer.stride, padding, layer.dilation, layer.groups)

        def adjoint(rows: Tensor, weight: Tensor, shape: torch.Size) -> Tensor:
            back: Tensor = conv2d_input((len(rows), *shape), weight, rows, *window)
            return back

        return cls(
            sources,
            shape,
            layer,
            lambda x, weight, bias: torch.conv2d(x, weight, bias, *window),  # type: ignore[arg-type]
            adjoint,
        )

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        weight = self.layer.weight
        middle, radius = x.centred()
        both = self.apply(torch.cat([x.value, middle]), weight, self.layer.bias)
        value, centre = both.chunk(2)
        spread = self.apply(radius, weight.abs(), None)
        return ValueBounds(value, centre - spread, centre + spread)

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        shape = inputs[0].low.shape[1:]
        on_input = self.adjoint(rows.flatten(0, 1), self.layer.weight, shape)
        on_input = on_input.reshape(*rows.shape[:2], *shape)
        if self.layer.bias is None:
            return [on_input], rows.new_zeros(rows.shape[:2])
        if isinstance(self.layer, nn.Conv2d):  # one entry of the bias for each channel
            return [on_input], rows.sum((3, 4)) @ self.layer.bias
        return [on_input], rows.reshape(*rows.shape[:2], -1, rows.shape[-1]).sum(
            2
        ) @ self.layer.bias


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
        layer = self.layer
        assert layer.running_mean is not None and layer.running_var is not None
        if layer.training:
            variance, mean = torch.var_mean(x.value.transpose(0, 1).flatten(1), dim=1, correction=0)
        else:
            mean, variance = layer.running_mean, layer.running_var
        scale = torch.rsqrt(variance + layer.eps)
        if layer.affine:
            scale = scale * layer.weight
        shift = -mean * scale
        if layer.affine:
            shift = shift + layer.bias
        entries = (-1, *(1,) * (len(self.shape) - 1))
        return scale.reshape(entries), shift.reshape(entries)

    def _value(self, x: Tensor, scale: Tensor | float, shift: Tensor | float) -> Tensor:
        value: Tensor = self.layer(x)  # counts the running statistics too
        return value


class MeanStep(CertifiedStep):
    """A linear map without negative entries, as `apply` computes it: means, or other shapes."""

    def __init__(
        self, sources: Sequence[int], shape: Shape, apply: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__(sources, shape)
        self.apply = apply

    @classmethod
    def reshape(cls, sources: Sequence[int], shape: Shape) -> Self:
        """The same numbers in another shape."""
        return cls(sources, shape, lambda x: x.reshape(-1, *shape))

    def known(self, *inputs: ValueBounds) -> ValueBounds:
        (x,) = inputs
        return ValueBounds(*self.apply(torch.cat([x.value, x.low, x.high])).chunk(3))

    def pulled(self, rows: Tensor, *inputs: ValueBounds) -> tuple[list[Tensor], Tensor]:
        shape = inputs[0].low.shape[1:]
        like = rows.new_zeros(rows.shape[0] * rows.shape[1], *shape, requires_grad=True)
        with torch.enable_grad():
            (back,) = torch.autograd.grad(
                self.apply(like), like, rows.flatten(0, 1), create_graph=True
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
        lines = self._relaxed(x).lines().pulled(rows.flatten(2))
        if lines.rows is None:
            return [rows.new_zeros(*rows.shape[:2], *x.low.shape[1:])], lines.constant
        return [lines.rows.reshape(*rows.shape[:2], *x.low.shape[1:])], lines.constant


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

    def __init__(self, sources: Sequence[int], shape: Shape, pool: MaxPool, source: Shape) -> None:
        super().__init__(sources, shape)
        self.pool = pool
        self.candidates = pool.candidates((1, *source))
        assert len(self.candidates) == math.prod(shape)

    def _function(self, x: Tensor) -> Tensor:
        value: Tensor = self.pool(x[:, None])[:, 0]
        return value

    def _relaxed(self, x: ValueBounds) -> Relaxation:
        return Maxima.of(self.candidates, x.flat())
