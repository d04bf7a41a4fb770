"""The formula of a VNN-LIB file: linear constraints joined by `and` and `or`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.vnnlib._expressions import Expression, ItemRun, show
from radii.vnnlib._terms import Alternatives, Comparisons, affine, number, read_comparisons

Number: TypeAlias = float | Fraction

_NEGATED = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "=": "!=", "!=": "="}
_COMPARISONS = {"<=": "<=", "<": "<", ">=": ">=", ">": ">", "=": "=", "==": "=", "!=": "!=",
                "distinct": "!="}  # fmt: skip
_ORDERS = frozenset({"<=", "<", ">=", ">"})
_CONNECTIVES = frozenset({"and", "or", "not", "=>"})


@dataclass(frozen=True, slots=True)
class Constraint:
    """The sum of coefficient times variable, plus `constant`, is <= 0; below 0 if `strict`.

    Numbers are floats where the file's constants stand as they are, and fractions otherwise, so
    that nothing is rounded.
    """

    terms: tuple[tuple[int, Number], ...]
    constant: Number
    strict: bool = False

    def holds(self, values: Sequence[float] | npt.NDArray[np.float64]) -> bool:
        """True at these values of all variables, decided in exact arithmetic."""
        total = Fraction(self.constant)
        for variable, coefficient in self.terms:
            total += Fraction(coefficient) * Fraction(values[variable])
        return total < 0 or (total == 0 and not self.strict)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All parts hold; without parts: true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """One part holds; without parts: false."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Constraint | Conjunction | Disjunction | Comparisons | Alternatives


def one_by_one(comparisons: Comparisons) -> Iterator[Constraint]:
    """The rows as constraints."""
    for low, high, constant, strict in comparisons.rows():
        if high < 0:
            yield Constraint(((low, 1.0),), 0.0 - constant, strict)
        elif low < 0:
            yield Constraint(((high, -1.0),), constant, strict)
        else:
            yield Constraint(((low, Fraction(1)), (high, Fraction(-1))), Fraction(0), strict)


@dataclass(slots=True)
class _Junction:
    """A conjunction or disjunction under construction: what is left to read, and what is read."""

    kind: type[Conjunction] | type[Disjunction]
    remaining: list[tuple[Expression, bool]]
    parts: list[Formula]


def read_formula(expression: Expression, variables: Mapping[str, int], inputs: int) -> Formula:
    """The formula that `expression` writes. Variables below `inputs` are inputs, the rest outputs.

    Read with an explicit stack, so that depth is not limited; a negation travels down to the
    comparisons.
    """
    junctions = [_Junction(Conjunction, [(expression, True)], [])]
    while True:
        junction = junctions[-1]
        if not junction.remaining:
            junctions.pop()
            parts = junction.parts
            built = parts[0] if len(parts) == 1 else junction.kind(tuple(parts))
            if not junctions:
                return built
            junctions[-1].parts.append(built)
            continue
        part, positive = junction.remaining.pop()
        if isinstance(part, ItemRun):
            _take_run(part, positive, junction, variables, inputs)
            continue
        opened = _open_junction(part, positive)
        if opened is None:
            junction.parts.append(_comparison(part, positive, variables, inputs))
        elif len(opened.remaining) == 1 and not isinstance(opened.remaining[0][0], ItemRun):
            junction.remaining.extend(opened.remaining)
        else:
            junctions.append(opened)


def _take_run(
    run: ItemRun, positive: bool, junction: _Junction, variables: Mapping[str, int], inputs: int
) -> None:
    """Read a run in columns if that can be, and else leave its items to be read one by one."""
    comparisons = read_comparisons(run, variables, inputs) if positive else None
    if comparisons is None:
        items = [(form.parts, positive) for form in run.forms()]
        junction.remaining.extend(reversed(items))
    elif junction.kind is Conjunction or len(comparisons.starts) == 1:
        junction.parts.append(comparisons.rows)
    else:
        junction.parts.append(comparisons)


