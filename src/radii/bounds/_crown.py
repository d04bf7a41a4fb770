"""CROWN (Zhang et al. 2018): backward linear bounds, for layers that need them and the output.

Each layer's arguments are first enclosed by intervals. Only where that leaves a unit bent (or, for
a smooth unit, wide) does a backward pass tighten them; both hold, so they are intersected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.bounds._affine_maps import Layer, LayeredNetwork, layered, slack
from radii.bounds._forms import GatheredForms
from radii.bounds._forward_forms import ForwardForms, has_forward_forms
from radii.bounds._linear import (
    Gathered,
    LinearBounds,
    LinearFunctions,
    State,
    backward,
    joined_bounds,
    window_bounds,
)
from radii.bounds._relu_form import Fusion, fuse
from radii.bounds._softmax import from_differences, is_single_softmax, pairs_of
from radii.bounds._supports import Supports
from radii.bounds._windows import Sizes, feature_maps
from radii.networks import (
    Constants,
    Interval,
    Maxima,
    Network,
    PiecewiseLinear,
    ProductPlanes,
    Relaxation,
)
from radii.problem import FLOAT, UNLIMITED, Arithmetic, Ball, Box, Limits

Float64 = npt.NDArray[np.float64]

BoundingPass = Callable[[State, LinearFunctions], LinearBounds]
"""How rows are bounded: `backward`, or that with optimised choices."""

COEFFICIENTS_AT_ONCE = 1 << 16
"""How many coefficients a pass may hold at its widest layer: 0.5 MB in float64, for the cache."""

WINDOWED_AT_ONCE = 1 << 19
"""The same for rows that begin as windows, 4 MB: convolutions of few small windows are slow."""

SINGLE_WORK = 1 << 28
"""From so many products on, two rows for each unit that is loose, float32 is tried first: a quarter
of a second in float64."""

SETTLED_SHARE = 0.5
"""It is given up behind a layer of which it settled less than this."""

FEWEST_ROWS = 128
"""As many rows go together in any case: matrix products of fewer are slow."""


def crown_bounds(
    network: Network | Fusion,
    regions: Sequence[Ball | Box],
    rows: npt.ArrayLike | None = None,
    *,
    arithmetic: Arithmetic = FLOAT,
    on_intervals: bool = False,
    in_single: bool = False,
    limits: Limits = UNLIMITED,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Interval:
    """Bounds (regions, rows) of `rows @ outputs` over each region; without rows, of the outputs.

    `rows` is (rows, outputs), or (regions, rows, outputs) if each region has its own. The regions
    are boxes or balls; balls in L1 or L2 must all have the same norm. `arithmetic` is that of the
    network which the bounds hold for; they are sound in either type they are computed in.
    `on_intervals` leaves units with their plain intervals: one pass for the rows alone. Once the
    `limits` are over, those that were not bounded yet keep theirs. `in_single` as in `propagate`.
    """
    fusion = network if isinstance(network, Fusion) else fuse(network)
    ready = layered(fusion, dtype, device, arithmetic)
    supports = Supports.of(regions, dtype, device)
    with torch.no_grad():
        bound = None if on_intervals else backward
        state = propagate(ready, supports, bound, limits=limits, in_single=in_single)
        return bound_rows(state, output_rows(state, rows))


@dataclass(frozen=True, slots=True, eq=False)
class StageBounds:
    """What a stage of a fused network reads over one region, flattened.

    The floats that it reads lie between `low` and `high`, and are within `error` of its affine map
    of the values that it reads; those are within `value_error` of what their operators should give.
    """

    low: Float64
    high: Float64
    error: Float64
    value_error: Float64 | None = None


def stage_bounds(
    fusion: Fusion, low: Float64, high: Float64, arithmetic: Arithmetic = FLOAT
) -> list[StageBounds]:
    """Plain interval bounds of each stage over a box of inputs, in order; the output's last."""
    network = layered(fusion, torch.float64, "cpu", arithmetic)
    box = Interval(torch.from_numpy(low)[None], torch.from_numpy(high)[None])
    with torch.no_grad():
        state = propagate(network, Supports(box), None)
        arguments, _ = network.output.arguments(state.values, state.errors)
    every = zip((*network.layers, network.output), (*state.arguments, arguments), strict=True)
    return [_of_stage(state, layer, held) for layer, held in every]


