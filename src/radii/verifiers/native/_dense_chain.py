"""Linear bounds over many boxes of inputs for a chain of dense layers of ReLU units.

The same bounds as CROWN's, for the networks that input splitting meets most, at a fraction of the
work. Going forward, each unit is an affine form (a zonotope, as in DeepZ, Singh et al. 2018): a
centre, a part for each input and one for each unit before it that may be on or off. That costs
little and settles most units. Where that nearly suffices, the others are bounded by a backward pass
as well, and both are intersected.

Our own rounding in inner layers is bounded without a look at the coefficients: slopes are at most
1, so what a sum before layer k is off counts at most |W| ... |W| times in a unit of a later layer.
Only the last rows, which proofs rest on, add up their own absolute values. What the network rounds
is millions of times as large, and goes through the same coefficients as what it is added to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds import (
    FUSED_ROUNDING,
    ROUND_UP,
    SMALLEST_NORMAL,
    Layer,
    LayeredNetwork,
    Rounding,
    RowsBackward,
    Supports,
    propagate,
)
from radii.networks import BOUND_EXTRA_TERMS, Interval, LogSoftmax, Relu, may_bend
from radii.verifiers.native._boxes import Boxes
from radii.verifiers.native._chain_units import ChainUnits, relu_lines
from radii.verifiers.native._cuts import CentredFunctions, Statement, centred_cut, known_only

FORMS_AT_ONCE = 1 << 20
"""How many coefficients the forms of one part of a batch may hold, most of which are not needed."""

DIFFERENCE_ROUNDING = 2.0**-40
"""What is left of a difference of two such sums may be off, relative to the sums, generously."""

MOST_UNITS = 4096
"""Of the whole network: beyond, a single box's forms would not fit the cache by far."""


@dataclass(frozen=True, slots=True, eq=False)
class ChainBounds:
    """For each box linear functions `slopes @ x + constants` below each row, rounding included.

    They are below the rows wherever a violation is; `is_proven` says that none is. `influence` is
    (boxes, inputs): how much of the looseness each input causes. `known` are the intervals of what
    the units of each layer read at violations.
    """

    slopes: Tensor
    constants: Tensor
    is_proven: Tensor
    influence: Tensor
    known: tuple[Interval, ...]


