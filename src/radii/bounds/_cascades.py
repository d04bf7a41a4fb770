"""Maxima as cascades of ReLU units: max(a, b) = a + max(0, b - a).

The entries of a window meet in pairs, the larger ones of two pairs meet again, and so on, all
windows of a layer at once. What the units of a round read is the difference of two maxima: an entry
of the window for each, and units of earlier rounds. So every round is a layer of ReLU units whose
maps are convolutions with one entry for each entry of the window, and whatever is known of ReLU
behind convolutions (windows, float32 first, trees on maps, splits) holds for maxima as well.

A ReLU in front of a maximum or behind it comes last in either case, max(relu(z_i)) =
relu(max(z_i)), which leaves one unit in place of one for each entry.

The runtime computes none of these differences: a maximum is exact. The floats that it reads are
values of a stage of their own (`HeldValues`), whose arguments have the errors of the network; from
there on to the maximum everything is a statement about real numbers, with no error at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from torch import Tensor

from radii.bounds._relu_form import Fusion, fuse, fuse_graph
from radii.networks import (
    ConvolutionMap,
    Graph,
    Hinges,
    Interval,
    LinearMap,
    MaxPool,
    Network,
    Node,
    NumberType,
    Operator,
    OperatorKind,
    Relu,
    SparseMap,
    Window,
)

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """The largest of some entries of a window: the first of them, plus units (round, number)."""

    entries: tuple[int, ...]
    units: tuple[tuple[int, int], ...] = ()


_Pair = tuple[_Side, _Side]


def _rounds(size: int) -> tuple[list[list[_Pair]], _Side]:
    """Who meets whom in each round, for windows of this size, and the largest of all."""
    left = [_Side((entry,)) for entry in range(size)]
    rounds: list[list[_Pair]] = []
    while len(left) > 1:
        pairs = list(zip(left[::2], left[1::2], strict=False))
        winners = [
            _Side(first.entries + second.entries, (*first.units, (len(rounds), number)))
            for number, (first, second) in enumerate(pairs)
        ]
        rounds.append(pairs)
        left = winners + left[2 * len(pairs) :]
    return rounds, left[0]


class PoolEntries:
    """The entries of all windows of a MaxPool of values (N, C, *sizes).

    `is_rectified` says that a ReLU follows the maximum, so that it counts from 0 on only. Padding
    is 0 where that never wins wrongly (`takes_zeros`); elsewhere another entry of the same window
    stands for it, by an index of its own.
    """

    def __init__(
        self, pool: MaxPool, shape: Shape, *, is_rectified: bool, takes_zeros: bool
    ) -> None:
        self.window, self.shape = pool.window, shape
        self.result = pool.result_shape(shape)
        self.is_rectified = is_rectified
        self.is_convolution = takes_zeros or not self.repeats
        self._pool = pool

    def __deepcopy__(self, _: object) -> PoolEntries:
        return self  # nothing in it changes

    @property
    def images(self) -> int:
        """Channels of all values: each is an image of its own."""
        return math.prod(self.shape[:2])

    @property
    def size(self) -> int:
        """Of one window."""
        return math.prod(self.window.kernel)

    @property
    def repeats(self) -> bool:
        """Padding makes some entries of a window the same."""
        return any(max(pair) > 0 for pair in self.window.pads)

    @cached_property
    def places(self) -> Tensor:
        """(results, size): entries of the flattened value; -1 stands for 0."""
        places = self._pool.candidates(self.shape)
        if self.is_convolution:
            return places
        first = places.gather(1, (places >= 0).to(torch.int8).argmax(1, keepdim=True))
        return torch.where(places >= 0, places, first)

    def of(self, values: Tensor) -> Tensor:
        """Values (regions, entries) in windows: (regions, results, size)."""
        places = self.places.to(values.device)
        found = values[:, places.clamp_min(0)]
        return torch.where(places >= 0, found, 0.0) if bool((places < 0).any()) else found

    def loose(self, arguments: Interval) -> Tensor:
        """(regions, entries): where tighter bounds may decide which entry is the largest.

        That is for entries that may be, of windows in which several may be or, with a ReLU behind
        them, whose largest may have either sign.
        """
        low, high = self.of(arguments.low), self.of(arguments.high)
        most = low.amax(2, keepdim=True)
        if self.is_rectified:
            most = most.clamp_min(0)
        may_win = high > most
        is_open = may_win.sum(2, keepdim=True) > 1
        if self.is_rectified:
            is_open = is_open | (low.amax(2, keepdim=True) < 0)
        marks = arguments.low.new_zeros(arguments.low.shape)
        asked = (may_win & is_open & (self.places >= 0)).flatten(1).to(marks.dtype)
        return marks.index_add(1, self.places.clamp_min(0).flatten(), asked) > 0

    def on_entries(self, weights: Tensor) -> LinearMap:
        """Sums of the entries of each window with weights (rows, size), all rows of an image
        behind one another."""
        if self.is_convolution:
            kernel = weights.reshape(len(weights), 1, *self.window.kernel)
            return ConvolutionMap(kernel, self.shape[2:], window=self.window, batch=self.images)
        spots = math.prod(self.result[2:])
        images = self.places.reshape(self.images, spots, self.size)
        found = []
        for row, entry in weights.nonzero().tolist():
            first = (torch.arange(self.images)[:, None] * len(weights) + row) * spots
            rows = first + torch.arange(spots)
            factor = np.full(rows.numel(), float(weights[row, entry]))
            found.append((rows.flatten().numpy(), images[..., entry].flatten().numpy(), factor))
        rows, columns, factors = (np.concatenate(part) for part in zip(*found, strict=True))
        outputs = self.images * len(weights) * spots
        entries = coo_array((factors, (rows, columns)), shape=(outputs, math.prod(self.shape)))
        return SparseMap(csr_array(entries))

    def on_units(self, weights: Tensor) -> LinearMap:
        """Sums of the units of each window with weights (rows, units)."""
        axes = len(self.window.kernel)
        ones = (1,) * axes
        kernel = weights.reshape(*weights.shape, *ones)
        point = Window(ones, ones, ones, ((0, 0),) * axes)
        return ConvolutionMap(kernel, self.result[2:], window=point, batch=self.images)


class HeldValues(Operator):
    """A value as it is, as a layer of its own: what a maximum reads, or gives.

    `read_by` are the windows of the maximum that reads it.
    """

    kind = OperatorKind.PIECEWISE_LINEAR
    inserts_constants = False

    def __init__(self, read_by: PoolEntries | None = None) -> None:
        super().__init__()
        self.read_by = read_by

    def forward(self, x: Tensor) -> Tensor:
        return x

    def enclosure(self, *inputs: Interval) -> Interval:
        return inputs[0]

    def value_error(self, *_: object) -> None:
        return None

    def hinges(self, shape: Shape, result: Shape) -> Hinges:
        count = math.prod(shape)
        none = np.zeros((0, count))
        return Hinges(np.arange(count), np.ones(count), np.zeros(count), none, none)


class WindowComparison(Operator):
    """Differences of maxima over two parts of each window; or, without a first part, a maximum.

    Its inputs are the values that are pooled, and the units of those earlier rounds that it reads.
    No runtime computes it: it rounds nothing.
    """

    is_exact = True

    def __init__(
        self,
        entries: PoolEntries,
        pairs: Sequence[tuple[_Side | None, _Side]],
        weights: Sequence[Tensor],
    ) -> None:
        super().__init__()
        self.entries = entries
        self.pairs = tuple(pairs)
        self.weights = tuple(weights)

    def result_shape(self, *shapes: Shape) -> Shape:
        batch, channels, *sizes = self.entries.result
        return (batch, channels * len(self.pairs), *sizes)

    def forward(self, *values: Tensor) -> Tensor:
        maps = [held.to(values[0].dtype, values[0].device) for held in self._maps]
        parts = [held.pushed(x.flatten(1)) for held, x in zip(maps, values, strict=True)]
        return torch.stack(parts).sum(0).reshape(-1, *self.result_shape())

    @cached_property
    def _maps(self) -> tuple[LinearMap, ...]:
        on_entries, *on_units = self.weights
        units = (self.entries.on_units(held) for held in on_units)
        return (self.entries.on_entries(on_entries), *units)

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        return self._maps

    def make_magnitude(self) -> Operator:
        return WindowComparison(self.entries, self.pairs, [held.abs() for held in self.weights])

    def make_linear_part(self) -> Operator:
        return self.make_magnitude()

    def enclosure(self, *inputs: Interval) -> Interval:
        return self._affine_enclosure(*inputs)

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return max(int((torch.cat(self.weights, 1) != 0).sum(1).max()), 1)

    def within(self, values: Interval) -> Interval:
        """What it is between by the pooled values (regions, entries) alone, flattened: the units
        that it reads are those of the cascade."""
        low, high = self.entries.of(values.low), self.entries.of(values.high)
        sides = []
        for first, second in self.pairs:
            least, most = _largest(low, second), _largest(high, second)
            if first is not None:
                held = Interval(least - _largest(high, first), most - _largest(low, first))
                held = held.widened(1).without_nan()
                held = self._ordered(first, second, held, low, high)
                least, most = held.low, held.high
            sides.append((least, most))
        return Interval(*(self._joined(list(side)) for side in zip(*sides, strict=True)))

    def _ordered(
        self, first: _Side, second: _Side, held: Interval, low: Tensor, high: Tensor
    ) -> Interval:
        """A part is never larger if each of its entries is in the other one, or never above it.

        Without this, comparisons of padding with padding, 0 up to rounding, would be open units,
        each of which doubles a tree and closes nothing. `low` and `high` are those of entries.
        """
        own, theirs = list(first.entries), list(second.entries)
        is_below = high[..., theirs] <= _largest(low, first)[..., None]
        is_above = high[..., own] <= _largest(low, second)[..., None]
        if self.entries.repeats:
            places = self.entries.places.to(high.device)
            is_same = places[:, own][:, :, None] == places[:, theirs][:, None, :]
            is_below, is_above = is_below | is_same.any(1), is_above | is_same.any(2)
        return Interval(
            torch.where(is_above.all(2), held.low.clamp_min(0), held.low),
            torch.where(is_below.all(2), held.high.clamp_max(0), held.high),
        )

    def matters(self, values: Interval) -> Tensor:
        """(regions, results): where either part may hold the largest entry of its window."""
        low, high = self.entries.of(values.low), self.entries.of(values.high)
        found = []
        for first, second in self.pairs:
            own = second.entries if first is None else first.entries + second.entries
            others = [entry for entry in range(self.entries.size) if entry not in own]
            most = high[..., list(own)].amax(2)
            matters = torch.ones_like(most, dtype=torch.bool)
            if others:
                matters = most > low[..., others].amax(2)
            found.append(matters & (most > 0) if self.entries.is_rectified else matters)
        return self._joined(found)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        """A row (regions, results) for each pair, as this operator's results."""
        stacked = torch.stack([part.reshape(len(part), self.entries.images, -1) for part in parts])
        return stacked.permute(1, 2, 0, 3).reshape(len(parts[0]), -1)


