"""The backward pass: from linear functions of a network's values to ones of its input.

A row is a linear function of one layer's arguments on one region. Going back through the layers,
each value is replaced by a line below it (coefficient > 0) or above it (< 0), until only the input
is left, whose least value over the region is known. Along the way the pass adds up the absolute
values of everything it sums, and subtracts what their rounding can be at most: coefficients that
are off by some share of |a| |M| change the result by no more than that share of |a| |M| |value|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from radii.bounds.affine_maps import Layer, LayeredNetwork, slack
from radii.bounds.enclosure import Interval
from radii.bounds.relaxations import Relaxation
from radii.bounds.supports import Supports

__all__ = ["Choices", "LinearBounds", "Rows", "State", "backward"]

Choices = Mapping[int, Tensor]
"""For some layers, by number, the lines chosen for each row, as `Relaxation.start` has them."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearBounds:
    """For each row a proven lower bound on its region, and the linear function it comes from.

    The row is at least `slopes @ x + constants` on the region, up to rounding; `points` are inputs
    at which that is least.
    """

    values: Tensor
    slopes: Tensor
    constants: Tensor
    points: Tensor


@dataclass(slots=True, eq=False)
class State:
    """What is known of a network over each region of a batch, layer by layer, as far as it got.

    `values` holds an interval for each value by its node, the input included; `relaxations` and
    `sizes` (the absolute values that each argument adds up) have an entry a layer.
    """

    network: LayeredNetwork
    supports: Supports
    values: dict[int, Interval] = field(default_factory=dict)
    arguments: list[Interval] = field(default_factory=list)
    sizes: list[Tensor] = field(default_factory=list)
    relaxations: list[Relaxation] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.supports)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Linear functions to be bounded: `regions` says on which region, a row each.

    `maps` are coefficients on the values of nodes, `constants` what is added; `size` bounds the
    absolute values that were added up to make them, on the region.
    """

    regions: Tensor
    maps: dict[int, Tensor]
    constants: Tensor
    size: Tensor

    @classmethod
    def of_units(cls, layer: Layer, size: Tensor, regions: Tensor, units: Tensor) -> Rows:
        """Single arguments of a layer and, behind them, the same ones negated."""
        maps = {}
        for source, held in layer.maps.items():
            chosen = held.chosen(units)
            maps[source] = torch.cat([chosen, -chosen])
        offset, sizes = layer.offset[units], size[regions, units]
        return cls(
            torch.cat([regions, regions]),
            maps,
            torch.cat([offset, -offset]),
            torch.cat([sizes, sizes]),
        )

    @classmethod
    def of_functions(cls, layer: Layer, size: Tensor, regions: Tensor, rows: Tensor) -> Rows:
        """Rows of coefficients on all arguments of a layer."""
        return cls(
            regions,
            {source: held.pulled(rows) for source, held in layer.maps.items()},
            rows @ layer.offset,
            (rows.abs() * size[regions]).sum(1),
        )

    def __len__(self) -> int:
        return len(self.regions)

    def part(self, rows: slice) -> Rows:
        maps = {source: held[rows] for source, held in self.maps.items()}
        return Rows(self.regions[rows], maps, self.constants[rows], self.size[rows])


def backward(state: State, rows: Rows, choices: Choices | None = None) -> LinearBounds:
    """Lower bounds of the rows. Without choices the lines are CROWN's."""
    network = state.network
    coefficients = dict(rows.maps)
    constants, size = rows.constants, rows.size
    for number in range(len(state.relaxations) - 1, -1, -1):
        layer = network.layers[number]
        held = coefficients.pop(layer.node, None)
        if held is None:
            continue
        relaxation = _matching(state, number, rows.regions)
        pulled = relaxation.lines(None if choices is None else choices.get(number)).pulled(held)
        constants, size = constants + pulled.constant, size + pulled.size
        if pulled.rows is None:
            continue
        of_arguments = _rowwise(state.sizes[number], rows.regions)
        size = size + (pulled.rows.abs() * of_arguments).sum(1)
        constants = constants + pulled.rows @ layer.offset
        for source, affine in layer.maps.items():
            added = affine.pulled(pulled.rows)
            known = coefficients.get(source)
            coefficients[source] = added if known is None else known + added
    on_input = coefficients.get(0)
    if on_input is None:
        on_input = constants.new_zeros(len(rows), network.inputs)
    supports = state.supports if len(state) == 1 else state.supports.taken(rows.regions)
    least = supports.least(on_input)
    values = constants + least.values - slack(size + least.size, network.terms)
    values = torch.where(torch.isfinite(values), values, -torch.inf)
    return LinearBounds(values, on_input, constants, least.points)


def _matching(state: State, number: int, regions: Tensor) -> Relaxation:
    relaxation = state.relaxations[number]
    return relaxation if len(state) == 1 else relaxation.taken(regions)


def _rowwise(held: Tensor, regions: Tensor) -> Tensor:
    return held if len(held) == 1 else held[regions]


def joined(parts: Sequence[LinearBounds]) -> LinearBounds:
    """Bounds of rows that were bounded in several parts."""
    if len(parts) == 1:
        return parts[0]
    return LinearBounds(
        torch.cat([part.values for part in parts]),
        torch.cat([part.slopes for part in parts]),
        torch.cat([part.constants for part in parts]),
        torch.cat([part.points for part in parts]),
    )
