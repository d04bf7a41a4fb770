"""The one ascent: multipliers that make a bound large are looked for by Adam's rule, upward.

Every bound of this package is concave or nearly so in its free choices (slopes of lines, and
multipliers of splits and of the assumption of a violation), and valid for all of them. So the
ascent needs no care: it may stop at any step, in any precision, and the best choices that it met
are evaluated once more where the bound has to be proven.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class AscentSettings:
    """Adam's constants (Kingma and Ba 2015). Choices live in [0, 1] or near it, so that one step
    size serves every network: what matters is how soon it falls, with a few to thirty steps."""

    step: float = 0.3
    """The first step, in units of the choices."""
    decay: float = 0.93
    """Of the step, from one to the next."""
    momentum: float = 0.8
    curvature: float = 0.98
    """Of the averages of the gradient and of its square: a few steps look back, not a thousand."""
    smallest_square: float = 1e-24
    """Added to the average square: where the gradient is zero, choices stay as they are."""


@dataclass(slots=True, eq=False)
class Choices:
    """One kind of free choices, changed in place, within 0 and `most`.

    Their steps are the settings' divided by `damping`.
    """

    values: Tensor
    most: float = math.inf
    damping: float = 1.0
    _moment: Tensor = field(init=False)
    _square: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self._moment, self._square = torch.zeros_like(self.values), torch.zeros_like(self.values)

    def climb(self, gradient: Tensor, step: float, settings: AscentSettings) -> None:
        self._moment.lerp_(gradient, 1 - settings.momentum)
        self._square.mul_(settings.curvature)
        self._square.addcmul_(gradient, gradient, value=1 - settings.curvature)
        direction = self._square.add(settings.smallest_square).rsqrt_()
        self.values.addcmul_(self._moment, direction, value=step)
        self.values.clamp_(0, self.most)


class Ascent:
    """Steps of several kinds of choices together."""

    def __init__(self, choices: Sequence[Choices], settings: AscentSettings | None = None) -> None:
        self.choices = tuple(choices)
        self.settings = settings or AscentSettings()
        self._step, self._count = self.settings.step, 0

    def climb(self, gradients: Sequence[Tensor | None]) -> None:
        """One step along these derivatives of the bound; choices without one stay."""
        self._count += 1
        settings = self.settings
        # Averages that began at 0 are too small at first (Kingma and Ba 2015, section 3).
        unbiased = math.sqrt(1 - settings.curvature**self._count)
        unbiased = unbiased / (1 - settings.momentum**self._count)
        for choices, gradient in zip(self.choices, gradients, strict=True):
            if gradient is not None:
                choices.climb(gradient, self._step / choices.damping * unbiased, settings)
        self._step *= settings.decay
