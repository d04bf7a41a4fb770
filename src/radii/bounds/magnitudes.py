"""The magnitude of an affine operator: the same operator with absolute values for constants.

If an operator computes W x + b, its magnitude computes |W| x + |b|. That one function gives both
the spread of an interval, |W| r, and the size of what was added up, which bounds the rounding.
"""

from __future__ import annotations

import copy
import math
from weakref import WeakKeyDictionary

from torch import Tensor

from radii.networks import Kind, Operator
from radii.networks.operators import (
    Add,
    AddConstant,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Dense,
    DivideByConstant,
    Expand,
    Input,
    Pad,
    ProductFromLeft,
    ProductFromRight,
    ReduceMean,
    ReduceSum,
    Reshape,
    Scale,
    Select,
    Slice,
    Subtract,
    Transpose,
    TransposedConvolution,
)

__all__ = ["EXACT", "magnitude_of", "term_count"]

EXACT = (Concat, Expand, Input, Pad, Reshape, Select, Slice, Transpose)
"""Operators that only move entries: no arithmetic, so no rounding, and monotone."""

ARITHMETIC = (
    Add,
    AddConstant,
    AveragePool,
    BatchNorm,
    Convolution,
    Dense,
    DivideByConstant,
    ProductFromLeft,
    ProductFromRight,
    ReduceMean,
    ReduceSum,
    Scale,
    Subtract,
    TransposedConvolution,
)

_made: WeakKeyDictionary[Operator, Operator] = WeakKeyDictionary()


def magnitude_of(operator: Operator) -> Operator:
    """The operator |W| x + |b| of an affine operator W x + b; made once."""
    if operator not in _made:
        _made[operator] = _make(operator)
    return _made[operator]


def _make(operator: Operator) -> Operator:
    if isinstance(operator, Subtract):
        return Add()
    if operator.kind is not Kind.AFFINE or not isinstance(operator, ARITHMETIC):
        raise TypeError(f"no magnitude is known for operator {type(operator).__name__}")
    absolute = copy.deepcopy(operator)
    for name, buffer in dict(absolute.named_buffers()).items():
        if buffer.is_floating_point():
            setattr(absolute, name, buffer.abs())
    return absolute


def term_count(operator: Operator, inputs: list[Tensor], result: Tensor) -> int:
    """How many products each entry of the result is a sum of, at most."""
    match operator:
        case Dense() | ProductFromRight():
            return int(operator.weight.shape[0 if operator.weight.dim() == 1 else -2])
        case ProductFromLeft():
            return int(operator.weight.shape[-1])
        case Convolution():
            return math.prod(operator.weight.shape[1:])
        case TransposedConvolution():
            return operator.weight.shape[0] * math.prod(operator.weight.shape[2:])
        case AveragePool():
            return math.prod(operator.window.kernel)
        case ReduceMean() | ReduceSum():
            return max(1, inputs[0].numel() // max(1, result.numel()))
        case _:
            return len(inputs) + 1
