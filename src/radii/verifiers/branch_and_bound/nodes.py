"""The nodes of a tree, in flat tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from radii.verifiers.branch_and_bound.duals import Multipliers, Rows

__all__ = ["Nodes"]


@dataclass(slots=True, eq=False)
class Nodes:
    """Bounds of the units, signs of split units, which specification, its value and multipliers.

    `value` is a proven lower bound on the specification at the node, `share` the node's part of its
    tree: 1 at the root, halved by every split. `home` tells where the multipliers of its units'
    bounds are remembered: the memory's number and the place in it.
    """

    lower: Tensor
    upper: Tensor
    signs: Tensor
    spec: Tensor
    value: Tensor
    share: Tensor
    slopes: Tensor
    gamma: Tensor
    beta: Tensor
    home: Tensor

    @classmethod
    def roots(cls, lower: Tensor, upper: Tensor, specs: int, parts: int) -> Nodes:
        """One for each specification."""
        wide = lower.expand(specs, -1).clone(), upper.expand(specs, -1).clone()
        slopes = (wide[1] > -wide[0]).float()
        return cls(
            *wide,
            torch.zeros(slopes.shape, dtype=torch.int8, device=lower.device),
            torch.arange(specs, device=lower.device),
            lower.new_full((specs,), -torch.inf),
            lower.new_ones(specs),
            slopes,
            slopes.new_full((specs, parts), 1 / parts),
            torch.zeros_like(slopes),
            torch.full((specs, 2), -1, device=lower.device),
        )

    def __len__(self) -> int:
        return len(self.lower)

    def pick(self, chosen: Tensor) -> Nodes:
        return Nodes(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @classmethod
    def join(cls, first: Nodes, second: Nodes) -> Nodes:
        pairs = ((getattr(first, f.name), getattr(second, f.name)) for f in fields(cls))
        return cls(*(torch.cat(pair) for pair in pairs))

    @property
    def is_open_unit(self) -> Tensor:
        return (self.lower < 0) & (self.upper > 0)

    @property
    def is_empty(self) -> Tensor:
        """A unit with no value left: no input of the region is a violation there."""
        return (self.lower > self.upper).any(1)

    def rows(self, index: Tensor) -> Rows:
        """Rows that bound the specifications of the indexed nodes."""
        has_splits = bool(self.signs.any())
        signs = self.signs[index].to(self.lower.dtype) if has_splits else None
        return Rows(self.lower[index], self.upper[index], self.spec[index], signs)

    def multipliers(self, index: Tensor) -> Multipliers:
        """Where the ascent of the nodes' own bounds stands, in float32."""
        beta = self.beta[index] if bool(self.signs.any()) else None
        return Multipliers(self.slopes[index], self.gamma[index], beta)

    def remember(self, chosen: Multipliers) -> None:
        self.slopes, self.gamma = chosen.slopes, chosen.gamma
        if chosen.beta is not None:
            self.beta = chosen.beta

    def split(self, unit: Tensor) -> Nodes:
        """Two children of each node: first all with its unit at least 0, then at most 0."""
        count = len(self)
        place = torch.arange(count, device=unit.device)
        children = Nodes.join(self, self)
        children.lower[place, unit] = 0.0
        children.signs[place, unit] = 1
        children.upper[count + place, unit] = 0.0
        children.signs[count + place, unit] = -1
        children.share = children.share / 2
        return children
