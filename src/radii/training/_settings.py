"""Adam and SGD over a fixed list of parameters, with torch's fused kernels.

The updates are those of `torch.optim`, whose classes take seconds to load and more time a step than
a small network's whole gradient.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import Tensor

from radii.errors import TrainingError
from radii.training._class_weights import ClassWeights

BETAS = (0.9, 0.999)
SMALLEST_SCALE = 1e-8
"""Adam's published constants."""


class Optimizer(ABC):
    """`rate` may be set before any step. `state` holds all that the next step depends on."""

    def __init__(
        self, parameters: Sequence[Tensor], *, rate: float, weight_decay: float, momentum: float
    ) -> None:
        self.parameters = list(parameters)
        self.rate = rate
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.averages = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]

    @abstractmethod
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the parameters; `gradients` are in their order."""

    @property
    @abstractmethod
    def state(self) -> dict[str, list[Tensor]]:
        """Tensors that the next step depends on, by name; the optimiser's own, not copies."""

    def restore(self, saved: Mapping[str, Sequence[Tensor]]) -> None:
        """Back to a saved state; ValueError if it is that of other parameters."""
        if saved.keys() != self.state.keys():
            raise ValueError("the optimiser's state has other parts")
        for name, mine in self.state.items():
            if [t.shape for t in mine] != [t.shape for t in saved[name]]:
                raise ValueError("the optimiser's state has other shapes")
            for tensor, value in zip(mine, saved[name], strict=True):
                tensor.copy_(value)


class Adam(Optimizer):
    """Kingma and Ba 2015; `momentum` is not used."""

    def __init__(
        self, parameters: Sequence[Tensor], *, rate: float, weight_decay: float, momentum: float
    ) -> None:
        super().__init__(parameters, rate=rate, weight_decay=weight_decay, momentum=momentum)
        self.squares = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        torch._foreach_add_(self.steps, 1)
        torch._fused_adam_(
            self.parameters,
            list(gradients),
            self.averages,
            self.squares,
            [],
            self.steps,
            lr=self.rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=self.weight_decay,
            eps=SMALLEST_SCALE,
            amsgrad=False,
            maximize=False,
        )

    @property
    def state(self) -> dict[str, list[Tensor]]:
        return {"averages": self.averages, "squares": self.squares, "steps": self.steps}


class Sgd(Optimizer):
    """Gradient descent with momentum."""

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        gradients = list(gradients)
        if self.weight_decay:
            gradients = list(
                torch._foreach_add(gradients, self.parameters, alpha=self.weight_decay)
            )
        torch._foreach_mul_(self.averages, self.momentum)
        torch._foreach_add_(self.averages, gradients)
        torch._foreach_add_(self.parameters, self.averages, alpha=-self.rate)

    @property
    def state(self) -> dict[str, list[Tensor]]:
        return {"averages": self.averages}


OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": Adam, "sgd": Sgd}


# How a network is trained: everything that decides its weights besides the data.


LARGEST_SEED = 2**32 - 1
"""As of numpy's generators; what is derived from it still fits into torch's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """Checked on creation; a TrainingError names what is out of range.

    The learning rate is `rate`, multiplied by `rate_factor` after every `rate_step` epochs (never
    if that is 0). `momentum` is that of sgd. `eps` is the radius at which robust accuracy is
    measured, which changes no weight. `class_weights` is text as of `ClassWeights`, empty where
    all classes count alike; to balance robustness, they are found at `eps`.
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
