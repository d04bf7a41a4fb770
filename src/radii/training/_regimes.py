"""Regimes that train on points: the images, points added to them, adversarial examples.

A constraint is a property that the worst point of a ball, as an attack finds it, should have.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from radii.attacks import DomainRows, geometry, violation
from radii.errors import SpecificationError
from radii.problem import (
    LipschitzRobustness,
    Norm,
    Property,
    StandardRobustness,
    StrongClassification,
)
from radii.training._regime import (
    IS_UNUSUAL,
    TEXT_NAME,
    PerturbationObjective,
    Regime,
    Step,
    ascend,
    check_eps,
    check_steps,
    evaluating,
    uniform,
)


@dataclass(frozen=True, slots=True)
class Standard(Regime):
    """Cross-entropy on the images."""

    name: ClassVar[str] = "standard"
    weighs_classes: ClassVar[bool] = True

    def loss(self, step: Step) -> Tensor:
        return step.cross_entropy(step.module(step.images), step.labels)


@dataclass(frozen=True, slots=True)
class FgsmTraining(Regime):
    """One signed step from a random start (Wong, Rice and Kolter 2020).

    `step` is its length in multiples of eps.
    """

    eps: float = 0.1
    step: float = 1.25
    name: ClassVar[str] = "fgsm"
    weighs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_eps(self.eps, self.name)
        _check_step(self.step, self.name)

    def loss(self, step: Step) -> Tensor:
        return adversarial_loss(step, self.eps, steps=1, size=self.step * self.eps)


@dataclass(frozen=True, slots=True)
class PgdTraining(Regime):
    """Several signed steps from a random start, each projected to the ball (Madry et al. 2017).

    `step` is the length of one in multiples of eps; 0 stands for 2.5 / steps.
    """

    eps: float = 0.1
    steps: int = 7
    step: float = 0.0
    name: ClassVar[str] = "pgd"
    weighs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_eps(self.eps, self.name)
        check_steps(self.steps, self.name)
        if self.step != 0:
            _check_step(self.step, self.name)

    def loss(self, step: Step) -> Tensor:
        size = self.eps * (self.step or 2.5 / self.steps)
        return adversarial_loss(step, self.eps, steps=self.steps, size=size)


def adversarial_loss(step: Step, eps: float, *, steps: int, size: float) -> Tensor:
    """Cross-entropy at points of the balls that ascend it from a random start."""
    low, high = step.box(eps)
    start = uniform(low, high)
    points = ascend(
        step.module,
        start,
        low,
        high,
        lambda outputs, _: cross_entropy(outputs, step.labels, reduction="sum"),
        steps=steps,
        size=size,
    )
    return step.cross_entropy(step.module(points), step.labels)


def _check_step(step: float, regime: str) -> None:
    if not (math.isfinite(step) and step > 0):
        raise SpecificationError(f"training regime '{regime}': step {step:g} must be above 0")


class AugmentationTime(StrEnum):
    """When points are added to the images.

    BATCH: anew for each batch, against the module as it is then. ONCE: before the first step,
    against the module as training begins; the larger set is then learnt like any other.
    """

    BATCH = "batch"
    ONCE = "once"


class _Augmentation(Regime):
    """Adds `points` points of the ball to each image, all with the image's label."""

    eps: float
    points: int
    made: AugmentationTime

    def __post_init__(self) -> None:
        check_eps(self.eps, self.name)
        if self.points < 1:
            raise SpecificationError(
                f"training regime '{self.name}': points {self.points} must be at least 1"
            )

    @abstractmethod
    def added(self, step: Step) -> Tensor:
        """The points of all images, then those again as often as there are points."""

    def training_set(self, step: Step) -> tuple[Tensor, Tensor]:
        if self.made is AugmentationTime.BATCH:
            return step.images, step.labels
        parts = [
            self.added(replace(step, images=images, labels=labels))
            for images, labels in zip(
                step.images.split(PREPARED_BATCH), step.labels.split(PREPARED_BATCH), strict=True
            )
        ]
        labels = [part.repeat(self.points) for part in step.labels.split(PREPARED_BATCH)]
        return torch.cat([step.images, *parts]), torch.cat([step.labels, *labels])

    def loss(self, step: Step) -> Tensor:
        """Cross-entropy over the images and the points added to them."""
        if self.made is AugmentationTime.ONCE:
            return step.cross_entropy(step.module(step.images), step.labels)
        images = torch.cat([step.images, self.added(step)])
        return step.cross_entropy(step.module(images), step.labels.repeat(1 + self.points))


PREPARED_BATCH = 1000
"""Images to which points are added together, before training."""


@dataclass(frozen=True, slots=True)
class UniformAugmentation(_Augmentation):
    """`points` uniform points of the ball around each image."""

    eps: float = 0.1
    points: int = 2
    made: AugmentationTime = AugmentationTime.BATCH
    name: ClassVar[str] = "augmentation-uniform"
    weighs_classes: ClassVar[bool] = True

    def added(self, step: Step) -> Tensor:
        low, high = step.box(self.eps)
        return torch.cat([uniform(low, high) for _ in range(self.points)])


@dataclass(frozen=True, slots=True)
class FgsmAugmentation(_Augmentation):
    """`points` further points around each image: one signed step of eps from random starts."""

    eps: float = 0.1
    points: int = 2
    made: AugmentationTime = AugmentationTime.BATCH
    name: ClassVar[str] = "augmentation-fgsm"
    weighs_classes: ClassVar[bool] = True

    def added(self, step: Step) -> Tensor:
        low, high = (side.repeat(self.points, *_ones(side)) for side in step.box(self.eps))
        labels = step.labels.repeat(self.points)
        return ascend(
            step.module,
            uniform(low, high),
            low,
            high,
            lambda outputs, _: cross_entropy(outputs, labels, reduction="sum"),
            steps=1,
            size=self.eps,
        )


