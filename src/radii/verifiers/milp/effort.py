"""How the work of the verifier is divided, and the encoding that comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from radii.verdicts import Verdict
from radii.verifiers._base import Limits
from radii.verifiers.case import Case
from radii.verifiers.linear.highs import TOLERANCE
from radii.verifiers.linear.program import Program
from radii.verifiers.milp.branching import Outcome
from radii.verifiers.milp.encoding import Encoding, encode
from radii.verifiers.milp.integer import minimise_exactly
from radii.verifiers.milp.tightening import Tightening

__all__ = ["Effort"]

COARSEST = 1e-5
"""In units of the network's values: what tolerances may make of the largest number, at most."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How the work is divided.

    `branches` is how many branches of each polyhedron are searched over linear relaxations before
    what is left goes to the integer solver; `tightening` is the share of the time that linear
    programs for better bounds may take; `minimise` is that solver.
    """

    threads: int = 1
    branches: int = 4096
    tightening: float = 0.3
    minimise: Callable[..., Outcome] = minimise_exactly

    def integers(self, program: Program, **options: Any) -> Outcome:
        """What the integer solver says; nothing where its tolerances are too coarse for that.

        It then takes programs for infeasible that are not: seen with numbers of 3e6.
        """
        if not program.largest * TOLERANCE <= COARSEST:
            return Outcome(-math.inf, open=True, stopped=Verdict.UNKNOWN)
        return self.minimise(program, **options)

    def encoding(self, case: Case) -> Encoding:
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
