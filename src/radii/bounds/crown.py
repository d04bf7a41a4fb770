"""CROWN: backward linear bounds, for every layer that needs them and for the output.

Each layer's arguments are first enclosed by intervals. Only where that leaves a unit bent (or, for
a smooth unit, wide) does a backward pass tighten them; both hold, so they are intersected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy.typing as npt
import torch
from torch import Tensor

from radii.balls import Ball, Box
from radii.bounds.affine_maps import Layer, LayeredNetwork, layered, slack
from radii.bounds.curves import Curves
from radii.bounds.enclosure import Interval
from radii.bounds.fusion import Fusion, fuse
from radii.bounds.linear import LinearBounds, Rows, State, backward, joined
from radii.bounds.maxima import Maxima
from radii.bounds.relaxations import Constants, PiecewiseLinear, Relaxation
from radii.bounds.rules import enclose
from radii.bounds.softmax import from_differences, is_single_softmax, pairs_of
from radii.bounds.supports import Supports
from radii.networks import Network
from radii.networks.operators import MaxPool, Sigmoid, Tanh

__all__ = ["Pass", "bound_rows", "crown_bounds", "linear_bounds", "output_rows", "propagate"]

Pass = Callable[[State, Rows], LinearBounds]
"""How rows are bounded: `backward`, or that with optimised choices."""

ENTRIES_AT_ONCE = 1 << 16
"""How many coefficients a pass may hold at its widest layer: 0.5 MB in float64, for the cache."""

FEWEST_ROWS = 128
"""As many rows go together in any case: matrix products of fewer are slow."""


def crown_bounds(
    network: Network | Fusion,
    regions: Sequence[Ball | Box],
    rows: npt.ArrayLike | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Interval:
    """Bounds (regions, rows) of `rows @ outputs` over each region; without rows, of the outputs.

    `rows` is (rows, outputs), or (regions, rows, outputs) if each region has its own. The regions
    are boxes or balls; balls in L1 or L2 must all have the same norm. Sound in either type.
    """
    fusion = network if isinstance(network, Fusion) else fuse(network)
    ready = layered(fusion, dtype, device)
    supports = Supports.of(regions, dtype, device)
    with torch.no_grad():
        state = propagate(ready, supports)
        return bound_rows(state, output_rows(state, rows))


def output_rows(state: State, rows: npt.ArrayLike | None) -> Tensor:
    """Rows of coefficients as (regions, rows, outputs), in the state's type."""
    like = state.network.output.offset
    if rows is None:
        held = torch.eye(len(like), dtype=like.dtype, device=like.device)
    else:
        held = torch.as_tensor(rows).to(like.device, like.dtype)
    return held if held.dim() == 3 else held.expand(len(state), *held.shape)


def propagate(
    network: LayeredNetwork,
    supports: Supports,
    bound: Pass = backward,
    known: Sequence[Interval] | None = None,
) -> State:
    """Intervals and relaxations of every layer over each region.

    `known` are intervals of the layers' arguments that are proven already; they are intersected.
    """
    state = State(network, supports, values={0: supports.box})
    for number, layer in enumerate(network.layers):
        arguments, size = layer.arguments(state.values)
        if known is not None:
            arguments = arguments.intersected(known[number])
        relaxation = _relaxed(layer, arguments)
        if not (layer.reads_input_only and supports.centre is None):
            is_loose = relaxation.is_loose
            if bool(is_loose.any()):
                arguments = _tightened(state, layer, arguments, size, is_loose, bound)
                relaxation = _relaxed(layer, arguments)
        values = _values(layer, arguments)
        if is_single_softmax(layer.operator, layer.shape):
            values = _sharpened(state, layer, size, values, bound)
            relaxation = Constants(values.low, values.high)
        state.add(arguments, size, values, relaxation)
    return state


def bound_rows(state: State, rows: Tensor, bound: Pass = backward) -> Interval:
    """Bounds (regions, rows) of rows (regions, rows, outputs), intersected with intervals'."""
    output, each = state.network.output, rows.shape[1]
    arguments, size = output.arguments(state.values)
    plain = _within_intervals(rows, arguments)
    values = linear_bounds(state, output, size, torch.cat([rows, -rows], 1), bound).values
    low, high = values[:, :each], -values[:, each:]
    return Interval(torch.maximum(low, plain.low), torch.minimum(high, plain.high))