def _ones(rows: Tensor) -> tuple[int, ...]:
    return (1,) * (rows.dim() - 1)


class ConstraintTraining(Regime):
    """alpha * cross-entropy + beta * the violation of a property, which is thus a constraint.

    The property is translated as in DL2 (Fischer et al. 2019): a <= b becomes max(a - b, 0), taken
    at the point of the ball where the property is broken most, as far as projected gradient ascent
    finds it. The reference of SR and LR is the network's own output at the image, not the label.
    `norm` is that of the ball, and of the distance in LR.
    """

    eps: float
    alpha: float
    beta: float
    steps: int
    norm: Norm

    @property
    @abstractmethod
    def property(self) -> Property:
        """What is to hold; a SpecificationError says which of its parameters is out of range."""

    def __post_init__(self) -> None:
        _ = self.property  # checks its parameters
        check_eps(self.eps, self.name)
        check_steps(self.steps, self.name)
        for name in ("alpha", "beta"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise SpecificationError(
                    f"training regime '{self.name}': {name} {weight:g} must be 0 or above"
                )
        if self.alpha == self.beta == 0:
            raise SpecificationError(
                f"training regime '{self.name}': alpha and beta must not both be 0"
            )

    def loss(self, step: Step) -> Tensor:
        """The images and their worst points go through the module together."""
        points = _worst_points(step, self)
        outputs = step.module(torch.cat([step.images, points]))
        own, moved = outputs.chunk(2)
        broken = violation(
            self.property, moved, own, step.labels, self.distances(points, step.images),
            literal=True,
        )  # fmt: skip
        plain = step.cross_entropy(own, step.labels)
        return self.alpha * plain + self.beta * broken.clamp(min=0).mean()

    def distances(self, points: Tensor, images: Tensor) -> Tensor:
        return geometry(self.norm).lengths((points - images).flatten(1))


@dataclass(frozen=True, slots=True)
class StandardRobustnessTraining(ConstraintTraining):
    """SR: the outputs change by at most delta within eps, in `metric`, which text calls `in`."""

    delta: float = 10.0
    eps: float = 0.1
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    norm: Norm = field(default=Norm.LINF, metadata={IS_UNUSUAL: True})
    metric: Norm = field(default=Norm.LINF, metadata={TEXT_NAME: "in", IS_UNUSUAL: True})
    name: ClassVar[str] = "sr"
    weighs_classes: ClassVar[bool] = True

    @property
    def property(self) -> Property:
        return StandardRobustness(self.delta, metric=self.metric)


@dataclass(frozen=True, slots=True)
class StrongClassificationTraining(ConstraintTraining):
    """SCR: the label's probability stays at least eta within eps."""

    eta: float = 0.52
    eps: float = 0.1
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    norm: Norm = field(default=Norm.LINF, metadata={IS_UNUSUAL: True})
    name: ClassVar[str] = "scr"
    weighs_classes: ClassVar[bool] = True

    @property
    def property(self) -> Property:
        return StrongClassification(self.eta)


@dataclass(frozen=True, slots=True)
class LipschitzTraining(ConstraintTraining):
    """LR: the outputs change by at most L times the distance, within eps, in `metric`, which text
    calls `in`."""

    L: float = 10.0
    eps: float = 0.1
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    norm: Norm = field(default=Norm.LINF, metadata={IS_UNUSUAL: True})
    metric: Norm = field(default=Norm.LINF, metadata={TEXT_NAME: "in", IS_UNUSUAL: True})
    name: ClassVar[str] = "lr"
    weighs_classes: ClassVar[bool] = True

    @property
    def property(self) -> Property:
        return LipschitzRobustness(self.L, metric=self.metric)


def _worst_points(step: Step, regime: ConstraintTraining) -> Tensor:
    """Steps up the violation from a random start, kept in the ball and the domain.

    The distance counts, but not its gradient: in Linf that is of the furthest inputs alone, and
    signed steps would waver there.
    """
    with evaluating(step.module), torch.no_grad():
        references = step.module(step.images)

    def total(outputs: Tensor, points: Tensor) -> Tensor:
        distances = regime.distances(points.detach(), step.images)
        return violation(regime.property, outputs, references, step.labels, distances).sum()

    low, high = step.box(regime.eps)
    size = regime.eps * 2.5 / regime.steps
    start = uniform(low, high)
    if regime.norm is Norm.LINF:
        return ascend(step.module, start, low, high, total, steps=regime.steps, size=size)
    return _ascended_in_ball(step, start, total, regime, size)


def _ascended_in_ball(
    step: Step,
    points: Tensor,
    objective: PerturbationObjective,
    regime: ConstraintTraining,
    size: float,
) -> Tensor:
    """As `ascend`, by the steepest steps of another norm, in its balls around the images."""
    shape, of_norm = points.shape, geometry(regime.norm)
    centres = step.images.flatten(1)
    room = DomainRows(step.low.flatten()[None], step.high.flatten()[None])
    radii, sizes = (centres.new_full((len(centres),), each) for each in (regime.eps, size))
    flat = of_norm.project(points.flatten(1), centres, radii, room)
    with evaluating(step.module), torch.enable_grad():
        for _ in range(regime.steps):
            points = flat.detach().reshape(shape).requires_grad_()
            (gradient,) = torch.autograd.grad(objective(step.module(points), points), points)
            flat = of_norm.step(flat.detach(), -gradient.flatten(1), sizes, room)
            flat = of_norm.project(flat, centres, radii, room)
    return flat.detach().reshape(shape)
