"""The dual bound: lower bounds of linear functions of a network, and multipliers that raise them.

At a node of the tree, where units have bounds low <= z <= high and signs s (+1, -1, or 0 where the
unit is not split), and where specification w is assumed to be violated (w f(x) <= 0), the bound of
a linear function c z is

    min over x of   c z + gamma w f(x) - beta s z          gamma, beta >= 0

Both terms that are added are <= 0 wherever the assumptions hold, so that every gamma and beta gives
a valid bound, and so does every slope alpha in [0, 1] of a line below an open unit. For w f(x)
itself gamma is a mixture of the specification's rows. alpha is alpha-CROWN's (Xu et al. 2021), beta
is beta-CROWN's (Wang et al. 2021), and gamma, the multiplier of the output's constraint, is
INVPROP's (Kotha et al. 2023).

The minimum is one backward pass (`_rows_backward`); its derivatives by the multipliers are one pass
forward, of the very input that the relaxation is least at. Multipliers are looked for in float32,
by ascent, and the bound that counts is computed from them once more in float64, less its rounding.

R rows, U units of all layers together: bounds, signs, slopes, beta are (R, U), gamma is (R, parts).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import torch
from torch import Tensor

from radii.bounds._ascent import Ascent, Choices
from radii.bounds._float_errors import LOST_TO_UNDERFLOW
from radii.bounds._regions import ROUND_UP, SMALLEST_NORMAL
from radii.bounds._rows_backward import RowsBackward
from radii.bounds._supports import Support
from radii.networks import ReluLines, prefers_right
from radii.problem import UNLIMITED, Limits

DUAL_ROUNDING = 2.0**-34
"""What a float64 bound may be off, relative to the sum of the absolute values it adds up."""

MULTIPLIER_DAMPING = 3.0
"""What steps of gamma and beta are divided by: a change of theirs counts more than one of slopes,
as it moves coefficients on all units before the split or the specification."""


class Layers(ABC):
    """A network over a region: the arguments of its units, layer by layer, and specifications.

    A specification has `parts` rows, and is violated where all of them are <= 0. Units are those
    that the region leaves open, and perhaps some more; what the others do is part of the layers.
    A form of layers says how rows go back through it (`rows_backward`), and `points` forward.
    """

    support: Support
    parts: int

    @property
    def inputs(self) -> int:
        return self.support.centre.numel()

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """How many units each layer has."""

    @property
    def units(self) -> int:
        """How many units there are, over all layers."""
        return sum(self.sizes)

    @property
    def slices(self) -> list[slice]:
        """The places of each layer's units among all of them."""
        ends = [0]
        for size in self.sizes:
            ends.append(ends[-1] + size)
        return [slice(first, last) for first, last in pairwise(ends)]

    @property
    @abstractmethod
    def spec_rows(self) -> int:
        """The rows of all specifications together."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many numbers a backward pass multiplies each row with."""

    @abstractmethod
    def to(self, dtype: torch.dtype, device: torch.device | str) -> Layers:
        """The same in another type; proofs are evaluated in float64 only."""

    @abstractmethod
    def rows_backward(self, relaxed: RelaxedRows, weights: Tensor, *, proven: bool) -> DualBackward:
        """Rows that begin as the specifications with these weights (R, spec_rows)."""

    @abstractmethod
    def points(self, steps: Tensor) -> PointsForward:
        """Inputs that take these steps from the region's centre, on their way forward."""

    @abstractmethod
    def functions_of_steps(self, is_active: Tensor) -> tuple[Tensor, Tensor]:
        """Arguments and specifications as functions of steps and the constant, (K, inputs + 1),
        where every unit is either its argument or 0."""

    @final
    def backward(
        self, rows: Rows, chosen: Multipliers, lines: ReluLines, *, proven: bool
    ) -> DualPass:
        """The rows' values at given multipliers; `proven` subtracts what rounding may have added.

        A coefficient a on a function loses |a| times its slack; what the lines themselves add up is
        rounded in float64 only.
        """
        relaxed = RelaxedRows(lines, lines.lower_slope(chosen.slopes), direct_terms(rows, chosen))
        descent = self.rows_backward(relaxed, spec_weights(self, rows, chosen), proven=proven)
        descent.run()
        values, steps, lost = descent.least()
        if lost is not None:
            lost = lost * ROUND_UP
            values = values - lost
        coefficients, losses = descent.coefficients[::-1], descent.losses[::-1]
        return DualPass(values, steps, relaxed.slopes, coefficients, losses, lost)

    @final
    def gradients(
        self, rows: Rows, chosen: Multipliers, lines: ReluLines, passed: DualPass
    ) -> Multipliers:
        """The values' derivative by the multipliers, from the relaxation's own minimiser.

        By Danskin's theorem: of a minimum over x of a function that is linear in each multiplier,
        the derivative is what the multiplier is a factor of, at the x where it is least.
        """
        points = self.points(passed.steps)
        arguments = torch.empty_like(rows.lower)
        by_slope = torch.empty_like(rows.lower)
        places = zip(self.slices, passed.coefficients, strict=True)
        for number, (units, on_values) in enumerate(places):
            z = points.arguments(number)
            points.put(number, lines.values(z, passed.slopes, on_values, units))
            arguments[:, units] = z
            by_slope[:, units] = on_values.clamp_min(0) * z
        by_slope *= lines.is_open
        has_splits = chosen.beta is not None and rows.signs is not None
        by_beta = -rows.signs * arguments if has_splits and rows.signs is not None else None
        count = self.spec_rows // self.parts
        grouped = points.specifications().view(len(rows), count, self.parts)
        by_gamma = grouped[torch.arange(len(rows), device=grouped.device), rows.spec]
        return Multipliers(by_slope, by_gamma, by_beta)


