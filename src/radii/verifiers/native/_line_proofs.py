"""Proofs by linear bounds of the whole region: CROWN, then lines that are chosen by ascent.

For networks of many inputs whose units are not split: boxes of inputs would be cut in vain there.
Units are bounded by intervals first, then by CROWN, then with lines of their own; each stage starts
from the bounds of the last, and chooses lines for the rows of the violations.
"""

from __future__ import annotations

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
    box_of,
    fuse,
    layered,
    propagate,
    without_softmax,
)
from radii.problem import Halfspaces, Limits, Specification
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._settings import LineSettings


class _ExpiredError(Exception):
    """The limits expired in the middle of a pass."""


def has_many_inputs(session: ProofSession, specification: Specification) -> bool:
    """Too many that vary to cut boxes of."""
    low, high = box_of(specification.region)
    return int((low < high).sum()) > session.settings.lines.more_inputs_than


def prove_by_lines(session: ProofSession, specification: Specification, limits: Limits) -> bool:
    """Whether linear bounds over the region show that no input violates the specification."""
    stated = specification.requirement.violations or ()
    fusion, violations = without_softmax(fuse(session.network), stated, session.arithmetic)
    network = layered(fusion, torch.float64, session.device, session.arithmetic)
    supports = Supports.of([specification.region], torch.float64, session.device)
    proof = _LineProof(network, supports, limits, session.settings.lines)
    try:
        with torch.no_grad():
            return proof.holds(violations, _margin(violations, fusion, supports))
    except _ExpiredError:
        return False


def _margin(violations: tuple[Halfspaces, ...], fusion: Fusion, supports: Supports) -> float:
    """At the middle of the region, in front of what was left out of the network."""
    (middle,) = (supports.box.low / 2 + supports.box.high / 2).cpu()
    values = fusion.graph.values(middle[None])[fusion.output.source].flatten().numpy()
    return min(float((each.matrix @ values + each.offset).max()) for each in violations)


class _LineProof:
    """Bounds over one region, ever tighter. `known` are those of the units' arguments so far."""

    def __init__(
        self,
        network: LayeredNetwork,
        supports: Supports,
        limits: Limits,
        settings: LineSettings,
    ) -> None:
        self.network, self.supports = network, supports
        self.limits, self.settings = limits, settings
        self.known: list[Interval] | None = None

    def holds(self, violations: tuple[Halfspaces, ...], margin: float) -> bool:
        """`margin` is how far the middle of the region is from a violation."""
        settings, left = self.settings, violations
        for steps in (None, 0, *settings.unit_steps):
            state = self._state(steps)
            left, least = self._open(state, left, 0)
            # Plain intervals are often hopeless, and their rows as dear to choose as others.
            is_near = steps is not None or least > -settings.near_margins * margin
            if left and is_near:
                left, _ = self._open(state, left, settings.row_steps)
            if not left:
                return True
        return False

    def _state(self, steps: int | None) -> State:
        """Units bounded by intervals (None), or by so many steps of ascent."""
        bound = None if steps is None else self._pass(steps)
        state = propagate(self.network, self.supports, bound, self.known)
        self.known = state.arguments
        return state

    def _open(
        self, state: State, violations: tuple[Halfspaces, ...], steps: int
    ) -> tuple[tuple[Halfspaces, ...], float]:
        """The violations of which no row alone is proven wrong, and the worst of them."""
        rows = np.vstack([each.matrix for each in violations])
        offsets = np.concatenate([each.offset for each in violations])
        on_device = torch.from_numpy(rows).to(self.supports.box.low)
        low = bound_rows(state, on_device[None], self._pass(steps)).low[0].cpu().numpy()
        # Twice the rounding of this sum: whoever replays a point adds the offset as well.
        least = low + offsets - OFFSET_ROUNDING * (np.abs(low) + np.abs(offsets))
        ends = np.cumsum([len(each.offset) for each in violations])[:-1]
        best = [float(values.max()) for values in np.split(least, ends)]
        left = tuple(v for v, value in zip(violations, best, strict=True) if not value > 0)
        return left, min(best)

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
