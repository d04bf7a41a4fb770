"""What Gurobi's licence on this machine allows. The package loads on use."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from radii.errors import MissingExtra, UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    FLOAT,
    Arithmetic,
    Instance,
    Limits,
    LinearRequirement,
    Norm,
    Requirement,
    Specification,
    Verdict,
)
from radii.verifiers._base import Answer, RadiusAnswer
from radii.verifiers._expressions import Float64
from radii.verifiers._programs import HIGHS_TOLERANCE, Program, exhausted, highs_version
from radii.verifiers.milp._branching import SolverResult
from radii.verifiers.milp._tightening import MilpOptions
from radii.verifiers.milp._verifier import Milp

SIZE_LIMIT = 2000
"""Columns, and rows, that the licence which comes with the package allows."""

TOO_LARGE_CODE = 10010
"""Gurobi's error for a model beyond that."""


def gurobi_version() -> str:
    """The version of Gurobi, as stored with results."""
    if find_spec("gurobipy") is None:
        return "Gurobi is not installed"
    import gurobipy

    return f"Gurobi {'.'.join(map(str, gurobipy.gurobi.version()))}"


def refusal() -> str | None:
    """Why Gurobi cannot be used here; None if it can."""
    if find_spec("gurobipy") is None:
        return str(MissingExtra("gurobipy", "gurobi", "verifier 'gurobi'"))
    import gurobipy

    try:
        environment()
    except gurobipy.GurobiError as error:
        return f"verifier 'gurobi' finds no licence: {error}"
    return None


@lru_cache(maxsize=1)
def environment() -> Any:
    """A silent environment, kept for the life of the process: starting one may ask a server."""
    import gurobipy

    made = gurobipy.Env(empty=True)
    made.setParam("OutputFlag", 0)
    made.start()
    return made


@lru_cache(maxsize=1)
def is_limited() -> bool:
    """The licence takes no more than SIZE_LIMIT columns: tried out with one more."""
    import gurobipy

    with gurobipy.Model(env=environment()) as model:
        model.addMVar(SIZE_LIMIT + 1)
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            return bool(error.errno == TOO_LARGE_CODE)
    return False


def gurobi_refusal(columns: int, rows: int) -> str | None:
    """Why Gurobi cannot solve a program of this size here; None if it can."""
    reason = refusal()
    if reason is not None:
        return reason
    if max(columns, rows) <= SIZE_LIMIT or not is_limited():
        return None
    return (
        f"Gurobi's licence here takes {SIZE_LIMIT} columns and rows, and the model has {columns} "
        f"columns and {rows} rows"
    )


# Mixed-integer programs on Gurobi, believed as those on HiGHS are.
#
# See `radii.verifiers.milp._branching`: TOLERANCE times the range of all columns and rows is taken
# off a bound, and branches are dropped only far beyond the value of interest.


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
) -> SolverResult:
    """As `minimise_exactly` of `radii.verifiers.milp._branching`, on Gurobi."""
    import gurobipy
    from gurobipy import GRB

    error = HIGHS_TOLERANCE * program.total_range
    watch = _GurobiCallback(visit, limits)
    with gurobipy.Model(env=environment()) as model:
        columns = _load(model, program)
        _set_limits(model, limits, threads)
        model.Params.Cutoff = cutoff + error + room
        model.Params.BestBdStop = cutoff + error
        watch.columns = columns
        try:
            model.optimize(watch)
        except gurobipy.GurobiError as problem:
            raise _gurobi_error(problem, program) from None
        status, bound = model.Status, float(model.ObjBound)
    if watch.failure is not None:
        raise watch.failure
    if status in (GRB.CUTOFF, GRB.INFEASIBLE):
        return SolverResult(cutoff + room, open=False)
    # Branches beyond Cutoff were dropped, so nothing is known beyond it.
    bound = min(bound, cutoff + error + room) - error
    if not watch.done and (status == GRB.OPTIMAL or bound > cutoff):
        return SolverResult(bound, open=False, point=watch.best)
    missing = {
        GRB.TIME_LIMIT: Verdict.TIMEOUT,
        GRB.MEM_LIMIT: Verdict.MEMOUT,
        GRB.INTERRUPTED: Verdict.CANCELLED,
    }
    stopped = None if watch.done else watch.stopped or missing.get(status, Verdict.ERROR)
    return SolverResult(bound, open=True, stopped=stopped, point=watch.best)


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
        "FeasibilityTol": HIGHS_TOLERANCE,
        "OptimalityTol": HIGHS_TOLERANCE,
        "IntFeasTol": HIGHS_TOLERANCE,
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


def _gurobi_error(problem: Any, program: Program) -> Exception:
    if problem.errno != TOO_LARGE_CODE:
        return RuntimeError(f"Gurobi: {problem}")
    return TooLarge(
        f"Gurobi's licence here takes {SIZE_LIMIT} columns and rows, and the model has "
        f"{len(program.low)} columns and {len(program.rows)} rows; use verifier 'milp'"
    )


class _GurobiCallback:
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


# The verifier `gurobi`: `milp`, with integer programs on Gurobi.


class Gurobi(Milp):
    """As `Milp`: linear programs on HiGHS; what these leave open goes to Gurobi at once.

    With the licence that comes with the package, models of more than 2000 columns or rows are
    refused: before any work where the input alone is as large, else as a missing answer.
    """

    name = "gurobi"

    def __init__(
        self,
        *,
        threads: int = 1,
        branches: int = 0,
        tightening: float = 0.3,
        arithmetic: Arithmetic = FLOAT,
        certificates: bool = False,
    ) -> None:
        self.effort = MilpOptions(
            threads=threads,
            branches=branches,
            tightening=tightening,
            minimise=minimise_with_gurobi,
        )
        self.arithmetic = arithmetic
        self.certificates = certificates

    @property
    def version(self) -> str:
        return f"{gurobi_version()}, HiGHS {highs_version()}"

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind) or refusal()
        inputs = math.prod(network.input_shape)
        if reason is None and inputs >= SIZE_LIMIT and is_limited():
            reason = (
                f"verifier '{self.name}' does not decide {network.name}: it has {inputs} inputs, "
                f"and Gurobi's licence here takes models of {SIZE_LIMIT} columns"
            )
        return reason

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        try:
            return super().run(network, specification, limits)
        except TooLarge as error:
            return Answer(Verdict.ERROR, message=str(error))

    def measure(
        self, network: Network, instance: Instance, limits: Limits, upper: float
    ) -> RadiusAnswer:
        try:
            return super().measure(network, instance, limits, upper)
        except TooLarge as error:
            return RadiusAnswer(0.0, stopped=Verdict.ERROR, message=str(error))
