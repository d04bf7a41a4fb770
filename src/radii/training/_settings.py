"""How a network is trained: everything that decides its weights besides the data."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Integral, Real

from radii.errors import TrainingError
from radii.training._class_weights import ClassWeights
from radii.training._optimizers import OPTIMIZERS

LARGEST_SEED = 2**32 - 1
"""As of numpy's generators; what is derived from it still fits into torch's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """Checked on creation; a TrainingError names what is out of range.

    The learning rate is `rate`, multiplied by `rate_factor` after every `rate_step` epochs (never
    if that is 0). `momentum` is that of sgd. `eps` is the radius at which robust accuracy is
    measured, which changes no weight. `class_weights` is text as of `ClassWeights`, empty where
    all classes count alike; weights that balance robustness are measured at `eps`.
    """

    regime: str
    epochs: int = 10
    batch: int = 128
    optimizer: str = "adam"
    rate: float = 1e-3
    rate_step: int = 0
    rate_factor: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    seed: int = 0
    eps: float = 0.1
    class_weights: str = ""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise TrainingError(
                f"optimizer '{self.optimizer}' is not one of {', '.join(OPTIMIZERS)}"
            )
        for name, least in (("epochs", 1), ("batch", 1), ("rate_step", 0), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise TrainingError(f"{name} {value!r} must be a whole number")
            object.__setattr__(self, name, int(value))
            if value < least:
                raise TrainingError(f"{name} {value} must be at least {least}")
        if self.seed > LARGEST_SEED:
            raise TrainingError(f"seed {self.seed} must be at most {LARGEST_SEED}")
        for name in ("rate", "rate_factor", "momentum", "weight_decay", "eps"):
            if not isinstance(getattr(self, name), Real):
                raise TrainingError(f"{name} {getattr(self, name)!r} must be a number")
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("rate", "rate_factor", "eps"):
            if not 0 < getattr(self, name) < math.inf:
                raise TrainingError(f"{name} {getattr(self, name):g} must be above 0")
        if not 0 <= self.momentum < 1:
            raise TrainingError(f"momentum {self.momentum:g} must be at least 0 and below 1")
        if not 0 <= self.weight_decay < math.inf:
            raise TrainingError(f"weight_decay {self.weight_decay:g} must be at least 0")
        if self.class_weights:
            ClassWeights.parse(self.class_weights)

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        return self.rate * self.rate_factor ** (epoch // self.rate_step if self.rate_step else 0)

    def differences(self, other: dict[str, object]) -> list[str]:
        """How these settings differ from those of a checkpoint, in words."""
        before = {"class_weights": "", **other}  # of a checkpoint from before there were any
        return [
            f"{name} {before.get(name)}, not {value}"
            for name, value in dataclasses.asdict(self).items()
            if before.get(name) != value
        ]
