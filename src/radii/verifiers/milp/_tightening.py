"""Bounds on the inputs of unsettled units from linear programs, the most promising units first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii.problem import Limits, Verdict
from radii.verifiers._case import BoundedProblem
from radii.verifiers._expressions import Affine, Float64, widened_to
from radii.verifiers._programs import HIGHS_TOLERANCE, LinearRelaxation, Program, exhausted
from radii.verifiers.milp._branching import SolverResult, minimise_exactly
from radii.verifiers.milp._encoding import Encoding, encode
from radii.verifiers.milp._programs import relaxed_program


@dataclass(frozen=True, slots=True)
class Tightening:
    """Improves bounds by two linear programs a unit, within a share of the time."""

    limits: Limits
    share: Limits
    threads: int

    def __call__(
        self, encoding: Encoding, rows: Affine, low: Float64, high: Float64, knees: Float64
    ) -> tuple[Float64, Float64]:
        relaxation = LinearRelaxation(relaxed_program(encoding), self.limits, threads=self.threads)
        low, high = low.copy(), high.copy()
        _improve(relaxation, rows, low, high, knees, self.share)
        return low, high


def _improve(
    relaxation: LinearRelaxation,
    rows: Affine,
    low: Float64,
    high: Float64,
    knees: Float64,
    share: Limits,
) -> None:
    """Improve, in place, the bounds that still have a knee between them.

    Row i turns at `knees[:, i]`. Those nearest to being settled go first, and of each the side
    nearer to a knee: where it settles the row, the other side is not needed.
    """
    matrix = widened_to(rows.matrix, len(relaxation.low))
    below, above = (np.abs(knees - side).min(axis=0) for side in (low, high))
    nearest = np.minimum(below, above) / np.maximum(high - low, np.finfo(float).tiny)
    for index in np.argsort(nearest, kind="stable"):
        for side in (1.0, -1.0) if below[index] <= above[index] else (-1.0, 1.0):
            if not np.any((low[index] < knees[:, index]) & (knees[:, index] < high[index])):
                break
            if exhausted(share):
                return
            cost = matrix[[index]].toarray().ravel()
            relaxation.aim(side * cost, side * rows.offset[index])
            found = relaxation.minimum().bound - rows.error[index]
            if found == np.inf:  # the region is empty: any bounds hold
                return
            if side > 0:
                low[index] = max(low[index], found)
            else:
                high[index] = min(high[index], -found)


# How the work of the verifier is divided, and the encoding that comes of it.


COARSEST_TOLERANCE = 1e-5
"""In units of the network's values: what tolerances may make of the largest number, at most."""


@dataclass(frozen=True, slots=True)
class MilpOptions:
    """How the work is divided.

    `branches` is how many branches of each polyhedron are searched over linear relaxations before
    what is left goes to the integer solver; `tightening` is the share of the time that linear
    programs for better bounds may take; `minimise` is that solver.
    """

    threads: int = 1
    branches: int = 4096
    tightening: float = 0.3
    minimise: Callable[..., SolverResult] = minimise_exactly

    def integers(self, program: Program, **options: Any) -> SolverResult:
        """What the integer solver says; nothing where its tolerances are too coarse for that.

        It then takes programs for infeasible that are not: seen with numbers of 3e6.
        """
        if not program.largest * HIGHS_TOLERANCE <= COARSEST_TOLERANCE:
            return SolverResult(-math.inf, open=True, stopped=Verdict.UNKNOWN)
        return self.minimise(program, **options)

    def encoding(self, case: BoundedProblem) -> Encoding:
        """The case as columns and units, with bounds as tight as the share of time allows."""
        limits = case.limits
        seconds = self.tightening * limits.remaining
        share = Limits(seconds, limits.memory_bytes, limits.cancelled)
        return encode(
            case.fusion,
            case.specification.region,
            case.stages,
            case.output,
            halfspaces=case.specification.inputs,
            tighten=Tightening(limits, share, self.threads),
        )
