"""Arithmetic of VNN-LIB: terms that are affine in the variables, summed exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.vnnlib._expressions import Expression, show

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class AffineTerm:
    """The sum of coefficient times variable, plus a constant. Owned by whoever computed it."""

    coefficients: dict[int, Fraction]
    constant: Fraction

    def add(self, other: AffineTerm, factor: int = 1) -> None:
        for variable, coefficient in other.coefficients.items():
            total = self.coefficients.get(variable, Fraction(0)) + factor * coefficient
            self.coefficients[variable] = total
        self.constant += factor * other.constant

    def scale(self, factor: Fraction) -> None:
        for variable in self.coefficients:
            self.coefficients[variable] *= factor
        self.constant *= factor


def number(text: str) -> float | None:
    """The float64 nearest to a decimal, or None if `text` is not a decimal."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    if not math.isfinite(value):
        raise SpecificationError(f"{text} is too large for a float64")
    return value


def numbers(texts: Sequence[str]) -> npt.NDArray[np.float64] | None:
    """`number` of each text; None if one of them is not a decimal or too large."""
    try:
        values = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    # Of what `float` takes, `1_000`, `inf` and `nan` alone are no decimals.
    return values if np.isfinite(values).all() and "_" not in "".join(texts) else None


@dataclass(slots=True)
class _Operation:
    operator: str
    remaining: list[Expression]
    values: list[AffineTerm]


def affine(expression: Expression, variables: Mapping[str, int]) -> AffineTerm:
    """The term as an affine form of the variables' numbers.

    Constants are the float64 values nearest to the file's decimals; sums and products of them are
    exact. Evaluated with a stack of its own, so that depth is no limit.
    """
    operations = [_Operation("+", [expression], [])]
    while True:
        operation = operations[-1]
        if operation.remaining:
            part = operation.remaining.pop()
            if isinstance(part, str):
                operation.values.append(_leaf(part, variables))
            else:
                operations.append(_open_operation(part))
            continue
        operations.pop()
        value = _COMBINE[operation.operator](operation.values)
        if not operations:
            return value
        operations[-1].values.append(value)


def _leaf(text: str, variables: Mapping[str, int]) -> AffineTerm:
    variable = variables.get(text)
    if variable is not None:
        return AffineTerm({variable: Fraction(1)}, Fraction(0))
    value = number(text)
    if value is None:
        raise SpecificationError(f"'{text}' is neither a number nor a declared variable")
    return AffineTerm({}, Fraction(value))


def _open_operation(part: Expression) -> _Operation:
    match part:
        case [str(operator), *operands] if operator in _COMBINE and operands:
            return _Operation(operator, operands[::-1], [])
    raise SpecificationError(f"'{show(part)}' is not a sum, difference, product or quotient")


def _sum(values: list[AffineTerm]) -> AffineTerm:
    # Adding into the longest keeps long chains of additions from being copied at every link.
    total = max(values, key=lambda value: len(value.coefficients))
    for value in values:
        if value is not total:
            total.add(value)
    return total


def _difference(values: list[AffineTerm]) -> AffineTerm:
    first, *rest = values
    if not rest:
        first.scale(Fraction(-1))
    for value in rest:
        first.add(value, -1)
    return first


def _product(values: list[AffineTerm]) -> AffineTerm:
    result = AffineTerm({}, Fraction(1))
    for value in values:
        if result.coefficients and value.coefficients:
            raise SpecificationError("a product of two variables is not linear")
        if value.coefficients:
            result, value = value, result
        result.scale(value.constant)
    return result


def _affine_quotient(values: list[AffineTerm]) -> AffineTerm:
    first, *rest = values
    for value in rest:
        if value.coefficients:
            raise SpecificationError("a division by a variable is not linear")
        if value.constant == 0:
            raise SpecificationError("a division by zero")
        first.scale(1 / value.constant)
    return first


_COMBINE: dict[str, Callable[[list[AffineTerm]], AffineTerm]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _affine_quotient,
}
