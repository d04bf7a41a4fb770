"""Training: regimes, the papers' architectures, and a loop that resumes to the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_HOMES = {
    "ARCHITECTURES": "_architectures",
    "BayesianNetwork": "_bayesian",
    "Card": "_preparation",
    "Convergence": "_bayesian",
    "Correlation": "studies._results",
    "Cycle": "cycle._description",
    "CycleObserver": "cycle._cycle",
    "Effect": "studies._results",
    "Epoch": "_checkpoints",
    "HYPER_PARAMETERS": "studies._description",
    "Hamiltonian": "_bayesian",
    "RECIPE_KINDS": "studies._description",
    "STUDY_MEASURES": "studies._results",
    "StudyMember": "studies._results",
    "Normalize": "_architectures",
    "TrainingObserver": "_loop",
    "PAPERS": "papers._registry",
    "PrunedNetwork": "_pruning",
    "PruningRound": "_pruning",
    "REGIMES": "_regime",
    "Ramp": "_regime",
    "Recipe": "studies._description",
    "Regime": "_regime",
    "Residual": "_architectures",
    "RobustnessLog": "_callbacks",
    "StudyScale": "papers._steps",
    "StudySettings": "papers._steps",
    "Round": "cycle._rounds",
    "TrainingSettings": "_settings",
    "Step": "_regime",
    "Study": "studies._description",
    "TrainedNetwork": "_runs",
    "Trial": "_tuning",
    "TuningResult": "_tuning",
    "Value": "studies._results",
    "architecture": "_architectures",
    "correlate": "studies._results",
    "correlations": "studies._results",
    "effects": "studies._results",
    "expand": "studies._description",
    "measure_ends": "studies._results",
    "measure_of": "studies._results",
    "claims_lines": "papers._claims",
    "paper_agreement": "papers._page",
    "paper_study": "papers._registry",
    "parse_regime": "_regime",
    "preset_names": "studies._description",
    "preset_tables": "studies._description",
    "prune": "_pruning",
    "read_claims": "papers._claims",
    "read_members": "studies._results",
    "read_rounds": "cycle._cycle",
    "read_tables": "studies._description",
    "run_cycle": "cycle._cycle",
    "run_paper": "papers._running",
    "run_study": "studies._workers",
    "saved_weights": "_checkpoints",
    "train": "_runs",
    "train_bayesian": "_bayesian",
    "tune": "_tuning",
    "write_csv": "studies._results",
    "write_claims": "papers._claims",
    "write_pages": "papers._page",
}

__all__ = [
    "ARCHITECTURES",
    "HYPER_PARAMETERS",
    "PAPERS",
    "RECIPE_KINDS",
    "REGIMES",
    "STUDY_MEASURES",
    "BayesianNetwork",
    "Card",
    "Convergence",
    "Correlation",
    "Cycle",
    "CycleObserver",
    "Effect",
    "Epoch",
    "Hamiltonian",
    "Normalize",
    "PrunedNetwork",
    "PruningRound",
    "Ramp",
    "Recipe",
    "Regime",
    "Residual",
    "RobustnessLog",
    "Round",
    "Step",
    "Study",
    "StudyMember",
    "StudyScale",
    "StudySettings",
    "TrainedNetwork",
    "TrainingObserver",
    "TrainingSettings",
    "Trial",
    "TuningResult",
    "Value",
    "architecture",
    "claims_lines",
    "correlate",
    "correlations",
    "effects",
    "expand",
    "measure_ends",
    "measure_of",
    "paper_agreement",
    "paper_study",
    "parse_regime",
    "preset_names",
    "preset_tables",
    "prune",
    "read_claims",
    "read_members",
    "read_rounds",
    "read_tables",
    "run_cycle",
    "run_paper",
    "run_study",
    "saved_weights",
    "train",
    "train_bayesian",
    "tune",
    "write_claims",
    "write_csv",
    "write_pages",
]

if TYPE_CHECKING:
    from radii.training._architectures import ARCHITECTURES, Normalize, Residual, architecture
    from radii.training._bayesian import BayesianNetwork, Convergence, Hamiltonian, train_bayesian
    from radii.training._callbacks import RobustnessLog
    from radii.training._checkpoints import Epoch, saved_weights
    from radii.training._loop import TrainingObserver
    from radii.training._preparation import Card
    from radii.training._pruning import PrunedNetwork, PruningRound, prune
    from radii.training._regime import REGIMES, Ramp, Regime, Step, parse_regime
    from radii.training._runs import TrainedNetwork, train
    from radii.training._settings import TrainingSettings
    from radii.training._tuning import Trial, TuningResult, tune
    from radii.training.cycle._cycle import CycleObserver, read_rounds, run_cycle
    from radii.training.cycle._description import Cycle
    from radii.training.cycle._rounds import Round
    from radii.training.papers._claims import claims_lines, read_claims, write_claims
    from radii.training.papers._page import paper_agreement, write_pages
    from radii.training.papers._registry import PAPERS, paper_study
    from radii.training.papers._running import run_paper
    from radii.training.papers._steps import StudyScale, StudySettings
    from radii.training.studies._description import (
        HYPER_PARAMETERS,
        RECIPE_KINDS,
        Recipe,
        Study,
        expand,
        preset_names,
        preset_tables,
        read_tables,
    )
    from radii.training.studies._results import (
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
    from radii.training.studies._workers import run_study


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
