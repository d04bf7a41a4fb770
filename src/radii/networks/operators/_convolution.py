"""Convolutions over one to three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import Operator, Shape
from radii.networks.operators._windows import Window

_CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


class Convolution(Operator):
    """Convolution of values (N, C, *spatial) with weight (M, C / groups, *kernel), bias (M,)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, weight: Tensor, bias: Tensor | None, *, window: Window, groups: int = 1
    ) -> None:
        super().__init__()
        self._constant("weight", weight)
        self._constant("bias", bias)
        self.window = window
        self.groups = groups
        self._convolve = _CONVOLVE[weight.dim() - 2]
        # torch pads both sides alike; another padding goes ahead of the convolution.
        self._ahead = [] if window.is_symmetric else window.innermost_first
        self._padding = tuple(0 if self._ahead else before for before, _ in window.pads)

    def result_shape(self, *shapes: Shape) -> Shape:
        batch, channels, *sizes = shapes[0]
        outputs = self.weight.shape[0]
        if channels != self.weight.shape[1] * self.groups or outputs % self.groups:
            raise ValueError(
                f"{channels} channels do not fit weights of shape {tuple(self.weight.shape)} "
                f"in {self.groups} groups"
            )
        return (batch, outputs, *self.window.result_size(sizes))

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._ahead:
            images = F.pad(images, self._ahead)
        window = self.window
        result: Tensor = self._convolve(
            images,
            self.weight,
            self.bias,
            window.strides,
            self._padding,
            window.dilations,
            self.groups,
        )
        return result.view(*x.shape[:2], *result.shape[1:])


class TransposedConvolution(Operator):
    """The transpose of a convolution, with weight (C, M / groups, *kernel) and bias (M,).

    The window's pads are cropped from the result; `extra` entries are added after each axis.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        *,
        window: Window,
        extra: Sequence[int],
        groups: int = 1,
    ) -> None:
        super().__init__()
        self._constant("weight", weight)
        self._constant("bias", bias)
        self.window = window
        self.extra = tuple(extra)
        self.groups = groups
        self._convolve = _TRANSPOSED[weight.dim() - 2]
        limits = zip(self.extra, window.strides, window.dilations, strict=True)
        self._at_once = window.is_symmetric and all(e < max(s, d) for e, s, d in limits)

    def result_shape(self, *shapes: Shape) -> Shape:
        batch, channels, *sizes = shapes[0]
        if channels != self.weight.shape[0] or channels % self.groups:
            raise ValueError(
                f"{channels} channels do not fit weights of shape {tuple(self.weight.shape)} "
                f"in {self.groups} groups"
            )
        window = self.window
        rows = zip(sizes, window.strides, window.reach, window.pads, self.extra, strict=True)
        places = tuple((n - 1) * s + reach - b - a + e for n, s, reach, (b, a), e in rows)
        if min(places) < 1:
            raise ValueError(f"pads {window.pads} crop the whole result")
        return (batch, self.weight.shape[1] * self.groups, *places)

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        result = self._directly(images) if self._at_once else self._cropped(images)
        return result.view(*x.shape[:2], *result.shape[1:])

    def _directly(self, images: Tensor) -> Tensor:
        window = self.window
        padding = tuple(before for before, _ in window.pads)
        result: Tensor = self._convolve(
            images,
            self.weight,
            self.bias,
            window.strides,
            padding,
            self.extra,
            self.groups,
            window.dilations,
        )
        return result

    def _cropped(self, images: Tensor) -> Tensor:
        """torch crops both sides alike, so here the whole result is made, then cropped."""
        window = self.window
        whole: Tensor = self._convolve(
            images, self.weight, None, window.strides, 0, 0, self.groups, window.dilations
        )
        sides = [(-b, e - a) for (b, a), e in zip(window.pads, self.extra, strict=True)]
        result = F.pad(whole, [side for pair in reversed(sides) for side in pair])
        if self.bias is None:
            return result
        return result + self.bias.view(-1, *(1,) * len(window.kernel))
