"""The backward pass: from linear functions of a network's values to ones of its input.

A row is a linear function of one layer's arguments on one region. Going back through the layers,
each value is replaced by a line below it (coefficient > 0) or above it (< 0), until only the input
is left, whose least value over the region is known. Along the way the pass adds up the absolute
values of everything it sums, and subtracts what their rounding can be at most: coefficients that
are off by some share of |a| |M| change the result by no more than that share of |a| |M| |value|.

What the network itself rounds is subtracted in the same way: a coefficient a on an argument that
the runtime has only up to E loses |a| E.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from radii.bounds._affine_maps import Layer, LayeredNetwork, slack
from radii.bounds._regions import Supports
from radii.bounds._relaxations import Constants, Lines, Relaxation
from radii.networks import Interval

LOSS_ROUND_UP = 1 + 2.0**-7
"""Sums of losses are rounded themselves, here in float32 too: by less than this."""

Choices = Mapping[int, Tensor]
"""For some layers, by number, the lines chosen for each row: (2, regions, rows, units)."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearBounds:
    """For each row a proven lower bound on its region, and the linear function it comes from.

    The row is at least `slopes @ x + constants` on the region, in real arithmetic: rounding is
    subtracted. `points` are inputs at which that is least. `values` and `constants` are (regions,
    rows), the others (regions, rows, inputs).
    """

    values: Tensor
    slopes: Tensor
    constants: Tensor
    points: Tensor


@dataclass(slots=True, eq=False)
class State:
    """What is known of a network over each region of a batch, layer by layer, as far as it got.

    `values` holds an interval for each value by its node, the input included, and `all_errors` how
    far the values are off from what the operator should give, where they are; `errors` are those of
    them that lines do not include. The lists have an entry for each layer: what the units read,
    what a coefficient of 1 on each of those loses to rounding, all lines that may be chosen, and
    those that CROWN chooses.
    """

    network: LayeredNetwork
    supports: Supports
    values: dict[int, Interval] = field(default_factory=dict)
    errors: dict[int, Tensor] = field(default_factory=dict)
    all_errors: dict[int, Tensor] = field(default_factory=dict)
    arguments: list[Interval] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    relaxations: list[Relaxation] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.supports)

    def add(
        self,
        arguments: Interval,
        loss: Tensor,
        values: Interval,
        error: Tensor | None,
        lines: Relaxation,
    ) -> None:
        """What is known of the next layer."""
        node = self.network.layers[len(self.lines)].node
        self.values[node] = values
        if error is not None:
            self.all_errors[node] = error
            if not isinstance(lines, Constants):
                self.errors[node] = error
        self.arguments.append(arguments)
        self.losses.append(loss)
        self.relaxations.append(lines)
        self.lines.append(lines.lines())


@dataclass(frozen=True, slots=True, eq=False)
class LinearFunctions:
    """Linear functions to be bounded, equally many on each of the regions with these numbers.

    `maps` are coefficients (regions, rows, n) on the values of nodes, `constants` what is added;
    `error` is what their own rounding may change of the rows' values on the region.
    """

    regions: Tensor
    maps: dict[int, Tensor]
    constants: Tensor
    error: Tensor

    @classmethod
    def of_units(
        cls, layer: Layer, loss: Tensor, regions: Tensor, units: Tensor
    ) -> LinearFunctions:
        """Arguments of a layer, with numbers (regions, rows), and behind them the same negated."""
        maps = {}
        for source, held in layer.maps.items():
            chosen = held.chosen(units)
            maps[source] = torch.cat([chosen, -chosen], 1)
        offset, error = layer.offset[units], loss[regions].gather(1, units)
        return cls(
            regions,
            maps,
            torch.cat([offset, -offset], 1),
            torch.cat([error, error], 1),
        )

    @classmethod
    def of_functions(
        cls, layer: Layer, loss: Tensor, regions: Tensor, rows: Tensor
    ) -> LinearFunctions:
        """Rows (regions, rows, arguments) of coefficients on all arguments of a layer."""
        return cls(
            regions,
            {source: held.pulled(rows) for source, held in layer.maps.items()},
            rows @ layer.offset,
            (rows.abs() @ loss[regions][..., None]).squeeze(2) * LOSS_ROUND_UP,
        )

    @property
    def shape(self) -> torch.Size:
        """How many regions, and how many rows on each."""
        return self.constants.shape

    def part(self, rows: slice) -> LinearFunctions:
        """Some of each region's rows."""
        maps = {source: held[:, rows] for source, held in self.maps.items()}
        return LinearFunctions(self.regions, maps, self.constants[:, rows], self.error[:, rows])


