"""The magnitude of an affine operator: the same operator with absolute values for constants.

If an operator computes W x + b, its magnitude computes |W| x + |b|. That one function gives both
the spread of an interval, |W| r, and the size of what was added up, which bounds the rounding. Its
linear part computes |W| x alone: what becomes of errors. Its reach bounds every number on the way:
of a mean that is the sum.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from radii.networks import (
    Add,
    AddConstant,
    AveragePool,
    BatchNorm,
    Cast,
    Concat,
    Convolution,
    Dense,
    DivideByConstant,
    Expand,
    Input,
    Operator,
    OperatorKind,
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

EXACT_OPERATORS = (Concat, Expand, Input, Pad, Reshape, Select, Slice, Transpose)
"""Operators that only move entries: no arithmetic, so no rounding, and monotone."""

ARITHMETIC_OPERATORS = (
    Add,
    AddConstant,
    AveragePool,
    BatchNorm,
    Cast,
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

BATCH_NORM_TERMS = 4
"""Roundings on the longest path of a batch normalisation, beyond what every operator is granted:
its factor is a quotient by a root."""

Derived = TypeVar("Derived")

_magnitudes: WeakKeyDictionary[Operator, Operator] = WeakKeyDictionary()
_linear_parts: WeakKeyDictionary[Operator, Operator] = WeakKeyDictionary()
_terms: WeakKeyDictionary[Operator, int] = WeakKeyDictionary()


def magnitude_of(operator: Operator) -> Operator:
    """The operator |W| x + |b| of an affine operator W x + b; made once."""
    return _remembered(operator, _magnitudes, _magnitude)


def linear_part_of(operator: Operator) -> Operator:
    """The operator |W| x of an affine operator W x + b; made once."""
    return _remembered(operator, _linear_parts, _linear_part)


def reach_of(operator: Operator, *largest: Tensor) -> Tensor:
    """The largest number that computing each entry of an affine operator may pass through.

    `largest` are the largest absolute values of its inputs. Factors of a batch normalisation that
    are below 1 may come last.
    """
    reaching, count = magnitude_of(operator), 1
    match operator:
        case BatchNorm():
            reaching = BatchNorm(operator.scale_reach, operator.shift_reach)
        case AveragePool():
            # Not less than the sum where only a part of the window counts: that mean is larger.
            count = math.prod(operator.window.kernel)
        case ReduceMean():
            reaching = ReduceSum(operator.axes, keep=operator.keep)
    result: Tensor = reaching(*largest)
    return result * count


def _remembered(
    operator: Operator,
    known: WeakKeyDictionary[Operator, Derived],
    make: Callable[[Operator], Derived],
) -> Derived:
    if operator not in known:
        known[operator] = make(operator)
    return known[operator]


def _magnitude(operator: Operator) -> Operator:
    if isinstance(operator, Subtract):
        return Add()
    if operator.kind is not OperatorKind.AFFINE or not isinstance(
        operator, (*ARITHMETIC_OPERATORS, *EXACT_OPERATORS)
    ):
        raise TypeError(f"no magnitude is known for operator {type(operator).__name__}")
    absolute = copy.deepcopy(operator)
    for name, buffer in dict(absolute.named_buffers()).items():
        if buffer.is_floating_point():
            setattr(absolute, name, buffer.abs())
    if isinstance(absolute, BatchNorm):
        absolute.shift = absolute.shift_size
    if isinstance(absolute, Pad):
        absolute.fill = abs(absolute.fill)
    return absolute


def _linear_part(operator: Operator) -> Operator:
    linear = copy.deepcopy(magnitude_of(operator))
    match linear:
        case Dense() | Convolution() | TransposedConvolution():
            linear.bias = None
        case BatchNorm():
            linear.shift = torch.zeros_like(linear.shift)
        case AddConstant():
            linear.constant = torch.zeros_like(linear.constant)
        case Pad():
            linear.fill = 0.0
        case Concat():
            for name, part in dict(linear.named_buffers()).items():
                setattr(linear, name, torch.zeros_like(part))
    return linear


def _factor_of(operator: Operator) -> Tensor | None:
    """The absolute value that an operator multiplies each entry with; None if it does not.

    Such a factor may be moved: behind the product that follows it, into the weights before it.
    """
    match operator:
        case Scale():
            return operator.constant.abs()
        case DivideByConstant():
            return operator.constant.abs().reciprocal()
        case BatchNorm():
            return operator.scale_reach
        case _:
            return None


def largest_weight(operator: Operator) -> float:
    """The largest absolute value of the numbers that an operator multiplies with; at least 1."""
    factors = operator.get_buffer("weight") if hasattr(operator, "weight") else _factor_of(operator)
    if factors is None or factors.numel() == 0:
        return 1.0
    return max(1.0, float(factors.abs().max()))


def single_factor_of(operator: Operator) -> float | None:
    """The one number that an operator multiplies or divides all entries with; None if there is no
    such number."""
    if not isinstance(operator, Scale | DivideByConstant) or operator.constant.numel() != 1:
        return None
    return abs(float(operator.constant))


def term_count(operator: Operator, inputs: list[Tensor], result: Tensor) -> int:
    """How many products each entry of the result is a sum of, at most.

    Products with a weight of 0 do not count: they are 0, and adding them changes nothing.
    """
    match operator:
        case AveragePool():
            return math.prod(operator.window.kernel)
        case ReduceMean() | ReduceSum():
            return max(1, inputs[0].numel() // max(1, result.numel()))
        case BatchNorm():
            return BATCH_NORM_TERMS
        case Cast():
            return 1
        case _ if hasattr(operator, "weight"):
            return _remembered(operator, _terms, _most_weights)
        case _:
            return len(inputs) + 1


def _most_weights(operator: Operator) -> int:
    """The largest number of weights that are not 0 and meet in one entry of the result."""
    weight: Tensor = operator.get_buffer("weight")
    used: Tensor = weight.ne(0)
    match operator:
        case Dense() | ProductFromRight():
            count = used.sum(0 if used.dim() == 1 else -2)
        case ProductFromLeft():
            count = used.sum(-1)
        case Convolution():
            count = used.flatten(1).sum(1)
        case _:  # a transposed convolution: every weight of a group may meet in one place
            count = used.sum(tuple(axis for axis in range(used.dim()) if axis != 1))
    return max(1, int(count.max())) if count.numel() else 1
