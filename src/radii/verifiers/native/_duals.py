"""Lower bounds on linear functions of a reduced network, and multipliers that make them large.

A row asks, at one node of the tree, for a lower bound of a specification or of one unit's argument.
It is found by going backward through the layers: a unit whose sign is not fixed is replaced by a
line below it (its slope alpha is free) or above it. Splits of the node enter with multipliers
beta >= 0, and so does the assumption that the specification is violated: where it is <= 0, adding
gamma >= 0 times it can only lower a value.

Any multipliers give a valid bound, so they are looked for in float32, by ascent, and the bound that
counts is computed from them once more in float64, less its own rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds import LOST_TO_UNDERFLOW, ROUND_UP, SMALLEST_NORMAL
from radii.problem import UNLIMITED, Limits
from radii.verifiers.native._supports import Support

DUAL_ROUNDING = 2.0**-34
"""What a float64 bound may be off, relative to the sum of the absolute values it adds up."""

ADAM_STEP = 0.3
ADAM_DECAY = 0.93
ADAM_MOMENTUM, ADAM_CURVATURE = 0.8, 0.98
"""Adam's: slopes live in [0, 1], so one step size serves every network."""
SMALLEST_CURVATURE = 1e-24
"""Added to a squared gradient: zero stays where it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Affine functions of what lies before them, one a row.

    `earlier` (K, 1 + units before) is on the constant 1 and the outputs of earlier units; `steps`
    (K, inputs) is on the input's step from its centre, None where the input is not read.
    `slack` (K) is how far each function may be from what the network computes: its own rounding in
    float64, and the network's.
    """

    earlier: Tensor
    steps: Tensor | None
    slack: Tensor

    def __len__(self) -> int:
        return len(self.earlier)

    def to(self, dtype: torch.dtype, device: torch.device | str) -> Block:
        steps = None if self.steps is None else self.steps.to(device, dtype)
        return Block(self.earlier.to(device, dtype), steps, self.slack.to(device, dtype))


class Layers(ABC):
    """A network over a region: the arguments of its units, layer by layer, and specifications.

    A specification has `parts` rows, and is violated where all of them are <= 0. Units are those
    that the region leaves open, and perhaps some more; what the others do is part of the layers.
    """

    support: Support
    parts: int

    @property
    def inputs(self) -> int:
        return self.support.centre.numel()

    @property
    @abstractmethod
    def units(self) -> int:
        """How many units there are, over all layers."""

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
    def backward(
        self, rows: Rows, chosen: Multipliers, relaxed: UnitEnvelope, *, proven: bool
    ) -> BackwardPass:
        """The rows' values at given multipliers; `proven` subtracts what rounding may have added.

        A coefficient a on a function loses |a| times its slack; what the lines themselves add up is
        rounded in float64 only.
        """

    @abstractmethod
    def gradients(
        self, rows: Rows, chosen: Multipliers, relaxed: UnitEnvelope, passed: BackwardPass
    ) -> Multipliers:
        """The values' derivative by the multipliers: the relaxation's own minimiser, forward."""

    @abstractmethod
    def functions_of_steps(self, is_active: Tensor) -> tuple[Tensor, Tensor]:
        """Arguments and specifications as functions of steps and the constant, (K, inputs + 1),
        where every unit is either its argument or 0."""


def underflow(support: Support) -> float:
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
        slopes = (rows.upper > -rows.lower).to(rows.lower.dtype)
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
class UnitEnvelope:
    """Lines around each unit: below slope * z (slope free where unstable), above upper_*.

    `is_unstable` is 0 or 1 in the rows' own type: products are far faster than selections.
    """

    is_unstable: Tensor
    fixed_slope: Tensor
    upper_slope: Tensor
    upper_offset: Tensor

    @classmethod
    def of(cls, lower: Tensor, upper: Tensor) -> UnitEnvelope:
        is_active = lower >= 0
        is_unstable = ~is_active & (upper > 0)
        fixed = is_active.to(lower.dtype)
        slope = torch.where(is_unstable, upper / (upper - lower), fixed)
        offset = torch.where(is_unstable, -slope * lower, 0.0)
        return cls(is_unstable.to(lower.dtype), fixed, slope, offset)

    def lowered(self, on_output: Tensor, slopes: Tensor, units: slice) -> tuple[Tensor, Tensor]:
        """Coefficients on some units' outputs as ones on their arguments, and what that loses."""
        above = on_output.clamp_max(0)
        loss = above * self.upper_offset[:, units]
        on_argument = torch.addcmul(
            above * self.upper_slope[:, units], on_output - above, slopes[:, units]
        )
        return on_argument, loss

    def least(self, z: Tensor, slopes: Tensor, on_output: Tensor, units: slice) -> Tensor:
        """The outputs of some units, on the lines that these coefficients choose."""
        below = slopes[:, units] * z
        above = torch.addcmul(self.upper_offset[:, units], self.upper_slope[:, units], z)
        return torch.lerp(above, below, on_output.sign().clamp_min_(0))


