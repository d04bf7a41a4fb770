"""Boxes of inputs that wait to be bounded, with what is known of the network on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.networks import Interval


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """A batch of boxes, (boxes, inputs) each side.

    `known` holds for each layer of the network intervals of what its units read, (boxes, units):
    those of the box that these were cut from; None for a box that was cut from none.
    """

    low: Tensor
    high: Tensor
    known: tuple[Interval, ...] | None = None

    @classmethod
    def joined(cls, parts: Sequence[Boxes]) -> Boxes:
        """Several batches in one."""
        if len(parts) == 1:
            return parts[0]
        known = None
        if all(part.known is not None for part in parts):
            layers = zip(*(part.known or () for part in parts), strict=True)
            known = tuple(
                Interval(torch.cat([i.low for i in layer]), torch.cat([i.high for i in layer]))
                for layer in layers
            )
        low, high = (torch.cat(side) for side in ([p.low for p in parts], [p.high for p in parts]))
        return cls(low, high, known)

    def __len__(self) -> int:
        return len(self.low)

    def taken(self, index: Tensor | slice) -> Boxes:
        """Some of the boxes."""
        known = None
        if self.known is not None:
            known = tuple(Interval(i.low[index], i.high[index]) for i in self.known)
        return Boxes(self.low[index], self.high[index], known)

    def within(self, low: Tensor, high: Tensor) -> Boxes:
        """Smaller boxes inside these, one each."""
        return Boxes(low, high, self.known)
