"""The outputs stay near what they are at the input.

Standard robustness (SR) bounds how far they move; Lipschitz robustness (LR) bounds how far they
move by how far the input does.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.problem.properties._base import (
    Anchor,
    Halfspaces,
    LinearRequirement,
    LipschitzRequirement,
    ProbabilityBound,
    Property,
    Requirement,
    SoftmaxRequirement,
    number_text,
    probabilities,
)

LEAST_SHARE = 1e-12
"""The least delta on probabilities: float64 has them, up to 1, to some 1e-16."""
RESOLUTION = 1e-4
"""What a change of the outputs has to exceed to count, relative to their size.

At the input itself both sides of |f(x) - f(x0)| <= L |x - x0| are 0. Near it the outputs of a
float32 network jitter by some 1e-6 of their size, which would be a violation of any L. A slope
above L shows all the same, at a distance of about tau / (slope - L).
"""


def resolution(outputs: npt.ArrayLike) -> float:
    """The tau of a reference output: `RESOLUTION` times its largest entry, or 1 if that is more."""
    return RESOLUTION * max(1.0, float(np.abs(np.asarray(outputs, np.float64)).max()))


class StandardRobustness(Property):
    """No output moves by `delta` or more from the network's own at the input.

    `on_probabilities` asks it of the softmax of the outputs; of the outputs themselves where the
    network ends in a softmax already.
    """

    def __init__(self, delta: float, *, on_probabilities: bool = False) -> None:
        if not 0 < delta < math.inf:
            raise SpecificationError(f"property 'sr': delta must be above 0, but is {delta}")
        if on_probabilities and delta < LEAST_SHARE:
            raise SpecificationError(
                f"property 'sr': delta must be at least {LEAST_SHARE:g} on probabilities, "
                f"but is {delta}"
            )
        self.delta = float(delta)
        self.on_probabilities = on_probabilities

    @property
    def spec(self) -> str:
        return f"sr:delta={number_text(self.delta)}" + (
            ",on=probabilities" if self.on_probabilities else ""
        )

    @property
    def uses_label(self) -> bool:
        return False

    def kind(self, outputs_are_probabilities: bool) -> type[Requirement]:
        if self.on_probabilities and not outputs_are_probabilities:
            return SoftmaxRequirement
        return LinearRequirement

    def at(self, anchor: Anchor) -> Requirement:
        if self.on_probabilities and anchor.outputs.size < 2:
            raise SpecificationError(
                "property 'sr' on probabilities needs a network with at least two outputs"
            )
        if self.on_probabilities and not anchor.outputs_are_probabilities:
            return SoftmaxRequirement(self._bounds(anchor))
        return LinearRequirement(
            tuple(
                self._moved(anchor, index, sign)
                for index in range(anchor.outputs.size)
                for sign in (1.0, -1.0)
            )
        )

    def _moved(self, anchor: Anchor, index: int, sign: float) -> Halfspaces:
        """sign * (y_index - its reference) >= delta.

        The threshold is rounded up: then floats are beyond it exactly if they moved by delta, also
        where delta is less than the spacing of floats at the reference.
        """
        row = np.zeros(anchor.outputs.size)
        row[index] = -sign
        return Halfspaces(
            row, np.array([_sum_rounded_up(self.delta, sign * anchor.outputs[index])])
        )

    def _bounds(self, anchor: Anchor) -> tuple[ProbabilityBound, ...]:
        """On both sides of each probability, where any probability can get there."""
        bounds = []
        for index, middle in enumerate(probabilities(anchor.outputs).tolist()):
            if middle - self.delta > 0:
                bounds.append(ProbabilityBound(index, middle - self.delta))
            if middle + self.delta < 1:
                bounds.append(ProbabilityBound(index, middle + self.delta, is_ceiling=True))
        return tuple(bounds)


def _sum_rounded_up(a: float, b: float) -> float:
    """The least float64 that is not below a + b; both are finite."""
    nearest = a + b
    is_below = math.isfinite(nearest) and Fraction(nearest) < Fraction(a) + Fraction(b)
    return math.nextafter(nearest, math.inf) if is_below else nearest


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
