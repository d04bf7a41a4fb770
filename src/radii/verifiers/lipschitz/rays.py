"""Where a network that is too steep at its input shows it: straight ahead, along its gradients."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from radii.balls import Ball, Norm
from radii.networks import Network
from radii.properties import LipschitzRequirement
from radii.queries import Specification
from radii.verdicts import Witness
from radii.witnesses import check_witness

__all__ = ["steepest_ahead"]

SHARES = (1.0, 0.5, 0.2, 0.05, 0.01, 0.002)
"""Parts of the ball's radius at which each ray is looked at."""

REPLAYS = 3
"""How many points are replayed, those farthest over the bound first."""


def steepest_ahead(network: Network, specification: Specification) -> Witness | None:
    """A witness on one of the rays that raise or lower an output fastest; None proves nothing."""
    ball, requirement = specification.region, specification.requirement
    assert isinstance(ball, Ball) and isinstance(requirement, LipschitzRequirement)
    directions = _directions(network, ball)
    shares = torch.tensor(SHARES, dtype=torch.float64)
    steps = ball.eps * shares[:, None, None] * directions
    centre = torch.from_numpy(ball.center.ravel().copy())
    low, high = (torch.tensor(side.ravel()) for side in ball.domain.box(ball.shape))
    points = (centre + steps.reshape(-1, len(centre))).clamp(low, high)
    with torch.no_grad():
        outputs = network(points.reshape(-1, *network.input_shape)).numpy()
    distances = np.array([ball.norm.length(row) for row in (points - centre).numpy()])
    margins = requirement.margin(outputs, distances)
    for place in np.argsort(margins)[:REPLAYS]:
        if margins[place] > requirement.tau:
            break
        witness = check_witness(network, specification, points[place].numpy())
        if witness is not None:
            return witness
    return None


def _directions(network: Network, ball: Ball) -> Tensor:
    """Unit steps in the ball's norm (2 * outputs, inputs) along which an output changes most."""
    x = torch.from_numpy(ball.center.copy())[None].requires_grad_()
    with torch.enable_grad():
        outputs = network(x)[0]
        gradients = torch.stack(
            [torch.autograd.grad(value, x, retain_graph=True)[0].ravel() for value in outputs]
        )
    both = torch.cat([gradients, -gradients])
    match ball.norm:
        case Norm.LINF:
            return both.sign()
        case Norm.L2:
            lengths: Tensor = torch.linalg.vector_norm(both, dim=1, keepdim=True)
            return both / lengths.clamp_min(1e-300)
        case Norm.L1:
            steep = both.abs().argmax(dim=1, keepdim=True)
            return torch.zeros_like(both).scatter(1, steep, both.gather(1, steep).sign())
