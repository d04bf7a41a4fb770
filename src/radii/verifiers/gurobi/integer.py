"""Mixed-integer programs on Gurobi, believed as those on HiGHS are.

See `radii.verifiers.milp.integer`: TOLERANCE times the range of all columns and rows is taken off a
bound, and branches are dropped only far beyond the value of interest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from radii.errors import UnsupportedQuery
from radii.verdicts import Verdict
from radii.verifiers._base import Limits
from radii.verifiers.gurobi.licence import SIZE_LIMIT, TOO_LARGE, environment
from radii.verifiers.linear.expressions import Float64
from radii.verifiers.linear.highs import TOLERANCE, exhausted
from radii.verifiers.linear.program import Program
from radii.verifiers.milp.branching import Outcome

__all__ = ["TooLarge", "minimise_with_gurobi"]

BYTES_IN_GIGABYTE = 1e9


class TooLarge(UnsupportedQuery):
    """The licence does not allow a model of this size."""


def minimise_with_gurobi(
    program: Program,
    *,
    cutoff: float,
    room: float,
    visit: Callable[[Float64], bool],
    limits: Limits,
    threads: int,
) -> Outcome:
    """As `minimise_exactly` of `radii.verifiers.milp.integer`, on Gurobi."""
    import gurobipy
    from gurobipy import GRB

    error = TOLERANCE * program.total_range
    watch = _Watch(visit, limits)
    with gurobipy.Model(env=environment()) as model:
        columns = _load(model, program)
        _set_limits(model, limits, threads)
        model.Params.Cutoff = cutoff + error + room
        model.Params.BestBdStop = cutoff + error
        watch.columns = columns
        try:
            model.optimize(watch)
        except gurobipy.GurobiError as problem:
            raise _explained(problem, program) from None
        status, bound = model.Status, float(model.ObjBound)
    if watch.failure is not None:
        raise watch.failure
    if status in (GRB.CUTOFF, GRB.INFEASIBLE):
        return Outcome(cutoff + room, open=False)
    # Branches beyond Cutoff were dropped, so nothing is known beyond it.
    bound = min(bound, cutoff + error + room) - error
    if not watch.done and (status == GRB.OPTIMAL or bound > cutoff):
        return Outcome(bound, open=False, point=watch.best)
    missing = {
        GRB.TIME_LIMIT: Verdict.TIMEOUT,
        GRB.MEM_LIMIT: Verdict.MEMOUT,
        GRB.INTERRUPTED: Verdict.CANCELLED,
    }
    stopped = None if watch.done else watch.stopped or missing.get(status, Verdict.ERROR)
    return Outcome(bound, open=True, stopped=stopped, point=watch.best)


def _load(model: Any, program: Program) -> Any:
    """The program's columns, in a model that has its rows and its objective."""
    from gurobipy import GRB

    kinds = np.full(len(program.low), GRB.CONTINUOUS)
    kinds[list(program.integers)] = GRB.BINARY
    columns = model.addMVar(len(program.low), lb=program.low, ub=program.high, vtype=kinds)
    rows = program.rows
    for side, sense in ((rows.low, GRB.GREATER_EQUAL), (rows.high, GRB.LESS_EQUAL)):
        chosen = np.isfinite(side)
        if chosen.any():
            model.addMConstr(rows.matrix[chosen].tocsr(), columns, sense, side[chosen])
    model.setObjective(program.cost @ columns + program.offset, GRB.MINIMIZE)
    return columns


def _set_limits(model: Any, limits: Limits, threads: int) -> None:
    parameters = {
        "Threads": threads,
        "FeasibilityTol": TOLERANCE,
        "OptimalityTol": TOLERANCE,
        "IntFeasTol": TOLERANCE,
        "MIPGap": 0.0,
        "MIPGapAbs": 0.0,
        "NumericFocus": 2,
    }
    if np.isfinite(limits.remaining):
        parameters["TimeLimit"] = limits.remaining
    if np.isfinite(limits.memory_left):
        parameters["SoftMemLimit"] = limits.memory_left / BYTES_IN_GIGABYTE
    for name, value in parameters.items():
        model.setParam(name, value)


def _explained(problem: Any, program: Program) -> Exception:
    if problem.errno != TOO_LARGE:
        return RuntimeError(f"Gurobi: {problem}")
    return TooLarge(
        f"Gurobi's licence here takes {SIZE_LIMIT} columns and rows, and the model has "
        f"{len(program.low)} columns and {len(program.rows)} rows; use verifier 'milp'"
    )


class _Watch:
    """Gurobi's callback: sees incumbents, and stops when there is no reason to go on."""

    def __init__(self, visit: Callable[[Float64], bool], limits: Limits) -> None:
        self.visit = visit
        self.limits = limits
        self.columns: Any = None
        self.best: Float64 | None = None
        self.done = False
        self.stopped: Verdict | None = None
        self.failure: BaseException | None = None

    def __call__(self, model: Any, where: int) -> None:
        from gurobipy import GRB

        try:
            if where == GRB.Callback.MIPSOL:
                self.best = np.array(model.cbGetSolution(self.columns))
                self.done = self.done or self.visit(self.best)
            elif where == GRB.Callback.POLLING or where == GRB.Callback.MIP:
                self.stopped = self.stopped or exhausted(self.limits)
        except BaseException as failure:  # must not unwind through Gurobi; raised again after it
            self.failure = failure
        if self.done or self.stopped or self.failure:
            model.terminate()
