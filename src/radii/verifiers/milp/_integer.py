"""Mixed-integer programs on HiGHS.

HiGHS bounds a branch by a basis whose reduced costs may have the wrong sign by its tolerance. Each
column or row can turn that into an error of at most the tolerance times its range. So a bound is
believed only after TOLERANCE times the range of all columns and rows is taken off. Integrality
within tolerance only lets more points in: it weakens a bound and never makes it too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import highspy
import numpy as np

from radii.verdicts import Verdict
from radii.verifiers._base import Limits
from radii.verifiers._expressions import Float64
from radii.verifiers._programs import HIGHS_TOLERANCE, Program, exhausted, load, run_highs
from radii.verifiers.milp._branching import SolverResult

CUTOFF_ROOM = 1e-3
"""How far above the value of interest HiGHS may prune, relative to the range of the objective.

A branch is then cut off only by a bound that is larger than needed by much more than any tolerance.
"""

Status = highspy.HighsModelStatus

HIGHS_STATUS_MAP = {
    Status.kTimeLimit: Verdict.TIMEOUT,
    Status.kMemoryLimit: Verdict.MEMOUT,
    Status.kInterrupt: Verdict.CANCELLED,
}
"""Ends without an answer. Others than these, kOptimal and kInfeasible are errors."""


def minimise_exactly(
    program: Program,
    *,
    cutoff: float,
    room: float,
    visit: Callable[[Float64], bool],
    limits: Limits,
    threads: int,
) -> SolverResult:
    """Minimise a program with integers, as far as values up to `cutoff` are of interest.

    Ends early once the bound passes the cutoff, or once `visit`, shown each incumbent, says True.
    """
    error = HIGHS_TOLERANCE * program.total_range
    watch = _HighsCallback(cutoff + error, visit, limits)
    solver = load(program, threads=threads, presolve=True)
    solver.setOptionValue("objective_bound", cutoff + error + room)
    solver.cbMipImprovingSolution += watch.see
    solver.cbMipInterrupt += watch.check
    status = run_highs(solver, limits)
    if watch.failure is not None:
        raise watch.failure
    if status == Status.kInfeasible:
        return SolverResult(cutoff + room, open=False)
    # Branches above the objective bound were dropped, so nothing is known beyond it.
    bound = min(float(solver.getInfo().mip_dual_bound), cutoff + error + room) - error
    if not watch.done and (status == Status.kOptimal or bound > cutoff):
        return SolverResult(bound, open=False, point=watch.best)
    stopped = None if watch.done else watch.stopped or HIGHS_STATUS_MAP.get(status, Verdict.ERROR)
    return SolverResult(bound, open=True, stopped=stopped, point=watch.best)


class _HighsCallback:
    """Sees incumbents, and stops HiGHS when there is no reason to go on."""

    def __init__(self, enough: float, visit: Callable[[Float64], bool], limits: Limits) -> None:
        self.enough = enough
        self.visit = visit
        self.limits = limits
        self.best: Float64 | None = None
        self.done = False
        self.stopped: Verdict | None = None
        self.failure: BaseException | None = None

    def see(self, event: Any) -> None:
        self.best = np.array(event.data_out.mip_solution)
        try:
            self.done = self.done or self.visit(self.best)
        except BaseException as failure:  # must not unwind through HiGHS; raised again after it
            self.failure = failure

    def check(self, event: Any) -> None:
        self.stopped = self.stopped or exhausted(self.limits)
        proven = event.data_out.mip_dual_bound > self.enough
        if self.done or self.stopped or self.failure or proven:
            event.interrupt()
