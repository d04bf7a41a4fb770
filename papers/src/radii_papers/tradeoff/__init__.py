"""Robustness against accuracy: the networks of a grid, how they are made, measured and compared."""

from __future__ import annotations

from radii_papers.tradeoff._bayesian import (
    BayesianNetwork,
    Convergence,
    Hamiltonian,
    train_bayesian,
)
from radii_papers.tradeoff._description import (
    HYPER_PARAMETERS,
    RECIPE_KINDS,
    Recipe,
    Study,
    expand,
    preset_names,
    preset_tables,
    read_tables,
)
from radii_papers.tradeoff._pruning import PrunedNetwork, PruningRound, prune
from radii_papers.tradeoff._results import (
    STUDY_MEASURES,
    Correlation,
    Effect,
    StudyMember,
    Value,
    correlate,
    correlations,
    effects,
    measure_ends,
    measure_of,
    read_members,
    write_csv,
)
from radii_papers.tradeoff._workers import run_study

__all__ = [
    "HYPER_PARAMETERS",
    "RECIPE_KINDS",
    "STUDY_MEASURES",
    "BayesianNetwork",
    "Convergence",
    "Correlation",
    "Effect",
    "Hamiltonian",
    "PrunedNetwork",
    "PruningRound",
    "Recipe",
    "Study",
    "StudyMember",
    "Value",
    "correlate",
    "correlations",
    "effects",
    "expand",
    "measure_ends",
    "measure_of",
    "preset_names",
    "preset_tables",
    "prune",
    "read_members",
    "read_tables",
    "run_study",
    "train_bayesian",
    "write_csv",
]
