"""Bounds on the Jacobian of a network over a ball, and so on how fast its outputs can move.

CROWN encloses what every unit reads on the ball; each unit's slope is then in an interval, most of
them in a single point. The gradient graph, outputs to inputs, is evaluated on these intervals. All
in float64, with the rounding of every product added to its radius.

At any point x of the ball f(x) - f(x0) is the mean of Jacobians on the segment between them, times
x - x0. The ball is convex, clipped or not, so bounds over the ball hold on that segment.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array

from radii.balls import Ball, Norm
from radii.bounds import Fusion, fuse
from radii.bounds.affine_maps import layered
from radii.bounds.crown import propagate
from radii.bounds.supports import Supports
from radii.networks import Network
from radii.verifiers.lipschitz.slopes import Rows, has_known_slope, pulled_back

__all__ = ["has_known_slopes", "rates"]

Float64 = npt.NDArray[np.float64]

PRODUCT_SLACK = 2.0**-40
"""What float64 sums of products may be off, relative to the sum of absolute values."""


def has_known_slopes(network: Network) -> bool:
    """Whether `rates` knows every nonlinear operator of the network."""
    return all(has_known_slope(node) for node in network.graph.nodes)


def rates(network: Network, ball: Ball) -> float:
    """The largest |f_i(x) - f_i(x0)| / |x - x0| of any output i, over all x of the ball, or more.

    Inputs that cannot go up, or down, because they are at the domain's side, count one way only.
    """
    jacobian = _jacobian(network, ball)
    low, high = jacobian.centre - jacobian.radius, jacobian.centre + jacobian.radius
    bottom, top = (side.ravel() for side in ball.domain.box(ball.shape))
    centre = ball.center.ravel()
    goes_up, goes_down = centre < top, centre > bottom
    rising = np.maximum(np.where(goes_up, high, 0.0), np.where(goes_down, -low, 0.0))
    falling = np.maximum(np.where(goes_up, -low, 0.0), np.where(goes_down, high, 0.0))
    gains = np.maximum(np.vstack([rising, falling]), 0.0)
    match ball.norm:
        case Norm.LINF:
            lengths = gains.sum(axis=1)
        case Norm.L2:
            lengths = np.linalg.norm(gains, axis=1)
        case Norm.L1:
            lengths = gains.max(axis=1)
    most = float(lengths.max()) * (1 + PRODUCT_SLACK)
    return np.inf if np.isnan(most) else most


def _jacobian(network: Network, ball: Ball) -> Rows:
    """Outputs by inputs."""
    fusion = fuse(network)
    with torch.no_grad():
        state = propagate(layered(fusion, torch.float64), Supports.of([ball], torch.float64))
    outputs = len(fusion.output.offset)
    waiting: dict[int, Rows] = {}
    _pull(waiting, fusion.output.maps, Rows(np.eye(outputs), np.zeros((outputs, outputs))))
    for number in range(len(fusion.stages) - 1, -1, -1):
        stage, arguments = fusion.stages[number], state.arguments[number]
        rows = waiting.pop(stage.node, None)
        if rows is None:
            continue
        low, high = arguments.low[0].numpy(), arguments.high[0].numpy()
        result = fusion.graph.nodes[stage.node].shape
        _pull(waiting, stage.maps, pulled_back(rows, stage, result, low, high))
    inputs = _input_size(fusion)
    return waiting.get(0) or Rows(np.zeros((outputs, inputs)), np.zeros((outputs, inputs)))


def _pull(waiting: dict[int, Rows], maps: dict[int, csr_array], rows: Rows) -> None:
    """Rows of a stage's arguments, added to those of the values it reads."""
    for node, matrix in maps.items():
        size = abs(matrix)
        centre = np.asarray(rows.centre @ matrix)
        magnitude = np.asarray(np.abs(rows.centre) @ size)
        radius = np.asarray(rows.radius @ size) * (1 + PRODUCT_SLACK) + PRODUCT_SLACK * magnitude
        if node in waiting:
            held = waiting[node]
            radius = radius + held.radius + PRODUCT_SLACK * np.abs(held.centre)
            centre = centre + held.centre
        waiting[node] = Rows(centre, radius)


def _input_size(fusion: Fusion) -> int:
    return fusion.graph.nodes[0].size
