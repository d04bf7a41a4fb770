"""The sliding window of convolutions and poolings: kernel, strides, dilations and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii.networks.operators._base import Shape


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

    def result_size(self, sizes: Sequence[int]) -> Shape:
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
