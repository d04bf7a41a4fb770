"""Proofs by linear bounds of the whole region: CROWN, then lines that are chosen by ascent.

For networks whose units are not all ReLU, before anything is split. Units are bounded by intervals
first, then by CROWN, then with lines of their own (alpha-CROWN, Xu et al. 2021); each stage starts
from the bounds of the last, and chooses lines for the rows of the violations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from radii.bounds import (
    OFFSET_ROUNDING,
    Fusion,
    Interval,
    LayeredNetwork,
    LinearBounds,
    LinearFunctions,
    OptimisedPass,
    State,
    Supports,
    backward,
    bound_rows,
    layered,
    propagate,
)
from radii.problem import Halfspaces, Limits, Specification
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._settings import LineSettings


class _ExpiredError(Exception):
    """The limits expired in the middle of a pass."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeRegion:
    """What linear bounds over a region show: the violations that are `left`, and intervals of what
    all units read."""

    left: tuple[Halfspaces, ...]
    known: Sequence[Interval]


def prove_by_lines(
    session: ProofSession,
    fusion: Fusion,
    violations: tuple[Halfspaces, ...],
    specification: Specification,
    limits: Limits,
) -> WholeRegion:
    """What is left of the violations of a fused network in the specification's region."""
    network = layered(fusion, torch.float64, session.device, session.arithmetic)
    supports = Supports.of([specification.region], torch.float64, session.device)
    proof = _LineProof(network, supports, violations, limits, session.settings.lines)
    try:
        with torch.no_grad():
            proof.run(_margin(violations, fusion, supports))
    except _ExpiredError:
        pass
    return WholeRegion(proof.left, proof.known)


def _margin(violations: tuple[Halfspaces, ...], fusion: Fusion, supports: Supports) -> float:
    """At the middle of the region, in front of what was left out of the network."""
    (middle,) = (supports.box.low / 2 + supports.box.high / 2).cpu()
    values = fusion.graph.values(middle[None])[fusion.output.source].flatten().numpy()
    return min(float((each.matrix @ values + each.offset).max()) for each in violations)


class _LineProof:
    """Bounds over one region, ever tighter: `left` are the violations that stay open, and `known`
    the intervals of the units' arguments so far."""

    def __init__(
        self,
        network: LayeredNetwork,
        supports: Supports,
        violations: tuple[Halfspaces, ...],
        limits: Limits,
        settings: LineSettings,
    ) -> None:
        self.network, self.supports = network, supports
        self.limits, self.settings = limits, settings
        self.left = violations
        self.known: list[Interval] = []

    def run(self, margin: float) -> None:
        """`margin` is how far the middle of the region is from a violation."""
        settings = self.settings
        for steps in (None, 0, *settings.unit_steps):
            state = self._state(steps)
            least = self._exclude(state, 0)
            # Plain intervals are often hopeless, and their rows as dear to choose as others.
            is_near = steps is not None or least > -settings.near_margins * margin
            if self.left and is_near:
                self._exclude(state, settings.row_steps)
            if not self.left:
                return

    def _state(self, steps: int | None) -> State:
        """Units bounded by intervals (None), or by so many steps of ascent."""
        bound = None if steps is None else self._pass(steps)
        state = propagate(self.network, self.supports, bound, self.known or None)
        self.known = state.arguments
        return state

    def _exclude(self, state: State, steps: int) -> float:
        """Drop the violations of which a row alone is proven wrong; the worst of all."""
        rows = np.vstack([each.matrix for each in self.left])
        offsets = np.concatenate([each.offset for each in self.left])
        on_device = torch.from_numpy(rows).to(self.supports.box.low)
        low = bound_rows(state, on_device[None], self._pass(steps)).low[0].cpu().numpy()
        # Twice the rounding of this sum: whoever replays a point adds the offset as well.
        least = low + offsets - OFFSET_ROUNDING * (np.abs(low) + np.abs(offsets))
        ends = np.cumsum([len(each.offset) for each in self.left])[:-1]
        best = [float(values.max()) for values in np.split(least, ends)]
        pairs = zip(self.left, best, strict=True)
        self.left = tuple(violation for violation, value in pairs if not value > 0)
        return min(best)

    def _pass(self, steps: int) -> _PolledPass:
        return _PolledPass(self.limits, steps)


class _PolledPass:
    """A pass of a few rows after so many steps of ascent, while there is time."""

    def __init__(self, limits: Limits, steps: int) -> None:
        self.limits = limits
        self._optimised = OptimisedPass(steps, limits) if steps else None

    def __call__(self, state: State, rows: LinearFunctions) -> LinearBounds:
        if self.limits.expired is not None:
            raise _ExpiredError
        return backward(state, rows) if self._optimised is None else self._optimised(state, rows)
