"""Matrix products."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._arithmetic import Add, AddConstant, scaled
from radii.networks.operators._arrangement import Reshape, Slice, Transpose
from radii.networks.operators._base import (
    OnnxNode,
    OperatorKind,
    Shape,
    WeightedSum,
    broadcast,
    translates,
    with_rank,
)
from radii.networks.operators._bilinear import matrix_product
from radii.networks.operators._maps import LinearMap, MatrixMap, SparseMap, matrix_of_products


class Dense(WeightedSum):
    """x @ weight + bias along the last axis: weight is (n, m), bias (m,) or None."""

    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        # Kept with its columns contiguous: the layout in which torch multiplies fastest.
        self._constant("weight", weight.T.contiguous().T)
        self._constant("bias", bias)

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(shapes[0], tuple(self.weight.shape))

    def forward(self, x: Tensor) -> Tensor:
        # One matrix product however many axes lead: (B, 1, n) costs as little as (B, n).
        return F.linear(x, self.weight.T, self.bias)

    def make_linear_part(self) -> Dense:
        return Dense(self.weight.abs())

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        return (MatrixMap(self.weight.T, outer=math.prod(shapes[0][:-1])),)

    def _counts(self) -> Tensor:
        return self.weight.ne(0).sum(0)


class ProductFromRight(WeightedSum):
    """x @ weight for a weight that is a vector or a stack of matrices."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self._constant("weight", weight)

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(shapes[0], tuple(self.weight.shape))

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() > 2 or self.weight.dim() == 1:
            return with_rank(x, self.weight.dim()) @ self.weight
        row = with_rank(x.unsqueeze(1), self.weight.dim())  # values are vectors, not a matrix
        return (row @ self.weight).squeeze(-2)

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        weight = self.weight if self.weight.dim() > 1 else self.weight[:, None]
        numbers = _numbers(shapes[0] if len(shapes[0]) > 1 else (1, *shapes[0]))
        results = _numbers(_product_shape(tuple(numbers.shape), tuple(weight.shape)))
        # Result (i, j) adds up the products of x (i, k) and weight (k, j).
        shape = results.numel(), numbers.numel()
        matrix = matrix_of_products(
            results[..., :, None, :], numbers[..., :, :, None], weight[..., None, :, :], shape
        )
        return (SparseMap(matrix),)

    def _counts(self) -> Tensor:
        used: Tensor = self.weight.ne(0)
        return used.sum(0 if used.dim() == 1 else -2)


class ProductFromLeft(WeightedSum):
    """weight @ x for a weight of any rank."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self._constant("weight", weight)

    def result_shape(self, *shapes: Shape) -> Shape:
        return _product_shape(tuple(self.weight.shape), shapes[0])

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            column = with_rank(x.unsqueeze(-1), self.weight.dim())
            return (self.weight @ column).squeeze(-1)
        return self.weight @ with_rank(x, self.weight.dim())

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        if self.weight.dim() <= 2 and len(shapes[0]) <= 2:
            weight = self.weight if self.weight.dim() == 2 else self.weight[None]
            return (MatrixMap(weight, inner=math.prod(shapes[0][1:])),)
        weight = self.weight if self.weight.dim() > 1 else self.weight[None]
        numbers = _numbers(shapes[0] if len(shapes[0]) > 1 else (*shapes[0], 1))
        results = _numbers(_product_shape(tuple(weight.shape), tuple(numbers.shape)))
        # Result (i, j) adds up the products of weight (i, k) and x (k, j).
        shape = results.numel(), numbers.numel()
        matrix = matrix_of_products(
            results[..., :, None, :], numbers[..., None, :, :], weight[..., :, :, None], shape
        )
        return (SparseMap(matrix),)

    def _counts(self) -> Tensor:
        return self.weight.ne(0).sum(-1)


def _numbers(shape: Shape) -> Tensor:
    """The number of each entry of a flattened value."""
    return torch.arange(math.prod(shape)).reshape(shape)


def _product_shape(left: Shape, right: Shape) -> Shape:
    """The shape of left @ right; a vector counts as a row on the left, as a column on the right."""
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    if not left or not right or rows[-1] != columns[-2]:
        raise ValueError(f"shapes {left} and {right} cannot be multiplied")
    stack = broadcast(rows[:-2], columns[:-2])
    return stack + (rows[-2],) * (len(left) > 1) + (columns[-1],) * (len(right) > 1)


# Translators.


def constant_as_node(call: OnnxNode, constant: torch.Tensor) -> int:
    """A node whose value is a constant: nothing times an entry of the input, plus the constant."""
    flat = call.emit(Reshape((math.prod(call.shape_of(0)),)), 0)
    zeros = torch.zeros(1, constant.numel(), dtype=torch.float64)
    row = call.emit(Dense(zeros, constant.flatten()), call.emit(Slice(0, 0, 1), flat))
    return call.emit(Reshape(tuple(constant.shape)), row)


@translates("MatMul", of_several=OperatorKind.SMOOTH)
def _matrix_product(call: OnnxNode) -> int:
    if call.is_constant(1):
        weight = call.weight(1)
        operator = Dense(weight) if weight.dim() == 2 else ProductFromRight(weight)
        return call.emit(operator, call.node(0))
    if call.is_constant(0):
        return call.emit(ProductFromLeft(call.weight(0)), call.node(1))
    return matrix_product(call, call.node(0), call.node(1))


@translates("Gemm", of_several=OperatorKind.SMOOTH)
def _gemm(call: OnnxNode) -> int:
    """Alpha and beta are factors of the constants here, where those are constants."""
    alpha, beta = call.float_attribute("alpha", 1.0), call.float_attribute("beta", 1.0)
    bias = beta * call.weight(2) if call.has(2) and call.is_constant(2) else None
    if call.is_constant(1):
        weight = alpha * _transposed_if(call.weight(1), call.int_attribute("transB", 0))
        columns = weight.shape[1]
        fits = bias is not None and bias.dim() <= 2 and bias.shape[:-1] in ((), (1,))
        inside = bias.expand(1, columns).reshape(-1) if bias is not None and fits else None
        dense = Dense(weight, inside)
        dense.gain = _gain(alpha, beta)
        product = call.emit(dense, _matrix(call, 0, "transA"))
        bias = None if fits else bias
    elif call.is_constant(0):
        weight = alpha * _transposed_if(call.weight(0), call.int_attribute("transA", 0))
        left = ProductFromLeft(weight.contiguous())
        left.gain = _gain(alpha, beta)
        product = call.emit(left, _matrix(call, 1, "transB"))
    else:
        product = matrix_product(call, _matrix(call, 0, "transA"), _matrix(call, 1, "transB"))
        product = scaled(call, product, alpha)
    if bias is not None:
        product = call.emit(AddConstant(bias), product)
    elif call.has(2) and not call.is_constant(2):
        product = call.emit(Add(), product, scaled(call, call.node(2), beta))
    return product


def _gain(*factors: float) -> float:
    """The largest of the factors and of their inverses; a factor of 0 hides anything."""
    sizes = [abs(factor) for factor in factors]
    return max(1.0, *sizes, *(1 / size if size else math.inf for size in sizes))


def _transposed_if(weight: torch.Tensor, flag: int) -> torch.Tensor:
    return weight.T if flag else weight


def _matrix(call: OnnxNode, position: int, flag: str) -> int:
    node = call.node(position)
    return call.emit(Transpose((1, 0)), node) if call.int_attribute(flag, 0) else node