class DenseChain:
    """Layers of ReLU units, each reading only the one before it, in float64."""

    def __init__(
        self, layers: tuple[Layer, ...], output: Layer, values: Mapping[int, Interval]
    ) -> None:
        every = (*layers, output)
        self.weights = [_weight(layer) for layer in every]
        self.turned = [weight.t().contiguous() for weight in self.weights]
        self.magnitudes = [weight.abs() for weight in self.turned]
        self.offsets = [layer.offset for layer in every]
        self.depth = len(layers)
        self.inputs = self.weights[0].shape[1]
        self.widest = max(self.inputs, *(len(offset) for offset in self.offsets))
        self.units = sum(layer.size for layer in layers)
        terms = self.inputs + self.units + self.widest + self.depth + BOUND_EXTRA_TERMS
        self.share = 4 * (torch.finfo(torch.float64).eps * terms + FUSED_ROUNDING)
        """What one layer's arithmetic may be off, relative to the absolute values it adds up."""
        self.roundings = [_Roundings.of(layer, values) for layer in every]

    @classmethod
    def of(cls, network: LayeredNetwork, box: Interval) -> DenseChain | None:
        """The chain that a network is, for boxes within this one.

        None if it is none, or so large that this would not pay, or if something may overflow.
        """
        source = 0
        for layer in (*network.layers, network.output):
            is_dense = all(held.dense is not None for held in layer.maps.values())
            if set(layer.maps) != {source} or set(layer.rounding.stage.leaves) != {source}:
                return None
            if not is_dense:
                return None
            if layer is not network.output and not isinstance(layer.operator, Relu):
                return None
            source = layer.node
        units = sum(layer.size for layer in network.layers)
        if not network.layers or units > MOST_UNITS:
            return None
        with torch.no_grad():
            state = propagate(network, Supports(box), None)
            _, loss = network.output.arguments(state.values, state.errors)
            if not bool(torch.isfinite(loss).all()):
                return None
            return cls(network.layers, network.output, state.values)

    def bounds(
        self, boxes: Boxes, statement: Statement, poll: Callable[[], None], *, tight: bool
    ) -> ChainBounds:
        """Bounds of a statement's rows over each box; `poll` is called every few boxes.

        If they are to be `tight`, inner units are bounded by backward passes as well: as CROWN
        does, and at some three times the work.
        """
        order = self._bent_at_first(boxes).argsort()
        at_once = max(1, FORMS_AT_ONCE // (self.widest * (self.inputs + self.units)))
        parts = []
        for first in range(0, len(order), at_once):
            poll()
            index = order[first : first + at_once]
            parts.append(self._part(boxes.taken(index), statement, tight))
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        layers = zip(*(part.known for part in parts), strict=True)
        known = (
            [torch.cat(sides)[back] for sides in ([i.low for i in held], [i.high for i in held])]
            for held in layers
        )
        return ChainBounds(
            torch.cat([part.slopes for part in parts])[back],
            torch.cat([part.constants for part in parts])[back],
            torch.cat([part.is_proven for part in parts])[back],
            torch.cat([part.influence for part in parts])[back],
            tuple(Interval(low, high) for low, high in known),
        )

    def _bent_at_first(self, boxes: Boxes) -> Tensor:
        """How many units of the first layer may be on or off: boxes alike go together."""
        middle, reach = boxes.low / 2 + boxes.high / 2, boxes.high / 2 - boxes.low / 2
        centre, radius = middle @ self.turned[0] + self.offsets[0], reach @ self.magnitudes[0]
        return (centre.abs() < radius).sum(1)

    def _part(self, boxes: Boxes, statement: Statement, tight: bool) -> ChainBounds:
        low, high = boxes.low, boxes.high
        middle = low / 2 + high / 2
        reach = torch.maximum(high - middle, middle - low) * (1 + self.share)
        layers, influence = self._forward(boxes, middle, reach, tight)
        slopes, constants = self._last(layers, statement.rows, middle, reach)
        is_proven = torch.stack([(layer.least > layer.most).any(1) for layer in layers]).any(0)
        known = tuple(Interval(layer.least, layer.most) for layer in layers)
        found = ChainBounds(slopes, constants, is_proven, influence, known)
        if tight:
            self._narrow(found, layers, boxes, statement, middle, reach)
        return found

    def _narrow(
        self,
        found: ChainBounds,
        layers: list[ChainUnits],
        boxes: Boxes,
        statement: Statement,
        middle: Tensor,
        reach: Tensor,
    ) -> None:
        """Bound open boxes again, from what their units read where a violation may be."""
        cuts = statement.cuts(found.slopes, found.constants, boxes.low, boxes.high)
        mixtures = statement.weighed(cuts, boxes.low, boxes.high)
        is_closed = torch.stack([mixture.values > 0 for mixture in mixtures])
        left = (~(is_closed.all(0) | found.is_proven)).nonzero().squeeze(1)
        if len(left) == 0:
            return
        middle, reach = middle[left], reach[left]
        low, high = boxes.low[left], boxes.high[left]
        centred = [
            (centred_cut(mixture.taken(left), low, high, reach), closed[left])
            for mixture, closed in zip(mixtures, is_closed, strict=True)
        ]
        narrowed = [layer.taken(left).at_violations(centred) for layer in layers]
        found.slopes[left], found.constants[left] = self._last(
            narrowed, statement.rows, middle, reach
        )
        for interval, layer in zip(found.known, narrowed, strict=True):
            found.is_proven[left] |= (layer.least > layer.most).any(1)
            interval.low[left], interval.high[left] = layer.least, layer.most

    def _forward(
        self, boxes: Boxes, middle: Tensor, reach: Tensor, tight: bool
    ) -> tuple[list[ChainUnits], Tensor]:
        """All layers in turn, and how much of their looseness each input causes.

        `slack` is our own rounding; `drift` is what the network's, in this layer and in all before
        it, adds to the forms.
        """
        layers: list[ChainUnits] = []
        centre, forms = middle, torch.diag_embed(reach)
        size = middle.abs() + reach
        slack, drift = self.share * size, torch.zeros_like(size)
        influence = torch.zeros_like(middle)
        least, most = boxes.low, boxes.high
        largest, added = size, size.sum(1, keepdim=True)
        for number in range(self.depth):
            offset = self.offsets[number]
            centre = centre @ self.turned[number] + offset
            forms = forms @ self.turned[number]
            total = size @ self.magnitudes[number] + offset.abs()
            slack = slack @ self.magnitudes[number] + self.share * total
            slack = slack + SMALLEST_NORMAL * (1 + added)  # of coefficients that underflow
            error = self.roundings[number].at(largest)
            drift = drift @ self.magnitudes[number] + error
            by_inputs, by_units = forms[:, : self.inputs], forms[:, self.inputs :].abs().sum(1)
            shares = by_inputs.abs()
            radius = shares.sum(1) + by_units
            inner_least, inner_most = _interval_around(centre, radius + slack + drift)
            if number:  # the interval of each value alone can be narrower than its form
                least, most = self._by_intervals(number, least, most, slack + error)
                least, most = torch.maximum(least, inner_least), torch.minimum(most, inner_most)
            else:
                least, most = inner_least, inner_most
            if boxes.known is not None:
                least = torch.maximum(least, boxes.known[number].low)
                most = torch.minimum(most, boxes.known[number].high)
            places = _chosen_units(may_bend(least, most))
            if number and tight:
                functions = self._backward(layers, places, middle, reach, slack, error)
                count = places.shape[1]
                values = functions.constants - functions.slopes.abs().sum(2)
                below = torch.maximum(known_only(values[:, :count]), least.gather(1, places))
                above = torch.minimum(-known_only(values[:, count:]), most.gather(1, places))
                least, most = least.scatter(1, places, below), most.scatter(1, places, above)
            else:
                functions = self._by_forms(by_inputs, centre, by_units + slack + drift, places)
            lines = relu_lines(least, most)
            upper, rise = lines.upper_slope[:, 0], lines.upper_offset[:, 0]
            size = (centre.abs() + radius + slack + drift) * upper + rise
            layers.append(ChainUnits(least, most, lines, size, total, error, places, functions))
            added = added + (size + total).sum(1, keepdim=True)
            centre = centre * upper + rise / 2
            slack, drift = slack + self.share * size, drift * upper
            largest = torch.minimum(most.clamp_min(0), size)
            shares = shares / shares.sum(1, keepdim=True).clamp_min(1e-300)
            influence = influence + torch.bmm(shares, rise[..., None]).squeeze(2)
            forms = self._with_errors(forms * upper[:, None], rise / 2, may_bend(least, most))
        return layers, torch.where(torch.isfinite(influence), influence, 0.0)

    def _by_forms(
        self, by_inputs: Tensor, centre: Tensor, radius: Tensor, places: Tensor
    ) -> CentredFunctions:
        """The forms of some units as functions of the inputs below them, and below their negative.

        What a form reads besides inputs moves it by at most `radius`.
        """
        wanted = places[..., None].expand(-1, -1, self.inputs)
        slopes = by_inputs.transpose(1, 2).gather(1, wanted)
        inner, outer = centre.gather(1, places), radius.gather(1, places)
        return CentredFunctions(
            torch.cat([slopes, -slopes], 1), torch.cat([inner - outer, -inner - outer], 1)
        )

    def _by_intervals(
        self, number: int, least: Tensor, most: Tensor, error: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What units of a layer read, from what those of the layer before read, each for itself."""
        from_below, from_above = least.clamp_min(0), most.clamp_min(0)
        inner = (from_below / 2 + from_above / 2) @ self.turned[number] + self.offsets[number]
        outer = (from_above / 2 - from_below / 2) @ self.magnitudes[number]
        return _interval_around(inner, outer + error)

    def _with_errors(self, forms: Tensor, halves: Tensor, is_bent: Tensor) -> Tensor:
        """The forms, and one more part for each bent unit: half of what its lines are apart."""
        units = _chosen_units(is_bent)
        if units.shape[1] == 0:
            return forms
        own = torch.zeros(*units.shape, forms.shape[2], dtype=forms.dtype, device=forms.device)
        own.scatter_(2, units[..., None], halves.gather(1, units)[..., None])
        return torch.cat([forms, own], 1)

    def _backward(
        self,
        layers: list[ChainUnits],
        places: Tensor,
        middle: Tensor,
        reach: Tensor,
        slack: Tensor,
        error: Tensor,
    ) -> CentredFunctions:
        """Functions below what the chosen units of the next layer read, and below its negative."""
        number = len(layers)
        chosen, offset = self.weights[number][places], self.offsets[number][places]
        held, constants = torch.cat([chosen, -chosen], 1), torch.cat([offset, -offset], 1)
        lost = (slack + error).gather(1, places).repeat(1, 2)
        descent = _ChainBackward(self, layers, held, constants, lost)
        descent.run()
        constants = descent.constants + torch.bmm(descent.rows, middle[..., None]).squeeze(2)
        return CentredFunctions(descent.rows * reach[:, None], constants - descent.lost * ROUND_UP)

    def _last(
        self, layers: list[ChainUnits], rows: Tensor, middle: Tensor, reach: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Linear functions below the rows, with all that rounding can take from them."""
        count = len(middle)
        last = layers[-1].size @ self.magnitudes[-1] + self.offsets[-1].abs()
        largest = torch.minimum(layers[-1].most.clamp_min(0), layers[-1].size)
        descent = _ChainBackward(
            self,
            layers,
            (rows @ self.weights[-1]).expand(count, -1, -1),
            (rows @ self.offsets[-1]).expand(count, -1),
            self.roundings[-1].at(largest) @ rows.abs().t(),
            last @ rows.abs().t(),
        )
        descent.run()
        of_input = middle.abs() + reach
        reached = of_input.sum(1) + sum((units.size + units.total).sum(1) for units in layers)
        lost = descent.lost + SMALLEST_NORMAL * (1 + reached)[:, None]
        size = descent.size + torch.bmm(descent.rows.abs(), of_input[..., None]).squeeze(2)
        return descent.rows, descent.constants - self.share * size - lost * ROUND_UP


class _ChainBackward(RowsBackward[Tensor]):
    """Rows (boxes, rows, units) on the values of one layer, with constants (boxes, rows).

    `lost` is what the network rounds, and what the rows began with; `size`, where it is asked for,
    are the absolute values that the rows add up, of which our own rounding is a share.
    """

    def __init__(
        self,
        chain: DenseChain,
        layers: Sequence[ChainUnits],
        rows: Tensor,
        constants: Tensor,
        lost: Tensor,
        size: Tensor | None = None,
    ) -> None:
        self.chain, self.layers = chain, layers
        self.rows, self.constants, self.lost = rows, constants, lost
        self.has_size = size is not None
        self.size = torch.zeros_like(lost) if size is None else size

    @property
    def depth(self) -> int:
        return len(self.layers)

    def on_values(self, number: int) -> Tensor:
        return self.rows

    def relaxed(self, number: int, rows: Tensor) -> Tensor | None:
        units = self.layers[number]
        if self.has_size:
            self.size = self.size + torch.bmm(rows.abs(), units.size[..., None]).squeeze(2)
        pulled = units.lines.pulled(rows)
        self.constants = self.constants + pulled.constant
        return pulled.rows

    def pull(self, number: int, rows: Tensor) -> None:
        units = self.layers[number]
        both = [units.error, units.total] if self.has_size else [units.error]
        added = torch.bmm(rows.abs(), torch.stack(both, 2))
        self.lost = self.lost + added[..., 0]
        if self.has_size:
            self.size = self.size + added[..., 1]
        self.constants = self.constants + rows @ self.chain.offsets[number]
        self.rows = rows @ self.chain.weights[number]


@dataclass(frozen=True, slots=True, eq=False)
class _Roundings:
    """What the network rounds in computing a layer's arguments: affine in how large its values are.

    `shares` is (values, arguments), `constant` (arguments); no value is above `most`. A log-softmax
    behind the arguments rounds by the largest of them, which `reach` and `offset` bound.
    """

    shares: Tensor
    constant: Tensor
    most: Tensor
    reach: Tensor
    offset: Tensor
    rounding: Rounding

    @classmethod
    def of(cls, layer: Layer, values: Mapping[int, Interval]) -> _Roundings:
        """Read off the errors that values of size 0, and of size 1 one by one, make.

        What underflows counts with the largest of all values, which is not affine, and is the same
        for all sizes up to 1; what it is for the largest that there can be is made constant.
        """
        (source,) = layer.maps
        matrix, most = _weight(layer), values[source].magnitude[0]
        inner = replace(layer.rounding, behind=None)
        none = torch.zeros(1, len(most), dtype=most.dtype, device=most.device)
        ends = torch.cat([none, torch.diag(torch.ones_like(most)), most[None]])
        found = inner.of({source: Interval(-ends, ends)}, {}).to(layer.offset)
        least, each, whole = found[0], found[1:-1] - found[:1], found[-1]
        missing = (whole * (1 + DIFFERENCE_ROUNDING) - (most @ each + least)).clamp_min(0)
        shares = each * ROUND_UP + DIFFERENCE_ROUNDING * least
        constant = (least + missing) * ROUND_UP
        return cls(shares, constant, most, matrix.abs().t(), layer.offset.abs(), layer.rounding)

    def at(self, largest: Tensor) -> Tensor:
        """For values up to these, (boxes, values)."""
        sizes = torch.minimum(largest, self.most)
        error = sizes @ self.shares + self.constant
        if not isinstance(self.rounding.behind, LogSoftmax):
            return error
        reached = (sizes @ self.reach + self.offset) * ROUND_UP + error
        return error + self.rounding.errors.of_logarithms(reached) * ROUND_UP


def _weight(layer: Layer) -> Tensor:
    """The matrix of a layer that reads one value."""
    (held,) = layer.maps.values()
    assert held.dense is not None
    return held.dense


def _chosen_units(chosen: Tensor) -> Tensor:
    """The numbers of the chosen units of each box, filled up with others to equally many."""
    most = int(chosen.sum(1).amax())
    return chosen.to(torch.int8).argsort(1, descending=True)[:, :most]


def _interval_around(centre: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of an interval, as far as they are known."""
    return known_only(centre - radius), -known_only(-centre - radius)
