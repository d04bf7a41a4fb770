"""A short descent from points towards a violation, inside a box."""

from __future__ import annotations

import torch
from torch import Tensor

from radii.networks import Network
from radii.properties import Halfspaces
from radii.queries import Specification

__all__ = ["Descent"]

STEPS = 10
FIRST_STEP = 0.1
DECAY = 0.7
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
        step = FIRST_STEP * (high - low)
        for _ in range(STEPS):
            with torch.enable_grad():
                leaf = points.detach().requires_grad_()
                margins = self.margins(leaf)
                (gradient,) = torch.autograd.grad(margins.sum(), leaf)
            is_lower = margins.detach() < best_margins
            best = torch.where(is_lower[:, None], points, best)
            best_margins = torch.where(is_lower, margins.detach(), best_margins)
            points = torch.minimum(torch.maximum(points - step * gradient.sign(), low), high)
            step = DECAY * step
        return best


def _depth(polyhedron: Halfspaces, points: Tensor) -> Tensor:
    """The largest row at each point: <= 0 inside."""
    matrix = torch.as_tensor(polyhedron.matrix).to(points)
    return (points @ matrix.T + torch.as_tensor(polyhedron.offset).to(points)).amax(1)