@dataclass(slots=True, eq=False)
class BackwardPass:
    """One backward pass: values, and what the pass forward needs for the gradient.

    `rounding` is what was subtracted from the values for it, where they are proven.
    """

    values: Tensor
    steps: Tensor
    slopes: Tensor
    coefficients: list[Tensor]
    losses: list[Tensor]
    rounding: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DenseLayers(Layers):
    """Layers as matrices over the kept units and the input; `specs` has all specifications."""

    blocks: tuple[Block, ...]
    specs: Block
    parts: int
    support: Support

    @property
    def units(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def spec_rows(self) -> int:
        return len(self.specs)

    @property
    def entries(self) -> int:
        parts = [part for b in self.blocks for part in (b.earlier, b.steps) if part is not None]
        return sum(part.numel() for part in parts)

    def to(self, dtype: torch.dtype, device: torch.device | str) -> DenseLayers:
        return DenseLayers(
            tuple(block.to(dtype, device) for block in self.blocks),
            self.specs.to(dtype, device),
            self.parts,
            self.support.to(dtype, device),
        )

    def backward(
        self, rows: Rows, chosen: Multipliers, relaxed: UnitEnvelope, *, proven: bool
    ) -> BackwardPass:
        slopes = torch.addcmul(relaxed.fixed_slope, relaxed.is_unstable, chosen.slopes)
        direct = direct_terms(rows, chosen)
        weights = spec_weights(self, rows, chosen)
        objective = weights @ self.specs.earlier
        on_steps = None if self.specs.steps is None else weights @ self.specs.steps
        lost = weights @ self.specs.slack if proven else None
        bias = torch.zeros_like(objective[:, 0])
        coefficients: list[Tensor] = []
        losses: list[Tensor] = []
        end = self.units
        for block in reversed(self.blocks):
            units = slice(end - len(block), end)
            on_output = objective[:, 1 + units.start : 1 + end]
            on_argument, loss = relaxed.lowered(on_output, slopes, units)
            if direct is not None:
                on_argument += direct[:, units]
            bias = bias + loss.sum(1)
            if lost is not None:
                lost = lost + on_argument.abs() @ block.slack - DUAL_ROUNDING * loss.sum(1)
            objective = torch.addmm(objective[:, : 1 + units.start], on_argument, block.earlier)
            if block.steps is not None:
                on_steps = _plus_product(on_steps, on_argument, block.steps)
            coefficients.append(on_output)
            losses.append(loss)
            end = units.start
        if on_steps is None:
            on_steps = objective.new_zeros(len(objective), self.inputs)
        least, steps = self.support.least(on_steps)
        values = bias + objective[:, 0] + least
        if lost is not None:
            lost = lost * ROUND_UP
            values = values - lost
        return BackwardPass(values, steps, slopes, coefficients[::-1], losses[::-1], lost)

    def gradients(
        self, rows: Rows, chosen: Multipliers, relaxed: UnitEnvelope, passed: BackwardPass
    ) -> Multipliers:
        columns = rows.lower.new_empty(len(rows), 1 + self.units)
        columns[:, 0] = 1
        arguments = torch.empty_like(rows.lower)
        by_slope = torch.empty_like(rows.lower)
        start = 0
        for block, on_output in zip(self.blocks, passed.coefficients, strict=True):
            units = slice(start, start + len(block))
            z = columns[:, : 1 + start] @ block.earlier.T
            if block.steps is not None:
                z.addmm_(passed.steps, block.steps.T)
            columns[:, 1 + start : 1 + units.stop] = relaxed.least(
                z, passed.slopes, on_output, units
            )
            arguments[:, units] = z
            by_slope[:, units] = on_output.clamp_min(0) * z
            start = units.stop
        by_slope *= relaxed.is_unstable
        by_beta = None
        if chosen.beta is not None and rows.signs is not None:
            by_beta = -rows.signs * arguments
        return Multipliers(by_slope, self._by_gamma(rows, columns, passed.steps), by_beta)

    def _by_gamma(self, rows: Rows, columns: Tensor, steps: Tensor) -> Tensor:
        values = columns @ self.specs.earlier.T
        if self.specs.steps is not None:
            values.addmm_(steps, self.specs.steps.T)
        grouped = values.view(len(rows), len(self.specs) // self.parts, self.parts)
        return grouped[torch.arange(len(rows), device=values.device), rows.spec]

    def functions_of_steps(self, is_active: Tensor) -> tuple[Tensor, Tensor]:
        one = torch.zeros(1, self.inputs + 1, dtype=torch.float64)
        one[0, self.inputs] = 1.0
        columns, arguments = one, one[:0]
        for block in self.blocks:
            found = _composed(block, columns)
            units = is_active[len(arguments) : len(arguments) + len(block), None]
            columns = torch.cat([columns, torch.where(units, found, 0.0)])
            arguments = torch.cat([arguments, found])
        return arguments, _composed(self.specs, columns)


def _composed(block: Block, columns: Tensor) -> Tensor:
    found = block.earlier @ columns
    if block.steps is not None:
        found[:, :-1] += block.steps
    return found


def _plus_product(total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    return left @ right if total is None else torch.addmm(total, left, right)


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
    relaxed = UnitEnvelope.of(rows.lower, rows.upper)
    passed = layers.backward(rows, chosen, relaxed, proven=True)
    losses = torch.cat(passed.losses, 1) if passed.losses else torch.zeros_like(rows.lower)
    # Where numbers overflow nothing is known: only what is finite passes for a bound.
    values = torch.where(passed.values.isfinite(), passed.values, -torch.inf)
    rounding = torch.zeros_like(values) if passed.rounding is None else passed.rounding
    return Evaluation(values - underflow(layers.support), passed.steps, losses, rounding)


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
    relaxed = UnitEnvelope.of(rows.lower, rows.upper)
    known = chosen if rows.signs is not None else replace(chosen, beta=None)
    parts = [part.clone() for part in known.parts()]
    best = [part.clone() for part in parts]
    best_values = rows.lower.new_full((len(rows),), -torch.inf)
    moments = [torch.zeros_like(part) for part in parts]
    squares = [torch.zeros_like(part) for part in parts]
    is_gamma_free = rows.unit is not None or layers.parts > 1
    step = ADAM_STEP
    for iteration in range(iterations + 1):
        current = Multipliers.of(parts)
        passed = layers.backward(rows, current, relaxed, proven=False)
        is_better = passed.values > best_values
        best_values = torch.where(is_better, passed.values, best_values)
        for kept, part in zip(best, parts, strict=True):
            kept.lerp_(part, is_better.to(part.dtype)[:, None])
        if iteration == iterations or limits.is_over:
            break
        gradient = layers.gradients(rows, current, relaxed, passed).parts()
        scale = (1 - ADAM_CURVATURE ** (iteration + 1)) ** 0.5 / (
            1 - ADAM_MOMENTUM ** (iteration + 1)
        )
        for place, part in enumerate(parts):
            if place == 1 and not is_gamma_free:
                continue
            moments[place].lerp_(gradient[place], 1 - ADAM_MOMENTUM)
            squares[place].mul_(ADAM_CURVATURE).addcmul_(
                gradient[place], gradient[place], value=1 - ADAM_CURVATURE
            )
            rate = step if place == 0 else step / 3
            part.addcmul_(
                moments[place], squares[place].add(SMALLEST_CURVATURE).rsqrt_(), value=rate * scale
            )
            part.clamp_(0, 1) if place == 0 else part.clamp_(min=0)
        if rows.unit is None and is_gamma_free:
            parts[1] /= parts[1].sum(1, keepdim=True).clamp_min(1e-9)
        step *= ADAM_DECAY
    return Multipliers.of(best), best_values
