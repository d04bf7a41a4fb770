"""The decisions that make a network affine, stage by stage, and what they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radii.bounds import Fusion, Hinges, Stage, StageBounds, hinges_of, windows_of
from radii.networks.operators import MaxPool
from radii.verifiers.linear.expressions import Affine, Float64

__all__ = ["Decision", "StagePlan", "plan"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One unit of a stage: a hinge below (0) or above (1) its knee, or which input is largest.

    `inputs` are entries of what the stage reads: one for a hinge, several for a maximum.
    """

    unit: int
    inputs: tuple[int, ...]
    knee: float | None = None
    hinge: int = 0

    @property
    def pieces(self) -> int:
        return len(self.inputs) if self.knee is None else 2

    def cut(self, piece: int, z: Affine) -> tuple[Float64, Float64]:
        """The constraints matrix @ x <= bound of one piece, wide enough for rounding."""
        rows = z.rows(np.array(self.inputs))
        matrix = rows.matrix.toarray()
        if self.knee is not None:
            sign = 1.0 if piece == 0 else -1.0
            return sign * matrix, sign * (self.knee - rows.offset) + rows.error
        others = [i for i in range(len(self.inputs)) if i != piece]
        bound = rows.offset[piece] - rows.offset[others]
        return matrix[others] - matrix[piece], bound + rows.error[others] + rows.error[piece]


@dataclass(frozen=True, slots=True, eq=False)
class StagePlan:
    """A stage and the decisions that its bounds leave open."""

    stage: Stage
    bounds: StageBounds
    decisions: tuple[Decision, ...]
    hinges: Hinges | None
    above: tuple[frozenset[int], ...]
    winners: tuple[int, ...]

    def value(self, z: Affine, pieces: Sequence[int]) -> Affine:
        """The stage's result once every decision is made."""
        if self.hinges is None:
            winners = list(self.winners)
            for decision, piece in zip(self.decisions, pieces, strict=True):
                winners[decision.unit] = decision.inputs[piece]
            return z.rows(np.array(winners))
        hinges = self.hinges
        above = [set(units) for units in self.above]
        for decision, piece in zip(self.decisions, pieces, strict=True):
            if piece == 1:
                above[decision.hinge].add(decision.unit)
        slope, offset = hinges.slope.copy(), hinges.offset.copy()
        for units, knee, change in zip(above, hinges.knee, hinges.change, strict=True):
            chosen = sorted(units)
            slope[chosen] += change[chosen]
            offset[chosen] -= change[chosen] * knee[chosen]
        values = z.rows(hinges.sources).scaled(slope, offset)
        return values.widened(self.bounds.value_error)


def plan(fusion: Fusion, bounds: Sequence[StageBounds]) -> list[StagePlan]:
    """Every stage with what interval bounds over the region leave to decide."""
    plans = []
    for stage, held in zip(fusion.stages, bounds, strict=True):
        result = fusion.graph.nodes[stage.node].shape
        hinges = hinges_of(stage.operator, stage.shape, result)
        if hinges is not None:
            plans.append(_plan_hinges(stage, hinges, held))
        else:
            plans.append(_plan_maxima(stage, held))
    return plans


def _plan_hinges(stage: Stage, hinges: Hinges, bounds: StageBounds) -> StagePlan:
    low, high = bounds.low, bounds.high
    decisions, above = [], []
    for k, (knees, changes) in enumerate(zip(hinges.knee, hinges.change, strict=True)):
        settled = set()
        for unit, (source, knee) in enumerate(zip(hinges.sources, knees, strict=True)):
            if low[source] >= knee:
                settled.add(unit)
            elif high[source] > knee and changes[unit] != 0:
                decisions.append(Decision(unit, (int(source),), float(knee), k))
        above.append(frozenset(settled))
    return StagePlan(stage, bounds, tuple(decisions), hinges, tuple(above), ())


def _plan_maxima(stage: Stage, bounds: StageBounds) -> StagePlan:
    assert isinstance(stage.operator, MaxPool)
    low, high = bounds.low, bounds.high
    decisions, winners = [], []
    for unit, candidates in enumerate(windows_of(stage.operator, stage.shape).candidates):
        best = int(candidates[np.argmax(low[candidates])])
        rivals = [int(c) for c in candidates if high[c] > low[best] and c != best]
        winners.append(best)
        if rivals:
            decisions.append(Decision(unit, (best, *rivals)))
    return StagePlan(stage, bounds, tuple(decisions), None, (), tuple(winners))
