"""The paper's integer program on HiGHS: |A| attacks, every point and every classifier at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import highspy
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
from radii.errors import UnsupportedQuery

INF = highspy.kHighsInf


def solve_milp(
    ensemble: Ensemble,
    points: Sequence[Point],
    *,
    norm: Norm,
    eps: float,
    alpha: float,
    attacks: int,
    seconds: float,
    maximise: bool = False,
) -> BaselineResult:
    """Is there a randomized attack of `attacks` deterministic ones with a value of alpha?

    With `maximise`, the one whose losses add up to most over all classifiers: the paper's MaxMILP.
    """
    if norm is Norm.L2:
        raise UnsupportedQuery("the integer program of the paper has no balls in l2")
    started = time.perf_counter()
    model = _Model(ensemble, points, norm, eps, alpha, attacks, maximise)
    solver: Any = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
    solver.setOptionValue("primal_feasibility_tolerance", 1e-9)
    solver.passModel(model.built())
    left = seconds - (time.perf_counter() - started)
    solver.setOptionValue("time_limit", max(0.01, left))
    solver.run()
    status = solver.getModelStatus()
    spent = time.perf_counter() - started
    if status == highspy.HighsModelStatus.kInfeasible:
        return BaselineResult(BaselineReply.ROBUST, spent)
    is_optimal = status == highspy.HighsModelStatus.kOptimal
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return BaselineResult(BaselineReply.TIMEOUT, spent)
    values = np.array(solver.getSolution().col_value)
    inputs = [[values[columns] for columns in row] for row in model.inputs]
    played = play(ensemble, points, norm, eps, values[model.shares].tolist(), inputs)
    return BaselineResult(BaselineReply.ATTACK, spent, played, is_optimal, alpha)


class _Model:
    """The columns and rows, written down one after the other."""

    def __init__(
        self,
        ensemble: Ensemble,
        points: Sequence[Point],
        norm: Norm,
        eps: float,
        alpha: float,
        attacks: int,
        maximise: bool,
    ) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.cost: list[float] = []
        self.integers: list[int] = []
        self.rows: list[tuple[list[int], list[float], float, float]] = []
        self.maximise = maximise
        self.shares = [self._column(0.0, 1.0) for _ in range(attacks)]
        self._row(self.shares, [1.0] * attacks, 1.0, 1.0)
        self.inputs: list[list[list[int]]] = []
        units = {label: units_of(ensemble, label) for label in {p.label for p in points}}
        losses: list[list[int]] = [[] for _ in range(len(ensemble))]
        for share in self.shares:
            perturbed = []
            for point in points:
                ball = ensemble.ball(point, norm, eps)
                low, high = (side.ravel() for side in ball.box())
                columns = [self._column(a, b) for a, b in zip(low, high, strict=True)]
                if norm is Norm.L1:
                    self._within(columns, ball.center.ravel(), eps)
                for classifier, each in enumerate(units[point.label]):
                    fooled = self._fooled(each, columns, low, high)
                    loss = self._column(0.0, 1.0, cost=1.0 if maximise else 0.0)
                    self._row([loss, share], [1.0, -1.0], -INF, 0.0)
                    self._row([loss, fooled], [1.0, -1.0], -INF, 0.0)
                    losses[classifier].append(loss)
                perturbed.append(columns)
            self.inputs.append(perturbed)
        for columns in losses:
            self._row(columns, [1.0] * len(columns), alpha * len(points), INF)

    def built(self) -> Any:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.low), len(self.rows)
        model.sense_ = highspy.ObjSense.kMaximize if self.maximise else highspy.ObjSense.kMinimize
        model.col_cost_ = np.array(self.cost)
        model.col_lower_, model.col_upper_ = np.array(self.low), np.array(self.high)
        model.row_lower_ = np.array([row[2] for row in self.rows])
        model.row_upper_ = np.array([row[3] for row in self.rows])
        starts = np.cumsum([0, *(len(row[0]) for row in self.rows)])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = starts.astype(np.int32)
        model.a_matrix_.index_ = np.array([i for row in self.rows for i in row[0]], np.int32)
        model.a_matrix_.value_ = np.array([v for row in self.rows for v in row[1]])
        kinds = [highspy.HighsVarType.kContinuous] * len(self.low)
        for column in self.integers:
            kinds[column] = highspy.HighsVarType.kInteger
        model.integrality_ = kinds
        return model

    def _column(self, low: float, high: float, cost: float = 0.0) -> int:
        self.low.append(float(low))
        self.high.append(float(high))
        self.cost.append(cost)
        return len(self.low) - 1

    def _binary(self) -> int:
        self.integers.append(self._column(0.0, 1.0))
        return self.integers[-1]

    def _row(self, columns: list[int], values: list[float], low: float, high: float) -> None:
        self.rows.append((list(columns), list(values), float(low), float(high)))

    def _within(self, columns: list[int], centre: Float64, eps: float) -> None:
        """The absolute values of all steps add up to at most eps."""
        sizes = []
        for column, middle in zip(columns, centre, strict=True):
            size = self._column(0.0, eps)
            self._row([size, column], [1.0, -1.0], -float(middle), INF)
            self._row([size, column], [1.0, 1.0], float(middle), INF)
            sizes.append(size)
        self._row(sizes, [1.0] * len(sizes), -INF, eps)

    def _fooled(self, units: ReluClassifier, inputs: list[int], low: Float64, high: Float64) -> int:
        """A binary column that can be 1 only where the classifier is fooled."""
        under, over, rivals_low, _ = units.bounds(low, high)
        one = self._column(1.0, 1.0)
        columns = [*inputs, one]
        for unit in range(units.rows.shape[0]):
            columns.append(
                self._relu(units.rows[[unit]], columns, float(under[unit]), float(over[unit]))
            )
        chosen = []
        for place in range(units.rivals.shape[0]):
            row = units.rivals[[place]]
            wins = self._binary()
            # rival >= least * (1 - wins): where it wins, it is at least the label.
            least = min(0.0, float(rivals_low[place]))
            self._row([*(columns[i] for i in row.indices), wins], [*row.data, least], least, INF)
            chosen.append(wins)
        if len(chosen) == 1:
            return chosen[0]
        fooled = self._binary()
        self._row([fooled, *chosen], [1.0, *[-1.0] * len(chosen)], -INF, 0.0)
        return fooled

    def _relu(self, row: Any, columns: list[int], low: float, high: float) -> int:
        """A column that is max(0, row @ columns), by the big-M trick with these bounds."""
        if high <= 0:
            return self._column(0.0, 0.0)
        places, factors = [columns[i] for i in row.indices], list(row.data)
        value = self._column(0.0, high)
        minus = [-factor for factor in factors]
        if low >= 0:
            self._row([value, *places], [1.0, *minus], 0.0, 0.0)
            return value
        active = self._binary()
        self._row([value, *places], [1.0, *minus], 0.0, INF)
        self._row([value, *places, active], [1.0, *minus, -low], -INF, -low)
        self._row([value, active], [1.0, -high], -INF, 0.0)
        return value
