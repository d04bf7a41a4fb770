"""The methods of "Robustness Verification for Classifier Ensembles", for comparison.

They fix the number of attacks beforehand and encode every attack, point and classifier in one
problem: for an SMT solver, or for an integer programming solver, without an objective (MILP) or
with one that adds losses up over classifiers (MaxMILP). The simple attackers, uniform (UA) and best
deterministic (BDA), combine attacks on single classifiers (Gross, Jansen, Pérez and Raaijmakers,
ATVA 2020).
"""

from __future__ import annotations

from radii.errors import SpecificationError
from radii_papers.baselines._attackers import (
    BEST_DETERMINISTIC,
    UNIFORM,
    best_deterministic_attacker,
    uniform_attacker,
)
from radii_papers.baselines._base import BaselineProblem, BaselineReply, BaselineResult
from radii_papers.baselines._milp import MAX_MILP, MILP, MipSolver, solve_milp
from radii_papers.baselines._smt import SMT, solve_smt

__all__ = [
    "BASELINES",
    "BaselineProblem",
    "BaselineReply",
    "BaselineResult",
    "MipSolver",
    "run_baseline",
]

BASELINES = {
    MILP: "integer program of |A| attacks that reach alpha",
    MAX_MILP: "the same, with the largest sum of losses",
    SMT: "the same question as SMT, on Z3",
    UNIFORM: "an attack for each classifier, all equally likely",
    BEST_DETERMINISTIC: "the best of these attacks alone",
}
"""What each is."""


def run_baseline(
    method: str, problem: BaselineProblem, *, solver: MipSolver = MipSolver.AUTO
) -> BaselineResult:
    """The answer of one of the `BASELINES`; `solver` is of milp and maxmilp."""
    if method in (MILP, MAX_MILP):
        return solve_milp(problem, maximise=method == MAX_MILP, solver=solver)
    if method == SMT:
        return solve_smt(problem)
    if method == UNIFORM:
        return uniform_attacker(problem)
    if method == BEST_DETERMINISTIC:
        return best_deterministic_attacker(problem)
    raise SpecificationError(f"method '{method}' is not one of {', '.join(BASELINES)}")