def _of_stage(state: State, layer: Layer, arguments: Interval) -> StageBounds:
    rounding = replace(layer.rounding, places=None).of(state.values, {})
    error = state.errors.get(layer.node)
    low, high = arguments.low[0], arguments.high[0]
    places = layer.rounding.places
    if places is not None:  # arguments that several units read: all have the same bounds
        low = low.new_full((rounding.shape[1],), -torch.inf).index_put((places,), low)
        high = high.new_full((rounding.shape[1],), torch.inf).index_put((places,), high)
    return StageBounds(
        low.numpy(),
        high.numpy(),
        rounding[0].numpy(),
        None if error is None else error[0].numpy(),
    )


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
    bound: BoundingPass | None = backward,
    known: Sequence[Interval] | None = None,
    limits: Limits = UNLIMITED,
    *,
    in_single: bool = False,
    forms: bool = True,
) -> State:
    """Intervals and relaxations of every layer over each region.

    `known` are intervals of the layers' arguments that are proven already; they are intersected.
    Without a `bound` no layer is tightened: plain intervals, through the fused maps. Once the
    `limits` are over, layers keep what they have: wider, and as sound. `in_single` rounds all
    intervals outward to numbers of float32, as certificates state them. Where there are few inputs,
    forward affine forms settle units before any backward pass, unless `forms` is False:
    certificates have no words for them.
    """
    state = State(network, supports, values={0: supports.box})
    single = _Single.of(network, supports) if bound is backward else None
    known_forms = ForwardForms.of(network, supports.box) if forms else None
    for number, layer in enumerate(network.layers):
        arguments, loss = layer.arguments(state.values, state.errors)
        form = None if known_forms is None else known_forms.arguments(layer, loss)
        if form is not None:
            arguments = arguments.intersected(form.interval())
        if known is not None:
            arguments = arguments.intersected(known[number])
        relaxation = _relaxed(layer, arguments)
        gathered = None if bound is None else GatheredForms.of(state, layer, relaxation, loss)
        if bound is not None and not (layer.reads_input_only and supports.centre is None):
            if single is not None:
                arguments = single.tightened(arguments, relaxation, state.values, limits)
                relaxation = _relaxed(layer, arguments)
            is_loose = layer.loose(relaxation.is_loose, arguments, state.values)
            if bool(is_loose.any()) and not (single is not None and single.is_done):
                arguments = _tightened(
                    state, layer, arguments, loss, is_loose, bound, limits, gathered
                )
        if in_single:
            arguments = arguments.outward(torch.float32).outward(arguments.low.dtype)
        relaxation = _relaxed(layer, arguments)
        if gathered is not None and isinstance(relaxation, ProductPlanes):
            relaxation = relaxation.with_forms(gathered.around(*arguments.centred()))
        values = _values(layer, arguments)
        if bound is not None and is_single_softmax(layer.operator, layer.shape):
            values = _sharpened(state, layer, loss, values, bound)
        error = _value_error(network, layer, arguments, values)
        if error is not None:
            values = Interval(values.low - error, values.high + error)
        values = _without_overflow(values, loss)
        if isinstance(relaxation, Constants):
            relaxation = Constants(values.low, values.high)
        state.add(arguments, loss, values, error, relaxation)
        if single is not None:
            single.add(arguments, values, error)
        if known_forms is not None and form is not None:
            known_forms.add(layer.node, form, relaxation.band(arguments), values)
    return state


@dataclass(frozen=True, slots=True, eq=False)
class _AskedState:
    """What a state was asked for. Its supports hold numbers of their own: arrays of a region may
    have others by the next question."""

    fusion: Fusion
    supports: Supports
    arithmetic: Arithmetic
    on_intervals: bool
    forms: bool

    def is_same(self, other: _AskedState) -> bool:
        return (
            self.fusion is other.fusion
            and (self.arithmetic, self.on_intervals) == (other.arithmetic, other.on_intervals)
            and self.forms == other.forms
            and self.supports.is_same(other.supports)
        )


class CrownPasses:
    """Passes of CROWN for one owner, such as a proof session, in float64 where that matters, with
    intervals of float32.

    The latest one that was not cut off is remembered: a quick proof, the tree after it and a
    certificate ask for the same.
    """

    def __init__(self) -> None:
        self._latest: tuple[_AskedState, State] | None = None

    def state(
        self,
        fusion: Fusion,
        regions: Sequence[Ball | Box],
        arithmetic: Arithmetic = FLOAT,
        limits: Limits = UNLIMITED,
        *,
        on_intervals: bool = False,
        forms: bool = True,
    ) -> State:
        """CROWN over each region; `on_intervals` as in `crown_bounds`, `forms` in `propagate`."""
        forms = forms and has_forward_forms(fusion)
        asked = _AskedState(fusion, Supports.of(regions), arithmetic, on_intervals, forms)
        latest = self._latest  # as it is now: another thread may replace it
        if latest is not None and latest[0].is_same(asked):
            return latest[1]
        network = layered(fusion, torch.float64, "cpu", arithmetic)
        bound = None if on_intervals else backward
        with torch.no_grad():
            state = propagate(
                network, asked.supports, bound, limits=limits, in_single=True, forms=forms
            )
        if not (on_intervals or limits.is_over):
            self._latest = asked, state
        return state

    def forget(self) -> None:
        """Give the memory of the latest pass back."""
        self._latest = None


