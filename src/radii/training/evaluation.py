"""How often a module is right, on images as they are and under attack."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.training.perturbation import ascend, evaluating, uniform
from radii.training.regime import Step

__all__ = ["Holdout"]

ROWS = 1000
"""Images that pass through the module together."""


class Holdout:
    """Images that a module is tested on, the first of which are attacked."""

    def __init__(self, images: Tensor, labels: Tensor, low: Tensor, high: Tensor) -> None:
        self.images, self.labels = images, labels
        self.low, self.high = low, high

    def __len__(self) -> int:
        return len(self.labels)

    def accuracy(self, module: nn.Module, count: int) -> float:
        """The share of the first `count` images whose label has the largest output."""
        return self._share(module, self.images[:count])

    def robust_accuracy(
        self, module: nn.Module, *, eps: float, count: int, steps: int, seed: int
    ) -> float:
        """The share of the first `count` images that PGD of so many steps does not break.

        An upper bound of the robust accuracy: what PGD misses, a better attack may find. torch's
        generator is left as it was.
        """
        broken = torch.zeros(min(count, len(self)), dtype=torch.bool, device=self.images.device)
        on_cuda = self.images.device.type == "cuda"
        with torch.random.fork_rng(devices=[self.images.device] if on_cuda else []):
            torch.manual_seed(seed)
            for start in range(0, len(broken), ROWS):
                rows = slice(start, min(start + ROWS, len(broken)))
                step = Step(module, self.images[rows], self.labels[rows], self.low, self.high, 1.0)
                broken[rows] = _broken(step, eps, steps)
        return 1.0 - float(broken.double().mean())

    def _share(self, module: nn.Module, images: Tensor) -> float:
        right = 0
        with torch.no_grad(), evaluating(module):
            for start in range(0, len(images), ROWS):
                rows = slice(start, start + ROWS)
                predicted = module(images[rows]).argmax(dim=1)
                right += int((predicted == self.labels[: len(images)][rows]).sum())
        return right / len(images)


def _broken(step: Step, eps: float, steps: int) -> Tensor:
    """Where the image itself or the end of an ascent from a random start is misclassified."""
    low, high = step.box(eps)
    ends = ascend(
        step.module,
        uniform(low, high),
        low,
        high,
        lambda outputs, _: cross_entropy(outputs, step.labels, reduction="sum"),
        steps=steps,
        size=2.5 * eps / steps,
    )
    with torch.no_grad(), evaluating(step.module):
        first, last = (step.module(points).argmax(dim=1) for points in (step.images, ends))
    wrong: Tensor = (first != step.labels) | (last != step.labels)
    return wrong
