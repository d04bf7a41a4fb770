"""Certified training: the loss is that of the worst case the bounds allow.

Interval bounds (Gowal et al. 2018) and CROWN-IBP (Zhang et al. 2020), on boxes that are clipped
to the domain. Both start from plain cross-entropy: eps grows from 0, and the share of the worst
case with it, along one ramp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.errors import SpecificationError
from radii.training._certified_bounds import Enclosure, ModuleBounds
from radii.training._perturbation import check_eps
from radii.training._regime import Ramp, Regime, Step

_TRACED: WeakKeyDictionary[nn.Module, ModuleBounds] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class IntervalTraining(Regime):
    """kappa * plain + (1 - kappa) * worst-case cross-entropy, the worst case by intervals.

    Until the share `warmup` of the training it is plain; then eps grows from 0 and the plain
    share falls from 1, linearly, until the share `ramp`, where they are `eps` and `kappa`.
    """

    eps: float = 0.1
    kappa: float = 0.5
    warmup: float = 0.1
    ramp: float = 0.6
    name: ClassVar[str] = "ibp"

    def __post_init__(self) -> None:
        _check_certified(self)

    def check(self, module: nn.Module, images: Tensor) -> None:
        _bounds(module, images)

    def loss(self, step: Step) -> Tensor:
        grown = Ramp(self.warmup, self.ramp)(step.progress)
        return _certified_loss(
            step, self.eps, self.kappa, grown, lambda e: e.interval_margins(step.labels)
        )


@dataclass(frozen=True, slots=True)
class CrownIntervalTraining(Regime):
    """As `ibp`, with linear bounds of the margins mixed in: tighter, and easier to train early.

    The bounds are beta * CROWN-IBP + (1 - beta) * intervals, where beta falls from 1 to `beta`
    along the same ramp. With 0 the last part of the training is that of `ibp`, and as fast.
    """

    eps: float = 0.1
    kappa: float = 0.5
    beta: float = 0.0
    warmup: float = 0.1
    ramp: float = 0.6
    name: ClassVar[str] = "crown-ibp"

    def __post_init__(self) -> None:
        _check_certified(self)
        if not 0 <= self.beta <= 1:
            raise SpecificationError(
                f"training regime '{self.name}': beta {self.beta:g} must be from 0 to 1"
            )

    def check(self, module: nn.Module, images: Tensor) -> None:
        _bounds(module, images)

    def loss(self, step: Step) -> Tensor:
        grown = Ramp(self.warmup, self.ramp)(step.progress)
        beta = 1 - grown * (1 - self.beta)

        def margins(enclosure: Enclosure) -> Tensor:
            if beta == 0:
                return enclosure.interval_margins(step.labels)
            linear = enclosure.crown_margins(step.labels)
            if beta == 1:
                return linear
            return linear.lerp(enclosure.interval_margins(step.labels), 1 - beta)

        return _certified_loss(step, self.eps, self.kappa, grown, margins)


def _certified_loss(
    step: Step,
    eps: float,
    kappa: float,
    grown: float,
    margins: Callable[[Enclosure], Tensor],
) -> Tensor:
    """The mixture at this point of the ramp; `grown` goes from 0 to 1 along it."""
    if grown == 0:
        return cross_entropy(step.module(step.images), step.labels)
    enclosure = _bounds(step.module, step.images).enclosed(step.images, *step.box(grown * eps))
    share = 1 - grown * (1 - kappa)
    worst = cross_entropy(-margins(enclosure), step.labels)
    return share * cross_entropy(enclosure.outputs.value, step.labels) + (1 - share) * worst


def _bounds(module: nn.Module, images: Tensor) -> ModuleBounds:
    """Traced the first time it is asked for."""
    shape = tuple(images.shape[1:])
    found = _TRACED.get(module)
    if found is None or found.input_shape != shape:
        found = _TRACED[module] = ModuleBounds(module, shape)
    return found


def _check_certified(regime: IntervalTraining | CrownIntervalTraining) -> None:
    check_eps(regime.eps, regime.name)
    if not 0 <= regime.kappa <= 1:
        raise SpecificationError(
            f"training regime '{regime.name}': kappa {regime.kappa:g} must be from 0 to 1"
        )
    if not 0 <= regime.warmup < regime.ramp <= 1:
        raise SpecificationError(
            f"training regime '{regime.name}': warmup {regime.warmup:g} and ramp {regime.ramp:g} "
            "are shares of the training with 0 <= warmup < ramp <= 1"
        )
