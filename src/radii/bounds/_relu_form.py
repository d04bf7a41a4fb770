"""A graph reduced to its nonlinear nodes and affine maps; and as layers of ReLU units.

Between two nonlinear nodes a network is affine, whatever operators do it: normalisation, residual
sums, convolutions, reshapes. One linear map for each pair replaces them (`fuse`), put together of
what the operators say of themselves, and with their structure: a convolution stays one.

A piecewise-linear network is then brought to layers of ReLU units that are affine in what lies
before them (`relu_form`). A leaky ReLU is a line plus a ReLU, a clip two of them, a maximum a chain
of them, since max(a, b) = b + max(0, a - b). So one relaxation, one way to split and one proof
serve every piecewise-linear operator. The values that units read are columns, in this order: the
flattened input, the constant 1, and the outputs of all units of earlier layers.

What the network rounds is known for each argument of its own stages. The form says how that reaches
its units and values: a unit reads one argument, or the difference of two; a value is a sum of units
alone, or of units and a multiple of an argument, whose error it then has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, hstack, identity

from radii.errors import UnsupportedQuery
from radii.networks import (
    Graph,
    Hinges,
    LinearMap,
    Network,
    NumberType,
    Operator,
    OperatorKind,
    ScaleMap,
    composed,
    summed,
)

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What one node reads: `sum of maps[i] of the value of node i, flattened, + offset`.

    The i are the input (node 0) and earlier nonlinear nodes. `node` is the nonlinear node that
    reads it, or the graph's output; `source` is the node whose value it is. `leaves` are all nodes
    that it is affine in, also those whose map is 0, and `between` the affine nodes that compute it.
    """

    node: int
    source: int
    operator: Operator
    shape: tuple[int, ...]
    maps: dict[int, LinearMap]
    offset: Float64
    leaves: tuple[int, ...]
    between: tuple[int, ...]

    @property
    def matrices(self) -> dict[int, csr_array]:
        """The maps as matrices, made on first use."""
        return {source: held.matrix() for source, held in self.maps.items()}

    @property
    def rounded(self) -> int:
        """How often entries of the maps, or of their matrices, were rounded at most."""
        return max((held.rounded for held in self.maps.values()), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """The stages of all nonlinear nodes that the output depends on, in order, and the output.

    `number` is the type that the file computes in: the narrowest, where it has several. `behind` is
    a final (log-)softmax that was left out: what it rounds counts with the output.
    """

    graph: Graph
    stages: tuple[Stage, ...]
    output: Stage
    number: NumberType
    behind: Operator | None = None

    @property
    def units(self) -> int:
        """How many nonlinear units there are."""
        return sum(self.graph.nodes[stage.node].size for stage in self.stages)


def fuse(network: Network) -> Fusion:
    """The fusion of a network, made once."""
    return network.memo.get(fuse, lambda: _fused(network))


def _fused(network: Network) -> Fusion:
    return fuse_graph(network.graph.in_dtype(torch.float64), NumberType.of(network.computed_in))


def fuse_graph(graph: Graph, number: NumberType) -> Fusion:
    needed = _ancestors(graph, graph.output)
    nonlinear = [i for i in needed if graph.nodes[i].kind is not OperatorKind.AFFINE]
    stages = []
    for index in nonlinear:
        if len(graph.nodes[index].inputs) != 1:
            raise UnsupportedQuery(
                f"node '{graph.nodes[index].name}' is nonlinear in several values: not decided"
            )
        stages.append(_stage(graph, index, graph.nodes[index].inputs[0]))
    return Fusion(graph, tuple(stages), _stage(graph, graph.output, graph.output), number)


def _ancestors(graph: Graph, target: int) -> list[int]:
    """The nodes that the target's value depends on, itself included, in order."""
    needed = {target}
    for index in range(target, -1, -1):
        if index in needed:
            needed.update(graph.nodes[index].inputs)
    return sorted(needed)


def _stage(graph: Graph, node: int, source: int) -> Stage:
    leaves, between = _affine_part(graph, source)
    maps = _maps(graph, leaves, between, source)
    return Stage(
        node=node,
        source=source,
        operator=graph.nodes[node].operator,
        shape=graph.nodes[source].shape,
        maps={leaf: maps[leaf] for leaf in leaves if not maps[leaf].is_zero},
        offset=_offset(graph, leaves, between, source),
        leaves=tuple(leaves),
        between=tuple(between),
    )


def _affine_part(graph: Graph, source: int) -> tuple[list[int], list[int]]:
    """The input and nonlinear nodes the source is affine in, and the affine nodes in between."""
    leaves, between, waiting = set(), set(), [source]
    while waiting:
        index = waiting.pop()
        if index == 0 or graph.nodes[index].kind is not OperatorKind.AFFINE:
            leaves.add(index)
        elif index not in between:
            between.add(index)
            waiting.extend(graph.nodes[index].inputs)
    return sorted(leaves), sorted(between)


def _maps(
    graph: Graph, leaves: Sequence[int], between: Sequence[int], source: int
) -> dict[int, LinearMap]:
    """The map of each leaf to the source: what its readers are mapped by, one after another."""
    behind: dict[int, list[LinearMap]] = {index: [] for index in (*leaves, *between)}
    behind[source].append(ScaleMap.identity(graph.nodes[source].size))
    for index in reversed(between):
        node = graph.nodes[index]
        onward = summed(*behind.pop(index))
        own = node.operator.linear_maps(*(graph.nodes[i].shape for i in node.inputs))
        for i, held in zip(node.inputs, own, strict=True):
            behind[i].append(composed(held, onward))
    return {leaf: summed(*behind[leaf]) for leaf in leaves}


def _offset(graph: Graph, leaves: Sequence[int], between: Sequence[int], source: int) -> Float64:
    """The source's value where every leaf is 0, as the operators compute it in float64.

    That rounds once for every term that `FloatErrors` counts, relative to the absolute values that
    are added up there: what `FUSING_ROUNDING` grants.
    """
    values = {
        leaf: torch.zeros((1, *graph.nodes[leaf].shape), dtype=torch.float64) for leaf in leaves
    }
    with torch.no_grad():
        for index in between:
            node = graph.nodes[index]
            values[index] = node.operator(*(values[i] for i in node.inputs))
    return np.asarray(values[source].flatten().numpy())


Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Entry i of the result is the largest of the input's entries `candidates[i]`."""

    candidates: tuple[npt.NDArray[np.int64], ...]


def hinges_of(operator: Operator, shape: tuple[int, ...], result: tuple[int, ...]) -> Hinges | None:
    """The operator as hinges, from the shapes of its input and its result; None if it is a maximum.

    Raises UnsupportedQuery for an operator that is not piecewise linear.
    """
    if operator.kind is not OperatorKind.PIECEWISE_LINEAR:
        raise UnsupportedQuery(f"operator '{type(operator).__name__}' is not piecewise linear")
    return operator.hinges(shape, result)


def windows_of(operator: Operator, shape: tuple[int, ...]) -> Windows:
    """For each entry of the result the entries of the flattened input it is the largest of."""
    candidates = operator.candidates(shape)
    if candidates is None:
        raise UnsupportedQuery(
            f"operator '{type(operator).__name__}' states neither its hinges nor its windows"
        )
    return Windows(tuple(np.unique(place[place >= 0]) for place in candidates.numpy()))


@dataclass(frozen=True, slots=True, eq=False)
class StageUnits:
    """The units of one stage of the network.

    `layers` are numbers of layers of the form, and `reads` says for each of them which arguments of
    the stage its units read, all of whose errors a unit has. Entry i of the stage's value is
    `value[i]` over the columns, up to `share[i]` times the error of argument `passed[i]`.
    """

    stage: Stage
    layers: tuple[int, ...]
    reads: tuple[tuple[Integers, ...], ...]
    value: csr_array
    passed: Integers
    share: Float64


@dataclass(frozen=True, slots=True, eq=False)
class ReluForm:
    """Unit i of layer k outputs max(0, layers[k][i] @ columns); `output` is affine in all columns.

    `layers[k]` has a column for the input, the constant 1 and every unit of layers 0 to k - 1. The
    output is what the stage `end` of the fusion reads.
    """

    fusion: Fusion
    inputs: int
    layers: tuple[csr_array, ...]
    output: csr_array
    stages: tuple[StageUnits, ...]
    end: Stage

    @property
    def units(self) -> int:
        return sum(layer.shape[0] for layer in self.layers)


def relu_form(fusion: Fusion) -> ReluForm:
    """The ReLU form of a fused network. Raises UnsupportedQuery if it is not piecewise linear."""
    return _Builder(fusion).build()


class _Builder:
    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.inputs = fusion.graph.nodes[0].size
        self.width = self.inputs + 1
        self.layers: list[csr_array] = []
        passed = hstack([identity(self.inputs), csr_array((self.inputs, 1))])
        self.values: dict[int, csr_array] = {0: csr_array(passed)}

    def build(self) -> ReluForm:
        stages = []
        for stage in self.fusion.stages:
            argument = self.affine(stage)
            result = self.fusion.graph.nodes[stage.node].shape
            hinges = hinges_of(stage.operator, stage.shape, result)
            if hinges is None:
                units = self.maxima(stage, argument)
            else:
                units = self.hinges(stage, hinges, argument)
            self.values[stage.node] = units.value
            stages.append(units)
        last = self.fusion.output
        return ReluForm(
            self.fusion,
            self.inputs,
            tuple(self.layers),
            self.affine(last),
            tuple(stages),
            last,
        )

    def affine(self, stage: Stage) -> csr_array:
        """What the stage reads, as rows over the columns there are."""
        rows = self.constant(stage.offset)
        for source, matrix in stage.matrices.items():
            rows = rows + matrix @ self.padded(self.values[source])
        return csr_array(rows)

    def hinges(self, stage: Stage, hinges: Hinges, argument: csr_array) -> StageUnits:
        read = argument[hinges.sources]
        value = _scaled(read, hinges.slope) + self.constant(hinges.offset)
        first, reads = len(self.layers), []
        for knee, change in zip(hinges.knee, hinges.change, strict=True):
            bends = np.flatnonzero(change)
            reads.append((hinges.sources[bends],))
            units = self.add_layer(csr_array(self.padded(read)[bends] - self.constant(knee[bends])))
            spread = csr_array(
                (change[bends], (bends, np.arange(len(bends)))), shape=(len(change), len(bends))
            )
            value = self.padded(value) + spread @ units
        layers = tuple(range(first, len(self.layers)))
        rows = csr_array(self.padded(value))
        passed = hinges.sources.copy()
        return StageUnits(stage, layers, tuple(reads), rows, passed, abs(hinges.slope))

    def maxima(self, stage: Stage, argument: csr_array) -> StageUnits:
        windows = windows_of(stage.operator, stage.shape).candidates
        winner = np.array([window[0] for window in windows])
        value = csr_array(argument[winner])
        first, reads = len(self.layers), []
        for place in range(1, max(len(window) for window in windows)):
            open_rows = np.array([i for i, window in enumerate(windows) if len(window) > place])
            rivals = np.array([windows[i][place] for i in open_rows])
            reads.append((rivals, winner[open_rows]))
            rival = self.padded(argument)[rivals]
            units = self.add_layer(csr_array(rival - self.padded(value)[open_rows]))
            spread = csr_array(
                (np.ones(len(open_rows)), (open_rows, np.arange(len(open_rows)))),
                shape=(len(windows), len(open_rows)),
            )
            value = csr_array(self.padded(value) + spread @ units)
        layers = tuple(range(first, len(self.layers)))
        return StageUnits(stage, layers, tuple(reads), value, winner, np.ones(len(winner)))

    def add_layer(self, rows: csr_array) -> csr_array:
        """A layer of units; returns their outputs as rows over the columns there are now."""
        count = rows.shape[0]
        self.layers.append(rows)
        before = self.width
        self.width += count
        return csr_array(
            (np.ones(count), (np.arange(count), before + np.arange(count))),
            shape=(count, self.width),
        )

    def padded(self, rows: csr_array) -> csr_array:
        shape = (rows.shape[0], self.width)
        return csr_array((rows.data, rows.indices, rows.indptr), shape=shape)

    def constant(self, values: Float64) -> csr_array:
        count = len(values)
        columns = np.full(count, self.inputs)
        return csr_array((values, (np.arange(count), columns)), shape=(count, self.width))


def _scaled(rows: csr_array, factors: Float64) -> csr_array:
    scaled = csr_array(rows, copy=True)
    scaled.data = scaled.data * np.repeat(factors, np.diff(scaled.indptr))
    return scaled