@dataclass(frozen=True, slots=True, eq=False)
class RelaxedRows:
    """What rows meet at each unit: the lines around it, the chosen slopes of those below, and the
    coefficients `direct` on its argument; all (R, U)."""

    lines: ReluLines
    slopes: Tensor
    direct: Tensor | None


class DualBackward(RowsBackward[Tensor]):
    """Rows on their way back through open units, whatever form their layers have.

    `constants` (R) is what the rows have added up, `lost` what rounding takes from proven ones.
    """

    def __init__(
        self, slices: Sequence[slice], relaxed: RelaxedRows, constants: Tensor, lost: Tensor | None
    ) -> None:
        self.slices, self._relaxed = slices, relaxed
        self.constants, self.lost = constants, lost
        self.coefficients: list[Tensor] = []
        self.losses: list[Tensor] = []

    @property
    def depth(self) -> int:
        return len(self.slices)

    @final
    def relaxed(self, number: int, rows: Tensor) -> Tensor:
        """Through the lines of the open units, to which splits and what is asked for are added."""
        units, here = self.slices[number], self._relaxed
        on_arguments, loss = here.lines.backward(rows, here.slopes, units)
        if here.direct is not None:
            on_arguments += here.direct[:, units]
        self.coefficients.append(rows)
        self.losses.append(loss)
        total = loss.sum(1)
        self.constants = self.constants + total
        if self.lost is not None:
            self.lost = self.lost - DUAL_ROUNDING * total
        return on_arguments

    @abstractmethod
    def least(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """At the input: the rows' least values, the steps that attain them, and what is lost."""


class PointsForward(ABC):
    """Points on their way from the input to the specifications, layer by layer."""

    @abstractmethod
    def arguments(self, number: int) -> Tensor:
        """What the units of a layer read, (R, units)."""

    @abstractmethod
    def put(self, number: int, values: Tensor) -> None:
        """What they give."""

    @abstractmethod
    def specifications(self) -> Tensor:
        """The rows of all specifications, (R, spec_rows)."""


def lost_to_underflow(support: Support) -> float:
    """What coefficients on inputs and units may change of a function in underflowing."""
    lost = LOST_TO_UNDERFLOW[torch.float64]  # also between the maps of one layer
    return lost + float((SMALLEST_NORMAL * support.sizes).sum())


@dataclass(slots=True, eq=False)
class Rows:
    """What is to be bounded, a row each. All tensors are in one dtype and on one device.

    `lower` and `upper` bound the units' arguments at the row's node, splits included; `signs` is +1
    or -1 at split units and 0 elsewhere (None: no splits); `spec` is the index of the specification
    that is assumed to be violated. A row bounds `sign * argument of unit`, or the specification
    itself where `unit` is None.
    """

    lower: Tensor
    upper: Tensor
    spec: Tensor
    signs: Tensor | None = None
    unit: Tensor | None = None
    sign: Tensor | None = None

    def __len__(self) -> int:
        return len(self.lower)

    def pick(self, chosen: Tensor) -> Rows:
        return Rows(
            self.lower[chosen],
            self.upper[chosen],
            self.spec[chosen],
            None if self.signs is None else self.signs[chosen],
            None if self.unit is None else self.unit[chosen],
            None if self.sign is None else self.sign[chosen],
        )

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Rows:
        return Rows(
            self.lower.to(device, dtype),
            self.upper.to(device, dtype),
            self.spec.to(device),
            None if self.signs is None else self.signs.to(device, dtype),
            None if self.unit is None else self.unit.to(device),
            None if self.sign is None else self.sign.to(device, dtype),
        )


@dataclass(slots=True, eq=False)
class Multipliers:
    """The free choices of a bound: slopes in [0, 1], split and specification multipliers >= 0."""

    slopes: Tensor
    gamma: Tensor
    beta: Tensor | None

    @classmethod
    def start(cls, rows: Rows, parts: int, gamma: float | None = None) -> Multipliers:
        """Slopes as CROWN chooses them; a specification's own rows are weighed equally."""
        slopes = prefers_right(rows.lower, rows.upper)
        weight = 1.0 / parts if gamma is None else gamma
        weights = slopes.new_full((len(rows), parts), weight)
        return cls(slopes, weights, None if rows.signs is None else torch.zeros_like(slopes))

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Multipliers:
        return Multipliers.of([part.to(device, dtype) for part in self.parts()])

    def parts(self) -> list[Tensor]:
        return [self.slopes, self.gamma] + ([] if self.beta is None else [self.beta])

    @classmethod
    def of(cls, parts: list[Tensor]) -> Multipliers:
        return cls(parts[0], parts[1], parts[2] if len(parts) > 2 else None)


@dataclass(slots=True, eq=False)
class DualPass:
    """One backward pass: values, and what the pass forward needs for the gradient.

    `rounding` is what was subtracted from the values for it, where they are proven.
    """

    values: Tensor
    steps: Tensor
    slopes: Tensor
    coefficients: list[Tensor]
    losses: list[Tensor]
    rounding: Tensor | None = None


def spec_weights(layers: Layers, rows: Rows, chosen: Multipliers) -> Tensor:
    """Gamma, put on the specification's own rows of the block of all specifications."""
    if layers.spec_rows == layers.parts:
        return chosen.gamma
    weights = chosen.gamma.new_zeros(len(rows), layers.spec_rows // layers.parts, layers.parts)
    weights[torch.arange(len(rows), device=weights.device), rows.spec] = chosen.gamma
    return weights.flatten(1)


def direct_terms(rows: Rows, chosen: Multipliers) -> Tensor | None:
    """Coefficients put on the units' arguments: the one asked for, and the splits' multipliers."""
    if chosen.beta is not None and rows.signs is not None:
        terms = -chosen.beta * rows.signs
    elif rows.unit is not None:
        terms = torch.zeros_like(rows.lower)
    else:
        return None
    if rows.unit is not None and rows.sign is not None:
        terms[torch.arange(len(rows), device=terms.device), rows.unit] += rows.sign
    return terms


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Lower bounds, the steps that the relaxation is least at, each unit's loss, and what of the
    bounds was lost to rounding: the network's and our own."""

    values: Tensor
    steps: Tensor
    losses: Tensor
    rounding: Tensor


def evaluate(layers: Layers, rows: Rows, chosen: Multipliers) -> Evaluation:
    """Bounds from given multipliers; in float64 they are proven: their rounding is subtracted."""
    relaxed = ReluLines.of(rows.lower, rows.upper)
    passed = layers.backward(rows, chosen, relaxed, proven=True)
    losses = torch.cat(passed.losses, 1) if passed.losses else torch.zeros_like(rows.lower)
    # Where numbers overflow nothing is known: only what is finite passes for a bound.
    values = torch.where(passed.values.isfinite(), passed.values, -torch.inf)
    rounding = torch.zeros_like(values) if passed.rounding is None else passed.rounding
    return Evaluation(values - lost_to_underflow(layers.support), passed.steps, losses, rounding)


def improve(
    layers: Layers,
    rows: Rows,
    chosen: Multipliers,
    iterations: int,
    limits: Limits = UNLIMITED,
) -> tuple[Multipliers, Tensor]:
    """The best multipliers met in some steps of ascent, and their values, which are not proven.

    Once the `limits` are over, no further step is taken.
    """
    relaxed = ReluLines.of(rows.lower, rows.upper)
    known = chosen if rows.signs is not None else replace(chosen, beta=None)
    parts = [part.clone() for part in known.parts()]
    best = [part.clone() for part in parts]
    best_values = rows.lower.new_full((len(rows),), -torch.inf)
    is_gamma_free = rows.unit is not None or layers.parts > 1
    slopes, *multipliers = parts
    free = [Choices(held, damping=MULTIPLIER_DAMPING) for held in multipliers]
    ascent = Ascent([Choices(slopes, most=1.0), *free])
    for iteration in range(iterations + 1):
        current = Multipliers.of(parts)
        passed = layers.backward(rows, current, relaxed, proven=False)
        is_better = passed.values > best_values
        best_values = torch.where(is_better, passed.values, best_values)
        for kept, part in zip(best, parts, strict=True):
            kept.lerp_(part, is_better.to(part.dtype)[:, None])
        if iteration == iterations or limits.is_over:
            break
        gradient = layers.gradients(rows, current, relaxed, passed)
        by_gamma = gradient.gamma if is_gamma_free else None
        by_beta = [] if gradient.beta is None else [gradient.beta]
        ascent.climb([gradient.slopes, by_gamma, *by_beta])
        if rows.unit is None and is_gamma_free:
            parts[1] /= parts[1].sum(1, keepdim=True).clamp_min(1e-9)
    return Multipliers.of(best), best_values
