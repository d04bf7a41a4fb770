"""Training: regimes, the papers' architectures, and a loop that resumes to the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_HOMES = {
    "replacing": "_checkpoints",
    "claimed": "_checkpoints",
    "Holdout": "_loop",
    "NETWORK_FILE": "_runs",
    "ARCHITECTURES": "_architectures",
    "BayesianNetwork": "_bayesian",
    "Card": "_preparation",
    "Convergence": "_bayesian",
    "Cycle": "cycle._description",
    "CycleObserver": "cycle._cycle",
    "Epoch": "_checkpoints",
    "Hamiltonian": "_bayesian",
    "Normalize": "_architectures",
    "TrainingObserver": "_loop",
    "PrunedNetwork": "_pruning",
    "PruningRound": "_pruning",
    "REGIMES": "_regime",
    "Ramp": "_regime",
    "Regime": "_regime",
    "Residual": "_architectures",
    "RobustnessLog": "_callbacks",
    "Round": "cycle._rounds",
    "TrainingSettings": "_settings",
    "Step": "_regime",
    "TrainedNetwork": "_runs",
    "Trial": "_tuning",
    "TuningResult": "_tuning",
    "architecture": "_architectures",
    "parse_regime": "_regime",
    "prune": "_pruning",
    "read_rounds": "cycle._cycle",
    "run_cycle": "cycle._cycle",
    "saved_weights": "_checkpoints",
    "train": "_runs",
    "train_bayesian": "_bayesian",
    "tune": "_tuning",
}

__all__ = [
    "ARCHITECTURES",
    "NETWORK_FILE",
    "REGIMES",
    "BayesianNetwork",
    "Card",
    "Convergence",
    "Cycle",
    "CycleObserver",
    "Epoch",
    "Hamiltonian",
    "Holdout",
    "Normalize",
    "PrunedNetwork",
    "PruningRound",
    "Ramp",
    "Regime",
    "Residual",
    "RobustnessLog",
    "Round",
    "Step",
    "TrainedNetwork",
    "TrainingObserver",
    "TrainingSettings",
    "Trial",
    "TuningResult",
    "architecture",
    "claimed",
    "parse_regime",
    "prune",
    "read_rounds",
    "replacing",
    "run_cycle",
    "saved_weights",
    "train",
    "train_bayesian",
    "tune",
]

if TYPE_CHECKING:
    from radii.training._architectures import ARCHITECTURES, Normalize, Residual, architecture
    from radii.training._bayesian import BayesianNetwork, Convergence, Hamiltonian, train_bayesian
    from radii.training._callbacks import RobustnessLog
    from radii.training._checkpoints import Epoch, claimed, replacing, saved_weights
    from radii.training._loop import Holdout, TrainingObserver
    from radii.training._preparation import Card
    from radii.training._pruning import PrunedNetwork, PruningRound, prune
    from radii.training._regime import REGIMES, Ramp, Regime, Step, parse_regime
    from radii.training._runs import NETWORK_FILE, TrainedNetwork, train
    from radii.training._settings import TrainingSettings
    from radii.training._tuning import Trial, TuningResult, tune
    from radii.training.cycle._cycle import CycleObserver, read_rounds, run_cycle
    from radii.training.cycle._description import Cycle
    from radii.training.cycle._rounds import Round


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
