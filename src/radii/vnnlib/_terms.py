"""Terms and comparisons of VNN-LIB.

Terms are affine in the variables and summed exactly. Comparisons of two words, which large files
mostly consist of, are read in columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress, repeat

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.vnnlib._expressions import AND, Expression, ItemRun, ItemShape, show, without_spaces

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
    # Of what `float` takes, `1_000`, `inf` and `nan` alone are not decimals.
    return values if np.isfinite(values).all() and "_" not in "".join(texts) else None


@dataclass(slots=True)
class _Operation:
    operator: str
    remaining: list[Expression]
    values: list[AffineTerm]


def affine(expression: Expression, variables: Mapping[str, int]) -> AffineTerm:
    """The term as an affine form of the variables' numbers.

    Constants are the float64 values nearest to the file's decimals; sums and products of them are
    exact. Evaluated with an explicit stack, so that depth is not limited.
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


# --- comparisons of two words, in columns


_COMMENT = re.compile(r";[^\n]*")
_COMMENT_OR_INDEX = re.compile(r";[^\n]*|[ \t]*\[[^\]\n]*\]")
_ODD_INDEX = re.compile(r"\[(?![\d,]*+\][\s()])")
_BRACKETS_TO_BLANKS = str.maketrans("()", "  ")
_IS_GREATER, _IS_STRICT = 1, 2
_RELATIONS = {"<=": 0, ">=": _IS_GREATER, "<": _IS_STRICT, ">": _IS_GREATER | _IS_STRICT}


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """All of `low <= high` hold, or `low < high` where `strict`; a row for each.

    A side is a variable's number; where it is -1, the side is the row's `constant`. One side at
    least is a variable, and both are inputs or both outputs.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    constant: npt.NDArray[np.float64]
    strict: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.low)

    def where(self, rows: slice | npt.NDArray[np.bool_]) -> Comparisons:
        """Some of the rows."""
        return Comparisons(self.low[rows], self.high[rows], self.constant[rows], self.strict[rows])

    def rows(self) -> Iterator[tuple[int, int, float, bool]]:
        """low, high, constant and strict."""
        columns = (self.low, self.high, self.constant, self.strict)
        return zip(*(column.tolist() for column in columns), strict=True)

    def hold(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Whether each row is true at these values of all variables. Nothing is rounded."""
        low = np.where(self.low < 0, self.constant, values[self.low])
        high = np.where(self.high < 0, self.constant, values[self.high])
        return np.where(self.strict, low < high, low <= high)


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """One of several conjunctions of comparisons holds; each begins at one of the rows `starts`."""

    rows: Comparisons
    starts: npt.NDArray[np.int64]

    def __iter__(self) -> Iterator[Comparisons]:
        starts = self.starts.tolist()
        for start, stop in zip(starts, [*starts[1:], len(self.rows)], strict=True):
            yield self.rows.where(slice(start, stop))

    def hold(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Whether each alternative is true at these values of all variables."""
        return np.logical_and.reduceat(self.rows.hold(values), self.starts)


def read_comparisons(
    run: ItemRun, variables: Mapping[str, int], inputs: int
) -> Alternatives | None:
    """The items of a run. Variables below `inputs` are inputs, the rest outputs.

    None if a row is not as `Comparisons` has them: reading the items one by one then reports why.
    """
    text = _plain(run.text)
    if text is None:
        return None
    sizes = None
    if run.shape is ItemShape.CONJUNCTIONS:
        conjunctions = AND.split(text)[1:]
        sizes = np.array([each.count("(") for each in conjunctions])
        text = "".join(conjunctions)
    words = text.translate(_BRACKETS_TO_BLANKS).split()
    first, step = (1, 4) if run.shape is ItemShape.ASSERTIONS else (0, 3)
    relations, lefts, rights = (words[column::step] for column in range(first, step))
    rows = _comparison_rows(relations, lefts, rights, variables, inputs)
    if rows is None:
        return None
    starts = np.arange(len(rows)) if sizes is None else np.cumsum(sizes) - sizes
    return Alternatives(rows, starts)


def _plain(text: str) -> str | None:
    """Without comments, and with each index as `X[0,3]`; None if an index is malformed."""
    if "[" not in text:
        return _COMMENT.sub("", text) if ";" in text else text
    if not any(mark in text for mark in (";", " [", "\t[")) and not _ODD_INDEX.search(text):
        return text
    text = _COMMENT_OR_INDEX.sub(_without_comment_or_spaces, text)
    return None if _ODD_INDEX.search(text) else text


def _without_comment_or_spaces(match: re.Match[str]) -> str:
    return "" if match[0][0] == ";" else f"{without_spaces(match[0])} "


def _comparison_rows(
    relations: Sequence[str],
    lefts: Sequence[str],
    rights: Sequence[str],
    variables: Mapping[str, int],
    inputs: int,
) -> Comparisons | None:
    left, right = _numbered(lefts, variables), _numbered(rights, variables)
    both = (left >= 0) & (right >= 0)
    if np.any((left < 0) & (right < 0)) or np.any(both & (left == right)):
        return None
    if np.any(both & ((left < inputs) != (right < inputs))):
        return None
    decimals = [*compress(lefts, left < 0), *compress(rights, right < 0)]
    constants = numbers(decimals)
    if constants is None:
        return None
    constant = np.zeros(len(left))
    on_the_left = int(np.count_nonzero(left < 0))
    constant[left < 0], constant[right < 0] = constants[:on_the_left], constants[on_the_left:]
    relation = np.fromiter(map(_RELATIONS.__getitem__, relations), np.int8, len(relations))
    is_greater = (relation & _IS_GREATER) > 0
    low, high = np.where(is_greater, right, left), np.where(is_greater, left, right)
    return Comparisons(low, high, constant, (relation & _IS_STRICT) > 0)


def _numbered(words: Sequence[str], variables: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The variables' numbers; -1 for words that are not variables."""
    return np.fromiter(map(variables.get, words, repeat(-1)), np.int64, len(words))
