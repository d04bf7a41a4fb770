"""From a formula to specifications: disjunctive normal form, grouped by the inputs it speaks about.

The formula says what a counterexample is. Each disjunct is a box of inputs, perhaps cut by further
halfspaces, and a polyhedron of outputs; disjuncts on the same inputs become one specification whose
requirement is broken on the union of their polyhedra. Strict comparisons become weak ones, so the
specifications may admit more than the file: a proof of them all proves the file, and a witness of
one must still be checked against the formula itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.problem import Box, Halfspaces, LinearRequirement, Specification
from radii.vnnlib._expressions import Variables
from radii.vnnlib._formulas import Conjunction, Constraint, Disjunction, Formula, Number, one_by_one
from radii.vnnlib._terms import Alternatives, Comparisons

MAX_DISJUNCTS = 100_000


def specifications(
    formula: Formula, variables: Variables, shape: tuple[int, ...], *, slack: float = 0.0
) -> tuple[Specification, ...]:
    """The formula as specifications on inputs of `shape`; none if no input can satisfy it.

    `slack` tightens every strict comparison by that much, relative to its constant (at least 1).
    """
    groups: dict[tuple[bytes, tuple[Constraint, ...]], list[Halfspaces]] = {}
    known_boxes: dict[int, bytes] = {}
    shared: list[
        _DisjunctBranch
    ] = []  # keeps the lists alive whose identity `known_boxes` relies on
    for branch in _disjuncts(formula, variables.inputs.size, slack):
        if branch.shares_bounds and id(branch.low) in known_boxes:
            box = known_boxes[id(branch.low)]
        else:
            box = _bounded(branch, variables.inputs.names).tobytes()
        if branch.shares_bounds and id(branch.low) not in known_boxes:
            known_boxes[id(branch.low)] = box
            shared.append(branch)
        polyhedron = _polyhedron(branch.outputs, variables.inputs.size, variables.outputs.size)
        groups.setdefault((box, tuple(branch.inputs)), []).append(polyhedron)
    stated = []
    for (box, cuts), polyhedra in groups.items():
        low, high = np.frombuffer(box).reshape(2, *shape).copy()
        inputs = _polyhedron(cuts, 0, variables.inputs.size) if cuts else None
        stated.append(Specification(Box(low, high), LinearRequirement(tuple(polyhedra)), inputs))
    return tuple(stated)


@dataclass(slots=True)
class _DisjunctBranch:
    """One path through the formula's disjunctions: what it demands, and what it has yet to read."""

    low: list[float]
    high: list[float]
    unread: list[Formula]
    slack: float
    inputs: list[Constraint] = field(default_factory=list)
    outputs: list[Constraint] = field(default_factory=list)
    choices: list[Disjunction | Alternatives] = field(default_factory=list)
    shares_bounds: bool = False

    def fork(self, part: Formula) -> _DisjunctBranch:
        """This branch with one more demand. Bounds are copied once one of them changes."""
        return _DisjunctBranch(
            self.low,
            self.high,
            [part],
            self.slack,
            self.inputs.copy(),
            self.outputs.copy(),
            self.choices.copy(),
            shares_bounds=True,
        )

    def read(self) -> bool:
        """Take in all that is unread up to the next choices; False if no input is left."""
        while self.unread:
            part = self.unread.pop()
            match part:
                case Conjunction(parts):
                    self.unread.extend(reversed(parts))
                case Disjunction() | Alternatives():
                    self.choices.append(part)
                case Constraint():
                    if not self._demand(part):
                        return False
                case Comparisons():
                    if not self._demand_all(part):
                        return False
        return True

    def _demand_all(self, comparisons: Comparisons) -> bool:
        """`_demand` of each row, with a short way for bounds of inputs."""
        variable = np.where(comparisons.high < 0, comparisons.low, comparisons.high)
        is_bound = np.minimum(comparisons.low, comparisons.high) < 0
        is_bound &= variable < len(self.low)
        if not all(map(self._demand, one_by_one(comparisons.where(~is_bound)))):
            return False
        for low, high, constant, strict in comparisons.where(is_bound).rows():
            coefficient = 1.0 if high < 0 else -1.0
            offset: Number = 0.0 - constant if high < 0 else constant
            if strict and self.slack:
                offset = self._tightened(offset)
            if not self._bound(max(low, high), coefficient, offset):
                return False
        return True

    def _tightened(self, constant: Number) -> Number:
        """The constant of a strict comparison that is to hold by `slack`."""
        return constant + self.slack * max(1.0, abs(float(constant)))

    def _demand(self, constraint: Constraint) -> bool:
        terms = constraint.terms
        if not terms:
            return constraint.holds(())
        if constraint.strict and self.slack:
            constraint = Constraint(terms, self._tightened(constraint.constant))
        elif constraint.strict:
            constraint = Constraint(terms, constraint.constant)
        if terms[0][0] >= len(self.low):
            self.outputs.append(constraint)
        elif len(terms) > 1:
            self.inputs.append(constraint)
        else:
            return self._bound(terms[0][0], terms[0][1], constraint.constant)
        return True

    def _bound(self, variable: int, coefficient: Number, constant: Number) -> bool:
        """coefficient * variable + constant <= 0; False if that leaves no value."""
        upper = coefficient > 0
        bound = _rounded_quotient(constant, coefficient, upward=upper)
        if (bound >= self.high[variable]) if upper else (bound <= self.low[variable]):
            return True
        if self.shares_bounds:
            self.low, self.high, self.shares_bounds = self.low.copy(), self.high.copy(), False
        (self.high if upper else self.low)[variable] = bound
        return self.low[variable] <= self.high[variable]


