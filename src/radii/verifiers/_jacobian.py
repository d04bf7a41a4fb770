"""How steep each nonlinear operator can be while its arguments stay in an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.bounds import (
    Fusion,
    Layer,
    Stage,
    Supports,
    euclidean_lengths,
    fuse,
    hinges_of,
    layered,
    propagate,
    windows_of,
)
from radii.networks import (
    Clip,
    Hinges,
    LeakyRelu,
    MaxPool,
    Network,
    Node,
    OperatorKind,
    PRelu,
    Relu,
    Sigmoid,
    Softmax,
    Tanh,
)
from radii.problem import Arithmetic, Ball, Norm

Float64 = npt.NDArray[np.float64]

SLOPED = (Clip, LeakyRelu, MaxPool, PRelu, Relu, Sigmoid, Tanh)
"""Nonlinear operators whose slopes are known here, beside a softmax over all entries."""

CURVE_SLACK = 2.0**-40
"""What the rounding of a curve's slope may be: thousands of units in the last place."""


def has_known_slope(node: Node) -> bool:
    """Whether `pulled_back` can go through the node."""
    operator = node.operator
    if isinstance(operator, Softmax):
        return node.shape[operator.axis] == node.size
    return node.kind is OperatorKind.AFFINE or isinstance(operator, SLOPED)


class IntervalMatrix:
    """A matrix, each entry within `radius` of `centre`: rows are outputs, columns are values."""

    def __init__(self, centre: Float64, radius: Float64) -> None:
        self.centre, self.radius = centre, radius

    def times(self, low: Float64, high: Float64) -> IntervalMatrix:
        """Each column times a factor between low and high."""
        middle, half = low / 2 + high / 2, (high - low) / 2
        radius = self.radius * (np.abs(middle) + half) + np.abs(self.centre) * half
        return IntervalMatrix(self.centre * middle, radius)


def pulled_back(
    rows: IntervalMatrix, stage: Stage, result: tuple[int, ...], low: Float64, high: Float64
) -> IntervalMatrix:
    """From the values of a stage to its arguments, which lie between low and high."""
    operator = stage.operator
    if isinstance(operator, MaxPool):
        return _through_windows(rows, stage, operator, low, high)
    if isinstance(operator, Softmax):
        return _through_softmax(rows, low, high)
    if isinstance(operator, Sigmoid):
        return rows.times(*_curve(low / 2, high / 2, 0.25))
    if isinstance(operator, Tanh):
        return rows.times(*_curve(low, high, 1.0))
    hinges = hinges_of(operator, stage.shape, result)
    assert hinges is not None
    steep = rows.times(*_hinged(hinges, low[hinges.sources], high[hinges.sources]))
    return _gathered(steep, hinges.sources, len(low))


def _gathered(rows: IntervalMatrix, sources: npt.NDArray[np.int64], count: int) -> IntervalMatrix:
    """Columns added up by the argument that each of them reads."""
    if len(sources) == count and np.array_equal(sources, np.arange(count)):
        return rows
    parts = []
    for held in (rows.centre, rows.radius):
        total = np.zeros((len(held), count))
        np.add.at(total.T, sources, held.T)
        parts.append(total)
    return IntervalMatrix(parts[0], parts[1])


def _hinged(hinges: Hinges, low: Float64, high: Float64) -> tuple[Float64, Float64]:
    """The least and the greatest slope of the pieces that each interval touches."""
    order = np.argsort(hinges.knee, axis=0)
    knees = np.take_along_axis(hinges.knee, order, 0)
    changes = np.take_along_axis(hinges.change, order, 0)
    slope = hinges.slope
    least, greatest = np.full_like(slope, np.inf), np.full_like(slope, -np.inf)
    begins = np.full_like(slope, -np.inf)
    for piece in range(len(knees) + 1):
        ends = knees[piece] if piece < len(knees) else np.full_like(slope, np.inf)
        is_touched = (high >= begins) & (low <= ends)
        least = np.where(is_touched, np.minimum(least, slope), least)
        greatest = np.where(is_touched, np.maximum(greatest, slope), greatest)
        if piece < len(knees):
            slope, begins = slope + changes[piece], knees[piece]
    return least, greatest


