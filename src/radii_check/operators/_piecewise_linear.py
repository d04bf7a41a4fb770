"""ReLU and other piecewise-linear functions of each entry."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from radii_check._builder import Builder, Call, Reader, Value, is_node, weight_of
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._linear_maps import Scale, gather, scatter
from radii_check._network import UnitArguments


def piecewise_linear(
    builder: Builder,
    kind: str,
    x: int,
    slope: Array | float,
    offset: float,
    knees: Sequence[tuple[float, Array | float]],
    function: Callable[[Array], Array],
) -> int:
    """slope z + offset + sum over `knees` (knee, change) of change max(0, z - knee).

    The sum is `function` of z, entry by entry. There is one unit for each entry and knee whose
    change is not 0. The last node is of this `kind`, "Copy" or "Leaky".
    """
    shape = np.broadcast_shapes(builder.shape(x), np.shape(slope))
    argument, count = builder.unit("Copy", x), builder.size(x)
    entries = np.arange(count).reshape(builder.shape(x))
    source = np.broadcast_to(entries, shape).ravel()
    slopes = Scale(np.broadcast_to(slope, shape).ravel())
    inputs, maps = [argument], [(*gather(source, count), slopes)]
    unit_arguments = list[UnitArguments]()
    for knee, change in knees:
        changes = np.broadcast_to(change, shape).ravel()
        bent = np.flatnonzero(changes)
        unit_arguments.append(UnitArguments(builder.units, source[bent], knee))
        beyond = builder.affine([argument], [gather(source[bent], count)], bent.shape, -knee)
        inputs.append(builder.unit("Relu", beyond))
        maps.append((*scatter(bent, changes.size), Scale(changes)))
    value = builder.affine(inputs, maps, shape, offset)
    return builder.unit(
        kind,
        value,
        read=argument,
        unit_arguments=tuple(unit_arguments),
        function=lambda z: function(z[source]),
    )


def leaky_relu(builder: Builder, x: int, slope_value: Value) -> int:
    """s z + (1 - s) max(0, z), where 1 - s must be exact."""
    slope, num = weight_of(slope_value), builder.num
    is_exact = [math.fsum((1.0, -s, s - 1.0)) == 0 for s in slope.ravel()]
    require_known(is_exact, "PRelu so precise")
    shape = np.broadcast_shapes(builder.shape(x), slope.shape)
    slopes = np.broadcast_to(slope, shape).reshape(-1, 1)

    def function(z: Array) -> Array:
        return np.asarray(num.maximum(z, 0.0) + slopes * num.minimum(z, 0.0))

    return piecewise_linear(builder, "Leaky", x, slope, 0.0, [(0.0, 1.0 - slope)], function)


def clip(builder: Builder, call: Call) -> int:
    """min(max(x, low), high), with bounds that are inputs or attributes.

    Exporters write the largest float of the type where they mean that a side is open.
    """
    by_attribute = call.attributes.get("min"), call.attributes.get("max")
    bounds = [*call.inputs[1:], *by_attribute][:2]
    ends = [math.nan if end is None else float(np.asarray(end).item()) for end in bounds]
    types = (np.float32 if isinstance(end, float | None) else end.dtype for end in bounds)
    largest = [float(np.finfo(each).max) for each in types]
    is_open_below = bounds[0] is None or ends[0] <= -largest[0]
    is_open_above = bounds[1] is None or ends[1] >= largest[1]
    low = -math.inf if is_open_below else ends[0]
    high = math.inf if is_open_above else ends[1]
    require_known(low < math.inf and high > -math.inf, "Clip with such bounds")
    return clipped(builder, call.first, low, high)


def max_or_min(builder: Builder, call: Call, is_max: bool) -> int:
    """Of one value and single numbers: a clip at each of these."""
    values = [value for value in call.inputs if is_node(value)]
    limits = [value for value in call.inputs if not is_node(value)]
    x, *others = values
    is_known = not others and all(np.size(limit) == 1 for limit in limits)
    require_known(is_known, "Max or Min of such values")
    for limit in limits:
        end = float(weight_of(limit).item())
        low, high = (end, math.inf) if is_max else (-math.inf, end)
        x = clipped(builder, x, low, high)
    shape = np.broadcast_shapes(builder.shape(x), *(np.shape(limit) for limit in limits))
    return int(x) if shape == builder.shape(x) else builder.affine([x], [()], shape)


def clipped(builder: Builder, x: int, low: float, high: float) -> int:
    """min(max(z, low), high) = low + max(0, z - low) - max(0, z - high); without a lower end
    z - max(0, z - high). If low > high, the result is high."""
    low, num = min(low, high), builder.num
    is_open_below = low == -math.inf < high
    slope, offset = (1.0, 0.0) if is_open_below else (0.0, low)
    ends = (low, 1.0), (high, -1.0)
    knees = [(knee, change) for knee, change in ends if math.isfinite(knee) and low < high]

    def function(z: Array) -> Array:
        return num.minimum(num.maximum(z, low), high)

    return piecewise_linear(builder, "Copy", x, slope, offset, knees, function)


READERS: dict[str, Reader] = {
    "Clip": clip,
    "LeakyRelu": lambda builder, call: leaky_relu(
        builder, call.first, np.float32(call.attributes.get("alpha", 0.01))
    ),
    "Max": lambda builder, call: max_or_min(builder, call, is_max=True),
    "Min": lambda builder, call: max_or_min(builder, call, is_max=False),
    "PRelu": lambda builder, call: leaky_relu(builder, call.inputs[0], call.inputs[1]),
    "Relu": lambda builder, call: builder.unit("Relu", call.first),
}