class _Single:
    """The same in float32, one layer after another, which settles most units of feature maps.

    Its intervals are those of float64, rounded outward, and its bounds hold: they include what
    float32 rounds. Units that are settled, on one side of their bend, have the lines that they
    would have in float64; only those that are not need that.
    """

    def __init__(self, network: LayeredNetwork, supports: Supports) -> None:
        self.state = State(network, supports, values={0: supports.box})
        self.losses: dict[int, Tensor] = {}
        self.pays = True
        # The last layer needs no float64: its values are held as they are, whatever their bounds.
        self.is_done = False

    @classmethod
    def of(cls, network: LayeredNetwork, supports: Supports) -> _Single | None:
        """None where that would not pay."""
        if network.single is None:
            return None
        return cls(network.single, supports.outward(torch.float32))

    @property
    def _layer(self) -> Layer:
        """The layer that is next."""
        return self.state.network.layers[len(self.state.lines)]

    def tightened(
        self,
        arguments: Interval,
        relaxation: Relaxation,
        values: Mapping[int, Interval],
        limits: Limits,
    ) -> Interval:
        """The layer's arguments, bounded in float32 where they are loose."""
        self.is_done = False
        is_loose = self._layer.loose(relaxation.is_loose, arguments, values)
        loose = int(is_loose.sum())
        is_small = 2 * loose * self._work < SINGLE_WORK
        # Differences of entries of a window are seldom settled.
        is_compared = self._layer.compared is not None
        if not self.pays or is_small or is_compared or not isinstance(relaxation, PiecewiseLinear):
            return arguments
        layer, loss, held = self._layer, self._loss(), arguments.outward(torch.float32)
        found = _tightened(self.state, layer, held, loss, is_loose, backward, limits)
        tighter = arguments.intersected(Interval(found.low.double(), found.high.double()))
        if not layer.is_held:
            left = int(_relaxed(layer, tighter).is_loose.sum())
            self.pays = loose - left >= SETTLED_SHARE * loose
        self.is_done = layer.is_held
        return tighter

    def _loss(self) -> Tensor:
        """What a coefficient of 1 on each of the layer's arguments loses."""
        number = len(self.state.lines)
        if number not in self.losses:
            _, loss = self._layer.arguments(self.state.values, self.state.errors)
            self.losses[number] = loss
        return self.losses[number]

    @property
    def _work(self) -> int:
        """How many products one row takes back to the input, if it is no window."""
        before = self.state.network.layers[: len(self.state.lines)]
        return sum(held.work for layer in before for held in layer.maps.values())

    def add(self, arguments: Interval, values: Interval, error: Tensor | None) -> None:
        """What is known of the layer by now."""
        layer, loss = self._layer, self._loss()
        held, given = arguments.outward(torch.float32), values.outward(torch.float32)
        relaxation = _relaxed(layer, held)
        if isinstance(relaxation, Constants):
            relaxation = Constants(given.low, given.high)
        off = None if error is None else Interval(-error, error).outward(torch.float32).high
        self.state.add(held, loss, given, off, relaxation)


def bound_rows(state: State, rows: Tensor, bound: BoundingPass = backward) -> Interval:
    """Bounds (regions, rows) of rows (regions, rows, outputs), intersected with intervals'."""
    output, each = state.network.output, rows.shape[1]
    arguments, loss = output.arguments(state.values, state.errors)
    plain = _within_intervals(rows, arguments)
    values = linear_bounds(state, output, loss, torch.cat([rows, -rows], 1), bound).values
    low, high = values[:, :each], -values[:, each:]
    return Interval(torch.maximum(low, plain.low), torch.minimum(high, plain.high))


def linear_bounds(
    state: State, layer: Layer, loss: Tensor, rows: Tensor, bound: BoundingPass = backward
) -> LinearBounds:
    """Lower bounds of rows (regions, rows, arguments) of a layer behind those of the state.

    `loss` is what the layer's arguments lose, as `Layer.arguments` gives it.
    """
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
            bound(
                state, LinearFunctions.of_functions(layer, loss, regions, own[:, row : row + short])
            )
            for row in range(0, each, short)
        ]
        parts.append(joined_bounds(within, 1))
    return joined_bounds(parts, 0)


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
    """What the operator says of itself; without that, intervals of its values."""
    operator = layer.operator
    own = operator.relaxation(layer.shape, arguments)
    if own is not None:
        return own
    if layer.hinges is not None:
        return PiecewiseLinear.of(layer.hinges, arguments)
    candidates = operator.candidates(layer.shape)
    if candidates is not None:
        return Maxima.of(candidates, arguments)
    values = _values(layer, arguments)
    return Constants(values.low, values.high)