def _largest(values: Tensor, side: _Side) -> Tensor:
    return values[..., list(side.entries)].amax(2)


def _weights(pairs: Sequence[tuple[_Side | None, _Side]], counts: Sequence[int]) -> list[Tensor]:
    """Of each pair's difference: on the window's entries, and on the units of each round."""
    found = [torch.zeros(len(pairs), count, dtype=torch.float64) for count in counts]
    for row, pair in enumerate(pairs):
        for side, sign in zip(pair, (-1.0, 1.0), strict=True):
            if side is None:
                continue
            found[0][row, side.entries[0]] += sign
            for number, unit in side.units:
                found[1 + number][row, unit] += sign
    return found


class _Rewriting:
    """A graph with its maxima replaced, node by node."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.consumers = graph.consumers
        self.nodes: list[Node] = []
        self.place: dict[int, int] = {}

    def run(self) -> Graph:
        for index, node in enumerate(self.graph.nodes):
            behind = node.inputs[0] if node.inputs else -1
            if isinstance(node.operator, MaxPool):
                self.place[index] = self.cascade(index, node)
            elif isinstance(node.operator, Relu) and self.is_rectified_by(behind, index):
                self.place[index] = self.place[behind]
            else:
                inputs = tuple(self.place[i] for i in node.inputs)
                self.place[index] = self.add(node.name, node.operator, inputs, node.shape)
        graph = Graph(self.nodes, self.place[self.graph.output])
        graph.rounded_constants = self.graph.rounded_constants
        return graph

    def add(self, name: str, operator: Operator, inputs: tuple[int, ...], shape: Shape) -> int:
        self.nodes.append(Node(name, operator, inputs, shape))
        return len(self.nodes) - 1

    def is_rectified_by(self, pool: int, reader: int) -> bool:
        """Nothing but this ReLU reads the maximum."""
        is_pool = pool >= 0 and isinstance(self.graph.nodes[pool].operator, MaxPool)
        return is_pool and pool != self.graph.output and self.consumers[pool] == (reader,)

    def is_relu(self, index: int) -> bool:
        return isinstance(self.graph.nodes[index].operator, Relu)

    def cascade(self, index: int, node: Node) -> int:
        """The nodes of one maximum; the last one has its values."""
        (source,) = node.inputs
        is_behind = self.is_relu(source)
        is_swapped = is_behind and self.consumers[source] == (index,)
        readers = self.consumers[index]
        is_ahead = len(readers) == 1 and self.is_relu(readers[0])
        is_rectified = is_swapped or (is_ahead and self.is_rectified_by(index, readers[0]))
        if is_swapped and source != self.graph.output:
            (source,) = self.graph.nodes[source].inputs
        assert isinstance(node.operator, MaxPool)
        entries = PoolEntries(
            node.operator,
            self.graph.nodes[source].shape,
            is_rectified=is_rectified,
            takes_zeros=is_rectified or is_behind,
        )
        read = self.held(self.place[source], entries, node.name)
        rounds, winner = _rounds(entries.size)
        counts, earlier = [entries.size], [read]
        for pairs in rounds:
            units = self.compared(entries, pairs, counts, earlier, node.name)
            earlier.append(self.add(node.name, Relu(), (units,), self.nodes[units].shape))
            counts.append(len(pairs))
        largest = self.compared(entries, [(None, winner)], counts, earlier, node.name)
        last = Relu() if is_rectified else HeldValues()
        return self.add(node.name, last, (largest,), node.shape)

    def held(self, source: int, entries: PoolEntries, name: str) -> int:
        """The pooled values as a nonlinear node, unless they are one already, or the input."""
        node = self.nodes[source]
        if source == 0 or node.kind is not OperatorKind.AFFINE:
            return source
        return self.add(name, HeldValues(entries), (source,), node.shape)

    def compared(
        self,
        entries: PoolEntries,
        pairs: Sequence[tuple[_Side | None, _Side]],
        counts: Sequence[int],
        earlier: Sequence[int],
        name: str,
    ) -> int:
        on_entries, *on_units = _weights(pairs, counts)
        used = [number for number, held in enumerate(on_units) if bool(held.any())]
        weights = [on_entries, *(on_units[number] for number in used)]
        operator = WindowComparison(entries, pairs, weights)
        inputs = (earlier[0], *(earlier[1 + number] for number in used))
        return self.add(name, operator, inputs, operator.result_shape())


def fuse_cascades(network: Network) -> Fusion:
    """As `fuse`, with cascades of ReLU units for maxima; the very same where there are none."""
    fusion = fuse(network)
    if not any(isinstance(stage.operator, MaxPool) for stage in fusion.stages):
        return fusion
    return network.memo.get(fuse_cascades, lambda: _with_cascades(network))


def _with_cascades(network: Network) -> Fusion:
    graph = _Rewriting(network.graph.in_dtype(torch.float64)).run()
    return fuse_graph(graph, NumberType.of(network.computed_in))
