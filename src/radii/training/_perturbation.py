"""Points near the images of a batch: drawn at random, or moved up an objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from radii.errors import SpecificationError

PerturbationObjective = Callable[[Tensor, Tensor], Tensor]
"""Of a batch's outputs and the points that gave them: one number to make large."""


def uniform(low: Tensor, high: Tensor) -> Tensor:
    """A point of each box, all equally likely."""
    return torch.rand_like(low).mul_(high - low).add_(low).clamp_(low, high)


def ascend(
    module: nn.Module,
    points: Tensor,
    low: Tensor,
    high: Tensor,
    objective: PerturbationObjective,
    *,
    steps: int,
    size: float,
) -> Tensor:
    """`points` after steps of `size` along the sign of the objective's gradient, kept in the boxes.

    The module is asked as it will be used: in evaluation mode, its running averages untouched.
    """
    with evaluating(module), torch.enable_grad():
        for _ in range(steps):
            points = points.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(objective(module(points), points), points)
            points = gradient.sign_().mul_(size).add_(points.detach()).clamp_(low, high)
    return points.detach()


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for all parts that are in training mode, put back afterwards."""
    changed = [part for part in module.modules() if part.training]
    for part in changed:
        part.training = False
    try:
        yield
    finally:
        for part in changed:
            part.training = True


def check_eps(eps: float, regime: str) -> None:
    if not (math.isfinite(eps) and eps > 0):
        raise SpecificationError(f"training regime '{regime}': eps {eps:g} must be above 0")


def check_steps(steps: int, regime: str) -> None:
    if steps < 1:
        raise SpecificationError(f"training regime '{regime}': steps {steps} must be at least 1")