def _open_junction(expression: str | list[Expression], positive: bool) -> _Junction | None:
    """The connective that `expression` is, its parts still to be read; None for a comparison."""
    if isinstance(expression, str):
        if expression not in {"true", "false"}:
            raise SpecificationError(f"'{expression}' is not a condition")
        return _Junction(Conjunction if (expression == "true") == positive else Disjunction, [], [])
    if not expression or not (isinstance(expression[0], str) and expression[0] in _CONNECTIVES):
        return None
    match expression:
        case ["and", *parts]:
            kind: type[Conjunction] | type[Disjunction] = Conjunction if positive else Disjunction
            remaining = [(part, positive) for part in parts]
        case ["or", *parts]:
            kind = Disjunction if positive else Conjunction
            remaining = [(part, positive) for part in parts]
        case ["not", part]:
            kind, remaining = Conjunction, [(part, not positive)]
        case ["=>", first, *rest] if rest:
            kind = Disjunction if positive else Conjunction
            *premises, conclusion = first, *rest
            remaining = [(part, not positive) for part in premises]
            remaining.append((conclusion, positive))
        case _:
            return None
    remaining.reverse()
    return _Junction(kind, remaining, [])


def _comparison(
    expression: str | list[Expression], positive: bool, variables: Mapping[str, int], inputs: int
) -> Formula:
    operator = expression[0] if expression else ""
    relation = _COMPARISONS.get(operator) if isinstance(operator, str) else None
    if relation is None or len(expression) < 3 or (relation == "!=" and len(expression) > 3):
        raise SpecificationError(
            f"'{show(expression)}' is not a comparison, nor one of and, or, not, =>"
        )
    if not positive:
        relation = _NEGATED[relation]
    if len(expression) == 3 and relation in _ORDERS:
        return _constraint(relation, expression[1], expression[2], variables, inputs)
    links: list[Formula] = []
    for left, right in pairwise(expression[1:]):
        if relation in _ORDERS:
            links.append(_constraint(relation, left, right, variables, inputs))
            continue
        below, above = ("<=", ">=") if relation == "=" else ("<", ">")
        sides = (
            _constraint(below, left, right, variables, inputs),
            _constraint(above, left, right, variables, inputs),
        )
        links.append(Conjunction(sides) if relation == "=" else Disjunction(sides))
    if len(links) == 1:
        return links[0]
    return Conjunction(tuple(links)) if positive else Disjunction(tuple(links))


def _constraint(
    relation: str,
    left: Expression,
    right: Expression,
    variables: Mapping[str, int],
    inputs: int,
) -> Constraint:
    """`left relation right` as a constraint; bounds and orders of two variables go a short way."""
    strict = relation in {"<", ">"}
    low, high = (right, left) if relation in {">", ">="} else (left, right)
    if isinstance(low, str) and isinstance(high, str):
        lesser, greater = variables.get(low), variables.get(high)
        if lesser is not None and greater is None and (bound := number(high)) is not None:
            return Constraint(((lesser, 1.0),), 0.0 - bound, strict)
        if greater is not None and lesser is None and (bound := number(low)) is not None:
            return Constraint(((greater, -1.0),), bound, strict)
    form = affine(["-", low, high], variables)
    terms = tuple((variable, value) for variable, value in form.coefficients.items() if value)
    if len({variable < inputs for variable, _ in terms}) > 1:
        raise SpecificationError(
            f"'{show([relation, left, right])}' compares inputs with outputs, which radii cannot do"
        )
    return Constraint(terms, form.constant, strict)


def satisfied(formula: Formula, values: npt.NDArray[np.float64]) -> bool:
    """The formula is true at these values of all variables, decided in exact arithmetic."""
    enclosing: list[tuple[bool, Iterator[Formula]]] = [(True, iter((formula,)))]
    while True:
        is_conjunction, parts = enclosing[-1]
        part = next(parts, None)
        if isinstance(part, Conjunction | Disjunction):
            enclosing.append((isinstance(part, Conjunction), iter(part.parts)))
            continue
        truth = is_conjunction if part is None else _is_true(part, values)
        if part is None:
            enclosing.pop()
        # A part decides its junction unless its truth is the neutral one there.
        while enclosing and truth != enclosing[-1][0]:
            enclosing.pop()
        if not enclosing:
            return truth


def _is_true(
    part: Constraint | Comparisons | Alternatives, values: npt.NDArray[np.float64]
) -> bool:
    match part:
        case Comparisons():
            return bool(part.hold(values).all())
        case Alternatives():
            return bool(part.hold(values).any())
        case Constraint():
            return part.holds(values)


def is_strict(formula: Formula) -> bool:
    """Some comparison in the formula is strict."""
    stack = [formula]
    while stack:
        match stack.pop():
            case Conjunction(parts) | Disjunction(parts):
                stack.extend(parts)
            case Constraint(strict=True):
                return True
            case Comparisons() as rows if rows.strict.any():
                return True
            case Alternatives(rows) if rows.strict.any():
                return True
    return False
