"""Candidates: points at which a relaxation is least, tried as counterexamples.

Some are followed by a short descent towards a violation, inside the box of inputs.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from radii.networks import Network
from radii.problem import Array, Ball, Halfspaces, Specification, Witness, check_witness
from radii.verifiers.native._settings import CandidateSettings

DEFAULTS = CandidateSettings()


class Descent:
    """Lowers how far outputs are from violating: for the nearest polyhedron its worst row."""

    def __init__(
        self,
        network: Network,
        specification: Specification,
        settings: CandidateSettings = DEFAULTS,
    ) -> None:
        self.network, self.settings = network, settings
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
        step = self.settings.descent_first_step * (high - low)
        for _ in range(self.settings.descent_steps):
            with torch.enable_grad():
                leaf = points.detach().requires_grad_()
                margins = self.margins(leaf)
                (gradient,) = torch.autograd.grad(margins.sum(), leaf)
            is_lower = margins.detach() < best_margins
            best = torch.where(is_lower[:, None], points, best)
            best_margins = torch.where(is_lower, margins.detach(), best_margins)
            points = torch.minimum(torch.maximum(points - step * gradient.sign(), low), high)
            step = self.settings.descent_decay * step
        return best


def _depth(polyhedron: Halfspaces, points: Tensor) -> Tensor:
    """The largest row at each point: <= 0 inside."""
    matrix = torch.as_tensor(polyhedron.matrix).to(points)
    return (points @ matrix.T + torch.as_tensor(polyhedron.offset).to(points)).amax(1)


class Candidates:
    """Keeps the first witness of a specification among the points that it is shown."""

    def __init__(
        self,
        network: Network,
        specification: Specification,
        settings: CandidateSettings = DEFAULTS,
    ) -> None:
        self.network, self.specification, self.settings = network, specification, settings
        self.descent = Descent(network, specification, settings)
        low, high = specification.region.box()
        self.low, self.high = (torch.from_numpy(side.ravel().copy()) for side in (low, high))
        self.calls = 0
        self.found: Array | None = None
        self.witness: Witness | None = None

    def try_points(self, points: Tensor) -> bool:
        """True once one of the points (count, inputs), or what an attack finds there, replays."""
        settings, points = self.settings, points.cpu().double()
        margins = self.margins(points)
        order = margins.argsort()[: settings.descent_starts]
        points, margins = points[order], margins[order]
        self.calls += 1
        is_early = self.calls <= settings.eager_calls
        if is_early or self.calls % settings.calls_between_attacks == 0:
            points = torch.cat([points, self.descent.run(points, self.low, self.high)])
            margins = self.margins(points)
        order = margins.argsort()[: settings.replays]
        return self.replay(points[order[margins[order] <= settings.near_violation]])

    def margins(self, points: Tensor) -> Tensor:
        """For each point, how far it is from a violation in real arithmetic."""
        return self.descent.margins(points)

    def replay(self, points: Tensor) -> bool:
        """True once one of the points replays on ONNX Runtime, the first of them first."""
        for point in points.numpy():
            candidate = point.astype(self.network.input_dtype)
            witness = check_witness(self.network, self.specification, candidate)
            if witness is not None:
                self.found, self.witness = candidate, witness
                return True
        return False


def shortened(
    network: Network,
    specification: Specification,
    witness: Witness,
    settings: CandidateSettings = DEFAULTS,
) -> Witness:
    """The witness nearest to the ball's centre among those on the way there."""
    region = specification.region
    if not isinstance(region, Ball):
        return witness
    count = settings.segment_points
    parts = np.linspace(1 / count, 1, count)
    step = witness.input.astype(np.float64) - region.center
    points = region.center + parts.reshape(-1, *(1,) * step.ndim) * step
    outputs = network.replay(points.astype(network.input_dtype))
    broken = ~specification.requirement.holds(outputs, parts * witness.distance)
    for place in np.flatnonzero(broken):
        nearer = check_witness(network, specification, points[place].astype(network.input_dtype))
        if nearer is not None:
            return nearer
    return witness
