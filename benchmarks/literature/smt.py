"""The paper's SMT encoding on Z3: |A| attacks, every point and every classifier at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.literature.baselines import (
    BaselineReply,
    BaselineResult,
    ReluClassifier,
    play,
    units_of,
)
from radii.balls import Norm
from radii.ensembles import Ensemble, Point
from radii.ensembles._ensemble import Float64
from radii.errors import MissingExtra, UnsupportedQuery


def solve_smt(
    ensemble: Ensemble,
    points: Sequence[Point],
    *,
    norm: Norm,
    eps: float,
    alpha: float,
    attacks: int,
    seconds: float,
) -> BaselineResult:
    """Is there a randomized attack of `attacks` deterministic ones with a value of alpha?"""
    try:
        import z3
    except ImportError:
        raise MissingExtra("z3-solver", "smt", "the SMT encoding of ensembles") from None
    if norm is Norm.L2:
        raise UnsupportedQuery("the SMT encoding of the paper has no balls in l2")
    started = time.perf_counter()
    problem = _Problem(z3, ensemble, points, norm, eps, alpha, attacks)
    left = seconds - (time.perf_counter() - started)
    if left <= 0:
        return BaselineResult(BaselineReply.TIMEOUT, time.perf_counter() - started)
    problem.solver.set("timeout", int(1000 * left))
    answer = problem.solver.check()
    spent = time.perf_counter() - started
    if answer == z3.unsat:
        return BaselineResult(BaselineReply.ROBUST, spent)
    if answer != z3.sat:
        return BaselineResult(BaselineReply.TIMEOUT, spent)
    model = problem.solver.model()
    inputs = [
        [np.array([_number(model, variable) for variable in row]) for row in attack]
        for attack in problem.inputs
    ]
    shares = [_number(model, share) for share in problem.shares]
    played = play(ensemble, points, norm, eps, shares, inputs)
    return BaselineResult(BaselineReply.ATTACK, spent, played, alpha=alpha)


class _Problem:
    def __init__(
        self,
        z3: Any,
        ensemble: Ensemble,
        points: Sequence[Point],
        norm: Norm,
        eps: float,
        alpha: float,
        attacks: int,
    ) -> None:
        self.z3 = z3
        self.solver: Any = z3.SolverFor("QF_LRA")
        self.shares: list[Any] = [z3.Real(f"p{i}") for i in range(attacks)]
        self.solver.add(*(share >= 0 for share in self.shares), z3.Sum(self.shares) == 1)
        self.inputs: list[list[list[Any]]] = []
        units = {label: units_of(ensemble, label) for label in {p.label for p in points}}
        losses: list[list[Any]] = [[] for _ in range(len(ensemble))]
        for number, share in enumerate(self.shares):
            perturbed = []
            for place, point in enumerate(points):
                ball = ensemble.ball(point, norm, eps)
                inputs = [z3.Real(f"x{number}_{place}_{i}") for i in range(ball.center.size)]
                self._within(inputs, ball.center.ravel(), ball.box(), norm, eps)
                for classifier, each in enumerate(units[point.label]):
                    fooled = self._fooled(each, inputs, f"{number}_{place}_{classifier}")
                    losses[classifier].append(z3.If(fooled, share, 0))
                perturbed.append(inputs)
            self.inputs.append(perturbed)
        needed = _exact(z3, alpha) * len(points)
        for terms in losses:
            self.solver.add(z3.Sum(terms) >= needed)

    def _within(
        self,
        inputs: list[Any],
        centre: Float64,
        box: tuple[Float64, Float64],
        norm: Norm,
        eps: float,
    ) -> None:
        sizes = []
        for variable, middle, low, high in zip(
            inputs, centre, box[0].ravel(), box[1].ravel(), strict=True
        ):
            self.solver.add(variable >= _exact(self.z3, low), variable <= _exact(self.z3, high))
            step = variable - _exact(self.z3, middle)
            sizes.append(self.z3.If(step >= 0, step, -step))
        if norm is Norm.L1:
            self.solver.add(self.z3.Sum(sizes) <= _exact(self.z3, eps))

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
        return self.z3.Sum([_exact(self.z3, factor) * values[i] for i, factor in terms])


def _exact(z3: Any, value: float) -> Any:
    fraction = Fraction(float(value))
    return z3.RatVal(fraction.numerator, fraction.denominator)


def _number(model: Any, variable: Any) -> float:
    found = model.eval(variable, model_completion=True)
    return float(Fraction(found.numerator_as_long(), found.denominator_as_long()))
