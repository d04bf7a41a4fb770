"""The paper's integer program: |A| attacks, every point and every classifier at once.

On Gurobi where its package and a licence are found that takes the model, else on HiGHS.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

from radii.errors import UnsupportedQuery
from radii.problem import Norm
from radii.verifiers import gurobi_environment, gurobi_refusal
from radii_papers.baselines._base import (
    BaselineProblem,
    BaselineReply,
    BaselineResult,
    Float64,
    ReluClassifier,
    replay_attack,
    units_of,
)

INF = highspy.kHighsInf

MIP_TOLERANCE = 1e-9
"""Of feasibility: big-M constants reach 1e5 in balls of the paper, so HiGHS' own 1e-6 lets units be
off by 0.1."""

STRICT_MARGIN = 1e-5
"""By how much a rival must win for a classifier to count as fooled, as a share of the largest score
that interval bounds leave it. Solvers end on ties, which their tolerances times a big-M constant,
and the float32 arithmetic of the replay, turn either way."""

MILP, MAX_MILP = "milp", "maxmilp"


class MipSolver(StrEnum):
    """Who solves an integer program. AUTO: Gurobi where it can be used, else HiGHS."""

    AUTO = "auto"
    GUROBI = "gurobi"
    HIGHS = "highs"


def solve_milp(
    problem: BaselineProblem, *, maximise: bool = False, solver: MipSolver = MipSolver.AUTO
) -> BaselineResult:
    """Is there a randomized attack of so many deterministic ones with a value of alpha?

    With `maximise`, the one whose losses add up to most over all classifiers: the paper's MaxMILP.
    Its result claims the solver's objective, and is optimal only if the replayed attack reaches it.

    Rivals win by a `STRICT_MARGIN`, though a tie is a loss by the paper's definition: so ROBUST
    speaks of attacks that win by that much.
    """
    method = MAX_MILP if maximise else MILP
    alpha = problem.check_encodable(method, needs_alpha=not maximise)
    started = time.perf_counter()
    model = EnsembleProgram.of(problem, alpha, maximise, deadline=started + problem.seconds)
    if not model.is_whole:
        note = "the limit ended while the program was written down"
        spent = time.perf_counter() - started
        return BaselineResult(method, problem, BaselineReply.TIMEOUT, spent, "none", note=note)
    chosen, note = _choose(solver, model)
    left = max(0.01, problem.seconds - (time.perf_counter() - started))
    found = _SOLVERS[chosen](model, left)
    spent = time.perf_counter() - started
    if found.is_infeasible:
        return BaselineResult(method, problem, BaselineReply.ROBUST, spent, found.solver, note=note)
    if found.values is None:
        return BaselineResult(
            method, problem, BaselineReply.TIMEOUT, spent, found.solver, note=note
        )
    inputs = [[found.values[columns] for columns in row] for row in model.inputs]
    attack = replay_attack(problem, found.values[model.shares].tolist(), inputs)
    result = BaselineResult(
        method, problem, BaselineReply.ATTACK, spent, found.solver, attack, claimed=alpha, note=note
    )
    if not maximise:
        return result
    value, mean_loss = model.claims(found.values, len(problem.points))
    claiming = replace(result, claimed=value, claimed_mean_loss=mean_loss)
    is_reached = claiming.is_replayed and claiming.reaches_objective
    return replace(claiming, is_optimal=found.is_optimal and is_reached)


@dataclass(frozen=True, slots=True, eq=False)
class _MipAnswer:
    """The values of all columns, None without a solution; and what the solver says of it."""

    solver: str
    values: Float64 | None = None
    is_infeasible: bool = False
    is_optimal: bool = False


@dataclass(slots=True, eq=False)
class EnsembleProgram:
    """Columns and rows, written down one after the other; `is_whole` once all are.

    `shares` are the columns of the attacks' probabilities, `inputs` those of the perturbed points
    by attack and point, `losses` those of each classifier by attack and point.
    """

    maximise: bool
    is_whole: bool = False
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    rows: list[tuple[list[int], list[float], float, float]] = field(default_factory=list)
    shares: list[int] = field(default_factory=list)
    inputs: list[list[list[int]]] = field(default_factory=list)
    losses: list[list[int]] = field(default_factory=list)
    _bounds: dict[tuple[int, int], tuple[Float64, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, problem: BaselineProblem, alpha: float, maximise: bool, deadline: float
    ) -> EnsembleProgram:
        """The program of a problem."""
        made = cls(maximise)
        made.shares = [made._column(0.0, 1.0) for _ in range(problem.attack_count)]
        made._row(made.shares, [1.0] * len(made.shares), 1.0, 1.0)
        labels = {point.label for point in problem.points}
        units = {label: units_of(problem.ensemble, label) for label in labels}
        made.losses = [[] for _ in range(len(problem.ensemble))]
        for share in made.shares:
            perturbed = []
            for place in range(len(problem.points)):
                if time.perf_counter() > deadline:
                    return made
                columns = made._attack_point(problem, place, share, units)
                perturbed.append(columns)
            made.inputs.append(perturbed)
        for columns in made.losses:
            made._row(columns, [1.0] * len(columns), alpha * len(problem.points), INF)
        made.is_whole = True
        return made

    def matrix(self) -> csr_array:
        starts = np.cumsum([0, *(len(row[0]) for row in self.rows)])
        places = np.array([i for row in self.rows for i in row[0]], np.int32)
        values = np.array([v for row in self.rows for v in row[1]])
        return csr_array((values, places, starts), shape=(len(self.rows), len(self.low)))

    def sides(self) -> tuple[Float64, Float64]:
        """What each row is at least and at most."""
        return np.array([row[2] for row in self.rows]), np.array([row[3] for row in self.rows])

    def claims(self, values: Float64, points: int) -> tuple[float, float]:
        """The value of the solver's attack by its own arithmetic, and the mean loss over all
        classifiers, which is what MaxMILP maximises."""
        means = [float(values[columns].sum()) / points for columns in self.losses]
        return min(means), sum(means) / len(means)

    def _attack_point(
        self,
        problem: BaselineProblem,
        place: int,
        share: int,
        units: dict[int, list[ReluClassifier]],
    ) -> list[int]:
        """One attack at one point: its inputs, and for each classifier what it loses by them."""
        point = problem.points[place]
        ball = problem.ensemble.ball(point, problem.norm, problem.eps)
        low, high = (side.ravel() for side in ball.box())
        columns = [self._column(a, b) for a, b in zip(low, high, strict=True)]
        if problem.norm is Norm.L1:
            self._within(columns, ball.center.ravel(), problem.eps)
        for classifier, each in enumerate(units[point.label]):
            if (place, classifier) not in self._bounds:  # every attack has the same ball
                self._bounds[place, classifier] = each.bounds(low, high)
            fooled = self._fooled(each, columns, self._bounds[place, classifier])
            loss = self._column(0.0, 1.0, cost=1.0 if self.maximise else 0.0)
            self._row([loss, share], [1.0, -1.0], -INF, 0.0)
            self._row([loss, fooled], [1.0, -1.0], -INF, 0.0)
            self.losses[classifier].append(loss)
        return columns

    def _column(self, low: float, high: float, cost: float = 0.0) -> int:
        self.low.append(float(low))
        self.high.append(float(high))
        self.cost.append(cost)
        return len(self.low) - 1

    def _binary(self) -> int:
        self.integers.append(self._column(0.0, 1.0))
        return self.integers[-1]

    def _row(self, columns: Sequence[int], values: list[float], low: float, high: float) -> None:
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

    def _fooled(self, units: ReluClassifier, inputs: list[int], bounds: tuple[Float64, ...]) -> int:
        """A binary column that can be 1 only where the classifier is fooled."""
        under, over, rivals_low, rivals_high = bounds
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
            low, high = float(rivals_low[place]), float(rivals_high[place])
            least, margin = min(0.0, low), STRICT_MARGIN * max(abs(low), abs(high))
            # rival >= margin * wins + least * (1 - wins), of scores less that of the label
            self._row(
                [*(columns[i] for i in row.indices), wins], [*row.data, least - margin], least, INF
            )
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


def _choose(asked: MipSolver, model: EnsembleProgram) -> tuple[MipSolver, str]:
    """The solver, and why it is not Gurobi where it could have been."""
    if asked is MipSolver.HIGHS:
        return asked, ""
    rows = sum(int(np.isfinite(side).sum()) for side in model.sides())
    reason = gurobi_refusal(len(model.low), rows)
    if reason is None:
        return MipSolver.GUROBI, ""
    if asked is MipSolver.GUROBI:
        raise UnsupportedQuery(f"{reason}: use --solver highs")
    return MipSolver.HIGHS, reason


def _on_highs(model: EnsembleProgram, seconds: float) -> _MipAnswer:
    made, matrix = highspy.HighsLp(), model.matrix()
    made.num_col_, made.num_row_ = len(model.low), len(model.rows)
    made.sense_ = highspy.ObjSense.kMaximize if model.maximise else highspy.ObjSense.kMinimize
    made.col_cost_ = np.array(model.cost)
    made.col_lower_, made.col_upper_ = np.array(model.low), np.array(model.high)
    made.row_lower_, made.row_upper_ = model.sides()
    made.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    made.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    made.a_matrix_.index_, made.a_matrix_.value_ = matrix.indices, matrix.data
    kinds = [highspy.HighsVarType.kContinuous] * len(model.low)
    for column in model.integers:
        kinds[column] = highspy.HighsVarType.kInteger
    made.integrality_ = kinds
    solver: Any = highspy.Highs()
    solver.silent()
    for name, value in {
        "threads": 1,
        "mip_feasibility_tolerance": MIP_TOLERANCE,
        "primal_feasibility_tolerance": MIP_TOLERANCE,
        "time_limit": seconds,
    }.items():
        solver.setOptionValue(name, value)
    solver.passModel(made)
    solver.run()
    status, name = solver.getModelStatus(), f"HiGHS {solver.version()}"
    if status == highspy.HighsModelStatus.kInfeasible:
        return _MipAnswer(name, is_infeasible=True)
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return _MipAnswer(name)
    values = np.array(solver.getSolution().col_value)
    return _MipAnswer(name, values, is_optimal=status == highspy.HighsModelStatus.kOptimal)


def _on_gurobi(model: EnsembleProgram, seconds: float) -> _MipAnswer:
    import gurobipy
    from gurobipy import GRB

    name = f"Gurobi {'.'.join(map(str, gurobipy.gurobi.version()))}"
    kinds = np.full(len(model.low), GRB.CONTINUOUS)
    kinds[model.integers] = GRB.BINARY
    matrix, sides = model.matrix(), model.sides()
    with gurobipy.Model(env=gurobi_environment()) as made:
        low, high = np.array(model.low), np.array(model.high)
        columns = made.addMVar(len(low), lb=low, ub=high, vtype=kinds)
        for side, sense in zip(sides, (GRB.GREATER_EQUAL, GRB.LESS_EQUAL), strict=True):
            chosen = np.isfinite(side)
            made.addMConstr(matrix[chosen], columns, sense, side[chosen])
        direction = GRB.MAXIMIZE if model.maximise else GRB.MINIMIZE
        made.setObjective(np.array(model.cost) @ columns, direction)
        for option, value in {
            "Threads": 1,
            "TimeLimit": seconds,
            "FeasibilityTol": MIP_TOLERANCE,
            "IntFeasTol": MIP_TOLERANCE,
        }.items():
            made.setParam(option, value)
        made.optimize()
        if made.Status == GRB.INFEASIBLE:
            return _MipAnswer(name, is_infeasible=True)
        if not made.SolCount:
            return _MipAnswer(name)
        return _MipAnswer(name, np.array(columns.X), is_optimal=made.Status == GRB.OPTIMAL)


_SOLVERS = {MipSolver.HIGHS: _on_highs, MipSolver.GUROBI: _on_gurobi}
