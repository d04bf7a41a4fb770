"""A fused network in one number type on one device: dense or sparse maps between its layers."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds._cascades import HeldValues, WindowComparison
from radii.bounds._float_errors import LOST_TO_UNDERFLOW, FloatErrors
from radii.bounds._relu_form import Fusion, Stage
from radii.networks import (
    BOUND_EXTRA_TERMS,
    ComposedMap,
    Hinges,
    Interval,
    LinearMap,
    MatrixMap,
    Operator,
    SelectionMap,
    SparseMap,
    SumMap,
    composed,
)
from radii.problem import FLOAT, Arithmetic

DENSE_ENTRIES = 1 << 16
"""Matrices up to this size are dense: 0.5 MB in float64."""

DENSE_SHARE = {torch.float64: 0.25, torch.float32: 0.7}
"""Larger ones as well, if the structured map does this share of their multiplications: on a CPU
matrix products do 36 and 70 GFLOP/s, convolutions of 16 channels and more 9 and 50 to 90."""

FLOAT32_FIRST_UNITS = 2000
"""From so many units on, those that float32 settles are not bounded in float64."""

LARGEST_SINGLE = 1 << 16
"""Up to so many entries, sums of losses in float32 are rounded by less than is granted for them."""

COMPOSED_WORK = 1 << 22
"""Several maps in a row or side by side become one sparse matrix, if it is smaller than they are;
that is looked at for maps up to this many multiplications."""


ERROR_ROUNDINGS = 16
"""How often an error of the network is rounded, generously, before it is a bound's."""

FUSED_ROUNDING = 2.0**-40
"""What entries of fused maps may be off, relative to what was added up for them, in float64."""


def slack(size: Tensor, terms: int) -> Tensor:
    """How far sums over fused maps may be off, given the sum of absolute values they add up."""
    rounding = torch.finfo(size.dtype).eps * (terms + BOUND_EXTRA_TERMS) + FUSED_ROUNDING
    return size * rounding + LOST_TO_UNDERFLOW[size.dtype]


def underflow(values: Interval) -> Tensor:
    """What coefficients on values (regions, n) that underflow may change of a row: (regions, 1).

    A sum of products is off by half of the smallest subnormal number for each of them, which is
    less than the smallest normal one for millions; in float32 that times a large value counts.
    """
    return (values.magnitude * torch.finfo(values.low.dtype).tiny).sum(1, keepdim=True)


def prepared(held: LinearMap, dtype: torch.dtype, device: torch.device | str = "cpu") -> LinearMap:
    """A map in a number type on a device, in the form that is fastest there; made once."""
    key = prepared, dtype, torch.device(device)
    return held.memo.get(key, lambda: _fastest(held, DENSE_SHARE[dtype]).to(dtype, device))


def _fastest(held: LinearMap, dense_share: float) -> LinearMap:
    """A matrix where that is small, or little larger than what it replaces."""
    entries = held.inputs * held.outputs
    if held.dense is not None:
        return held
    if entries <= max(DENSE_ENTRIES, held.work / dense_share):
        return MatrixMap(torch.from_numpy(held.matrix().toarray()), rounded=held.rounded)
    if isinstance(held, ComposedMap | SumMap) and held.work <= COMPOSED_WORK:
        # Besides, the absolute values of a product are smaller than the product of theirs.
        matrix = held.matrix()
        if matrix.nnz <= held.work:
            return SparseMap(matrix, rounded=held.rounded)
    return held


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """What one nonlinear node (or the output) reads: the sum of maps of earlier values + offset.

    For an operator that acts entry by entry, every entry of the result has an argument of its own,
    whatever it broadcasts; `hinges` describes it where it is piecewise linear. `compared` is the
    comparison of entries of windows that it reads, and the node of those, in a cascade of maxima.
    """

    node: int
    operator: Operator
    shape: tuple[int, ...]
    maps: dict[int, LinearMap]
    offset: Tensor
    rounding: Rounding
    hinges: Hinges | None = None
    compared: tuple[WindowComparison, int] | None = None

    @property
    def size(self) -> int:
        """How many arguments there are."""
        return self.offset.numel()

    @property
    def terms(self) -> int:
        """The most products that are summed up for one argument, or for one coefficient that is
        pulled through the layer's maps."""
        return sum(held.terms + 1 for held in self.maps.values()) + self.rounding.depth

    @property
    def reads_input_only(self) -> bool:
        return set(self.maps) <= {0}

    def arguments(
        self, values: dict[int, Interval], errors: dict[int, Tensor]
    ) -> tuple[Interval, Tensor]:
        """An interval for each argument, and what a coefficient of 1 on it may lose to rounding.

        The intervals hold the floats that the network reads, and `errors` are those of the values.
        The loss is the rounding of the network and of bounds through this layer, both.
        """
        count = len(values[0].low)
        middle = self.offset.expand(count, -1)
        radius = torch.zeros_like(middle)
        size = middle.abs()
        for source, held in self.maps.items():
            centre, spread = values[source].centred()
            middle = middle + held.pushed(centre)
            radius = radius + held.spread(spread)
            size = size + held.spread(centre.abs() + spread)
        # A row of coefficients adds up the offsets of all arguments.
        own = slack(self.offset.abs(), self.size + self.rounding.depth)
        # Rounded up: in becoming this type, and in the few sums that it is part of.
        error = self.rounding.of(values, errors).to(size)
        error = error * (1 + ERROR_ROUNDINGS * torch.finfo(size.dtype).eps)
        loss = slack(size, self.terms) + own + error
        for source in self.maps:  # entries of maps may have underflowed in becoming this type
            loss = loss + underflow(values[source])
        radius = radius + loss
        unknown = ~torch.isfinite(middle) | ~torch.isfinite(radius)
        low = torch.where(unknown, -torch.inf, middle - radius)
        high = torch.where(unknown, torch.inf, middle + radius)
        found = Interval(low, high)
        if self.compared is not None:
            comparison, node = self.compared
            found = found.intersected(comparison.within(values[node]))
        return found, loss

    @property
    def is_held(self) -> bool:
        """Its values are its arguments, as they are: their bounds change no lines of its own."""
        return isinstance(self.operator, HeldValues)

    def loose(
        self, is_loose: Tensor, arguments: Interval, values: Mapping[int, Interval]
    ) -> Tensor:
        """Where tighter bounds of arguments give a tighter relaxation, and that may matter. An
        operator of fewer values than arguments, such as ArgMax, is loose in all of them or none."""
        if is_loose.shape != arguments.low.shape:
            is_loose = is_loose.any(1, keepdim=True).expand_as(arguments.low)
        if isinstance(self.operator, HeldValues) and self.operator.read_by is not None:
            return self.operator.read_by.loose(arguments)
        if self.compared is None:
            return is_loose
        comparison, node = self.compared
        return is_loose & comparison.matters(values[node])


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """What the file's own operators round in computing one stage's arguments.

    `places` are the entries that the arguments are, where some are read more than once; `behind` is
    a final softmax that was left out; `depth` is the number of layers of the network.
    """

    errors: FloatErrors
    stage: Stage
    depth: int
    places: Tensor | None = None
    behind: Operator | None = None

    def of(self, values: Mapping[int, Interval], errors: Mapping[int, Tensor]) -> Tensor:
        """E for each argument, (regions, arguments), in float64: sound for any region in which
        the values are in these intervals and their errors are at most these."""
        sizes = {leaf: values[leaf].magnitude for leaf in self.stage.leaves}
        given = {leaf: errors[leaf] for leaf in self.stage.leaves if leaf in errors}
        error = self.errors.of_arguments(
            self.stage.source,
            self.stage.between,
            sizes,
            given,
            self.behind,
            self.stage.rounded,
        )
        return error if self.places is None else error[:, self.places]


