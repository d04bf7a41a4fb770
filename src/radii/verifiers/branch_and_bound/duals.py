"""Lower bounds on linear functions of a reduced network, and multipliers that make them large.

A row asks for a lower bound of a linear function of the columns and of z on one node of the tree,
where z are the arguments of the units. It is bounded by going backward through the layers: a unit
whose sign is not fixed is replaced by a line below it (its slope alpha is free) or above it. Splits
of the node enter with multipliers beta >= 0, and so does the assumption that the specification is
violated: where `spec @ columns <= 0`, adding gamma >= 0 times it can only lower a value.

Any multipliers give a valid bound, so they are looked for in float32, by ascent, and the bound that
counts is computed from them once more in float64, less its own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.verifiers.branch_and_bound.supports import Support

__all__ = ["Layers", "Multipliers", "Rows", "evaluate", "improve"]

ROUNDING = 2.0**-36
"""What a float64 bound may be off, relative to the sum of the absolute values it adds up."""

STEP = 0.3
DECAY = 0.93
MOMENTUM, CURVATURE = 0.8, 0.98
"""Adam's: slopes live in [0, 1], so one step size serves every network."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """The unstable units of a network over a region: unit arguments are `matrix @ columns`.

    Columns are the inputs, the constant 1, and the outputs of the units of earlier layers.
    `magnitudes` holds for each unit the sum of absolute values its argument adds up.
    """

    matrices: tuple[Tensor, ...]
    magnitudes: Tensor
    support: Support

    @property
    def inputs(self) -> int:
        return self.support.low.numel()

    @property
    def units(self) -> int:
        return self.magnitudes.numel()

    @property
    def columns(self) -> int:
        return self.inputs + 1 + self.units

    def to(self, dtype: torch.dtype, device: torch.device | str) -> Layers:
        return Layers(
            tuple(matrix.to(device, dtype) for matrix in self.matrices),
            self.magnitudes.to(device, dtype),
            self.support.to(dtype, device),
        )


@dataclass(slots=True, eq=False)
class Rows:
    """What is to be bounded, a row each. All tensors are in one dtype and on one device.

    `lower` and `upper` bound the units' arguments at the row's node, splits included; `signs` is +1
    or -1 at split units and 0 elsewhere (None: no splits); `spec` (R, S, columns) are the
    specification's rows, all <= 0 where it is violated; `seed` (R, units) may be None.
    """

    lower: Tensor
    upper: Tensor
    spec: Tensor
    signs: Tensor | None = None
    seed: Tensor | None = None

    def __len__(self) -> int:
        return len(self.lower)

    def to(self, dtype: torch.dtype) -> Rows:
        return Rows(
            self.lower.to(dtype),
            self.upper.to(dtype),
            self.spec.to(dtype),
            None if self.signs is None else self.signs.to(dtype),
            None if self.seed is None else self.seed.to(dtype),
        )


@dataclass(slots=True, eq=False)
class Multipliers:
    """The free choices of a bound: slopes in [0, 1], split and specification multipliers >= 0."""

    slopes: Tensor
    gamma: Tensor
    beta: Tensor | None

    @classmethod
    def start(cls, rows: Rows) -> Multipliers:
        """Slopes as CROWN chooses them; a row without a seed bounds the specification itself."""
        slopes = (rows.upper > -rows.lower).to(rows.lower.dtype)
        count, parts = rows.spec.shape[:2]
        share = 0.1 if rows.seed is not None else 1.0 / parts
        gamma = torch.full((count, parts), share, dtype=slopes.dtype, device=slopes.device)
        beta = None if rows.signs is None else torch.zeros_like(slopes)
        return cls(slopes, gamma, beta)

    def to(self, dtype: torch.dtype) -> Multipliers:
        beta = None if self.beta is None else self.beta.to(dtype)
        return Multipliers(self.slopes.to(dtype), self.gamma.to(dtype), beta)

    def parts(self) -> list[Tensor]:
        return [self.slopes, self.gamma] + ([] if self.beta is None else [self.beta])


@dataclass(slots=True, eq=False)
class _Pass:
    """One backward pass: values, and what the pass forward needs for the gradient."""

    values: Tensor
    size: Tensor
    points: Tensor
    coefficients: list[Tensor]
    losses: list[Tensor]


@dataclass(slots=True, eq=False)
class _Relaxation:
    """Lines around each unit: below slope * z (slope free where unstable), above upper_*."""

    is_unstable: Tensor
    fixed_slope: Tensor
    upper_slope: Tensor
    upper_offset: Tensor

    @classmethod
    def of(cls, lower: Tensor, upper: Tensor) -> _Relaxation:
        is_active = lower >= 0
        is_unstable = ~is_active & (upper > 0)
        fixed = is_active.to(lower.dtype)
        width = torch.where(is_unstable, upper - lower, torch.ones_like(lower))
        slope = torch.where(is_unstable, upper / width, fixed)
        offset = torch.where(is_unstable, -slope * lower, torch.zeros_like(lower))
        return cls(is_unstable, fixed, slope, offset)


def _backward(
    layers: Layers, rows: Rows, chosen: Multipliers, relaxed: _Relaxation, *, measure: bool
) -> _Pass:
    objective = torch.einsum("rs,rsc->rc", chosen.gamma, rows.spec)
    slopes = torch.where(relaxed.is_unstable, chosen.slopes, relaxed.fixed_slope)
    extra = _unit_terms(rows, chosen)
    bias = torch.zeros_like(objective[:, 0])
    size = objective.abs().sum(1) if measure else bias
    coefficients: list[Tensor] = []
    losses: list[Tensor] = []
    end = layers.columns
    for matrix in reversed(layers.matrices):
        start = end - matrix.shape[0]
        units = slice(start - layers.inputs - 1, end - layers.inputs - 1)
        on_output = objective[:, start:end]
        above = on_output.clamp_max(0)
        loss = above * relaxed.upper_offset[:, units]
        on_argument = (
            on_output.clamp_min(0) * slopes[:, units] + above * relaxed.upper_slope[:, units]
        )
        if extra is not None:
            on_argument = on_argument + extra[:, units]
        bias = bias + loss.sum(1)
        if measure:
            size = size + on_argument.abs() @ layers.magnitudes[units] + loss.abs().sum(1)
        objective = torch.addmm(objective[:, :start], on_argument, matrix)
        coefficients.append(on_output)
        losses.append(loss)
        end = start
    on_inputs = objective[:, : layers.inputs]
    least, points = layers.support.least(on_inputs)
    if measure:
        size = size + on_inputs.abs() @ layers.support.sizes
    values = bias + objective[:, layers.inputs] + least
    return _Pass(values, size, points, coefficients[::-1], losses[::-1])


def _unit_terms(rows: Rows, chosen: Multipliers) -> Tensor | None:
    """Coefficients put directly on the units' arguments: the seed, and the splits' multipliers."""
    if chosen.beta is None or rows.signs is None:
        return rows.seed
    splits = -chosen.beta * rows.signs
    return splits if rows.seed is None else rows.seed + splits


def _gradients(
    layers: Layers, rows: Rows, chosen: Multipliers, relaxed: _Relaxation, passed: _Pass
) -> Multipliers:
    """The derivative of the values by the multipliers: the relaxation's own minimiser, forward."""
    columns = torch.empty_like(rows.spec[:, 0])
    columns[:, : layers.inputs] = passed.points
    columns[:, layers.inputs] = 1
    slopes = torch.where(relaxed.is_unstable, chosen.slopes, relaxed.fixed_slope)
    arguments = torch.empty_like(rows.lower)
    by_slope = torch.empty_like(rows.lower)
    start = layers.inputs + 1
    for matrix, on_output in zip(layers.matrices, passed.coefficients, strict=True):
        end = start + matrix.shape[0]
        units = slice(start - layers.inputs - 1, end - layers.inputs - 1)
        z = columns[:, :start] @ matrix.T
        is_below = on_output > 0
        columns[:, start:end] = torch.where(
            is_below,
            slopes[:, units] * z,
            relaxed.upper_slope[:, units] * z + relaxed.upper_offset[:, units],
        )
        arguments[:, units] = z
        by_slope[:, units] = on_output.clamp_min(0) * z
        start = end
    by_slope = by_slope * relaxed.is_unstable
    by_gamma = torch.einsum("rsc,rc->rs", rows.spec, columns)
    by_beta = None
    if chosen.beta is not None and rows.signs is not None:
        by_beta = -rows.signs * arguments
    return Multipliers(by_slope, by_gamma, by_beta)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Proven lower bounds, the inputs that the relaxation is least at, and each unit's loss."""

    values: Tensor
    points: Tensor
    losses: Tensor


