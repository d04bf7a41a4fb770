"""Standard robustness (SR): the outputs stay near what they are at the input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from radii.errors import SpecificationError
from radii.properties._base import (
    Anchor,
    Halfspaces,
    LinearRequirement,
    Property,
    Requirement,
    number_text,
)
from radii.properties._probabilities import ProbabilityBound, SoftmaxRequirement, probabilities

LEAST_SHARE = 1e-12
"""The least delta on probabilities: float64 has them, up to 1, to some 1e-16."""


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
