"""Linear maps one after another and side by side, simplified where that makes them smaller."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.networks.operators._convolution_maps import ConvolutionMap
from radii.networks.operators._maps import (
    LinearMap,
    MatrixMap,
    ScaleMap,
    SelectionMap,
    SparseMap,
)


class ComposedMap(LinearMap):
    """Maps applied one after another, the first of `parts` first; made by `composed`."""

    def __init__(self, parts: Sequence[LinearMap]) -> None:
        super().__init__(
            parts[0].inputs,
            parts[-1].outputs,
            sum(part.terms + 1 for part in parts),
            sum(part.work for part in parts),
            # An entry of the product adds up what a row of the later map holds.
            sum(part.rounded + part.terms for part in parts),
        )
        self.parts = tuple(parts)

    @property
    def is_zero(self) -> bool:
        return any(part.is_zero for part in self.parts)

    def pulled(self, rows: Tensor) -> Tensor:
        return reduce(lambda held, part: part.pulled(held), reversed(self.parts), rows)

    def pushed(self, points: Tensor) -> Tensor:
        return reduce(lambda held, part: part.pushed(held), self.parts, points)

    def chosen(self, units: Tensor) -> Tensor:
        *before, last = self.parts
        rows = last.chosen(units)
        return reduce(lambda held, part: part.pulled(held), reversed(before), rows)

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> ComposedMap:
        return ComposedMap([part.to(dtype, device) for part in self.parts])

    def _absolute(self) -> ComposedMap:
        return ComposedMap([part.magnitude for part in self.parts])

    def _made_matrix(self) -> csr_array:
        matrices = [part.matrix() for part in self.parts]
        return reduce(lambda held, matrix: csr_array(matrix @ held), matrices)


class SumMap(LinearMap):
    """The sum of maps of the same value; made by `summed`."""

    def __init__(self, parts: Sequence[LinearMap]) -> None:
        super().__init__(
            parts[0].inputs,
            parts[0].outputs,
            max(part.terms for part in parts) + len(parts),
            sum(part.work for part in parts),
            max(part.rounded for part in parts) + len(parts),
        )
        self.parts = tuple(parts)

    @property
    def is_zero(self) -> bool:
        return all(part.is_zero for part in self.parts)

    def pulled(self, rows: Tensor) -> Tensor:
        return reduce(torch.add, [part.pulled(rows) for part in self.parts])

    def pushed(self, points: Tensor) -> Tensor:
        return reduce(torch.add, [part.pushed(points) for part in self.parts])

    def chosen(self, units: Tensor) -> Tensor:
        return reduce(torch.add, [part.chosen(units) for part in self.parts])

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> SumMap:
        return SumMap([part.to(dtype, device) for part in self.parts])

    def _absolute(self) -> SumMap:
        return SumMap([part.magnitude for part in self.parts])

    def _made_matrix(self) -> csr_array:
        matrices = [part.matrix() for part in self.parts]
        return reduce(lambda held, matrix: csr_array(held + matrix), matrices)


def composed(*maps: LinearMap) -> LinearMap:
    """The maps one after another, the first one first. Neighbours become one where that is less."""
    parts: list[LinearMap] = []
    for held in maps:
        for part in held.parts if isinstance(held, ComposedMap) else (held,):
            _append(parts, part)
    return parts[0] if len(parts) == 1 else ComposedMap(parts)


def _append(parts: list[LinearMap], part: LinearMap) -> None:
    while parts:
        merged = _merged(parts[-1], part)
        if merged is None:
            break
        parts.pop()
        part = merged
    parts.append(part)


def _merged(first: LinearMap, second: LinearMap) -> LinearMap | None:
    """One map for `second` after `first` that does no more than both do; None without one."""
    if isinstance(first, ScaleMap | SelectionMap) and first.is_identity:
        return second
    if isinstance(second, ScaleMap | SelectionMap) and second.is_identity:
        return first
    if isinstance(second, ScaleMap):
        return first.with_scaled_results(second.factors)
    if isinstance(first, ScaleMap):
        return second.with_scaled_arguments(first.factors)
    if isinstance(first, SelectionMap) and isinstance(second, SelectionMap):
        return SelectionMap(_followed(first.places, second.places), first.inputs)
    if isinstance(first, SparseMap) and isinstance(second, SparseMap):
        return _sparse_product(first, second)
    if isinstance(first, ConvolutionMap) and isinstance(second, ConvolutionMap):
        return _joined_convolutions(first, second)
    return _dense_product(first, second)


def _followed(first: Tensor, second: Tensor) -> Tensor:
    taken = first[second.clamp_min(0)] if len(first) else torch.full_like(second, -1)
    return torch.where(second >= 0, taken, -1)


def _rounded(first: LinearMap, second: LinearMap) -> int:
    """Of a product: each entry adds up what a row of the second and a column of the first share."""
    return first.rounded + second.rounded + min(first.terms, second.terms)


def _sparse_product(first: SparseMap, second: SparseMap) -> LinearMap | None:
    product = csr_array(second.entries @ first.entries)
    if product.nnz > first.work + second.work:
        return None
    return SparseMap(product, rounded=_rounded(first, second))


def _joined_convolutions(first: ConvolutionMap, second: ConvolutionMap) -> LinearMap | None:
    """One of them mixes channels alone, place by place: the kernels are multiplied."""
    if first.groups != 1 or second.groups != 1 or first.result != second.shape:
        return None
    rounded = _rounded(first, second)
    if second.window.is_point:
        mixed = second.weight.flatten(1) @ first.weight.flatten(1)
        weight = mixed.reshape(-1, *first.weight.shape[1:])
        window = first.window
    elif first.window.is_point:
        turned = second.weight.transpose(1, -1) @ first.weight.flatten(1)
        weight = turned.transpose(1, -1)
        window = second.window
    else:
        return None
    joined = ConvolutionMap(
        weight, first.shape[2:], window=window, batch=first.shape[0], rounded=rounded
    )
    return joined if joined.work <= first.work + second.work else None


def _dense_product(first: LinearMap, second: LinearMap) -> LinearMap | None:
    """One matrix, if one of the two is a matrix and the product has no more entries than both do
    multiplications."""
    if second.outputs * first.inputs > first.work + second.work:
        return None
    rounded = _rounded(first, second)
    if second.dense is not None:
        return MatrixMap(first.pulled(second.dense), rounded=rounded)
    if first.dense is not None:
        return MatrixMap(second.pushed(first.dense.t()).t().contiguous(), rounded=rounded)
    return None


def summed(*maps: LinearMap) -> LinearMap:
    """The sum of maps of the same value."""
    parts: list[LinearMap] = []
    for held in maps:
        for part in held.parts if isinstance(held, SumMap) else (held,):
            _add(parts, part)
    return parts[0] if len(parts) == 1 else SumMap(parts)


def _add(parts: list[LinearMap], part: LinearMap) -> None:
    for place, known in enumerate(parts):
        total = _total(known, part)
        if total is not None:
            parts[place] = total
            return
    parts.append(part)


def _total(first: LinearMap, second: LinearMap) -> LinearMap | None:
    rounded = max(first.rounded, second.rounded) + 1
    if isinstance(first, ScaleMap) and isinstance(second, ScaleMap):
        return ScaleMap(first.factors + second.factors, rounded=rounded)
    if first.dense is not None and second.dense is not None:
        return MatrixMap(first.dense + second.dense, rounded=rounded)
    if isinstance(first, SparseMap) and isinstance(second, SparseMap):
        return SparseMap(csr_array(first.entries + second.entries), rounded=rounded)
    return None


def broadcast_map(shape: Sequence[int], result: Sequence[int]) -> LinearMap:
    """A value that is broadcast to the shape of a result, as ONNX does, which aligns last axes."""
    size = math.prod(shape)
    if size == math.prod(result):
        return ScaleMap.identity(size)
    places = torch.arange(size).reshape((1,) * (len(result) - len(shape)) + tuple(shape))
    return SelectionMap(places.expand(*result).flatten(), size)
