"""Convolutions over any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import Operator

__all__ = ["Convolution", "TransposedConvolution"]

_CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


class Convolution(Operator):
    """Convolution of (N, C, *spatial) values; `pads` holds (before, after) for each spatial axis."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        *,
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        dilations: Sequence[int],
        groups: int,
    ) -> None:
        super().__init__()
        self._constant("weight", weight)
        self._constant("bias", bias)
        self.strides, self.dilations, self.groups = tuple(strides), tuple(dilations), groups
        self.pads = tuple(pads)
        self._convolve = _CONVOLVE[weight.dim() - 2]
        symmetric = all(before == after for before, after in self.pads)
        self._padding = tuple(before for before, _ in self.pads) if symmetric else 0
        self._apart = [] if symmetric else [side for pair in reversed(self.pads) for side in pair]

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._apart:
            images = F.pad(images, self._apart)
        result = self._convolve(
            images, self.weight, self.bias, self.strides, self._padding, self.dilations, self.groups
        )
        return result.unflatten(0, x.shape[:2])


class TransposedConvolution(Operator):
    """The transpose of a convolution; `pads` crops (before, after) from each spatial axis."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        *,
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        output_padding: Sequence[int],
        dilations: Sequence[int],
        groups: int,
    ) -> None:
        super().__init__()
        self._constant("weight", weight)
        self._constant("bias", bias)
        self.strides, self.dilations, self.groups = tuple(strides), tuple(dilations), groups
        self.pads, self.output_padding = tuple(pads), tuple(output_padding)
        self._convolve = _TRANSPOSED[weight.dim() - 2]
        # torch crops both sides alike and wants an output padding below the stride, so the full
        # result is made here and cropped (or, where output_padding asks for more, extended by bias).
        self._full_only = not self._fits_torch()
        sides = [(-b, extra - a) for (b, a), extra in zip(pads, output_padding, strict=True)]
        self._crop = [side for pair in reversed(sides) for side in pair]

    def _fits_torch(self) -> bool:
        symmetric = all(before == after >= 0 for before, after in self.pads)
        limits = zip(self.output_padding, self.strides, self.dilations, strict=True)
        return symmetric and all(extra < max(s, d) for extra, s, d in limits)

    def forward(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if self._full_only:
            zeros = (0,) * len(self.strides)
            full = self._convolve(
                images, self.weight, None, self.strides, zeros, zeros, self.groups, self.dilations
            )
            result = F.pad(full, self._crop)
            if self.bias is not None:
                result = result + self.bias.view(-1, *(1,) * len(self.strides))
        else:
            result = self._convolve(
                images,
                self.weight,
                self.bias,
                self.strides,
                tuple(before for before, _ in self.pads),
                self.output_padding,
                self.groups,
                self.dilations,
            )
        return result.unflatten(0, x.shape[:2])
