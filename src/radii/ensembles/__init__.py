"""Ensembles of classifiers against randomized attacks, decided exactly.

An attacker mixes perturbations, a defender classifiers. The value of that game is the largest loss
that a randomized attack can force on every classifier at once; an ensemble is (eps, alpha)-robust
where it is below alpha.
"""

from __future__ import annotations

from radii.ensembles.ensemble import Ensemble, Fooling, Point
from radii.ensembles.game import Listed, Solution, Unless, couple, solve
from radii.ensembles.known import Known, Play
from radii.ensembles.measuring import Measurement
from radii.ensembles.proving import Finding, decide_jointly
from radii.ensembles.reading import FILE_NAME, read_known
from radii.ensembles.studies import CriticalEps, RandomizedAttack, Study

__all__ = [
    "FILE_NAME",
    "CriticalEps",
    "Ensemble",
    "Finding",
    "Fooling",
    "Known",
    "Listed",
    "Measurement",
    "Play",
    "Point",
    "RandomizedAttack",
    "Solution",
    "Study",
    "Unless",
    "couple",
    "decide_jointly",
    "read_known",
    "solve",
]
