"""Training: regimes, the papers' architectures, and a loop that resumes to the same weights."""

from __future__ import annotations

from radii.training.architectures import ARCHITECTURES, Normalize, Residual, architecture
from radii.training.bayesian import BayesianNetwork, Convergence, train_bayesian
from radii.training.callbacks import RobustnessLog
from radii.training.cards import Card
from radii.training.checkpoints import Epoch, saved_weights
from radii.training.loop import Observer
from radii.training.posterior import Hamiltonian
from radii.training.pruning import Pruned, PruningRound, prune
from radii.training.regime import REGIMES, Ramp, Regime, Step, parse_regime
from radii.training.runs import Trained, train
from radii.training.settings import Settings
from radii.training.tuning import Trial, Tuned, tune

__all__ = [
    "ARCHITECTURES",
    "REGIMES",
    "BayesianNetwork",
    "Card",
    "Convergence",
    "Epoch",
    "Hamiltonian",
    "Normalize",
    "Observer",
    "Pruned",
    "PruningRound",
    "Ramp",
    "Regime",
    "Residual",
    "RobustnessLog",
    "Settings",
    "Step",
    "Trained",
    "Trial",
    "Tuned",
    "architecture",
    "parse_regime",
    "prune",
    "saved_weights",
    "train",
    "train_bayesian",
    "tune",
]
