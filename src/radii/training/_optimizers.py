"""Adam and SGD over a fixed list of parameters, with torch's fused kernels.

The updates are those of `torch.optim`, whose classes take seconds to load and more time a step than
a small network's whole gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

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
