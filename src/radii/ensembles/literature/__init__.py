"""The methods of "Robustness Verification for Classifier Ensembles", for comparison.

They fix the number of attacks beforehand and encode every attack, point and classifier in one
problem: for an SMT solver (`solve_smt`) or an integer programming solver, as a feasibility problem
(`solve_milp`) or with an objective that sums over classifiers (`solve_milp(maximise=True)`). The
simple attackers combine attacks on single classifiers.
"""

from __future__ import annotations

from radii.ensembles.literature._base import Outcome, Played, Reply, reaches
from radii.ensembles.literature.attackers import best_deterministic_attacker, uniform_attacker
from radii.ensembles.literature.milp import solve_milp
from radii.ensembles.literature.smt import solve_smt

__all__ = [
    "Outcome",
    "Played",
    "Reply",
    "best_deterministic_attacker",
    "reaches",
    "solve_milp",
    "solve_smt",
    "uniform_attacker",
]
