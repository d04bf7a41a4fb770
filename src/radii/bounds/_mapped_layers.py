"""Layers of ReLU units as the network has them: convolutions stay convolutions.

A node of the tree knows and chooses something for open units only; all others of a layer are their
argument or 0 wherever the region is. So a pass through a layer picks the open units out of the
whole layer, does there what lines and multipliers say, and hands the whole layer to its maps.

One step back of a row a on the whole values v of a layer, with 1 on the diagonal D of units that
always are active, is

    a v  >=  (a D + a on the lines of open units) z + c,    z = M u + b + e,  |e| <= slack,

where M is the network's own map.

For searching, in float32, constants are folded: what the input's centre and the constants of units
that are always active add to a later argument is one constant of it, so that only open units have
any. For proofs nothing is folded: every constant and every rounding counts where it arises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from radii.bounds._affine_maps import prepared
from radii.bounds._dense_layers import Block, DenseLayers
from radii.bounds._duals import (
    DUAL_ROUNDING,
    DualBackward,
    Layers,
    PointsForward,
    RelaxedRows,
    lost_to_underflow,
)
from radii.bounds._regions import ROUND_UP
from radii.bounds._supports import Support
from radii.networks import LinearMap

ROWS_COMPOSED_AT_ONCE = 64
"""Arguments that become functions of the input and of kept units together."""


@dataclass(frozen=True, slots=True, eq=False)
class MappedLayer:
    """Arguments of one layer's units: maps of earlier values, by their nodes, and an offset.

    `is_active` is 1 for units that always are their argument, and 0 for all others; `places` are
    the units that are kept. `slack` is what a coefficient of 1 on each argument may lose. Folded
    layers have the constants of kept units in place of `offset`, and no slack.
    """

    node: int
    maps: dict[int, LinearMap]
    offset: Tensor
    slack: Tensor
    is_active: Tensor
    places: Tensor

    def __len__(self) -> int:
        return len(self.places)

    def pull(self, rows: Tensor, on_values: dict[int, Tensor]) -> None:
        """Add what rows of coefficients on all arguments are on the values that these read."""
        for source, held in self.maps.items():
            added = held.pulled(rows)
            known = on_values.get(source)
            on_values[source] = added if known is None else known + added

    def to(self, dtype: torch.dtype, device: torch.device | str) -> MappedLayer:
        return MappedLayer(
            self.node,
            {source: prepared(held, dtype, device) for source, held in self.maps.items()},
            self.offset.to(device, dtype),
            self.slack.to(device, dtype),
            self.is_active.to(device, dtype),
            self.places.to(device),
        )


@dataclass(frozen=True, slots=True, eq=False)
class MappedSpecifications:
    """Rows of all specifications: coefficients (rows, n) on the values of nodes, and constants."""

    maps: dict[int, Tensor]
    offset: Tensor
    slack: Tensor

    def to(self, dtype: torch.dtype, device: torch.device | str) -> MappedSpecifications:
        maps = {source: held.to(device, dtype) for source, held in self.maps.items()}
        return MappedSpecifications(
            maps, self.offset.to(device, dtype), self.slack.to(device, dtype)
        )


@dataclass(frozen=True, slots=True, eq=False)
class MappedLayers(Layers):
    """Layers through their maps. `is_folded` says that constants are: fit for searching only."""

    layers: tuple[MappedLayer, ...]
    specs: MappedSpecifications
    parts: int
    support: Support
    is_folded: bool = False

    @property
    def sizes(self) -> list[int]:
        return [len(layer) for layer in self.layers]

    @property
    def spec_rows(self) -> int:
        return len(self.specs.offset)

    @property
    def entries(self) -> int:
        return sum(held.work for layer in self.layers for held in layer.maps.values())

    def to(self, dtype: torch.dtype, device: torch.device | str) -> MappedLayers:
        if self.is_folded and dtype == torch.float64:
            raise ValueError("folded layers prove nothing: their constants have lost their slack")
        held = self if dtype == torch.float64 or self.is_folded else self._folded()
        return replace(
            held,
            layers=tuple(layer.to(dtype, device) for layer in held.layers),
            specs=held.specs.to(dtype, device),
            support=held.support.to(dtype, device),
        )

    def until(self, count: int) -> MappedLayers:
        """The first layers alone, with no specification: for bounds of their last one's units."""
        nothing = self.specs.offset.new_zeros(1)
        specs = MappedSpecifications({}, nothing, nothing)
        return replace(self, layers=self.layers[:count], specs=specs, parts=1)

    def _folded(self) -> MappedLayers:
        """Every kept unit with the constant that the centre and active units give its argument."""
        constants = {0: self.support.centre[None]}
        layers = []
        for layer in self.layers:
            own = layer.offset[None] + sum(
                held.pushed(constants[source]) for source, held in layer.maps.items()
            )
            constants[layer.node] = own * layer.is_active
            layers.append(replace(layer, offset=own[0, layer.places], slack=layer.slack[:0]))
        offset = self.specs.offset + sum(
            (held @ constants[source][0] for source, held in self.specs.maps.items()),
            torch.zeros_like(self.specs.offset),
        )
        specs = replace(self.specs, offset=offset)
        return replace(self, layers=tuple(layers), specs=specs, is_folded=True)

    def rows_backward(self, relaxed: RelaxedRows, weights: Tensor, *, proven: bool) -> DualBackward:
        return _MappedBackward(self, relaxed, weights, proven=proven)

    def points(self, steps: Tensor) -> PointsForward:
        return _MappedPoints(self, steps)

    def functions_of_steps(self, is_active: Tensor) -> tuple[Tensor, Tensor]:
        parts = list(torch.arange(self.units).split(ROWS_COMPOSED_AT_ONCE))
        arguments = [self._composed(self._of_units(part), is_active) for part in parts]
        specs = self._composed(self._of_specifications(), is_active)
        inputs = self.inputs + 1
        nothing = specs.on_columns[:0, :inputs]
        return (
            torch.cat([nothing, *(found.on_columns[:, :inputs] for found in arguments)]),
            specs.on_columns[:, :inputs],
        )

    def condensed(self, reach: Tensor) -> DenseLayers:
        """The same layers as matrices over the kept units and the input, in float64.

        `reach` is the largest value of each kept unit: rounding is relative to what it multiplies.
        """
        no_unit = torch.zeros(self.units, dtype=torch.bool)
        blocks, start = [], 0
        for layer in self.layers:
            units = torch.arange(start, start + len(layer))
            parts = [
                self._composed(self._of_units(part), no_unit)
                for part in units.split(ROWS_COMPOSED_AT_ONCE)
            ]
            blocks.append(self._block(parts, reach, start))
            start += len(layer)
        specs = self._block([self._composed(self._of_specifications(), no_unit)], reach, start)
        return DenseLayers(tuple(blocks), specs, self.parts, self.support)

    def _block(self, parts: list[_ComposedRows], reach: Tensor, before: int) -> Block:
        """Rows over the input, the constant and the kept units before them."""
        inputs = self.inputs
        rows = torch.cat(
            [self.support.centre.new_zeros(0, inputs + 1 + self.units)]
            + [part.on_columns for part in parts]
        )
        lost = torch.cat([reach.new_zeros(0)] + [part.lost for part in parts])
        sizes = torch.cat([self.support.step_sizes, reach.new_ones(1), reach])
        slack = (
            lost * ROUND_UP + DUAL_ROUNDING * (rows.abs() @ sizes) + lost_to_underflow(self.support)
        )
        steps = rows[:, :inputs].contiguous()
        return Block(
            rows[:, inputs : inputs + 1 + before].contiguous(),
            steps if bool(steps.any()) else None,
            slack,
        )

    def _of_units(self, units: Tensor) -> _ComposedRows:
        """Rows that are arguments of kept units, before they are composed."""
        on_units = torch.zeros(len(units), self.units, dtype=torch.float64)
        on_units[torch.arange(len(units)), units] = 1.0
        nothing = on_units.new_zeros(len(units))
        return _ComposedRows({}, on_units, nothing, nothing)

    def _of_specifications(self) -> _ComposedRows:
        specs = self.specs
        on_units = torch.zeros(self.spec_rows, self.units, dtype=torch.float64)
        return _ComposedRows(dict(specs.maps), on_units, specs.offset, specs.slack)

    def _composed(self, rows: _ComposedRows, is_active: Tensor) -> _ComposedRows:
        """Rows over steps of the input, the constant and kept units; active ones are replaced.

        What the composition rounds, and the arguments that it replaces, is in `lost`.
        """
        on_values, constants, lost = dict(rows.on_values), rows.constants, rows.lost
        on_kept = torch.zeros_like(rows.on_units)
        end = self.units
        for layer in reversed(self.layers):
            units = slice(end - len(layer), end)
            end = units.start
            whole = on_values.pop(layer.node, None)
            own = rows.on_units[:, units]
            if whole is None:
                if not bool(own.any()):
                    continue
                whole = own.new_zeros(len(own), layer.is_active.numel())
            kept = whole.index_select(1, layer.places)
            on_kept[:, units] = torch.where(is_active[units], 0.0, kept)
            replaced = torch.where(is_active[units], kept, 0.0) + own
            whole = (whole * layer.is_active).index_copy_(1, layer.places, replaced)
            constants = constants + whole @ layer.offset
            lost = lost + whole.abs() @ layer.slack
            layer.pull(whole, on_values)
        on_input = on_values.get(0)
        if on_input is None:
            on_input = on_kept.new_zeros(len(on_kept), self.inputs)
        constants = constants + on_input @ self.support.centre
        lost = lost + DUAL_ROUNDING * (on_input.abs() @ self.support.sizes)
        columns = [on_input * self.support.scale, constants[:, None], on_kept]
        return _ComposedRows({}, rows.on_units, constants, lost, torch.cat(columns, 1))