def backward(state: State, rows: LinearFunctions, choices: Choices | None = None) -> LinearBounds:
    """Lower bounds of the rows. Without choices the lines are CROWN's."""
    network, regions = state.network, rows.regions
    coefficients = dict(rows.maps)
    depth = len(network.layers) + 1  # the sums of all layers are added up as well
    constants, error = rows.constants, rows.error + slack(rows.constants.abs(), depth)
    for number in range(len(state.lines) - 1, -1, -1):
        layer = network.layers[number]
        held = coefficients.pop(layer.node, None)
        if held is None:
            continue
        pulled = _lines(state, number, regions, choices).pulled(held)
        constants = constants + pulled.constant
        error = error + slack(pulled.size, held.shape[2] + depth)
        if pulled.rows is None:
            continue
        loss = state.losses[number][regions][..., None]
        error = error + (pulled.rows.abs() @ loss).squeeze(2) * LOSS_ROUND_UP
        constants = constants + pulled.rows @ layer.offset
        for source, affine in layer.maps.items():
            added = affine.pulled(pulled.rows)
            known = coefficients.get(source)
            coefficients[source] = added if known is None else known + added
    on_input = coefficients.get(0)
    if on_input is None:
        on_input = constants.new_zeros(*rows.shape, network.inputs)
    least = state.supports.taken(regions).least(on_input)
    constants = constants - error - slack(least.size, network.inputs + depth)
    values = constants + least.values
    values = torch.where(torch.isfinite(values), values, -torch.inf)
    return LinearBounds(values, on_input, constants, least.points)


def _lines(state: State, number: int, regions: Tensor, choices: Choices | None) -> Lines:
    if choices is not None and number in choices:
        return state.relaxations[number].taken(regions).lines(choices[number])
    return state.lines[number].taken(regions)


def joined_bounds(parts: list[LinearBounds], axis: int) -> LinearBounds:
    """Bounds that were found in several parts, of the regions (axis 0) or of their rows (1)."""
    if len(parts) == 1:
        return parts[0]
    return LinearBounds(
        torch.cat([part.values for part in parts], axis),
        torch.cat([part.slopes for part in parts], axis),
        torch.cat([part.constants for part in parts], axis),
        torch.cat([part.points for part in parts], axis),
    )


# Which inputs the looseness of a relaxation comes from.
#
# A unit's lines are apart because its argument varies; how much of that each input causes is read
# off the derivative of the argument, taken along the middle of all lines on the way. Cutting the
# input with the largest share shrinks the gaps most.


def input_influence(state: State) -> Tensor:
    """For each region (regions, inputs) the sum of all units' gaps, shared out among the inputs."""
    box = state.supports.box
    widths = (box.high - box.low)[:, :, None]
    unit = torch.eye(state.network.inputs, dtype=widths.dtype, device=widths.device)
    turned = {0: unit.expand(len(state), -1, -1)}
    influence = torch.zeros_like(box.low)
    tiny = torch.finfo(widths.dtype).tiny
    for layer, lines, arguments in zip(
        state.network.layers, state.lines, state.arguments, strict=True
    ):
        held = widths.new_zeros(len(state), state.network.inputs, layer.size)
        for source, affine in layer.maps.items():
            held = held + affine.pushed(turned[source])
        turned[layer.node] = lines.turned(held)
        reach = turned[layer.node].abs() * widths
        shares = reach / reach.sum(1, keepdim=True).clamp_min(tiny)
        gaps = lines.gaps(arguments.low / 2 + arguments.high / 2)
        influence = influence + (shares @ gaps[..., None]).squeeze(2)
    return torch.where(torch.isfinite(influence), influence, 0.0)
