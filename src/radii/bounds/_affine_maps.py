"""A fused network in one number type on one device: dense or sparse maps between its layers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.bounds._float_errors import FloatErrors
from radii.bounds._relu_form import Fusion, Stage
from radii.networks import BOUND_EXTRA_TERMS, Hinges, Interval, Operator
from radii.verdicts import FLOAT, Arithmetic

DENSE_ENTRIES = 1 << 22
"""Matrices up to this size are kept dense: 32 MB in float64."""

DENSE_SHARE = 0.05
"""Larger ones as well, if this share of the entries is not zero."""

FUSED_ROUNDING = 2.0**-40
"""What entries of fused maps may be off, relative to what was added up for them, in float64."""


def slack(size: Tensor, terms: int) -> Tensor:
    """How far sums over fused maps may be off, given the sum of absolute values they add up."""
    numbers = torch.finfo(size.dtype)
    return size * (numbers.eps * (terms + BOUND_EXTRA_TERMS) + FUSED_ROUNDING) + numbers.tiny


class AffineMap:
    """A matrix; rows and points are row vectors along the last axis."""

    def __init__(
        self, matrix: csr_array, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        entries = matrix.shape[0] * matrix.shape[1]
        self.is_dense = entries <= DENSE_ENTRIES or matrix.nnz > DENSE_SHARE * entries
        if self.is_dense:
            self.matrix = torch.tensor(matrix.toarray(), dtype=dtype, device=device)
        else:
            held = matrix.tocoo()
            places = torch.stack([torch.tensor(held.row), torch.tensor(held.col)]).long()
            values = torch.tensor(held.data, dtype=dtype)
            self.matrix = torch.sparse_coo_tensor(
                places, values, matrix.shape, device=device, check_invariants=True
            ).coalesce()
        self.transposed = self.matrix.t() if self.is_dense else self.matrix.t().coalesce()
        self.magnitude = self.matrix.abs()

    def pulled(self, rows: Tensor) -> Tensor:
        """rows @ matrix: coefficients on the result become coefficients on the argument."""
        if self.is_dense:
            return rows @ self.matrix
        return _sparse_product(self.transposed, rows)

    def pushed(self, points: Tensor) -> Tensor:
        """The map's values, one point in each row."""
        if self.is_dense:
            return points @ self.transposed
        return _sparse_product(self.matrix, points)

    def spread(self, radii: Tensor) -> Tensor:
        """The same with the absolute values of the entries."""
        if self.is_dense:
            return radii @ self.magnitude.t()
        return _sparse_product(self.magnitude, radii)

    def chosen(self, units: Tensor) -> Tensor:
        """Some rows of the matrix, dense, in place of their numbers."""
        rows = self.matrix.index_select(0, units.flatten())
        dense = rows if self.is_dense else rows.to_dense()
        return dense.reshape(*units.shape, -1)


def _sparse_product(matrix: Tensor, rows: Tensor) -> Tensor:
    """rows @ matrix.T for a sparse matrix."""
    product: Tensor = torch.sparse.mm(matrix, rows.flatten(0, -2).t())
    return product.t().reshape(*rows.shape[:-1], -1)


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """What one nonlinear node (or the output) reads: the sum of maps of earlier values + offset.

    For an operator that acts entry by entry, every entry of the result has an argument of its own,
    whatever it broadcasts; `hinges` describes it where it is piecewise linear.
    """

    node: int
    operator: Operator
    shape: tuple[int, ...]
    maps: dict[int, AffineMap]
    offset: Tensor
    rounding: Rounding
    hinges: Hinges | None = None

    @property
    def size(self) -> int:
        """How many arguments there are."""
        return self.offset.numel()

    @property
    def terms(self) -> int:
        """The most products that are summed up for one argument, or for a row of coefficients
        that passes through the layer."""
        read = sum(held.matrix.shape[1] for held in self.maps.values()) + len(self.maps)
        return max(read, self.size) + self.rounding.depth

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
        loss = slack(size, self.terms) + self.rounding.of(values, errors).to(size)
        radius = radius + loss
        unknown = ~torch.isfinite(middle) | ~torch.isfinite(radius)
        low = torch.where(unknown, -torch.inf, middle - radius)
        high = torch.where(unknown, torch.inf, middle + radius)
        return Interval(low, high), loss


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
            self.stage.source, self.stage.between, sizes, given, self.behind
        )
        return error if self.places is None else error[:, self.places]


@dataclass(frozen=True, slots=True, eq=False)
class LayeredNetwork:
    """All layers of nonlinear units in order, and the output as a layer of its own."""

    inputs: int
    layers: tuple[Layer, ...]
    output: Layer
    errors: FloatErrors


def layered(
    fusion: Fusion,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
    arithmetic: Arithmetic = FLOAT,
) -> LayeredNetwork:
    """The fusion in another type; its rounding is covered by `slack` of that type.

    `arithmetic` is that of the network which bounds are to hold for.
    """
    errors = FloatErrors(fusion.graph, fusion.number, arithmetic)
    depth = len(fusion.stages) + 1
    layers = tuple(
        _layer(
            stage,
            fusion.graph.nodes[stage.node].shape,
            dtype,
            device,
            Rounding(errors, stage, depth),
        )
        for stage in fusion.stages
    )
    last = fusion.output
    output = Layer(
        node=last.node,
        operator=last.operator,
        shape=last.shape,
        maps={i: AffineMap(matrix, dtype, device) for i, matrix in last.maps.items()},
        offset=torch.tensor(last.offset, dtype=dtype, device=device),
        rounding=Rounding(errors, last, depth, behind=fusion.behind),
    )
    return LayeredNetwork(fusion.graph.nodes[0].size, layers, output, errors)


def _layer(
    stage: Stage,
    result: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device | str,
    rounding: Rounding,
) -> Layer:
    maps, offset, shape = stage.maps, stage.offset, stage.shape
    hinges = stage.operator.hinges(stage.shape, result)
    if hinges is not None:
        shape = result
        if shape != stage.shape:
            maps = {i: csr_array(matrix[hinges.sources]) for i, matrix in maps.items()}
            offset = offset[hinges.sources]
            rounding = replace(rounding, places=torch.from_numpy(hinges.sources.copy()))
    return Layer(
        node=stage.node,
        operator=copy.deepcopy(stage.operator).to(device, dtype),
        shape=shape,
        maps={i: AffineMap(matrix, dtype, device) for i, matrix in maps.items()},
        offset=torch.tensor(offset, dtype=dtype, device=device),
        rounding=rounding,
        hinges=hinges,
    )
