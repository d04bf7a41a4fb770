"""What training minimises: a regime turns one batch into one loss.

A regime is a frozen dataclass whose fields are its parameters, so that text names it:
`pgd:eps=0.1,steps=7`. To add one, write `loss` and enter it in `REGIMES`. Many train on points near
the images of a batch, drawn at random (`uniform`) or moved up an objective (`ascend`).
"""

from __future__ import annotations

import dataclasses
import math
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.errors import SpecificationError
from radii.networks import Memo

PerturbationObjective = Callable[[Tensor, Tensor], Tensor]
"""Of a batch's outputs and the points that gave them: one number to make large."""


TEXT_NAME, IS_UNUSUAL = "text", "unusual"
"""In the metadata of a regime's field: what text calls it, where Python cannot; and whether text
has it only where it is not the default, so that runs from before it was there go on."""


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


REGIMES = {
    "standard": ("radii.training._regimes", "Standard"),
    "augmentation-uniform": ("radii.training._regimes", "UniformAugmentation"),
    "augmentation-fgsm": ("radii.training._regimes", "FgsmAugmentation"),
    "fgsm": ("radii.training._regimes", "FgsmTraining"),
    "pgd": ("radii.training._regimes", "PgdTraining"),
    "sr": ("radii.training._regimes", "StandardRobustnessTraining"),
    "scr": ("radii.training._regimes", "StrongClassificationTraining"),
    "lr": ("radii.training._regimes", "LipschitzTraining"),
    "ibp": ("radii.training._certified", "IntervalTraining"),
    "crown-ibp": ("radii.training._certified", "CrownIntervalTraining"),
}
"""Where the regime of each name is; loaded when it is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One batch of one training run. `progress` is the share of all batches seen before this one.

    `low` and `high` bound valid inputs and have the shape of one image. All noise comes from
    torch's default generator, which the loop seeds, saves and restores. `weights` are those of
    classes in the loss, one for each; None where all count alike. `memo` is for what a regime
    derives from the module, once in a run.
    """

    module: nn.Module
    images: Tensor
    labels: Tensor
    low: Tensor
    high: Tensor
    progress: float
    weights: Tensor | None = None
    memo: Memo = field(default_factory=Memo)

    def cross_entropy(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean over a batch, in which each class has its weight."""
        return cross_entropy(outputs, labels, weight=self.weights)

    def box(self, eps: float) -> tuple[Tensor, Tensor]:
        """The least and greatest values of the Linf ball around each image, inside the domain."""
        return (self.images - eps).maximum(self.low), (self.images + eps).minimum(self.high)


@dataclass(frozen=True, slots=True)
class Ramp:
    """A value that grows linearly from 0 at `start` to `end`, both shares of the training."""

    start: float
    end: float

    def __call__(self, progress: float) -> float:
        """Between 0 and 1."""
        if progress >= self.end:
            return 1.0
        return max(0.0, (progress - self.start) / (self.end - self.start))


class Regime(ABC):
    """The loss of one step. Frozen dataclasses; a SpecificationError in `__post_init__` says which
    parameter is out of range."""

    name: ClassVar[str]
    weighs_classes: ClassVar[bool] = False
    """Whether `loss` counts classes by `Step.weights`, as `Step.cross_entropy` does."""

    @abstractmethod
    def loss(self, step: Step) -> Tensor:
        """One number to minimise; called once a batch with the module in training mode."""

    def training_set(self, step: Step) -> tuple[Tensor, Tensor]:
        """The images and labels that batches are drawn from.

        Called once, with all images and the module as training begins; the same again where a run
        is continued, so it depends on these and torch's seeded generator alone.
        """
        return step.images, step.labels

    def check(self, module: nn.Module, images: Tensor) -> None:  # noqa: B027
        """Refuse a module that this regime cannot train; called once, with one image, before the
        first step."""

    @property
    def radius(self) -> float | None:
        """The eps that training aims at, in the data's units; None if it aims at none."""
        return getattr(self, "eps", None)

    @property
    def spec(self) -> str:
        """The text that `parse_regime` turns back into this regime."""
        given = (
            f"{_text_name(f)}={_spelled(getattr(self, f.name))}"
            for f in _parameters(type(self))
            if not (f.metadata.get(IS_UNUSUAL) and getattr(self, f.name) == f.default)
        )
        return f"{self.name}:{','.join(given)}".removesuffix(":")


def parse_regime(text: str) -> Regime:
    """The regime that `text` names: `standard`, `pgd`, `pgd:eps=8/255,steps=7`."""
    name, _, rest = text.strip().partition(":")
    if name not in REGIMES:
        raise SpecificationError(f"training regime '{name}' is not one of {', '.join(REGIMES)}")
    module, class_name = REGIMES[name]
    regime: type[Regime] = getattr(import_module(module), class_name)
    types = typing.get_type_hints(regime)
    known = {_text_name(field): types[field.name] for field in _parameters(regime)}
    names = {_text_name(field): field.name for field in _parameters(regime)}
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (side.strip() for side in part.partition("="))
        if key not in known or not equals:
            takes = ", ".join(known) or "none"
            raise SpecificationError(
                f"training regime '{text}': '{part}' is not a parameter; {name} takes {takes}"
            )
        if names[key] in given:
            raise SpecificationError(f"training regime '{text}': {key} is given twice")
        given[names[key]] = _value(value, known[key], f"training regime '{text}': {key}")
    return regime(**given)


def _parameters(regime: type[Regime]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(regime) if dataclasses.is_dataclass(regime) else ()


def _text_name(field: dataclasses.Field[Any]) -> str:
    """What the parameter is called in text: its own name, unless that is a keyword of Python."""
    return str(field.metadata.get(TEXT_NAME, field.name))


def _spelled(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _value(text: str, kind: Any, what: str) -> Any:
    """A number may be a fraction, 8/255."""
    try:
        if kind is str:
            return text
        if kind is int:
            return int(text)
        if issubclass(kind, StrEnum):
            return kind(text)
        above, _, below = text.partition("/")
        return float(above) / float(below) if below else float(above)
    except (ValueError, ZeroDivisionError):
        wanted = "a whole number" if kind is int else "a number"
        if issubclass(kind, StrEnum):
            wanted = " or ".join(kind)
        raise SpecificationError(f"{what} is '{text}', not {wanted}") from None
