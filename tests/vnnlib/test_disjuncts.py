"""Formulas against brute force: evaluated by hand-written recursion at points on a coarse grid."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.problem import Specification
from radii.vnnlib import parse_problem

DECLARED = "".join(f"(declare-const {name} Real)" for name in ("X_0", "X_1", "Y_0", "Y_1"))
BOX = "(assert (<= -2 X_0 2)) (assert (<= -2 X_1 2))"

numbers = st.integers(-4, 4).map(lambda k: k / 2)


def terms(names: list[str]) -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.sampled_from(names), numbers)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.just("+"), inner, inner),
            st.tuples(st.just("-"), inner, inner),
            st.tuples(st.just("-"), inner),
            st.tuples(st.just("*"), numbers, inner),
        ),
        max_leaves=4,
    )


def compared(term: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.sampled_from(["<=", "<", ">=", ">", "=", "!="]), term, term)


comparisons = st.one_of(compared(terms(["X_0", "X_1"])), compared(terms(["Y_0", "Y_1"])))
formulas = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("=>"), inner, inner),
        st.lists(inner, max_size=3).map(lambda parts: ("and", *parts)),
        st.lists(inner, max_size=3).map(lambda parts: ("or", *parts)),
    ),
    max_leaves=8,
)
points = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=20)


def text(formula: Any) -> str:
    if isinstance(formula, tuple):
        return f"({' '.join(text(part) for part in formula)})"
    return str(formula)


def value(term: Any, at: dict[str, float]) -> float:
    match term:
        case str():
            return at[term]
        case ("+", left, right):
            return value(left, at) + value(right, at)
        case ("-", left, right):
            return value(left, at) - value(right, at)
        case ("-", only):
            return -value(only, at)
        case ("*", left, right):
            return value(left, at) * value(right, at)
    return float(term)


COMPARE = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "!=": operator.ne,
}


def truth(formula: Any, at: dict[str, float]) -> bool:
    head, *parts = formula
    match head:
        case "and":
            return all(truth(part, at) for part in parts)
        case "or":
            return any(truth(part, at) for part in parts)
        case "not":
            return not truth(parts[0], at)
        case "=>":
            return not truth(parts[0], at) or truth(parts[1], at)
    return bool(COMPARE[head](value(parts[0], at), value(parts[1], at)))


def admitted(found: tuple[Specification, ...], x: Any, y: Any) -> bool:
    """Some specification speaks about x and is broken by y."""
    return any(
        specification.contains(np.array(x))
        and not specification.requirement.holds(np.array([y]), 0.0)[0]
        for specification in found
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(formulas, min_size=1, max_size=3), points)
def test_specifications_equal_the_formula(asserted: list[Any], at: list[Any]) -> None:
    body = " ".join(f"(assert {text(formula)})" for formula in asserted)
    problem = parse_problem(DECLARED + BOX + body)
    closed = problem.specifications((2,))
    # The grid's steps are 1/2, so a slack below that separates strict comparisons from ties.
    inner = problem.specifications((2,), slack=1e-3)
    for x_0, x_1, y_0, y_1 in at:
        values = {"X_0": x_0, "X_1": x_1, "Y_0": y_0, "Y_1": y_1}
        expected = all(truth(formula, values) for formula in asserted)
        assert problem.is_solved_by([x_0, x_1], [y_0, y_1]) == expected
        assert admitted(inner, [x_0, x_1], [y_0, y_1]) == expected
        assert admitted(closed, [x_0, x_1], [y_0, y_1]) or not expected
        if not problem.strict:
            assert admitted(closed, [x_0, x_1], [y_0, y_1]) == expected


def smt(formula: Any) -> str:
    """VNN-LIB 1.0 is a part of SMT-LIB, which writes -1 as (- 1) and != as distinct."""
    if isinstance(formula, tuple):
        if formula in {("and",), ("or",)}:
            return "true" if formula == ("and",) else "false"
        return f"({' '.join(smt(part) for part in formula)})"
    if isinstance(formula, float):
        return f"(- {-formula})" if formula < 0 else f"{formula}"
    name: str = {"!=": "distinct"}.get(formula, formula)
    return name


@settings(max_examples=50, deadline=None)
@given(formulas, points)
def test_truth_equals_that_of_an_smt_solver(formula: Any, at: list[Any]) -> None:
    z3 = pytest.importorskip("z3")
    written = f"{DECLARED} (assert {smt(formula)})"
    problem = parse_problem(written)
    (parsed,) = z3.parse_smt2_string(written)
    names = [z3.Real(name) for name in ("X_0", "X_1", "Y_0", "Y_1")]
    for values in at:
        pairs = [(name, z3.RealVal(str(v))) for name, v in zip(names, values, strict=True)]
        truth_there = z3.is_true(z3.simplify(z3.substitute(parsed, *pairs)))
        assert problem.is_solved_by(values[:2], values[2:]) == truth_there
