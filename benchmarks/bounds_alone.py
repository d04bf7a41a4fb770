"""Verifiers that only bound, and never branch or attack: baselines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from radii import __version__
from radii.bounds import alpha_crown_bounds, crown_bounds
from radii.networks import Interval, Network
from radii.problem import Instance, Norm, Query, Specification, Verdict
from radii.strategy import Question, QuestionKind, Search
from radii.verifiers import Answer, GridVerifier, Limits, RadiusAnswer

MARGIN = 1e-6
ALPHA_COST = 60.0
"""How much longer alpha-CROWN takes than CROWN, until it was timed: three passes a step."""

Bounds = Callable[..., Interval]


class Upwards(Search):
    """One question: the largest value that can be proven."""

    name: ClassVar[str] = "upwards"
    needs_radius: ClassVar[bool] = True

    def next_question(self) -> Question | None:
        if self.answers or self.outstanding:
            return None
        return Question(QuestionKind.RADIUS, self.grid[len(self.grid) - 1])


class Crown(GridVerifier):
    """CROWN: bisects the values, since its bounds are fast and loosen with eps."""

    name: ClassVar[str] = "CROWN alone"
    norms = frozenset(Norm)

    @property
    def version(self) -> str:
        return __version__

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        if _proves(crown_bounds, network, specification):
            return Answer(Verdict.ROBUST, margin=MARGIN)
        return Answer(Verdict.UNKNOWN)

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        proven, failed = -1, len(values)
        while proven + 1 < failed and limits.expired is None:
            middle = (proven + failed) // 2
            if _proves(crown_bounds, network, Query(instance, values[middle]).specification):
                proven = middle
            else:
                failed = middle
        return _answer(values, proven)


class AlphaCrown(Crown):
    """alpha-CROWN: upwards from what CROWN proves, in growing steps, then bisecting.

    A call cannot be interrupted, so one that would outlast the limit is not begun.
    """

    name: ClassVar[str] = "alpha-CROWN alone"

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        begun = time.monotonic()
        lower = super().climb(network, instance, values, limits, report).lower
        proven = values.index(lower) if lower else -1
        calls = max(1, len(values).bit_length())
        cost, failed, step = ALPHA_COST * (time.monotonic() - begun) / calls, len(values), 1
        while proven + 1 < failed and cost < limits.remaining:
            place = proven + step if proven + step < failed else (proven + failed) // 2
            begun = time.monotonic()
            if _proves(alpha_crown_bounds, network, Query(instance, values[place]).specification):
                proven, step = place, 2 * step
            else:
                failed, step = place, len(values)
            cost = 1.5 * (time.monotonic() - begun)
        return _answer(values, proven)


def _answer(values: Sequence[float], proven: int) -> RadiusAnswer:
    return RadiusAnswer(values[proven] if proven >= 0 else 0.0, margin=MARGIN)


def _proves(bounds: Bounds, network: Network, specification: Specification) -> bool:
    """For every way to break the requirement some row is bounded above 0."""
    polyhedra = specification.requirement.violations or ()
    rows = np.vstack([polyhedron.matrix for polyhedron in polyhedra])
    least = bounds(network, [specification.region], rows).low[0].numpy()
    ends = np.cumsum([len(polyhedron.offset) for polyhedron in polyhedra])
    parts = np.split(least, ends[:-1])
    return all(
        (part + polyhedron.offset).max() > MARGIN
        for part, polyhedron in zip(parts, polyhedra, strict=True)
    )
