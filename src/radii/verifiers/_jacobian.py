"""Bounds on the Jacobian of a network over a ball, and so on how fast its outputs can move.

CROWN encloses what every unit reads on the ball; each unit's slope is then in an interval, most
of them in a single point. The gradient graph, outputs to inputs, is evaluated on these intervals.
All in float64, with the rounding of every product added to its radius.

At any point x of the ball f(x) - f(x0) is the mean of Jacobians on the segment between them,
times x - x0. The ball is convex, clipped or not, so bounds over the ball hold on that segment.

The same rows bound what the network's own rounding does to its outputs: scale all errors from 0
to what they are, and each argument's error e moves the outputs by the mean of the slopes on the
way, times e. The intervals of arguments hold with any such errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.bounds import Fusion, Layer, Supports, euclidean_lengths, fuse, layered, propagate
from radii.networks import IntervalMatrix, Network, OperatorKind
from radii.problem import Arithmetic, Ball, Norm

Float64 = npt.NDArray[np.float64]

PRODUCT_SLACK = 2.0**-40
"""What float64 sums of products may be off, relative to the sum of absolute values."""


def without_slopes(network: Network) -> str | None:
    """The first operator of a network whose slopes are not known; None if all are."""
    nodes = network.graph.nodes
    for node in nodes:
        is_affine = node.kind is OperatorKind.AFFINE
        if not (is_affine or node.operator.has_slopes(nodes[node.inputs[0]].shape)):
            return type(node.operator).__name__
    return None


@dataclass(frozen=True, slots=True)
class Steepness:
    """How fast a network's outputs move over a ball in real arithmetic, and what it rounds.

    `rate` is the largest |f_i(x) - f_i(x0)| / |x - x0| of any output i, over all x of the ball, or
    more; `error` how far any output that runs may be from f_i(x).
    """

    rate: float
    error: float


def steepness(network: Network, ball: Ball, arithmetic: Arithmetic) -> Steepness:
    """Both bounds over the ball; infinite where nothing is known.

    Inputs that cannot go up, or down, because they are at the domain's side, count one way only.
    """
    jacobian, error = _jacobian(network, ball, arithmetic)
    low, high = jacobian.centre - jacobian.radius, jacobian.centre + jacobian.radius
    bottom, top = (side.ravel() for side in ball.domain.box(ball.shape))
    centre = ball.center.ravel()
    goes_up, goes_down = centre < top, centre > bottom
    rising = np.maximum(np.where(goes_up, high, 0.0), np.where(goes_down, -low, 0.0))
    falling = np.maximum(np.where(goes_up, -low, 0.0), np.where(goes_down, high, 0.0))
    gains = np.maximum(np.vstack([rising, falling]), 0.0)
    if ball.features is not None:  # a distance of 1 moves each of them by its scale
        gains = gains * ball.features.scale
    match ball.norm:
        case Norm.LINF:
            lengths = gains.sum(axis=1)
        case Norm.L2:
            lengths = euclidean_lengths(gains)
        case Norm.L1:
            lengths = gains.max(axis=1)
    return Steepness(_rounded_up(lengths.max()), _rounded_up(error.max()))


def _rounded_up(value: float) -> float:
    """A bound, rounded up; infinite where it is no number."""
    most = float(value) * (1 + PRODUCT_SLACK)
    return np.inf if np.isnan(most) else most


def _jacobian(
    network: Network, ball: Ball, arithmetic: Arithmetic
) -> tuple[IntervalMatrix, Float64]:
    """Outputs by inputs, and what rounding may move each output by."""
    fusion = fuse(network)
    ready = layered(fusion, torch.float64, "cpu", arithmetic)
    with torch.no_grad():
        state = propagate(ready, Supports.of([ball], torch.float64))
        _, last = ready.output.arguments(state.values, state.errors)
    outputs = len(fusion.output.offset)
    error = last[0].numpy()
    waiting: dict[int, IntervalMatrix] = {}
    _pull(
        waiting,
        fusion.output.matrices,
        IntervalMatrix(np.eye(outputs), np.zeros((outputs, outputs))),
    )
    for number in range(len(fusion.stages) - 1, -1, -1):
        stage, arguments = fusion.stages[number], state.arguments[number]
        rows = waiting.pop(stage.node, None)
        if rows is None:
            continue
        if stage.node in state.all_errors and stage.node not in state.errors:
            steep = np.abs(rows.centre) + rows.radius
            error = error + steep @ state.all_errors[stage.node][0].numpy()
        layer = ready.layers[number]
        low, high = _of_arguments(layer, arguments.low), _of_arguments(layer, arguments.high)
        on_arguments = stage.operator.chain_rule(rows, stage.shape, low, high)
        steep = np.abs(on_arguments.centre) + on_arguments.radius
        error = error + steep @ _of_arguments(layer, state.losses[number])
        _pull(waiting, stage.matrices, on_arguments)
    inputs = _input_size(fusion)
    nothing = IntervalMatrix(np.zeros((outputs, inputs)), np.zeros((outputs, inputs)))
    return waiting.get(0) or nothing, error


def _of_arguments(layer: Layer, known: Tensor) -> Float64:
    """What is known of each argument of a stage, where some of them are read more than once."""
    places = layer.rounding.places
    if places is None:
        return np.asarray(known[0].numpy())
    found = np.zeros(math.prod(layer.rounding.stage.shape))
    found[places.numpy()] = known[0].numpy()
    return found


def _pull(
    waiting: dict[int, IntervalMatrix], maps: dict[int, csr_array], rows: IntervalMatrix
) -> None:
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
        waiting[node] = IntervalMatrix(centre, radius)


def _input_size(fusion: Fusion) -> int:
    return fusion.graph.nodes[0].size