def _disjuncts(formula: Formula, inputs: int, slack: float) -> Iterator[_DisjunctBranch]:
    """The branches that some input may take, in the file's order."""
    stack = [_DisjunctBranch([-math.inf] * inputs, [math.inf] * inputs, [formula], slack)]
    visited = 0
    while stack:
        visited += 1
        if visited > MAX_DISJUNCTS:
            raise SpecificationError(
                f"the formula has more than {MAX_DISJUNCTS} disjuncts; split it into several files"
            )
        branch = stack.pop()
        if not branch.read():
            continue
        if branch.choices:
            choice = branch.choices.pop()
            stack.extend(branch.fork(part) for part in reversed(_parts(choice)))
        else:
            yield branch


def _parts(choice: Disjunction | Alternatives) -> list[Formula]:
    """What there is to choose from; alternatives in columns count one by one."""
    if isinstance(choice, Alternatives):
        return list(choice)
    parts: list[Formula] = []
    for part in choice.parts:
        parts.extend(part if isinstance(part, Alternatives) else [part])
    return parts


def _rounded_quotient(constant: Number, coefficient: Number, *, upward: bool) -> float:
    """-constant / coefficient, rounded up or down so that no value is lost."""
    if isinstance(constant, float) and coefficient in (1.0, -1.0):
        return (0.0 - constant if coefficient > 0 else constant) + 0.0
    exact = -Fraction(constant) / Fraction(coefficient)
    try:
        nearest = float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)
    if upward and Fraction(nearest) < exact:
        return math.nextafter(nearest, math.inf)
    if not upward and Fraction(nearest) > exact:
        return math.nextafter(nearest, -math.inf)
    return nearest


def _bounded(branch: _DisjunctBranch, names: tuple[str, ...]) -> npt.NDArray[np.float64]:
    bounds = np.array([branch.low, branch.high])
    for side, values in zip(("lower", "upper"), bounds, strict=True):
        missing = np.flatnonzero(~np.isfinite(values))
        if missing.size:
            raise SpecificationError(
                f"input {names[missing[0]]} has no {side} bound, but every input needs one"
            )
    return bounds


def _polyhedron(
    constraints: list[Constraint] | tuple[Constraint, ...], start: int, size: int
) -> Halfspaces:
    """The constraints as halfspaces of the variables from `start`; all of space without any."""
    if not constraints:
        return Halfspaces(np.zeros((1, size)), np.array([-1.0]))
    matrix = np.zeros((len(constraints), size))
    offset = np.zeros(len(constraints))
    for row, constraint in enumerate(constraints):
        try:
            for variable, coefficient in constraint.terms:
                matrix[row, variable - start] = float(coefficient)
            offset[row] = float(constraint.constant)
        except OverflowError:
            raise SpecificationError("a product of constants is too large for a float64") from None
    return Halfspaces(matrix, offset)
