"""A short descent from points towards a violation, inside a box."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from radii.networks import Network
from radii.problem import Array, Ball, Halfspaces, Specification, Witness, check_witness

DESCENT_STEPS = 10
DESCENT_FIRST_STEP = 0.1
DESCENT_DECAY = 0.7
"""Steps by the sign of the gradient, as a share of the box's sides."""


class Descent:
    """Lowers how far outputs are from violating: for the nearest polyhedron its worst row."""

    def __init__(self, network: Network, specification: Specification) -> None:
        self.network = network
        self.polyhedra = specification.requirement.violations or ()
        self.inputs = specification.inputs

    def margins(self, points: Tensor) -> Tensor:
        """For each point (points, inputs), <= 0 where it violates."""
        outputs = self.network(points.reshape(-1, *self.network.input_shape))
        margins = torch.stack([_depth(part, outputs) for part in self.polyhedra]).amin(0)
        return (
            margins if self.inputs is None else torch.maximum(margins, _depth(self.inputs, points))
        )

    def run(self, points: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The points where each descent, within the box, was lowest."""
        best, best_margins = points, torch.full_like(points[:, 0], torch.inf)
        step = DESCENT_FIRST_STEP * (high - low)
        for _ in range(DESCENT_STEPS):
            with torch.enable_grad():
                leaf = points.detach().requires_grad_()
                margins = self.margins(leaf)
                (gradient,) = torch.autograd.grad(margins.sum(), leaf)
            is_lower = margins.detach() < best_margins
            best = torch.where(is_lower[:, None], points, best)
            best_margins = torch.where(is_lower, margins.detach(), best_margins)
            points = torch.minimum(torch.maximum(points - step * gradient.sign(), low), high)
            step = DESCENT_DECAY * step
        return best


def _depth(polyhedron: Halfspaces, points: Tensor) -> Tensor:
    """The largest row at each point: <= 0 inside."""
    matrix = torch.as_tensor(polyhedron.matrix).to(points)
    return (points @ matrix.T + torch.as_tensor(polyhedron.offset).to(points)).amax(1)


# Points that a relaxation is least at, tried as counterexamples.


SEGMENT_POINTS = 64
"""Points tried on the way from a witness to the centre of its ball."""

CANDIDATE_REPLAYS = 4
"""How many points of one call are replayed with all checks, most violating first."""

NEAR_VIOLATION = 1e-4
"""How far from a violation a point may be in float64 to be worth a replay."""

DESCENT_STARTS = 8
"""From how many points of a call an attack descends."""

EAGER_CALLS = 1
CALLS_BETWEEN_ATTACKS = 8
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
        order = margins.argsort()[:DESCENT_STARTS]
        points, margins = points[order], margins[order]
        self.calls += 1
        if self.calls <= EAGER_CALLS or self.calls % CALLS_BETWEEN_ATTACKS == 0:
            points = torch.cat([points, self.descent.run(points, self.low, self.high)])
            margins = self.descent.margins(points)
        order = margins.argsort()[:CANDIDATE_REPLAYS]
        return self.replay(points[order[margins[order] <= NEAR_VIOLATION]])

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
    parts = np.linspace(1 / SEGMENT_POINTS, 1, SEGMENT_POINTS)
    step = witness.input.astype(np.float64) - region.center
    points = region.center + parts.reshape(-1, *(1,) * step.ndim) * step
    outputs = network.replay(points.astype(network.input_dtype))
    broken = ~specification.requirement.holds(outputs, parts * witness.distance)
    for place in np.flatnonzero(broken):
        nearer = check_witness(network, specification, points[place].astype(network.input_dtype))
        if nearer is not None:
            return nearer
    return witness
