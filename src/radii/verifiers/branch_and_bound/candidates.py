"""Points that a relaxation is least at, tried as counterexamples."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from radii.balls import Ball
from radii.networks import Network
from radii.queries import Specification
from radii.verdicts import Array, Witness
from radii.verifiers.branch_and_bound.descent import Descent
from radii.witnesses import check_witness

__all__ = ["Candidates", "shortened"]

SEGMENT = 64
"""Points tried on the way from a witness to the centre of its ball."""

REPLAYS = 4
"""How many points of one call are replayed with all checks, most violating first."""

NEARLY = 1e-4
"""How far from a violation a point may be in float64 to be worth a replay."""

STARTS = 8
"""From how many points of a call an attack descends."""

EAGER = 1
EVERY = 8
"""An attack with each of the first calls, then with one in so many."""


class Candidates:
    """Keeps the first witness of a specification among the points that it is shown."""

    def __init__(self, network: Network, specification: Specification) -> None:
        self.network, self.specification = network, specification
        self.descent = Descent(network, specification)
        low, high = specification.region.box()
        self.low, self.high = (torch.from_numpy(side.ravel().copy()) for side in (low, high))
        self.calls = 0
        self.found: Array | None = None
        self.witness: Witness | None = None

    def try_points(self, points: Tensor) -> bool:
        """True once one of the points (count, inputs), or what an attack finds there, replays."""
        points = points.cpu().double()
        margins = self.descent.margins(points)
        order = margins.argsort()[:STARTS]
        points, margins = points[order], margins[order]
        self.calls += 1
        if self.calls <= EAGER or self.calls % EVERY == 0:
            points = torch.cat([points, self.descent.run(points, self.low, self.high)])
            margins = self.descent.margins(points)
        order = margins.argsort()[:REPLAYS]
        return self.replay(points[order[margins[order] <= NEARLY]])

    def replay(self, points: Tensor) -> bool:
        """True once one of the points replays on ONNX Runtime, the first of them first."""
        for point in points.numpy():
            candidate = point.astype(self.network.input_dtype)
            witness = check_witness(self.network, self.specification, candidate)
            if witness is not None:
                self.found, self.witness = candidate, witness
                return True
        return False


def shortened(network: Network, specification: Specification, witness: Witness) -> Witness:
    """The witness nearest to the ball's centre among those on the way there."""
    region = specification.region
    if not isinstance(region, Ball):
        return witness
    parts = np.linspace(1 / SEGMENT, 1, SEGMENT)
    step = witness.input.astype(np.float64) - region.center
    points = region.center + parts.reshape(-1, *(1,) * step.ndim) * step
    outputs = network.replay(points.astype(network.input_dtype))
    broken = ~specification.requirement.holds(outputs, parts * witness.distance)
    for place in np.flatnonzero(broken):
        nearer = check_witness(network, specification, points[place].astype(network.input_dtype))
        if nearer is not None:
            return nearer
    return witness