def _values(layer: Layer, arguments: Interval) -> Interval:
    shape = (len(arguments.low), *layer.shape)
    held = Interval(arguments.low.reshape(shape), arguments.high.reshape(shape))
    values = layer.operator.enclosure(held)
    count = len(arguments.low)
    return Interval(values.low.reshape(count, -1), values.high.reshape(count, -1))


def _tightened(
    state: State,
    layer: Layer,
    arguments: Interval,
    loss: Tensor,
    is_loose: Tensor,
    bound: BoundingPass,
    limits: Limits,
    gathered: GatheredForms | None = None,
) -> Interval:
    """The arguments with a backward pass for the units of each region that are loose; the linear
    functions that bound them are gathered, where that is wanted."""
    shape = feature_maps(layer) if bound is backward and gathered is None else None
    if shape is None:
        return _tightened_by_rows(state, layer, arguments, loss, is_loose, bound, limits, gathered)
    return _tightened_by_windows(state, layer, arguments, loss, is_loose, shape, limits)


def _tightened_by_rows(
    state: State,
    layer: Layer,
    arguments: Interval,
    loss: Tensor,
    is_loose: Tensor,
    bound: BoundingPass,
    limits: Limits,
    gathered: GatheredForms | None,
) -> Interval:
    """The same by whole rows.

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
            if limits.is_over:
                return Interval(low, high)
            part = units[:, start : start + short]
            found = bound(state, LinearFunctions.of_units(layer, loss, regions, part))
            values = found.values.chunk(2, 1)
            where = regions[:, None], part
            if gathered is not None:
                gathered.put(where, found)
            low[where] = torch.maximum(low[where], values[0])
            high[where] = torch.minimum(high[where], -values[1])
        first += few
    return Interval(low, high)


def _tightened_by_windows(
    state: State,
    layer: Layer,
    arguments: Interval,
    loss: Tensor,
    is_loose: Tensor,
    shape: Sizes,
    limits: Limits,
) -> Interval:
    """The same for units of feature maps, whose rows are windows: place by place.

    Places with about as many loose units go together, as regions do above.
    """
    low, high = arguments.low.clone(), arguments.high.clone()
    count = math.prod(shape[1:])
    for region in range(len(low)):
        loose = is_loose[region].reshape(shape[0], count)
        counts, order = loose.sum(0).sort(descending=True)
        numbers = counts.tolist()
        gathered, first = Gathered(), 0
        while first < count and numbers[first] and not limits.is_over:
            most = numbers[first]
            largest = gathered.largest or WINDOWED_AT_ONCE  # the first few rows tell
            rows = max(FEWEST_ROWS, WINDOWED_AT_ONCE // largest)
            places = order[first : first + max(1, rows // (2 * most))]
            channels = loose[:, places].t().to(torch.int8).argsort(1, descending=True)[:, :most]
            values = window_bounds(state, layer, loss, region, places, channels, gathered)
            units = channels * count + places[:, None]
            low[region, units] = torch.maximum(low[region, units], values[0])
            high[region, units] = torch.minimum(high[region, units], -values[1])
            first += len(places)
    return Interval(low, high)


def _value_error(
    network: LayeredNetwork, layer: Layer, arguments: Interval, values: Interval
) -> Tensor | None:
    """How far the runtime's values may be off, (regions, values); None where they are exact."""
    count = len(arguments.low)
    shape, result = (count, *layer.shape), (count, *layer.operator.result_shape(layer.shape))
    error = network.errors.of_values(
        layer.operator,
        Interval(arguments.low.reshape(shape), arguments.high.reshape(shape)),
        Interval(values.low.reshape(result), values.high.reshape(result)),
    )
    return None if error is None else error.reshape(count, -1)


def _without_overflow(values: Interval, loss: Tensor) -> Interval:
    """What is known of values: nothing where an argument may overflow.

    It may then be no number, and so may every function of it, however bounded.
    """
    unknown = ~torch.isfinite(loss).all(1, keepdim=True)
    return Interval(
        torch.where(unknown, -torch.inf, values.low), torch.where(unknown, torch.inf, values.high)
    )


def _sharpened(
    state: State, layer: Layer, loss: Tensor, values: Interval, bound: BoundingPass
) -> Interval:
    """Softmax from bounds on the differences of its arguments."""
    pairs = pairs_of(layer.size).to(layer.offset).expand(len(state), -1, -1)
    least = linear_bounds(state, layer, loss, pairs, bound).values
    return values.intersected(from_differences(layer.operator, least, layer.size))


def _rows_at_once(network: LayeredNetwork) -> int:
    widest = max(network.inputs, *(layer.size for layer in (*network.layers, network.output)))
    return max(FEWEST_ROWS, COEFFICIENTS_AT_ONCE // widest)
