"""Gemm, MatMul and elementwise arithmetic."""

from __future__ import annotations

import math

import torch

from radii.networks.operators._activations import Clip
from radii.networks.operators._arrangement import Reshape, Transpose
from radii.networks.operators._elementwise import (
    Add,
    AddConstant,
    Divide,
    DivideByConstant,
    Multiply,
    Reciprocal,
    Scale,
    Subtract,
)
from radii.networks.operators._products import Dense, MatMul, ProductFromLeft, ProductFromRight
from radii.networks.translation._base import OnnxNode


def add(call: OnnxNode) -> int:
    positions = range(len(call.proto.input))
    total = next(call.node(p) for p in positions if not call.is_constant(p))
    first = True
    for position in positions:
        if call.is_constant(position):
            total = call.emit(AddConstant(call.weight(position)), total)
        elif first:
            first = False
        else:
            total = call.emit(Add(), total, call.node(position))
    return total


def subtract(call: OnnxNode) -> int:
    if call.is_constant(1):
        return call.emit(AddConstant(-call.weight(1)), call.node(0))
    if call.is_constant(0):
        negative = _scaled(call, call.node(1), -1.0)
        return call.emit(AddConstant(call.weight(0)), negative)
    return call.emit(Subtract(), call.node(0), call.node(1))


def multiply(call: OnnxNode) -> int:
    for constant, variable in ((0, 1), (1, 0)):
        if call.is_constant(constant):
            return call.emit(Scale(call.weight(constant)), call.node(variable))
    return call.emit(Multiply(), call.node(0), call.node(1))


def divide(call: OnnxNode) -> int:
    if call.is_constant(1):
        divisor = call.weight(1)
        if not divisor.all():
            raise call.unsupported("by zero")
        return call.emit(DivideByConstant(divisor), call.node(0))
    if call.is_constant(0):
        return call.emit(Scale(call.weight(0)), call.emit(Reciprocal(), call.node(1)))
    return call.emit(Divide(), call.node(0), call.node(1))


def invert(call: OnnxNode) -> int:
    return call.emit(Reciprocal(), call.node(0))


def negate(call: OnnxNode) -> int:
    return _scaled(call, call.node(0), -1.0)


def bound(call: OnnxNode) -> int:
    """Of one value and single numbers, which is a Clip with one side open."""
    variables = [p for p in range(len(call.proto.input)) if not call.is_constant(p)]
    constants = [p for p in range(len(call.proto.input)) if call.is_constant(p)]
    if len(variables) != 1 or any(call.constant(p).size != 1 for p in constants):
        raise call.unsupported("of more than one value that depends on the network's input")
    result = call.node(variables[0])
    rank = max(call.rank(p) for p in variables + constants)
    for position in constants:
        limit = float(call.weight(position))
        lowest, highest = (limit, torch.inf) if call.proto.op_type == "Max" else (-torch.inf, limit)
        result = call.emit(Clip(lowest, highest), result)
    missing = rank - call.rank(variables[0])
    if missing:
        result = call.emit(Reshape((1,) * missing + call.shape(variables[0])), result)
    return result


def matrix_product(call: OnnxNode) -> int:
    if call.is_constant(1):
        weight = call.weight(1)
        operator = Dense(weight) if weight.dim() == 2 else ProductFromRight(weight)
        return call.emit(operator, call.node(0))
    if call.is_constant(0):
        return call.emit(ProductFromLeft(call.weight(0)), call.node(1))
    if min(call.rank(0), call.rank(1)) < 2:
        raise call.unsupported("of two values that depend on the input, one of them a vector")
    return call.emit(MatMul(), call.node(0), call.node(1))


def gemm(call: OnnxNode) -> int:
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
        product = call.emit(MatMul(), _matrix(call, 0, "transA"), _matrix(call, 1, "transB"))
        product = _scaled(call, product, alpha)
    if bias is not None:
        product = call.emit(AddConstant(bias), product)
    elif call.has(2) and not call.is_constant(2):
        product = call.emit(Add(), product, _scaled(call, call.node(2), beta))
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


def _scaled(call: OnnxNode, node: int, factor: float) -> int:
    if factor == 1.0:
        return node
    return call.emit(Scale(torch.tensor(factor, dtype=torch.float64)), node)
