"""The outputs stay near what they are at the input.

Standard robustness (SR) bounds how far they move; Lipschitz robustness (LR) bounds how far they
move by how far the input does.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.problem._domains import Norm
from radii.problem.properties._base import (
    ROUNDING_OF_LENGTHS,
    Anchor,
    Float64,
    Halfspaces,
    LengthRequirement,
    LinearRequirement,
    LipschitzRequirement,
    ProbabilityBound,
    Property,
    Requirement,
    SoftmaxRequirement,
    number_text,
    output_share,
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


MOST_SIGNED_OUTPUTS = 10
"""The most outputs for which a bound on the sum of their changes is decided exactly: with a
polyhedron for each of the 1,024 choices of signs."""


ATTACKED_SIGNS = 64
"""Choices of signs in which attacks move all outputs at once."""


def resolution(outputs: npt.ArrayLike) -> float:
    """The tau of a reference output: `RESOLUTION` times its largest entry, or 1 if that is more."""
    return RESOLUTION * max(1.0, float(np.abs(np.asarray(outputs, np.float64)).max()))


class StandardRobustness(Property):
    """The outputs move by less than `delta` from the network's own at the input.

    Their change is measured in `metric`: the largest of one output, or its length in L2 or L1.
    `on_probabilities` asks it of the softmax of the outputs, each by itself; of the outputs
    themselves where the network ends in a softmax already.
    """

    def __init__(
        self, delta: float, *, on_probabilities: bool = False, metric: Norm = Norm.LINF
    ) -> None:
        if not 0 < delta < math.inf:
            raise SpecificationError(f"property 'sr': delta must be above 0, but is {delta}")
        if on_probabilities and delta < LEAST_SHARE:
            raise SpecificationError(
                f"property 'sr': delta must be at least {LEAST_SHARE:g} on probabilities, "
                f"but is {delta}"
            )
        if on_probabilities and metric is not Norm.LINF:
            raise SpecificationError(
                f"property 'sr': in={metric} is a length of changes of outputs; "
                "on=probabilities compares each by itself"
            )
        self.delta = float(delta)
        self.on_probabilities = on_probabilities
        self.metric = Norm(metric)

    @property
    def spec(self) -> str:
        on = ",on=probabilities" if self.on_probabilities else ""
        return f"sr:delta={number_text(self.delta)}{_metric_text(self.metric)}{on}"

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
        moved = tuple(
            self._moved(anchor, index, sign)
            for index in range(anchor.outputs.size)
            for sign in (1.0, -1.0)
        )
        return LinearRequirement(moved) if self.metric is Norm.LINF else self._long(anchor, moved)

    def _long(self, anchor: Anchor, moved: tuple[Halfspaces, ...]) -> LengthRequirement:
        """`moved` are changes of one output alone that are too long.

        Changes d of m outputs, with the signs s, are of length s . d in L1; and in L2 of at least
        s . d / sqrt(m), for any signs s.
        """
        reference = np.asarray(anchor.outputs, np.float64)
        size, is_sum = reference.size, self.metric is Norm.L1
        if is_sum and size <= MOST_SIGNED_OUTPUTS:
            least = self.delta * (1 - ROUNDING_OF_LENGTHS)
            all_signs = np.array(list(product((1.0, -1.0), repeat=size)))
            cover = tuple(_beyond(signs, least, reference, -math.inf) for signs in all_signs)
        else:
            share = self.delta * output_share(self.metric, size)
            units = (sign * unit for unit in np.eye(size) for sign in (1.0, -1.0))
            cover = tuple(_beyond(unit, share, reference, -math.inf) for unit in units)
        above = self.delta * (1 if is_sum else math.sqrt(size)) * (1 + 2 * ROUNDING_OF_LENGTHS)
        together = (_beyond(signs, above, reference, math.inf) for signs in _some_signs(size))
        return LengthRequirement(cover, reference, self.delta, self.metric, (*moved, *together))

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


def _some_signs(size: int) -> Float64:
    """All choices of signs where these are few, else some, drawn at random and always the same."""
    if 2**size <= ATTACKED_SIGNS:
        return np.array(list(product((1.0, -1.0), repeat=size)))
    return np.random.default_rng(0).choice((1.0, -1.0), (ATTACKED_SIGNS, size))


def _beyond(direction: Float64, least: float, reference: Float64, toward: float) -> Halfspaces:
    """direction . (y - reference) >= least, whose right side is rounded `toward` an infinity: down
    where all such outputs must be in it, up where only such may be."""
    offset = least + math.fsum(direction * reference)
    rounded = math.nextafter(math.nextafter(offset, toward), toward)
    return Halfspaces(-direction, np.array([rounded]))


def _metric_text(metric: Norm) -> str:
    return "" if metric is Norm.LINF else f",in={metric}"


def _sum_rounded_up(a: float, b: float) -> float:
    """The least float64 that is not below a + b; both are finite."""
    nearest = a + b
    is_below = math.isfinite(nearest) and Fraction(nearest) < Fraction(a) + Fraction(b)
    return math.nextafter(nearest, math.inf) if is_below else nearest


class LipschitzRobustness(Property):
    """The outputs stay within `constant` times the distance of the input.

    Outputs are compared in `metric`, by their largest change unless another is given, inputs in the
    norm of the ball, and a change below the network's own `resolution` never counts. On a ball of
    radius eps it implies SR with delta = constant * eps + tau.
    """

    def __init__(self, constant: float, *, metric: Norm = Norm.LINF) -> None:
        if not 0 < constant < math.inf:
            raise SpecificationError(f"property 'lr': L must be above 0, but is {constant}")
        self.constant = float(constant)
        self.metric = Norm(metric)

    @property
    def spec(self) -> str:
        return f"lr:L={number_text(self.constant)}{_metric_text(self.metric)}"

    @property
    def uses_label(self) -> bool:
        return False

    def kind(self, outputs_are_probabilities: bool) -> type[Requirement]:
        return LipschitzRequirement

    def at(self, anchor: Anchor) -> LipschitzRequirement:
        reference = np.asarray(anchor.outputs, np.float64)
        return LipschitzRequirement(self.constant, reference, resolution(reference), self.metric)
