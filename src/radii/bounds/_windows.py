"""Rows of coefficients as windows: what a unit of a convolutional layer sees, and nothing else.

Going back from one unit, its coefficients on a feature map are 0 but for a window around where the
unit is. A window grows with every convolution, by its kernel, and never with the size of the map.
All units of a layer have windows of one size, at a distance that is a multiple of where they are,
so that a batch of them is one tensor, which convolutions pull back as if it were a batch of images.

Padding is 0, and so is everything that is gathered for places outside of a map: slopes, offsets and
losses. What a window holds there counts for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.bounds._affine_maps import Layer, prepared
from radii.networks import ComposedMap, ConvolutionMap, LinearMap, ScaleMap, SumMap

LARGEST_SHARE = 0.5
"""Windows that cover more than this of a map become whole rows, of which nothing is computed that
lies outside of the map."""

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """Rows of coefficients on a feature map over one region: several for each of some places.

    `entries` are (places, rows, channels, *window). The window of place p of the units' own map
    starts at `scale * p - before`, along each axis of a map with these `sizes`. `places` has the p,
    (places,) for each axis, all below `count`. `padded` remembers what was gathered from.
    """

    entries: Tensor
    places: tuple[Tensor, ...]
    count: Sizes
    scale: Sizes
    before: Sizes
    sizes: Sizes
    padded: dict[object, Tensor] = field(default_factory=dict)

    @classmethod
    def of_units(
        cls,
        shape: Sizes,
        places: Tensor,
        channels: Tensor,
        dtype: torch.dtype,
        padded: dict[object, Tensor],
    ) -> WindowRows:
        """Units of feature maps (channels, *sizes), and behind them the same negated.

        `places` are numbers (places,) of entries of one map, `channels` (places, units).
        """
        _, *sizes = shape
        axes = len(sizes)
        numbers, left = [], places
        for size in reversed(sizes):
            numbers.append(left % size)
            left = left // size
        marks = F.one_hot(channels, shape[0]).to(dtype)
        entries = torch.cat([marks, -marks], 1)
        return cls(
            entries.reshape(*entries.shape, *(1,) * axes),
            tuple(reversed(numbers)),
            tuple(sizes),
            (1,) * axes,
            (0,) * axes,
            tuple(sizes),
            padded,
        )

    @property
    def size(self) -> Sizes:
        """Of the window, along each axis."""
        return tuple(self.entries.shape[3:])

    @property
    def is_large(self) -> bool:
        """It covers so much of the map that whole rows are cheaper."""
        return math.prod(self.size) >= LARGEST_SHARE * math.prod(self.sizes)

    @property
    def terms(self) -> int:
        """How many coefficients a row has."""
        return math.prod(self.entries.shape[2:])

    def pulled(self, held: LinearMap) -> WindowRows | None:
        """The rows on the arguments of a map; None if those are no windows."""
        if isinstance(held, ScaleMap):
            return self._scaled(held)
        if isinstance(held, ConvolutionMap):
            return self._convolved(held)
        if isinstance(held, ComposedMap):
            rows: WindowRows | None = self
            for number, part in enumerate(reversed(held.parts)):
                if rows is None:
                    return None
                # Values between two maps that are outside of their map are 0.
                rows = (rows._inside() if number else rows).pulled(part)
            return rows
        if isinstance(held, SumMap):
            total: WindowRows | None = None
            for one in (self.pulled(part) for part in held.parts):
                if one is None or (total is not None and (one := total.plus(one)) is None):
                    return None
                total = one
            return total
        return None

    def _scaled(self, held: ScaleMap) -> WindowRows:
        if held.is_identity:
            return self
        factors = self.around(lambda: held.factors, held)
        return replace(self, entries=self.entries * factors[:, None])

    def _convolved(self, held: ConvolutionMap) -> WindowRows | None:
        batch, channels, *sizes = held.result
        if (batch * channels, tuple(sizes)) != (self.entries.shape[2], self.sizes):
            return None
        small = _small_map(held, self.size)
        window = held.window
        pulled = small.pulled(self.entries.reshape(*self.entries.shape[:2], batch, -1))
        axes = range(len(sizes))
        reached = [(self.size[a] - 1) * window.strides[a] + window.reach[a] for a in axes]
        entries = pulled.reshape(*self.entries.shape[:2], batch * held.shape[1], *reached)
        return replace(
            self,
            entries=entries,
            scale=tuple(self.scale[a] * window.strides[a] for a in axes),
            before=tuple(self.before[a] * window.strides[a] + window.pads[a][0] for a in axes),
            sizes=tuple(held.shape[2:]),
        )

    def _inside(self) -> WindowRows:
        """0 outside of the map."""

        def ones() -> Tensor:
            return self.entries.new_ones(math.prod(self.sizes))

        return replace(self, entries=self.entries * self.around(ones, "inside")[:, None])

    def plus(self, other: WindowRows) -> WindowRows | None:
        """The sum of rows on the same map; None if it is none."""
        if (self.scale, self.sizes) != (other.scale, other.sizes):
            return None
        if self.entries.shape[2] != other.entries.shape[2]:
            return None
        axes = range(len(self.sizes))
        before = [max(self.before[a], other.before[a]) for a in axes]
        after = [max(self.size[a] - self.before[a], other.size[a] - other.before[a]) for a in axes]
        entries = self._grown(before, after) + other._grown(before, after)
        return replace(self, entries=entries, before=tuple(before))

    def _grown(self, before: Sequence[int], after: Sequence[int]) -> Tensor:
        pads = []
        for axis in reversed(range(len(self.sizes))):
            end = self.size[axis] - self.before[axis]
            pads += [before[axis] - self.before[axis], after[axis] - end]
        return F.pad(self.entries, pads) if any(pads) else self.entries

    def whole(self) -> Tensor:
        """All coefficients on the map: (1, places * rows, entries)."""
        lead = self.entries.shape[:3]
        room = self.entries.new_zeros(*lead, *self.sizes)
        starts = [[p * s - b for p in place.tolist()] for place, s, b in self._geometry()]
        for number, first in enumerate(zip(*starts, strict=True)):
            rows = zip(first, self.size, self.sizes, strict=True)
            sides = [(max(0, s), min(end, s + size), s) for s, size, end in rows]
            if any(low >= high for low, high, _ in sides):
                continue  # it sees padding alone
            part, own = room[number], self.entries[number]
            for axis, (low, high, start) in enumerate(sides):
                part = part.narrow(2 + axis, low, high - low)
                own = own.narrow(2 + axis, low - start, high - low)
            part.copy_(own)
        return room.reshape(1, math.prod(lead[:2]), -1)

    def around(self, values: Callable[[], Tensor], key: object) -> Tensor:
        """Entries of maps in the window of each place: (places, maps, *window), 0 outside.

        `values` are those of one map after another, flattened; `key` says what they are. They are
        made once for all windows that share `padded`.
        """
        place = key, self.scale, self.before, self.size, self.sizes
        if place not in self.padded:
            self.padded[place] = self._padded(values().reshape(-1, *self.sizes))
        spots = self.padded[place]
        for axis, size in enumerate(self.size):
            spots = spots.unfold(1 + axis, size, 1)
        index: tuple[Tensor | slice, ...] = (slice(None), *self._starts())
        return spots[index].transpose(0, 1)

    @property
    def _margins(self) -> list[tuple[int, int]]:
        """How far windows reach beyond the map, before and after it."""
        found = []
        for axis, size in enumerate(self.sizes):
            last = self.scale[axis] * (self.count[axis] - 1) - self.before[axis] + self.size[axis]
            found.append((max(0, self.before[axis]), max(0, last - size)))
        return found

    def _padded(self, maps: Tensor) -> Tensor:
        return F.pad(maps, [side for pair in reversed(self._margins) for side in pair])

    def _starts(self) -> list[Tensor]:
        """Where each window starts in a padded map."""
        rows = zip(self._geometry(), self._margins, strict=True)
        return [place * scale - before + low for (place, scale, before), (low, _) in rows]

    def _geometry(self) -> Iterator[tuple[Tensor, int, int]]:
        """Along each axis the places, their scale, and how far ahead of them windows start."""
        return zip(self.places, self.scale, self.before, strict=True)


def feature_maps(layer: Layer) -> Sizes | None:
    """Channels and sizes of the feature maps that a layer's units are, if windows are worth while:
    convolutions make them, and see a small part of what they read."""
    shapes = {_result(held) for held in layer.maps.values()} - {None}
    if len(shapes) != 1 or all(_is_wide(held) for held in layer.maps.values()):
        return None
    return shapes.pop()


def _is_wide(held: LinearMap) -> bool:
    """Its window covers most of a map at once; also where it has none."""
    if isinstance(held, ComposedMap | SumMap):
        return any(_is_wide(part) for part in held.parts)
    if not isinstance(held, ConvolutionMap):
        return True
    return math.prod(held.window.reach) >= LARGEST_SHARE * math.prod(held.shape[2:])


def _result(held: LinearMap) -> Sizes | None:
    if isinstance(held, ConvolutionMap):
        batch, channels, *sizes = held.result
        return (batch * channels, *sizes)
    if isinstance(held, ComposedMap | SumMap):
        return _result(held.parts[-1])
    return None


def _small_map(held: ConvolutionMap, size: Sizes) -> LinearMap:
    """The convolution without padding that gives results of this size; one image at a time."""

    def make() -> LinearMap:
        window = held.window
        rows = zip(size, window.strides, window.reach, strict=True)
        sizes = [(n - 1) * stride + reach for n, stride, reach in rows]
        bare = replace(window, pads=((0, 0),) * len(size))
        small = ConvolutionMap(held.weight, sizes, window=bare, groups=held.groups)
        return prepared(small, held.weight.dtype, held.weight.device)

    return held.memo.get((_small_map, size), make)
