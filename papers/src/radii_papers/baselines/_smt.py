"""The paper's SMT encoding on Z3: |A| attacks, every point and every classifier at once."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np

from radii.errors import MissingExtra
from radii.problem import Norm
from radii_papers.baselines._base import (
    BaselineProblem,
    BaselineReply,
    BaselineResult,
    Float64,
    ReluClassifier,
    replay_attack,
    units_of,
)

SMT = "smt"


def solve_smt(problem: BaselineProblem) -> BaselineResult:
    """Is there a randomized attack of so many deterministic ones with a value of alpha?"""
    try:
        import z3
    except ImportError:
        raise MissingExtra("z3-solver", "smt", "method 'smt'") from None
    alpha = problem.check_encodable(SMT, needs_alpha=True)
    started, solver = time.perf_counter(), f"Z3 {z3.get_version_string()}"
    encoded = _Encoding(z3, problem, alpha, deadline=started + problem.seconds)
    left = problem.seconds - (time.perf_counter() - started)
    answer = z3.unknown
    if left > 0 and encoded.is_whole:
        encoded.solver.set("timeout", max(1, int(1000 * left)))
        answer = encoded.solver.check()
    spent = time.perf_counter() - started
    if answer == z3.unsat:
        return BaselineResult(SMT, problem, BaselineReply.ROBUST, spent, solver)
    if answer != z3.sat:
        return BaselineResult(SMT, problem, BaselineReply.TIMEOUT, spent, solver)
    model = encoded.solver.model()
    inputs = [
        [np.array([_number(model, variable) for variable in row]) for row in attack]
        for attack in encoded.inputs
    ]
    shares = [_number(model, share) for share in encoded.shares]
    found = replay_attack(problem, shares, inputs)
    return BaselineResult(SMT, problem, BaselineReply.ATTACK, spent, solver, found, claimed=alpha)


class _Encoding:
    """Variables and assertions; not `is_whole` where writing them down ran out of time."""

    def __init__(self, z3: Any, problem: BaselineProblem, alpha: float, deadline: float) -> None:
        self.z3 = z3
        self.is_whole = False
        self.solver: Any = z3.SolverFor("QF_LRA")
        self.shares: list[Any] = [z3.Real(f"p{i}") for i in range(problem.attack_count)]
        self.solver.add(*(share >= 0 for share in self.shares), z3.Sum(self.shares) == 1)
        self.inputs: list[list[list[Any]]] = []
        ensemble, points = problem.ensemble, problem.points
        units = {label: units_of(ensemble, label) for label in {p.label for p in points}}
        losses: list[list[Any]] = [[] for _ in range(len(ensemble))]
        for number, share in enumerate(self.shares):
            perturbed = []
            for place, point in enumerate(points):
                if time.perf_counter() > deadline:
                    return
                ball = ensemble.ball(point, problem.norm, problem.eps)
                inputs = [z3.Real(f"x{number}_{place}_{i}") for i in range(ball.center.size)]
                self._within(inputs, ball.center.ravel(), ball.box(), problem)
                for classifier, each in enumerate(units[point.label]):
                    fooled = self._fooled(each, inputs, f"{number}_{place}_{classifier}")
                    losses[classifier].append(z3.If(fooled, share, 0))
                perturbed.append(inputs)
            self.inputs.append(perturbed)
        needed = self._exact(Fraction(str(alpha))) * len(points)
        for terms in losses:
            self.solver.add(z3.Sum(terms) >= needed)
        self.is_whole = True

    def _within(
        self,
        inputs: list[Any],
        centre: Float64,
        box: tuple[Float64, Float64],
        problem: BaselineProblem,
    ) -> None:
        sizes = []
        for variable, middle, low, high in zip(
            inputs, centre, box[0].ravel(), box[1].ravel(), strict=True
        ):
            self.solver.add(variable >= self._exact(low), variable <= self._exact(high))
            step = variable - self._exact(middle)
            sizes.append(self.z3.If(step >= 0, step, -step))
        if problem.norm is Norm.L1:
            self.solver.add(self.z3.Sum(sizes) <= self._exact(problem.eps))

    def _fooled(self, units: ReluClassifier, inputs: list[Any], name: str) -> Any:
        values: list[Any] = [*inputs, self.z3.RealVal(1)]
        for unit in range(units.rows.shape[0]):
            argument = self._sum(units.rows[[unit]], values)
            value = self.z3.Real(f"u{name}_{unit}")
            self.solver.add(value == self.z3.If(argument > 0, argument, 0))
            values.append(value)
        rivals = range(units.rivals.shape[0])
        return self.z3.Or([self._sum(units.rivals[[place]], values) >= 0 for place in rivals])

    def _sum(self, row: Any, values: list[Any]) -> Any:
        terms = zip(row.indices, row.data, strict=True)
        return self.z3.Sum([self._exact(factor) * values[i] for i, factor in terms])

    def _exact(self, value: float | Fraction) -> Any:
        fraction = value if isinstance(value, Fraction) else Fraction(float(value))
        return self.z3.RatVal(fraction.numerator, fraction.denominator)


def _number(model: Any, variable: Any) -> float:
    found = model.eval(variable, model_completion=True)
    return float(Fraction(found.numerator_as_long(), found.denominator_as_long()))