@dataclass(frozen=True, slots=True, eq=False)
class LayeredNetwork:
    """All layers of nonlinear units in order, and the output as a layer of its own.

    `single` is the same in float32, for large networks of float64: bounds are several times as fast
    there, and settle most units.
    """

    inputs: int
    layers: tuple[Layer, ...]
    output: Layer
    errors: FloatErrors
    single: LayeredNetwork | None = None


def adds_plainly() -> bool:
    """Whether products of float32 are as exact as the type: torch and oneDNN can be told to round
    factors to fewer bits, by a call or by the environment."""
    is_full = torch.get_float32_matmul_precision() == "highest"
    for part in ("conv", "matmul"):
        settings = getattr(torch.backends.mkldnn, part, None)
        is_full &= getattr(settings, "fp32_precision", "none") in ("none", "ieee")
    mode = os.environ.get("ONEDNN_DEFAULT_FPMATH_MODE", "STRICT")
    return is_full and mode.upper() == "STRICT"


def layered(
    fusion: Fusion,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
    arithmetic: Arithmetic = FLOAT,
) -> LayeredNetwork:
    """The fusion in another type; its rounding is covered by `slack` of that type.

    `arithmetic` is that of the network which bounds are to hold for.
    """
    errors = FloatErrors(fusion.graph, fusion.number, arithmetic, dtype)
    depth = len(fusion.stages) + 1
    layers = tuple(
        _layer(
            stage,
            fusion.graph.nodes[stage.node].shape,
            dtype,
            device,
            Rounding(errors, stage, depth),
            _compared(fusion, stage),
        )
        for stage in fusion.stages
    )
    last = fusion.output
    output = Layer(
        node=last.node,
        operator=last.operator,
        shape=last.shape,
        maps={i: prepared(held, dtype, device) for i, held in last.maps.items()},
        offset=torch.tensor(last.offset, dtype=dtype, device=device),
        rounding=Rounding(errors, last, depth, behind=fusion.behind),
    )
    inputs = fusion.graph.nodes[0].size
    sizes = [layer.size for layer in layers]
    is_large = sum(sizes) >= FLOAT32_FIRST_UNITS
    single = None
    if (
        adds_plainly()
        and dtype == torch.float64
        and is_large
        and max(inputs, *sizes) <= LARGEST_SINGLE
    ):
        single = layered(fusion, torch.float32, device, arithmetic)
    return LayeredNetwork(inputs, layers, output, errors, single)


def _layer(
    stage: Stage,
    result: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device | str,
    rounding: Rounding,
    compared: tuple[WindowComparison, int] | None,
) -> Layer:
    maps, offset, shape = stage.maps, stage.offset, stage.shape
    hinges = stage.operator.hinges(stage.shape, result)
    if hinges is not None:
        shape = result
        if shape != stage.shape:
            places = torch.from_numpy(hinges.sources.copy())
            taken = SelectionMap(places, len(offset))
            maps = {i: composed(held, taken) for i, held in maps.items()}
            offset = offset[hinges.sources]
            rounding = replace(rounding, places=places)
    return Layer(
        node=stage.node,
        operator=copy.deepcopy(stage.operator).to(device, dtype),
        shape=shape,
        maps={i: prepared(held, dtype, device) for i, held in maps.items()},
        offset=torch.tensor(offset, dtype=dtype, device=device),
        rounding=rounding,
        hinges=hinges,
        compared=compared,
    )


def _compared(fusion: Fusion, stage: Stage) -> tuple[WindowComparison, int] | None:
    source = fusion.graph.nodes[stage.source]
    operator = source.operator
    return (operator, source.inputs[0]) if isinstance(operator, WindowComparison) else None
