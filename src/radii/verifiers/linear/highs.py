"""HiGHS as radii uses it: silent, on given threads, with tight tolerances and hard limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

from radii.verdicts import Verdict
from radii.verifiers._base import Limits
from radii.verifiers.linear.program import Program

__all__ = ["TOLERANCE", "exhausted", "highs_version", "load", "run"]

TOLERANCE = 1e-9
"""Primal, dual and integrality tolerance asked of HiGHS, whose finest is 1e-10.

What a tolerance of the solver can do to a bound is proportional to it; see `integer.py`.
"""


def highs_version() -> str:
    """The version of HiGHS, as stored with results."""
    return (
        f"{highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"
    )


def load(program: Program, *, threads: int, presolve: bool) -> Any:
    """A HiGHS object that holds the program."""
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    options = {
        "threads": threads,
        "parallel": "off" if threads == 1 else "choose",
        "presolve": "choose" if presolve else "off",
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "mip_feasibility_tolerance": TOLERANCE,
        "mip_abs_gap": 0.0,
        "mip_rel_gap": 0.0,
        # Relaxations of networks are scaled well as they are; leaving them saves iterations.
        "simplex_scale_strategy": 0,
        # Entries that small were dropped with their slack; HiGHS must not drop others.
        "small_matrix_value": 1e-12,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(program))
    return solver


def _model(program: Program) -> Any:
    matrix = csr_array(program.rows.matrix)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.low), len(program.rows)
    model.col_cost_, model.offset_ = program.cost, program.offset
    model.col_lower_, model.col_upper_ = program.low, program.high
    model.row_lower_, model.row_upper_ = program.rows.low, program.rows.high
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = matrix.data
    if program.integers:
        kinds = [highspy.HighsVarType.kContinuous] * len(program.low)
        for column in program.integers:
            kinds[column] = highspy.HighsVarType.kInteger
        model.integrality_ = kinds
    return model


def run(solver: Any, limits: Limits) -> Any:
    """Solve within the limits; the model's status. HiGHS counts its time over all runs."""
    remaining = limits.remaining
    if np.isfinite(remaining):
        solver.setOptionValue("time_limit", solver.getRunTime() + remaining)
    solver.run()
    return solver.getModelStatus()


def exhausted(limits: Limits) -> Verdict | None:
    """TIMEOUT, CANCELLED or MEMOUT once it is time to stop, else None."""
    if limits.memory_bytes is not None and _resident_bytes() > limits.memory_bytes:
        return Verdict.MEMOUT
    return limits.expired


_PAGES = Path("/proc/self/statm")
_PAGE_BYTES = 4096


def _resident_bytes() -> int:
    """Memory this process holds; 0 where the system does not tell, and others must watch it."""
    try:
        return int(_PAGES.read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