@dataclass(frozen=True, slots=True, eq=False)
class _ComposedRows:
    """Linear functions: of values of nodes and arguments of kept units before they are composed;
    afterwards `on_columns`, over the input's steps, the constant and the kept units."""

    on_values: dict[int, Tensor]
    on_units: Tensor
    constants: Tensor
    lost: Tensor
    on_columns: Tensor = field(default_factory=lambda: torch.zeros(0))


class _MappedBackward(DualBackward):
    """`on_nodes` are coefficients on whole values by their nodes; the open units are picked out of
    them, and put back when their lines have been taken."""

    def __init__(
        self, layers: MappedLayers, relaxed: RelaxedRows, weights: Tensor, *, proven: bool
    ) -> None:
        specs, self.layers = layers.specs, layers
        self.on_nodes = {source: weights @ held for source, held in specs.maps.items()}
        lost = weights @ specs.slack if proven and not layers.is_folded else None
        super().__init__(layers.slices, relaxed, weights @ specs.offset, lost)

    def on_values(self, number: int) -> Tensor:
        layer = self.layers.layers[number]
        whole = self.on_nodes.pop(layer.node, None)
        if whole is None:
            whole = self.constants.new_zeros(len(self.constants), layer.is_active.numel())
        self.whole = whole
        return whole.index_select(1, layer.places)

    def pull(self, number: int, rows: Tensor) -> None:
        layer = self.layers.layers[number]
        whole = (self.whole * layer.is_active).index_copy_(1, layer.places, rows)
        offset_rows = rows if self.layers.is_folded else whole
        self.constants = self.constants + offset_rows @ layer.offset
        if self.lost is not None:
            self.lost = self.lost + whole.abs() @ layer.slack
        layer.pull(whole, self.on_nodes)

    def least(self) -> tuple[Tensor, Tensor, Tensor | None]:
        support, lost = self.layers.support, self.lost
        on_input = self.on_nodes.get(0)
        if on_input is None:
            on_input = self.constants.new_zeros(len(self.constants), self.layers.inputs)
        if not self.layers.is_folded:
            self.constants = self.constants + on_input @ support.centre
        if lost is not None:
            lost = lost + DUAL_ROUNDING * (on_input.abs() @ support.sizes)
        least, steps = support.least(on_input * support.scale)
        return self.constants + least, steps, lost


