"""Convolutions as linear maps, pulled back by transposed convolutions; and transposes of maps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._maps import ENTRIES_AT_ONCE, LinearMap, as_float64

CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONVOLVE_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
"""By the number of spatial axes."""

FEW_TERMS = 2
"""Results that add up no more weights than this are summed place by place, weight by weight: such
convolutions select entries, and torch's own take every image for itself."""


@dataclass(frozen=True, slots=True)
class Window:
    """One entry for each spatial axis; `pads` holds (before, after), negative to crop."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """How many entries one window spans along each axis, dilation included."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def result_size(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """How many places the window takes along each axis of a value with these sizes."""
        rows = zip(sizes, self.pads, self.reach, self.strides, strict=True)
        places = tuple((size + b + a - reach) // stride + 1 for size, (b, a), reach, stride in rows)
        if min(places) < 1:
            raise ValueError(f"a window of {self.reach} does not fit into {tuple(sizes)}")
        return places

    @property
    def is_symmetric(self) -> bool:
        """Padded alike, and not cropped, before and after each axis."""
        return all(before == after >= 0 for before, after in self.pads)

    @property
    def innermost_first(self) -> list[int]:
        """The pads in the order that `torch.nn.functional.pad` takes."""
        return [side for pair in reversed(self.pads) for side in pair]

    @property
    def is_point(self) -> bool:
        """One entry at every place: what is mixed are channels alone."""
        ones = (1,) * len(self.kernel)
        return self.kernel == self.strides == ones and all(p == (0, 0) for p in self.pads)


class ConvolutionMap(LinearMap):
    """A convolution with weight (M, C / groups, *kernel) of values (batch, C, *sizes)."""

    def __init__(
        self,
        weight: Tensor,
        sizes: Sequence[int],
        *,
        window: Window,
        batch: int = 1,
        groups: int = 1,
        rounded: int = 0,
    ) -> None:
        self.weight = weight
        self.window = window
        self.groups = groups
        channels, own = weight.shape[:2]
        self.shape = (batch, own * groups, *sizes)
        self.result = (batch, channels, *window.result_size(sizes))
        outputs = math.prod(self.result)
        each = math.prod(window.kernel)
        super().__init__(
            math.prod(self.shape),
            outputs,
            each * max(own, channels // groups),
            outputs * own * each,
            rounded,
        )
        rows = zip(sizes, window.pads, window.reach, self.result[2:], window.strides, strict=True)
        # What the last place of the window leaves over at the end of each axis.
        self._rest = tuple(n + b + a - reach - (o - 1) * s for n, (b, a), reach, o, s in rows)

    @property
    def is_zero(self) -> bool:
        return not bool(self.weight.any())

    def pulled(self, rows: Tensor) -> Tensor:
        images = rows.reshape(-1, *self.result[1:])
        if self._weights is not None:
            found = self._spread_out(images)
        elif self._has_phases:
            found = self._by_phases(images)
        else:
            found = self._transposed(images)
        return found.reshape(*rows.shape[:-1], self.inputs)

    @cached_property
    def _weights(self) -> list[tuple[int, tuple[int | slice, ...], float]] | None:
        """Each weight that is not 0, behind its result and the arguments that it meets in a batch
        of padded images; None where there are many."""
        places = self.weight.nonzero()
        if self.groups != 1 or len(places) > FEW_TERMS * len(self.weight):
            return None
        found = []
        for result, argument, *spot in places.tolist():
            value = float(self.weight[(result, argument, *spot)])
            starts = [at * step for at, step in zip(spot, self.window.dilations, strict=True)]
            rows = zip(starts, self.window.strides, self.result[2:], strict=True)
            along = [slice(at, at + step * (n - 1) + 1, step) for at, step, n in rows]
            found.append((result, (slice(None), argument, *along), value))
        return found

    def _spread_out(self, images: Tensor) -> Tensor:
        """Coefficients on results go to the arguments, one weight after another."""
        rows = zip(self.shape[2:], self.window.pads, strict=True)
        sizes = [size + before + after for size, (before, after) in rows]
        found = images.new_zeros(len(images), self.shape[1], *sizes)
        for result, met, value in self._weights or ():
            found[met].add_(images[:, result], alpha=value)
        return self._cropped(found)

    def _picked(self, images: Tensor) -> Tensor:
        """Results as sums of few arguments each."""
        padded = F.pad(images, self.window.innermost_first)
        found = images.new_zeros(len(images), *self.result[1:])
        for result, met, value in self._weights or ():
            found[:, result].add_(padded[met], alpha=value)
        return found

    def _cropped(self, padded: Tensor) -> Tensor:
        return F.pad(padded, [-side for side in self.window.innermost_first])

    def _transposed(self, images: Tensor) -> Tensor:
        window = self.window
        convolve = CONVOLVE_TRANSPOSED[len(window.kernel)]
        padding = [before if window.is_symmetric else 0 for before, _ in window.pads]
        with plain_products(images):
            found: Tensor = convolve(
                images,
                self.weight,
                None,
                window.strides,
                padding,
                self._rest,
                self.groups,
                window.dilations,
            )
        return found if window.is_symmetric else self._cropped(found)

    @property
    def _has_phases(self) -> bool:
        """Strided in two axes, in float32, on a CPU: there torch's transposed convolutions do 3 to
        15 GFLOP/s, and plain ones 40 to 110."""
        window, weight = self.window, self.weight
        is_plain = self.groups == 1 and window.dilations == (1, 1) and window.strides != (1, 1)
        return is_plain and weight.dtype == torch.float32 and weight.device.type == "cpu"

    @cached_property
    def _phases(self) -> Tensor:
        """Weights (C * strides, M, *reach): arguments s q + r, for each r, by what they go into.

        Argument s q + r - pad takes part in result q - m by the weight at r + s m.
        """
        (down, across), (height, width) = self.window.strides, self.window.kernel
        channels, own = self.weight.shape[:2]
        tall, wide = -(-height // down), -(-width // across)
        padded = F.pad(self.weight, (0, wide * across - width, 0, tall * down - height))
        parts = padded.reshape(channels, own, tall, down, wide, across).flip(2, 4)
        return parts.permute(1, 3, 5, 0, 2, 4).reshape(-1, channels, tall, wide).contiguous()

    def _by_phases(self, images: Tensor) -> Tensor:
        """A plain convolution for all phases at once, whose results are then interleaved."""
        weight, strides = self._phases, self.window.strides
        reach = weight.shape[2:]
        with plain_products(images):
            found = F.conv2d(images, weight, padding=[size - 1 for size in reach])
        high, wide = found.shape[2:]
        phases = found.view(len(images), self.shape[1], *strides, high, wide)
        result = images.new_zeros(len(images), *self.shape[1:])
        for row in range(strides[0]):
            down, rows = self._places(0, row, high)
            for column in range(strides[1]):
                across, columns = self._places(1, column, wide)
                result[:, :, down, across] = phases[:, :, row, column, rows, columns]
        return result

    def _places(self, axis: int, phase: int, count: int) -> tuple[slice, slice]:
        """Where the arguments of a phase are along an axis, and where its results, of `count`."""
        size, stride = self.shape[2 + axis], self.window.strides[axis]
        before = self.window.pads[axis][0]
        first = max(0, -((phase - before) // stride))
        start = stride * first + phase - before
        number = max(0, min(count - first, -((start - size) // stride)))
        return slice(start, start + stride * number, stride), slice(first, first + number)

    def pushed(self, points: Tensor) -> Tensor:
        window, lead = self.window, points.shape[:-1]
        convolve = CONVOLVE[len(window.kernel)]
        images = points.reshape(-1, *self.shape[1:])
        if self._weights is not None:
            return self._picked(images).reshape(*lead, self.outputs)
        padding = [before if window.is_symmetric else 0 for before, _ in window.pads]
        if not window.is_symmetric:
            images = F.pad(images, window.innermost_first)
        with plain_products(images):
            found: Tensor = convolve(
                images, self.weight, None, window.strides, padding, window.dilations, self.groups
            )
        return found.reshape(*lead, self.outputs)

    def chosen(self, units: Tensor) -> Tensor:
        places, values = self._entries(units.flatten())
        empty = values.new_zeros(len(places), self.inputs)
        kept = torch.where(places >= 0, values, 0.0)
        rows = empty.scatter_add(1, places.clamp_min(0), kept)
        return rows.reshape(*units.shape, -1)

    def _entries(self, units: Tensor) -> tuple[Tensor, Tensor]:
        """For each of the units (n,) the arguments it reads, -1 for padding, and their weights."""
        numbers = []
        left = units
        for size in reversed(self.result):
            numbers.append(left % size)
            left = left // size
        image, channel, *spots = reversed(numbers)
        own = self.weight.shape[1]
        count, axes = len(units), len(self.window.kernel)
        first = image * self.shape[1] + channel // (self.result[1] // self.groups) * own
        places = first[:, None] + torch.arange(own, device=units.device)
        inside = torch.ones_like(places, dtype=torch.bool)
        for axis in range(axes):
            size, (before, _) = self.shape[2 + axis], self.window.pads[axis]
            steps = torch.arange(self.window.kernel[axis], device=units.device)
            start = spots[axis] * self.window.strides[axis] - before
            along = start[:, None] + steps * self.window.dilations[axis]
            along = along.reshape(count, *(1,) * (axis + 1), -1)
            inside = inside[..., None] & (along >= 0) & (along < size)
            places = places[..., None] * size + along
        held = torch.where(inside, places, -1)
        return held.flatten(1), self.weight[channel].flatten(1)

    def _made_matrix(self) -> csr_array:
        step = max(1, ENTRIES_AT_ONCE // max(1, self.work // max(1, self.outputs)))
        parts = []
        for first in range(0, self.outputs, step):
            units = torch.arange(first, min(first + step, self.outputs))
            places, values = self._entries(units.to(self.weight.device))
            used = (places >= 0).cpu().numpy()
            ends = np.concatenate([[0], used.sum(1).cumsum()])
            entries = as_float64(values)[used], places.cpu().numpy()[used], ends
            parts.append(csr_array(entries, shape=(len(units), self.inputs)))
        return csr_array(vstack(parts))

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> ConvolutionMap:
        return self.with_weight(self.weight.to(device, dtype))

    def _absolute(self) -> ConvolutionMap:
        return self.with_weight(self.weight.abs())

    def with_weight(self, weight: Tensor, *, rounded: int = 0) -> ConvolutionMap:
        """The same with another weight of the same shape, rounded so many times more."""
        return ConvolutionMap(
            weight,
            self.shape[2:],
            window=self.window,
            batch=self.shape[0],
            groups=self.groups,
            rounded=self.rounded + rounded,
        )

    def with_scaled_results(self, factors: Tensor) -> LinearMap | None:
        scale = _of_channels(factors, self.result)
        if scale is None:
            return None
        along = scale.reshape(-1, *(1,) * (self.weight.dim() - 1))
        return self.with_weight(self.weight * along, rounded=1)

    def with_scaled_arguments(self, factors: Tensor) -> LinearMap | None:
        scale = _of_channels(factors, self.shape)
        if scale is None:
            return None
        # A channel's factor depends on the group of results that reads it.
        own = scale.reshape(self.groups, 1, -1, *(1,) * len(self.window.kernel))
        parts = self.weight.reshape(self.groups, -1, *self.weight.shape[1:]) * own
        return self.with_weight(parts.reshape(self.weight.shape), rounded=1)


def _of_channels(factors: Tensor, shape: Sequence[int]) -> Tensor | None:
    """The factor of each channel of values of this shape; None if it differs within one."""
    channels = factors.reshape(shape[0], shape[1], -1)
    first = channels[0, :, 0]
    return first if bool((channels == first[:, None]).all()) else None


class TransposedMap(LinearMap):
    """The transpose of another map."""

    def __init__(self, of: LinearMap) -> None:
        super().__init__(of.outputs, of.inputs, of.terms, of.work, of.rounded)
        self.of = of

    @property
    def is_zero(self) -> bool:
        return self.of.is_zero

    def pulled(self, rows: Tensor) -> Tensor:
        return self.of.pushed(rows)

    def pushed(self, points: Tensor) -> Tensor:
        return self.of.pulled(points)

    def chosen(self, units: Tensor) -> Tensor:
        # A row of a map whose type is not known here: that of what it gives.
        one = self.of.chosen(units.new_zeros(1))
        marks = one.new_zeros(*units.shape, self.outputs)
        return self.pulled(marks.scatter(-1, units[..., None], 1.0))

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> TransposedMap:
        return TransposedMap(self.of.to(dtype, device))

    def _absolute(self) -> TransposedMap:
        return TransposedMap(self.of.magnitude)

    def _made_matrix(self) -> csr_array:
        return csr_array(self.of.matrix().T)

    def with_scaled_results(self, factors: Tensor) -> LinearMap | None:
        scaled = self.of.with_scaled_arguments(factors)
        return None if scaled is None else TransposedMap(scaled)

    def with_scaled_arguments(self, factors: Tensor) -> LinearMap | None:
        scaled = self.of.with_scaled_results(factors)
        return None if scaled is None else TransposedMap(scaled)


@contextmanager
def plain_products(values: Tensor) -> Iterator[None]:
    """Convolutions add up products as they are, and nothing else: `terms` counts no transform.

    For float32, NNPACK may take Winograd's algorithm or a Fourier transform, and cuDNN may round
    factors to 10 bits besides. Both would be off by more than a sum of products is.
    """
    if values.device.type == "cpu" and values.dtype == torch.float64:
        yield
        return
    with (
        torch.backends.nnpack.flags(enabled=False),
        torch.backends.cudnn.flags(enabled=False),
    ):
        yield
