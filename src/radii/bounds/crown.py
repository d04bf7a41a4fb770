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
from radii.bounds.fusion import fuse
from radii.bounds.linear import LinearBounds, Rows, State, backward, joined
from radii.bounds.maxima import Maxima
from radii.bounds.relaxations import Constants, PiecewiseLinear, Relaxation
from radii.bounds.rules import enclose
from radii.bounds.softmax import from_differences, is_single_softmax, pairs_of
from radii.bounds.supports import Supports
from radii.networks import Network
from radii.networks.operators import MaxPool, Sigmoid, Tanh

__all__ = ["Pass", "bound_rows", "crown_bounds", "output_rows", "propagate", "within_intervals"]

Pass = Callable[[State, Rows], LinearBounds]
"""How rows are bounded: `backward`, or that with optimised choices."""

ENTRIES_AT_ONCE = 1 << 21
"""How many coefficients a pass may hold at its widest layer: 16 MB in float64."""


def crown_bounds(
    network: Network,
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
    ready = layered(fuse(network), dtype, device)
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


def propagate(network: LayeredNetwork, supports: Supports, bound: Pass = backward) -> State:
    """Intervals and relaxations of every layer over each region."""
    state = State(network, supports, values={0: supports.box})
    for layer in network.layers:
        arguments, size = layer.arguments(state.values)
        relaxation = _relaxed(layer, arguments)
        if not (layer.reads_input_only and supports.centre is None):
            loose = relaxation.is_loose.nonzero()
            if len(loose):
                arguments = _tightened(state, layer, arguments, size, loose, bound)
                relaxation = _relaxed(layer, arguments)
        values = _values(layer, arguments)
        if is_single_softmax(layer.operator, layer.shape):
            values = _sharpened(state, layer, size, values, bound)
            relaxation = Constants(values.low, values.high)
        state.values[layer.node] = values
        state.arguments.append(arguments)
        state.sizes.append(size)
        state.relaxations.append(relaxation)
    return state


def bound_rows(state: State, rows: Tensor, bound: Pass = backward) -> Interval:
    """Bounds (regions, rows) of rows (regions, rows, outputs), intersected with intervals'."""
    count, each = rows.shape[:2]
    arguments, size = state.network.output.arguments(state.values)
    plain = within_intervals(rows, arguments)
    both = torch.cat([rows, -rows], 1).reshape(2 * count * each, -1)
    regions = torch.arange(count, device=rows.device).repeat_interleave(2 * each)
    values = _in_parts(
        state,
        lambda part: Rows.of_functions(state.network.output, size, regions[part], both[part]),
        len(both),
        bound,
    ).values.reshape(count, 2, each)
    return Interval(
        torch.maximum(values[:, 0], plain.low), torch.minimum(-values[:, 1], plain.high)
    )


def within_intervals(rows: Tensor, arguments: Interval) -> Interval:
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
        return PiecewiseLinear.of(layer, arguments)
    if isinstance(layer.operator, Sigmoid | Tanh):
        return Curves.of(layer.operator, arguments)
    if isinstance(layer.operator, MaxPool):
        return Maxima.of(layer, arguments)
    values = _values(layer, arguments)
    return Constants(values.low, values.high)


def _values(layer: Layer, arguments: Interval) -> Interval:
    shape = (len(arguments.low), *layer.shape)
    held = Interval(arguments.low.reshape(shape), arguments.high.reshape(shape))
    found = enclose(layer.operator, [held])
    return Interval(found.low.flatten(1), found.high.flatten(1))


def _tightened(
    state: State, layer: Layer, arguments: Interval, size: Tensor, loose: Tensor, bound: Pass
) -> Interval:
    """The arguments with a backward pass for the (region, unit) pairs that are loose."""
    regions, units = loose[:, 0], loose[:, 1]
    low, high = arguments.low.clone(), arguments.high.clone()
    step = max(1, ENTRIES_AT_ONCE // (2 * _widest(state.network)))
    for first in range(0, len(loose), step):
        part = slice(first, first + step)
        where = regions[part], units[part]
        values = bound(state, Rows.of_units(layer, size, *where)).values.chunk(2)
        low[where] = torch.maximum(low[where], values[0])
        high[where] = torch.minimum(high[where], -values[1])
    return Interval(low, high)


def _sharpened(state: State, layer: Layer, size: Tensor, values: Interval, bound: Pass) -> Interval:
    """Softmax from bounds on the differences of its arguments."""
    pairs = pairs_of(layer.size).to(layer.offset)
    count = len(state)
    regions = torch.arange(count, device=pairs.device).repeat_interleave(len(pairs))
    least = _in_parts(
        state,
        lambda part: Rows.of_functions(layer, size, regions[part], pairs.repeat(count, 1)[part]),
        len(regions),
        bound,
    )
    differences = least.values.reshape(count, len(pairs))
    return values.intersected(from_differences(layer.operator, differences, layer.size))


def _in_parts(state: State, rows: Callable[[slice], Rows], count: int, bound: Pass) -> LinearBounds:
    step = max(1, ENTRIES_AT_ONCE // _widest(state.network))
    parts = [slice(first, min(first + step, count)) for first in range(0, count, step)]
    return joined([bound(state, rows(part)) for part in parts])


def _widest(network: LayeredNetwork) -> int:
    return max(network.inputs, *(layer.size for layer in (*network.layers, network.output)))
