from ._architectures import ARCHITECTURES, Normalize, Residual, architecture
from ._callbacks import RobustnessLog
from ._card import Card
from ._checkpoints import Epoch, claimed, replacing, saved_weights
from ._loop import Holdout, TrainingObserver
from ._preparation import TrainingData, training_data
from ._regime import REGIMES, Ramp, Regime, Step, parse_regime
from ._runs import NETWORK_FILE, TrainedNetwork, train
from ._settings import TrainingSettings
from ._tuning import Trial, TuningResult, tune
from .cycle._cycle import CycleObserver, read_rounds, run_cycle
from .cycle._description import Cycle
from .cycle._rounds import Round

__all__ = [
    "ARCHITECTURES",
    "NETWORK_FILE",
    "REGIMES",
    "Card",
    "Cycle",
    "CycleObserver",
    "Epoch",
    "Holdout",
    "Normalize",
    "Ramp",
    "Regime",
    "Residual",
    "RobustnessLog",
    "Round",
    "Step",
    "TrainedNetwork",
    "TrainingData",
    "TrainingObserver",
    "TrainingSettings",
    "Trial",
    "TuningResult",
    "architecture",
    "claimed",
    "parse_regime",
    "read_rounds",
    "replacing",
    "run_cycle",
    "saved_weights",
    "train",
    "training_data",
    "tune",
]
