"""Lipschitz robustness (LR): the outputs move no faster than the input does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.properties._base import Anchor, Float64, Property, Requirement, number_text

RESOLUTION = 1e-4
"""What a change of the outputs has to exceed to count, relative to their size.

At the input itself both sides of |f(x) - f(x0)| <= L |x - x0| are 0. Near it the outputs of a
float32 network jitter by some 1e-6 of their size, which would be a violation of any L. A slope
above L shows all the same, at a distance of about tau / (slope - L).
"""


def resolution(outputs: npt.ArrayLike) -> float:
    """The tau of a reference output: `RESOLUTION` times its largest entry, or 1 if that is more."""
    return RESOLUTION * max(1.0, float(np.abs(np.asarray(outputs, np.float64)).max()))


@dataclass(frozen=True, slots=True, eq=False)
class LipschitzRequirement(Requirement):
    """No output is `constant` times the input's distance, plus `tau`, from its reference."""

    constant: float
    reference: Float64
    tau: float

    description: ClassVar[str] = "bounds on the change of outputs by the distance of inputs"

    def margin(self, outputs: npt.ArrayLike, distances: npt.ArrayLike) -> Float64:
        moved = np.abs(np.asarray(outputs, np.float64) - self.reference).max(axis=-1)
        return np.asarray(self.constant * np.asarray(distances, np.float64) + self.tau - moved)

    @property
    def violations(self) -> None:
        return None


class LipschitzRobustness(Property):
    """The outputs stay within `constant` times the distance of the input.

    Outputs are compared by their largest change, inputs in the norm of the ball, and a change
    below the network's own `resolution` never counts. On a ball of radius eps it implies SR with
    delta = constant * eps + tau.
    """

    def __init__(self, constant: float) -> None:
        if not 0 < constant < math.inf:
            raise SpecificationError(f"property 'lr': L must be above 0, but is {constant}")
        self.constant = float(constant)

    @property
    def spec(self) -> str:
        return f"lr:L={number_text(self.constant)}"

    @property
    def uses_label(self) -> bool:
        return False

    def kind(self, outputs_are_probabilities: bool) -> type[Requirement]:
        return LipschitzRequirement

    def at(self, anchor: Anchor) -> LipschitzRequirement:
        reference = np.asarray(anchor.outputs, np.float64)
        return LipschitzRequirement(self.constant, reference, resolution(reference))