def linear_bounds(
    state: State, layer: Layer, size: Tensor, rows: Tensor, bound: Pass = backward
) -> LinearBounds:
    """Lower bounds of rows (regions, rows, arguments) of a layer behind those of the state."""
    count, each = rows.shape[:2]
    at_once = _rows_at_once(state.network)
    few = max(1, at_once // each)
    short = max(1, at_once // few)
    numbers = torch.arange(count, device=rows.device)
    parts = []
    for first in range(0, count, few):
        regions = numbers[first : first + few]
        own = rows[first : first + few]
        within = [
            bound(state, Rows.of_functions(layer, size, regions, own[:, row : row + short]))
            for row in range(0, each, short)
        ]
        parts.append(joined(within, 1))
    return joined(parts, 0)


def _within_intervals(rows: Tensor, arguments: Interval) -> Interval:
    """Bounds of rows (regions, rows, entries) from an interval for each entry alone."""
    centre, radius = arguments.centred()
    middle = (rows @ centre[..., None]).squeeze(2)
    spread = (rows.abs() @ radius[..., None]).squeeze(2)
    size = (rows.abs() @ centre.abs()[..., None]).squeeze(2) + spread
    spread = spread + slack(size, rows.shape[2])
    known = torch.isfinite(middle) & torch.isfinite(spread)
    return Interval(
        torch.where(known, middle - spread, -torch.inf),
        torch.where(known, middle + spread, torch.inf),
    )


def _relaxed(layer: Layer, arguments: Interval) -> Relaxation:
    if layer.hinges is not None:
        return PiecewiseLinear.of(layer.hinges, arguments)
    if isinstance(layer.operator, Sigmoid | Tanh):
        return Curves.of(layer.operator, arguments)
    if isinstance(layer.operator, MaxPool):
        return Maxima.of(layer.operator.candidates(layer.shape), arguments)
    values = _values(layer, arguments)
    return Constants(values.low, values.high)


def _values(layer: Layer, arguments: Interval) -> Interval:
    shape = (len(arguments.low), *layer.shape)
    held = Interval(arguments.low.reshape(shape), arguments.high.reshape(shape))
    found = enclose(layer.operator, [held])
    return Interval(found.low.flatten(1), found.high.flatten(1))


def _tightened(
    state: State, layer: Layer, arguments: Interval, size: Tensor, is_loose: Tensor, bound: Pass
) -> Interval:
    """The arguments with a backward pass for the units of each region that are loose.

    Regions with about as many of them go together; what fills up the shorter rows are units that
    did not need it, and gain from it all the same.
    """
    low, high = arguments.low.clone(), arguments.high.clone()
    at_once = _rows_at_once(state.network)
    counts, order = is_loose.sum(1).sort(descending=True)
    numbers = counts.tolist()
    first = 0
    while first < len(numbers) and numbers[first]:
        most = numbers[first]
        few = max(1, at_once // (2 * most))
        short = max(1, at_once // (2 * few))
        regions = order[first : first + few]
        units = is_loose[regions].to(torch.int8).argsort(1, descending=True)[:, :most]
        for start in range(0, most, short):
            part = units[:, start : start + short]
            values = bound(state, Rows.of_units(layer, size, regions, part)).values.chunk(2, 1)
            where = regions[:, None], part
            low[where] = torch.maximum(low[where], values[0])
            high[where] = torch.minimum(high[where], -values[1])
        first += few
    return Interval(low, high)


def _sharpened(state: State, layer: Layer, size: Tensor, values: Interval, bound: Pass) -> Interval:
    """Softmax from bounds on the differences of its arguments."""
    pairs = pairs_of(layer.size).to(layer.offset).expand(len(state), -1, -1)
    least = linear_bounds(state, layer, size, pairs, bound).values
    return values.intersected(from_differences(layer.operator, least, layer.size))


def _rows_at_once(network: LayeredNetwork) -> int:
    widest = max(network.inputs, *(layer.size for layer in (*network.layers, network.output)))
    return max(FEWEST_ROWS, ENTRIES_AT_ONCE // widest)