class _MappedPoints(PointsForward):
    """`values` are whole, by their nodes; folded layers have the centre in their constants."""

    def __init__(self, layers: MappedLayers, steps: Tensor) -> None:
        self.layers, support = layers, layers.support
        inputs = steps * support.scale if layers.is_folded else support.inputs(steps)
        self.values = {0: inputs}

    def arguments(self, number: int) -> Tensor:
        layer = self.layers.layers[number]
        whole: Tensor | None = None
        for source, held in layer.maps.items():
            added = held.pushed(self.values[source])
            whole = added if whole is None else whole + added
        if whole is None:
            whole = self.values[0].new_zeros(len(self.values[0]), layer.is_active.numel())
        if self.layers.is_folded:
            self.whole = whole
            return whole.index_select(1, layer.places).add_(layer.offset)
        self.whole = whole + layer.offset
        return self.whole.index_select(1, layer.places)

    def put(self, number: int, values: Tensor) -> None:
        layer = self.layers.layers[number]
        whole = (self.whole * layer.is_active).index_copy_(1, layer.places, values)
        self.values[layer.node] = whole

    def specifications(self) -> Tensor:
        specs = self.layers.specs
        found = specs.offset.expand(len(self.values[0]), -1)
        for source, held in specs.maps.items():
            found = found + self.values[source] @ held.T
        return found
