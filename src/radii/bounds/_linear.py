"""CROWN's rows: linear functions of a network's values over a batch of regions, on their way back.

A row is a linear function of one layer's arguments on one region, either whole or as a window of a
feature map. `_rows_backward` has the two steps that it takes at every layer; here is what each of
them adds up in absolute values, and what their rounding can be at most.

What the network itself rounds is subtracted in the same way: a coefficient a on an argument that
the runtime has only up to E loses |a| E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from radii.bounds._affine_maps import Layer, LayeredNetwork, slack, underflow
from radii.bounds._rows_backward import RowsBackward
from radii.bounds._supports import Supports
from radii.bounds._windows import WindowRows, feature_maps
from radii.networks import Constants, Interval, Lines, PulledRows, Relaxation, UnitLines

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


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """Multipliers >= 0 of what is known of some arguments z of a layer: low <= z <= high.

    Rows lose `above` (z - low) and `below` (high - z), which are >= 0 wherever these bounds hold:
    beta-CROWN's multipliers of splits (Wang et al. 2021), here of splits at any point. `units` are
    the arguments' numbers; the multipliers are (regions, rows, units).
    """

    units: Tensor
    above: Tensor
    below: Tensor


def backward(
    state: State,
    rows: LinearFunctions,
    choices: Choices | None = None,
    between: Mapping[int, Between] | None = None,
) -> LinearBounds:
    """Lower bounds of the rows, where the intervals of the state's arguments hold.

    Without choices the lines are CROWN's. `between` has multipliers of some layers' intervals.
    """
    return _lowered(
        _NodeBackward(state, rows.regions, rows.constants, rows.error), rows, choices, between
    )


def _lowered(
    descent: _NodeBackward,
    rows: LinearFunctions,
    choices: Choices | None,
    between: Mapping[int, Between] | None,
) -> LinearBounds:
    state = descent.state
    for source, held in rows.maps.items():
        descent.put(source, held)
    descent.choices, descent.between = choices or {}, between or {}
    descent.run()
    on_input = descent.coefficients.get(0)
    if on_input is None:
        on_input = rows.constants.new_zeros(*rows.shape, state.network.inputs)
    assert isinstance(on_input, Tensor)
    least = state.supports.taken(rows.regions).least(on_input)
    constants = descent.proven_constants(least.size, state.network.inputs)
    return LinearBounds(_finite(constants + least.values), on_input, constants, least.points)


def window_bounds(
    state: State,
    layer: Layer,
    loss: Tensor,
    region: int,
    places: Tensor,
    channels: Tensor,
    gathered: Gathered,
) -> Tensor:
    """Lower bounds (2, places, units) of arguments of a layer over one region, and of the same
    negated.

    The arguments are feature maps; `places` are numbers (places,) of entries of one map, and
    `channels` (places, units) say of which. As `backward`, with rows as windows of the maps as long
    as that is less. `gathered` is for this region and this layer.
    """
    shape = feature_maps(layer)
    assert shape is not None
    offset = layer.offset
    windows = WindowRows.of_units(shape, places, channels, offset.dtype, gathered.padded)
    units = channels * math.prod(shape[1:]) + places[:, None]
    constants = torch.cat([offset[units], -offset[units]], 1).reshape(1, -1)
    error = loss[region][units].repeat(1, 2).reshape(1, -1)
    descent = _NodeBackward(state, torch.tensor([region], device=units.device), constants, error)
    descent.pull_through(layer, windows)
    descent.run()
    gathered.largest = descent.largest
    return descent.proven().reshape(len(places), 2, -1).transpose(0, 1)


@dataclass(slots=True, eq=False)
class Gathered:
    """What windows of many units of one layer share, and how many coefficients one row had."""

    padded: dict[object, Tensor] = field(default_factory=dict)
    largest: int | None = None


class _NodeBackward(RowsBackward[Tensor | WindowRows]):
    """Rows on the values of nodes, whole (regions, rows, n) or as windows of feature maps.

    `constants` (regions, rows) is what they have added up, `error` what is lost to rounding.
    """

    def __init__(self, state: State, regions: Tensor, constants: Tensor, error: Tensor) -> None:
        self.state, self.regions = state, regions
        self.coefficients: dict[int, Tensor | WindowRows] = {}
        # The sums of all layers are added up as well.
        self.sums = len(state.network.layers) + 1
        self.constants = constants
        self.error = error + slack(constants.abs(), self.sums)
        self.largest = 1
        self.choices: Choices = {}
        self.between: Mapping[int, Between] = {}

    @property
    def depth(self) -> int:
        return len(self.state.lines)

    def on_values(self, number: int) -> Tensor | WindowRows | None:
        held = self.coefficients.pop(self.state.network.layers[number].node, None)
        if isinstance(held, WindowRows):
            has_lines = isinstance(self.state.lines[number], UnitLines)
            return held if has_lines and not held.is_large else held.whole()
        if held is None and number in self.between:
            node = self.state.network.layers[number].node
            return self.constants.new_zeros(
                *self.constants.shape, self.state.values[node].low.shape[1]
            )
        return held

    def relaxed(self, number: int, rows: Tensor | WindowRows) -> Tensor | WindowRows | None:
        if isinstance(rows, WindowRows):
            return self._window_relaxed(number, rows)
        self._add_lines(pulled := self.used(number).pulled(rows), rows.shape[2])
        between = self.between.get(number)
        return pulled.rows if between is None else self._with(between, number, pulled.rows)

    def _with(self, between: Between, number: int, rows: Tensor | None) -> Tensor:
        """Rows on a layer's arguments, with multipliers of what is known of these."""
        known, units = self.state.arguments[number], between.units
        sides = [side[self.regions][:, None, units] for side in (known.low, known.high)]
        low, high = (torch.where(torch.isfinite(side), side, 0.0) for side in sides)
        above = torch.where(torch.isfinite(sides[0]), between.above, 0.0)
        below = torch.where(torch.isfinite(sides[1]), between.below, 0.0)
        self.constants = self.constants + (above * low - below * high).sum(2)
        added = below - above
        total = self.constants.new_zeros(*self.constants.shape, known.low.shape[1])
        size = (above * low.abs() + below * high.abs()).sum(2)
        if rows is not None:  # sums that nearly cancel are off by a share of what they add up
            total = total + rows
            largest = torch.maximum(low.abs(), high.abs())
            size = size + ((rows[..., units].abs() + added.abs()) * largest).sum(2)
        self.error = self.error + slack(size, 2 * len(units) + self.sums)
        return total.index_add(2, units, added)

    def used(self, number: int) -> Lines:
        """The lines that the rows take through a layer."""
        if number in self.choices:
            return self.state.relaxations[number].taken(self.regions).lines(self.choices[number])
        return self.state.lines[number].taken(self.regions)

    def _add_lines(self, pulled: PulledRows, terms: int) -> None:
        self.constants = self.constants + pulled.constant.view_as(self.constants)
        size = pulled.size.view_as(self.constants)
        self.error = self.error + slack(size, terms + self.sums)

    def _window_relaxed(self, number: int, held: WindowRows) -> WindowRows:
        """What belongs to each entry is gathered first; then each place is a region of its own."""
        layer, (region,) = self.state.network.layers[number], self.regions
        lines = self.state.lines[number]
        assert isinstance(lines, UnitLines)

        def stacked() -> Tensor:
            drawn = (lines.lower_slope, lines.lower_offset, lines.upper_slope, lines.upper_offset)
            loss = self.state.losses[number][region]
            return torch.stack([*(line[region, 0] for line in drawn), loss, layer.offset])

        parts = held.around(stacked, number).reshape(len(held.entries), 6, -1)
        *drawn, loss, offset = parts.unbind(1)
        pulled = UnitLines(*(line[:, None] for line in drawn)).pulled(held.entries.flatten(2))
        assert pulled.rows is not None
        self._add_lines(pulled, held.terms)
        self._add_arguments(number, _along(pulled.rows, offset), _along(pulled.rows.abs(), loss))
        return replace(held, entries=pulled.rows.reshape(held.entries.shape))

    def _add_arguments(self, number: int, constants: Tensor, lost: Tensor) -> None:
        """The offsets of a layer's arguments, and what coefficients on them lose to rounding."""
        self._add_underflow(self.state.arguments[number])
        self.constants = self.constants + constants
        self.error = self.error + lost * LOSS_ROUND_UP

    def pull(self, number: int, rows: Tensor | WindowRows) -> None:
        layer = self.state.network.layers[number]
        if isinstance(rows, Tensor):  # of windows they were gathered with the lines
            loss = self.state.losses[number][self.regions][..., None]
            lost = (rows.abs() @ loss).squeeze(2)
            self._add_arguments(number, rows @ layer.offset, lost)
        self.pull_through(layer, rows)

    def pull_through(self, layer: Layer, rows: Tensor | WindowRows) -> None:
        """Rows on a layer's arguments become rows on the values that it reads."""
        for source, affine in layer.maps.items():
            added = rows.pulled(affine) if isinstance(rows, WindowRows) else affine.pulled(rows)
            if added is None:
                assert isinstance(rows, WindowRows)
                added = affine.pulled(rows.whole())
            self.put(source, added)

    def put(self, source: int, added: Tensor | WindowRows) -> None:
        """Coefficients that were pulled back to the values of a node."""
        known = self.coefficients.get(source)
        total = added if known is None else _sum(known, added)
        self.coefficients[source] = total
        terms = total.terms if isinstance(total, WindowRows) else total.shape[2]
        self.largest = max(self.largest, terms)
        self._add_underflow(self.state.values[source])

    def _add_underflow(self, values: Interval) -> None:
        """Coefficients on these were computed, and may have underflowed."""
        self.error = self.error + underflow(values)[self.regions]

    def proven_constants(self, size: Tensor, terms: int) -> Tensor:
        """The constants less all that is lost, the sum over the input's entries included."""
        return self.constants - self.error - slack(size, terms + self.sums)

    def proven(self) -> Tensor:
        """Lower bounds of the rows, which are on the input alone now."""
        supports = self.state.supports.taken(self.regions)
        on_input = self.coefficients.get(0)
        if on_input is None:
            return _finite(self.proven_constants(torch.zeros_like(self.constants), 0))
        if isinstance(on_input, WindowRows) and supports.centre is not None:
            on_input = on_input.whole()
        if isinstance(on_input, Tensor):
            least = supports.least(on_input)
            return _finite(
                self.proven_constants(least.size, self.state.network.inputs) + least.values
            )

        def stacked() -> Tensor:
            return torch.cat(supports.box.centred())

        parts = on_input.around(stacked, "input").reshape(len(on_input.entries), 2, -1)
        centre, radius = parts.unbind(1)
        entries = on_input.entries.flatten(2)
        magnitude = entries.abs()
        values = _along(entries, centre) - _along(magnitude, radius)
        size = _along(magnitude, centre.abs() + radius)
        return _finite(self.proven_constants(size, on_input.terms) + values)


