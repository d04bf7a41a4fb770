"""Einsum of one or two values, of which one may be a constant, as a product of matrices.

Letters of two terms are those of a stack (in both and in the result), those that are summed over
(in both, not in the result), and those of either side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from radii.networks.operators._arrangement import Reshape, Transpose
from radii.networks.operators._base import OnnxNode, OperatorKind, translates
from radii.networks.operators._bilinear import matrix_product
from radii.networks.operators._pooling import ReduceSum
from radii.networks.operators._products import ProductFromLeft, ProductFromRight


@translates("Einsum", of_several=OperatorKind.SMOOTH)
def _einsum(call: OnnxNode) -> int:
    terms, result = _parsed(call)
    sizes = {
        letter: size
        for position, term in enumerate(terms)
        for letter, size in zip(term, call.shape(position), strict=True)
    }
    if len(terms) == 1:
        return _of_one(call, terms[0], result)
    left, right = terms
    alone = [*(set(left) - set(right)), *(set(right) - set(left))]
    if not set(alone) <= set(result):
        raise call.unsupported("that adds up an axis of one term alone")
    stack = [c for c in left if c in right and c in result]
    summed = [c for c in left if c in right and c not in result]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    x = _matrices(call, 0, left, (stack, rows, summed), sizes)
    y = _matrices(call, 1, right, (stack, summed, columns), sizes)
    product = _product(call, x, y)
    found = [*stack, *rows, *columns]
    whole = call.emit(Reshape(tuple(sizes[c] for c in found)), product)
    order = [found.index(c) for c in result]
    return whole if order == sorted(order) else call.emit(Transpose(order), whole)


def _parsed(call: OnnxNode) -> tuple[list[str], str]:
    """The letters of each term, and those of the result."""
    equation = call.text_attribute("equation", "").replace(" ", "")
    given, arrow, result = equation.partition("->")
    terms = given.split(",")
    letters = "".join(terms)
    if not arrow:
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    is_plain = all(len(set(term)) == len(term) and term.isalpha() for term in terms)
    if not (is_plain and 1 <= len(terms) <= 2 and set(result) <= set(letters)):
        raise call.unsupported(f"with equation {equation}")
    return terms, result


def _of_one(call: OnnxNode, term: str, result: str) -> int:
    axes = [place for place, letter in enumerate(term) if letter not in result]
    node = call.emit(ReduceSum(axes, keep=False), call.node(0)) if axes else call.node(0)
    kept = [letter for letter in term if letter in result]
    return call.emit(Transpose([kept.index(letter) for letter in result]), node)


def _matrices(
    call: OnnxNode,
    position: int,
    term: str,
    groups: tuple[Sequence[str], Sequence[str], Sequence[str]],
    sizes: dict[str, int],
) -> int | Tensor:
    """A term as a stack of matrices."""
    order = [term.index(letter) for group in groups for letter in group]
    shape = tuple(math.prod(sizes[letter] for letter in group) for group in groups)
    if call.is_constant(position):
        return call.weight(position).permute(order).reshape(shape).contiguous()
    node = call.node(position)
    if order != sorted(order):
        node = call.emit(Transpose(order), node)
    return call.emit(Reshape(shape), node)


def _product(call: OnnxNode, x: int | Tensor, y: int | Tensor) -> int:
    if isinstance(y, Tensor):
        assert isinstance(x, int)
        return call.emit(ProductFromRight(y), x)
    if isinstance(x, Tensor):
        return call.emit(ProductFromLeft(x), y)
    return matrix_product(call, x, y)