def _curve(low: Float64, high: Float64, scale: float) -> tuple[Float64, Float64]:
    """The slope scale * (1 - tanh^2), which falls with the distance from 0."""
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    falls: Callable[[Float64], Float64] = lambda x: scale * (1 - np.tanh(x) ** 2)  # noqa: E731
    return np.maximum(falls(farthest) - CURVE_SLACK, 0.0), falls(nearest) + CURVE_SLACK


def _through_windows(
    rows: IntervalMatrix, stage: Stage, operator: MaxPool, low: Float64, high: Float64
) -> IntervalMatrix:
    """A window passes its row to the entry that is largest; to each that may be, if in doubt."""
    centre = np.zeros((len(rows.centre), len(low)))
    radius = np.zeros_like(centre)
    for unit, places in enumerate(windows_of(operator, stage.shape).candidates):
        possible = places[high[places] >= low[places].max()]
        half = 0.0 if len(possible) == 1 else 0.5
        own, spread = rows.centre[:, unit], rows.radius[:, unit]
        for place in possible:
            centre[:, place] += own * (1 - half)
            radius[:, place] += spread + half * np.abs(own)
    return IntervalMatrix(centre, radius)


def _through_softmax(rows: IntervalMatrix, low: Float64, high: Float64) -> IntervalMatrix:
    """Slopes p_i (1 - p_i) on the diagonal and -p_i p_j beside it, one softmax over all entries."""
    count = len(low)
    is_other = ~np.eye(count, dtype=np.bool_)
    with np.errstate(over="ignore"):
        most = np.where(is_other, np.exp(high[None, :] - low[:, None]), 0.0).sum(axis=1)
        least = np.where(is_other, np.exp(low[None, :] - high[:, None]), 0.0).sum(axis=1)
    below, above = 1 / (1 + most) * (1 - CURVE_SLACK), 1 / (1 + least) * (1 + CURVE_SLACK)
    ends = np.stack([below * (1 - below), above * (1 - above)])
    peak = np.where((below <= 0.5) & (above >= 0.5), 0.25, ends.max(axis=0))
    slope_low, slope_high = -np.outer(above, above), -np.outer(below, below)
    np.fill_diagonal(slope_low, ends.min(axis=0) - CURVE_SLACK)
    np.fill_diagonal(slope_high, peak + CURVE_SLACK)
    middle, half = slope_low / 2 + slope_high / 2, (slope_high - slope_low) / 2
    radius = rows.radius @ (np.abs(middle) + half) + np.abs(rows.centre) @ half
    return IntervalMatrix(rows.centre @ middle, radius)


# Bounds on the Jacobian of a network over a ball, and so on how fast its outputs can move.
#
# CROWN encloses what every unit reads on the ball; each unit's slope is then in an interval, most
# of them in a single point. The gradient graph, outputs to inputs, is evaluated on these intervals.
# All in float64, with the rounding of every product added to its radius.
#
# At any point x of the ball f(x) - f(x0) is the mean of Jacobians on the segment between them,
# times x - x0. The ball is convex, clipped or not, so bounds over the ball hold on that segment.
#
# The same rows bound what the network's own rounding does to its outputs: scale all errors from 0
# to what they are, and each argument's error e moves the outputs by the mean of the slopes on the
# way, times e. The intervals of arguments hold with any such errors.


PRODUCT_SLACK = 2.0**-40
"""What float64 sums of products may be off, relative to the sum of absolute values."""


def has_known_slopes(network: Network) -> bool:
    """Whether `steepness` knows every nonlinear operator of the network."""
    return all(has_known_slope(node) for node in network.graph.nodes)


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
        result = fusion.graph.nodes[stage.node].shape
        on_arguments = pulled_back(rows, stage, result, low, high)
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