def _along(rows: Tensor, values: Tensor) -> Tensor:
    """The sum of rows (places, rows, n) times values (places, n), as (1, places * rows)."""
    return torch.bmm(rows, values[..., None]).reshape(1, -1)


def _sum(first: Tensor | WindowRows, second: Tensor | WindowRows) -> Tensor | WindowRows:
    if isinstance(first, WindowRows) and isinstance(second, WindowRows):
        both = first.plus(second)
        if both is not None:
            return both
    whole = [held.whole() if isinstance(held, WindowRows) else held for held in (first, second)]
    return whole[0] + whole[1]


def _finite(values: Tensor) -> Tensor:
    """Nothing is known where a bound is not finite."""
    return torch.where(torch.isfinite(values), values, -torch.inf)


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


# Which units the looseness of a bound comes from.


@dataclass(frozen=True, slots=True, eq=False)
class UnitLosses:
    """Where a row is least, what each argument is there, and what lines around it cost the row.

    For each layer (regions, arguments); losses are None where its operator has no lines for single
    arguments. They are estimates, by which splits are chosen.
    """

    arguments: list[Tensor]
    losses: list[Tensor | None]


class _RecordedBackward(_NodeBackward):
    """Keeps the coefficients on the values of each layer."""

    def __init__(self, state: State, regions: Tensor, constants: Tensor, error: Tensor) -> None:
        super().__init__(state, regions, constants, error)
        self.on_layers: dict[int, Tensor] = {}

    def relaxed(self, number: int, rows: Tensor | WindowRows) -> Tensor | WindowRows | None:
        self.on_layers[number] = rows if isinstance(rows, Tensor) else rows.whole()
        return super().relaxed(number, rows)


