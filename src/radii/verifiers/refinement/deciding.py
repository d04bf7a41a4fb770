"""Bounds on probabilities by linear queries to one and the same complete verifier.

Bounds on the differences of outputs come first and may be enough. Else the violations are put into
polyhedra (`floors`, `ceilings`), and the verifier either proves these out of reach or shows a point
in them. If that point is no violation, the polyhedra are refined there and asked about again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.attacks import attack_specification
from radii.bounds import centre_of, crown_bounds
from radii.networks import Network
from radii.properties import (
    Halfspaces,
    LinearRequirement,
    ProbabilityBound,
    SoftmaxRequirement,
)
from radii.queries import Specification
from radii.verdicts import Arithmetic, Array, Verdict
from radii.verifiers._base import Answer, Limits
from radii.verifiers.case import check_bounded
from radii.verifiers.refinement.ceilings import Tangents, log_sum_exp
from radii.verifiers.refinement.floors import (
    Cell,
    differences,
    first_cell,
    halfspaces_of_rivals,
)
from radii.witnesses import check_witness

__all__ = ["Decide", "decide_softmax"]

Float64 = npt.NDArray[np.float64]

Decide = Callable[[Network, Specification, Limits], Answer]
"""Decides a specification whose requirement is linear."""

FINEST = 1e-7
"""Where chords or tangents are this near to the true set, relative to the odds, and the point is
no violation, nothing finer is asked: what is left is within the rounding of the network."""

MOST_QUERIES = 4096
"""Linear queries for one bound on a probability."""

UNBOUNDED = "the outputs have no finite bounds"

ATTACK_SECONDS, ATTACK_SHARE = 1.0, 0.1
"""For the attack once the first query leaves the answer open, and of the time that is left."""


def decide_softmax(
    network: Network,
    specification: Specification,
    limits: Limits,
    decide: Decide,
    arithmetic: Arithmetic,
) -> Answer:
    """ROBUST if every bound is proven; a candidate once a point breaks one of them."""
    check_bounded(network, specification)
    return _Refinement(network, specification, limits, decide, arithmetic).answer()


@dataclass(slots=True)
class _Refinement:
    network: Network
    specification: Specification
    limits: Limits
    decide: Decide
    arithmetic: Arithmetic
    found: Array | None = None
    attacked: bool = False

    def answer(self) -> Answer:
        requirement = self.specification.requirement
        assert isinstance(requirement, SoftmaxRequirement)
        if self.replays(centre_of(self.specification.region)):
            return Answer(Verdict.NOT_ROBUST, self.found)
        if not requirement.bounds and not self._is_finite():
            return Answer(Verdict.UNKNOWN, message=UNBOUNDED)
        missing = None
        for bound in requirement.bounds:
            told = self.settle(bound)
            if self.found is not None:
                return Answer(Verdict.NOT_ROBUST, self.found)
            if told.verdict is not Verdict.ROBUST:
                missing = missing or told
        return missing or Answer(Verdict.ROBUST)

    def _is_finite(self) -> bool:
        """Whether all outputs are numbers in the region: a bound that none passes needs that."""
        inside = crown_bounds(self.network, [self.specification.region], arithmetic=self.arithmetic)
        return bool(inside.low.isfinite().all() and inside.high.isfinite().all())

    def settle(self, bound: ProbabilityBound) -> Answer:
        """ROBUST if the bound is proven; anything else, with `found` set, if it is broken."""
        rows = differences(bound.index, self.network.output_size)
        region = self.specification.region
        inside = crown_bounds(self.network, [region], rows, arithmetic=self.arithmetic)
        low, high = inside.low[0].numpy(), inside.high[0].numpy()
        top = -bound.log_odds
        if bound.is_ceiling:
            return self._settle_ceiling(rows, low, top)
        return self._settle_floor(rows, low, high, top)

    def _settle_floor(self, rows: Float64, low: Float64, high: Float64, top: float) -> Answer:
        if not np.isfinite(low).all():
            return Answer(Verdict.UNKNOWN, message=UNBOUNDED)
        rivals = halfspaces_of_rivals(rows, top, high)
        whole = first_cell(low, high, top)
        cells = [] if whole is None else [whole]
        shape = None if whole is None else whole.polyhedron(rows)
        if shape is None and not rivals:
            return Answer(Verdict.ROBUST)
        told = self.ask([*rivals, *([] if shape is None else [shape])])
        if told.verdict is Verdict.ROBUST or self.found is not None:
            return told
        if rivals and cells:  # which of them it was is not said; each is asked about alone
            told = self.ask(rivals)
        if rivals and told.verdict is not Verdict.ROBUST:
            return self.open(told)
        known = None if rivals else told  # of the first cell
        for _ in range(MOST_QUERIES):
            if not cells or self.found is not None:
                return Answer(Verdict.ROBUST)
            cell = cells.pop()
            told, known = known or self._about(cell, rows), None
            if told.verdict is Verdict.ROBUST or self.found is not None:
                continue
            if told.candidate is None:
                return self.open(told)
            point = rows @ self.outputs(told.candidate)
            if not float(cell.gaps(point).sum()) >= FINEST:  # also where it is NaN
                return self.open(None)
            cells.extend(cell.divided(point))
        return self.open(None)

    def _about(self, cell: Cell, rows: Float64) -> Answer:
        shape = cell.polyhedron(rows)
        return Answer(Verdict.ROBUST) if shape is None else self.ask([shape])

    def _settle_ceiling(self, rows: Float64, low: Float64, top: float) -> Answer:
        if not np.isfinite(low).all():
            return Answer(Verdict.UNKNOWN, message=UNBOUNDED)
        if log_sum_exp(low) > top + FINEST * (1 + abs(top)):
            return Answer(Verdict.ROBUST)
        tangents = Tangents(rows, top, low)
        for _ in range(MOST_QUERIES):
            told = self.ask([tangents.polyhedron])
            if told.verdict is Verdict.ROBUST or self.found is not None:
                return told
            if told.candidate is None:
                return self.open(told)
            point = rows @ self.outputs(told.candidate)
            if not log_sum_exp(point) >= top + FINEST:  # also where it is NaN
                return self.open(None)
            tangents.add(point)
        return self.open(None)

    def ask(self, polyhedra: Sequence[Halfspaces]) -> Answer:
        """The verifier's own answer on polyhedra; a candidate of it is tried as a violation."""
        expired = self.limits.expired
        if expired is not None:
            return Answer(expired)
        region, inputs = self.specification.region, self.specification.inputs
        asked = Specification(region, LinearRequirement(tuple(polyhedra)), inputs)
        told = self.decide(self.network, asked, self.limits)
        if told.verdict is not Verdict.ROBUST and not self.replays(told.candidate):
            self.attack()
        return told

    def attack(self) -> None:
        """Once: most violations are found by it, and the rest is then about proving."""
        if self.attacked:
            return
        self.attacked = True
        seconds = min(ATTACK_SECONDS, ATTACK_SHARE * self.limits.remaining)
        witness = attack_specification(self.network, self.specification, seconds=seconds)
        if witness is not None:
            self.found = witness.input

    def replays(self, candidate: Array | None) -> bool:
        """Whether the candidate breaks one of the bounds; kept if so."""
        witness = check_witness(self.network, self.specification, candidate)
        if witness is not None:
            self.found = witness.input
        return witness is not None

    def outputs(self, candidate: Array) -> Float64:
        shape = (1, *self.network.input_shape)
        point = np.asarray(candidate, self.network.input_dtype).reshape(shape)
        return np.asarray(self.network.replay(point)[0], np.float64)

    def open(self, told: Answer | None) -> Answer:
        """Why a bound could not be decided."""
        if told is None or told.verdict in (Verdict.NOT_ROBUST, Verdict.ROBUST):
            message = "the probability comes so near to its bound that rounding decides"
            return Answer(Verdict.UNKNOWN, message=message)
        return Answer(told.verdict, message=told.message)