def evaluate(layers: Layers, rows: Rows, chosen: Multipliers) -> Evaluation:
    """Bounds from given multipliers; in float64 they are proven: their rounding is subtracted."""
    relaxed = _Relaxation.of(rows.lower, rows.upper)
    passed = _backward(layers, rows, chosen, relaxed, measure=True)
    losses = torch.cat(passed.losses, 1) if passed.losses else torch.zeros_like(rows.lower)
    return Evaluation(passed.values - ROUNDING * passed.size, passed.points, losses)


def improve(
    layers: Layers, rows: Rows, chosen: Multipliers, iterations: int
) -> tuple[Multipliers, Tensor]:
    """Multipliers after some steps of ascent, and each row's best value met (not proven)."""
    relaxed = _Relaxation.of(rows.lower, rows.upper)
    parts = [part.clone() for part in chosen.parts()]
    best = [part.clone() for part in parts]
    best_values = rows.lower.new_full((len(rows),), -torch.inf)
    moments = [torch.zeros_like(part) for part in parts]
    squares = [torch.zeros_like(part) for part in parts]
    is_free = _is_gamma_free(rows)
    step = STEP
    for iteration in range(iterations + 1):
        current = Multipliers(parts[0], parts[1], parts[2] if len(parts) > 2 else None)
        passed = _backward(layers, rows, current, relaxed, measure=False)
        is_better = passed.values > best_values
        best_values = torch.where(is_better, passed.values, best_values)
        for kept, part in zip(best, parts, strict=True):
            kept[is_better] = part[is_better]
        if iteration == iterations:
            break
        gradient = _gradients(layers, rows, current, relaxed, passed).parts()
        for place, part in enumerate(parts):
            if place == 1 and not is_free:
                continue
            moments[place].mul_(MOMENTUM).add_(gradient[place], alpha=1 - MOMENTUM)
            squares[place].mul_(CURVATURE).addcmul_(
                gradient[place], gradient[place], value=1 - CURVATURE
            )
            scale = (1 - CURVATURE ** (iteration + 1)) ** 0.5 / (1 - MOMENTUM ** (iteration + 1))
            rate = step if place == 0 else step / 3
            part.addcdiv_(moments[place], squares[place].sqrt().add_(1e-12), value=rate * scale)
            part.clamp_(0, 1) if place == 0 else part.clamp_(min=0)
        if is_free and rows.seed is None:
            parts[1] /= parts[1].sum(1, keepdim=True).clamp_min(1e-9)
        step *= DECAY
    return Multipliers(best[0], best[1], best[2] if len(best) > 2 else None), best_values


def _is_gamma_free(rows: Rows) -> bool:
    """A row that bounds a single specification has nothing to weigh."""
    return rows.seed is not None or rows.spec.shape[1] > 1