def unit_losses(
    state: State,
    rows: LinearFunctions,
    choices: Choices | None = None,
    between: Mapping[int, Between] | None = None,
) -> UnitLosses:
    """Of one row on each region: the input that its bound is least at goes forward once, through
    the lines that the bound took."""
    descent = _RecordedBackward(state, rows.regions, rows.constants, rows.error)
    bounds = _lowered(descent, rows, choices, between)
    values = {0: bounds.points[:, 0]}
    arguments: list[Tensor] = []
    losses: list[Tensor | None] = []
    for number, layer in enumerate(state.network.layers):
        given = layer.offset.expand(len(rows.regions), -1)
        for source, affine in layer.maps.items():
            given = given + affine.pushed(values[source])
        known = state.arguments[number]
        given = given.clamp(known.low[rows.regions], known.high[rows.regions])
        exact = layer.operator(given.reshape(len(given), *layer.shape)).reshape(len(given), -1)
        held, lines = descent.on_layers.get(number), descent.used(number)
        on_values = torch.zeros_like(exact) if held is None else held[:, 0]
        on_lines = lines.attained(on_values, given)
        values[layer.node] = exact if on_lines is None else on_lines
        arguments.append(given)
        losses.append(lines.losses(on_values, given, exact))
    return UnitLosses(arguments, losses)


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
