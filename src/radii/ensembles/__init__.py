"""Ensembles of classifiers against randomized attacks, decided exactly.

An attacker mixes perturbations, a defender classifiers. The value of that game is the largest loss
that a randomized attack can force on every classifier at once; an ensemble is (eps, alpha)-robust
where it is below alpha.
"""

from __future__ import annotations

from radii.ensembles._defence import Defence
from radii.ensembles._ensemble import Ensemble, Fooling, Point, members
from radii.ensembles._facts import EnsembleResults, Play
from radii.ensembles._game import (
    AllowedSets,
    ListedSets,
    RandomizedAttack,
    Solution,
    couple,
    solve,
)
from radii.ensembles._proofs import JointResult, decide_jointly
from radii.ensembles._records import read_ensemble_results
from radii.ensembles._study import CriticalEps, EnsembleStudy, check_alpha
from radii.ensembles._value import GameValue

__all__ = [
    "AllowedSets",
    "CriticalEps",
    "Defence",
    "Ensemble",
    "EnsembleResults",
    "EnsembleStudy",
    "Fooling",
    "GameValue",
    "JointResult",
    "ListedSets",
    "Play",
    "Point",
    "RandomizedAttack",
    "Solution",
    "check_alpha",
    "couple",
    "decide_jointly",
    "members",
    "read_ensemble_results",
    "solve",
]
