"""How far executions of a network are from its operators in real arithmetic, beside the bounds.

An execution is taken apart at the nonlinear nodes: what each reads is compared with the affine map
of the floats that earlier ones gave (see `radii.bounds._float_errors`), and what it gives with its
function of what it read. The executions are ONNX Runtime's, which is made to show its intermediate
values, and those of `benchmarks.soundness.executions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from onnx import helper

from benchmarks.soundness.executions import SummationOrder, execute, without_rounding
from radii.bounds import FloatErrors, Fusion, Stage, StageBounds, fuse, stage_bounds
from radii.networks import Concat, Graph, Interval, Network, OperatorKind, Reshape
from radii.problem import FLOAT, Arithmetic

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Values = Callable[[npt.ArrayLike], dict[int, Array]]
"""From an input, without batch axis, to values by the index of their node in the graph."""

REFERENCE_ERROR = 8 * 2.0**-53
"""What float64's elementary functions, which values are compared with, may be off, relative."""


class Runtime(StrEnum):
    """How ONNX Runtime is run: what it may fuse depends on what it must show."""

    PLAIN = "plain"
    """Operator by operator, with all optimisations off."""
    OPTIMISED = "optimised"
    """With the default optimisations; shows what nonlinear nodes read and give."""
    FUSED = "fused"
    """The same, but shows only what they give, so that they may be fused with what they read."""


class ShownValues:
    """A network on ONNX Runtime that shows values of its graph's nodes."""

    def __init__(self, network: Network, runtime: Runtime) -> None:
        self._network = network
        at_zero = np.zeros(network.input_shape, network.input_dtype)
        first = execute(network, at_zero, SummationOrder.FORWARD)
        wanted = _shown(fuse(network), runtime)
        self._names = {i: name for i, name in sorted(first.names.items()) if i in wanted}
        model = onnx.load_from_string(network.onnx_bytes)
        stated = onnx.shape_inference.infer_shapes(model).graph
        kinds = {v.name: v.type.tensor_type.elem_type for v in (*stated.value_info, *stated.output)}
        del model.graph.output[:]
        for name in self._names.values():
            own = helper.np_dtype_to_tensor_dtype(first.values[name].dtype)
            kind = kinds.get(name) or own
            model.graph.output.append(helper.make_tensor_value_info(name, kind, None))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if runtime is Runtime.PLAIN:
            level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        self._session: Any = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def nodes(self, x: npt.ArrayLike) -> dict[int, Array]:
        """The values at one input by the index of their node, as `Execution.nodes` has them."""
        shapes = self._network.graph.nodes
        point = np.asarray(x, self._network.input_dtype).reshape(shapes[0].shape)
        found = self._session.run(None, {self._session.get_inputs()[0].name: point})
        values = zip(self._names, found, strict=True)
        return {0: point} | {i: value.reshape(shapes[i].shape) for i, value in values}


def _shown(fusion: Fusion, runtime: Runtime) -> set[int]:
    """Nodes to show, and those that are the same but for their shape: not all are in the file."""
    stages = (*fusion.stages, fusion.output)
    shown = {stage.node for stage in stages}
    if runtime is not Runtime.FUSED:
        shown |= {stage.source for stage in stages}
    for index, node in enumerate(fusion.graph.nodes):
        if isinstance(node.operator, Reshape) and {index, node.inputs[0]} & shown:
            shown |= {index, node.inputs[0]}
    return shown - {0}


def every_execution(network: Network) -> Iterator[tuple[str, Values]]:
    """Each way to execute a network, with its name."""
    for runtime in Runtime:
        yield f"onnxruntime {runtime}", ShownValues(network, runtime).nodes
    for order in SummationOrder:
        yield order.value, _InOrder(network, order)


@dataclass(frozen=True, slots=True, eq=False)
class _InOrder:
    network: Network
    order: SummationOrder

    def __call__(self, x: npt.ArrayLike) -> dict[int, Array]:
        return execute(self.network, x, self.order).nodes


class ObservedKind(StrEnum):
    """What is compared."""

    ARGUMENT = "argument"
    """What a stage reads, with its affine map: at most E."""
    VALUE = "value"
    """What a nonlinear operator gives, with its function of what it read: at most D."""
    RANGE = "range"
    """What it gives where nobody saw what it read: the distance from the middle of what it may."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedError:
    """One stage of one execution at one input: errors that were seen, and what is allowed.

    `outside` counts arguments beyond the interval that should hold them.
    """

    stage: Stage
    kind: ObservedKind
    seen: Float64
    allowed: Float64
    outside: int = 0

    @property
    def exceeded(self) -> int:
        """How often more was seen than is allowed, NaN too; where all is, nothing is claimed."""
        return int(np.sum(~(self.seen <= self.allowed) & (self.allowed < np.inf)))


class ObservedRegion:
    """A network over a box of inputs, in which executions are held against its bounds."""

    def __init__(
        self, network: Network, low: Float64, high: Float64, arithmetic: Arithmetic = FLOAT
    ) -> None:
        self.network = network
        self.fusion: Fusion = fuse(network)
        lower, upper = (np.array(side, np.float64).ravel() for side in (low, high))
        bounds = stage_bounds(self.fusion, lower, upper, arithmetic)
        self.arithmetic = arithmetic
        self.bounds = dict(zip((*self.fusion.stages, self.fusion.output), bounds, strict=True))
        self.value_errors = {stage.node: self.value_error(stage) for stage in self.fusion.stages}

    def value_error(self, stage: Stage) -> Float64 | None:
        """D of what a stage's operator gives; None where it computes exactly."""
        bounds, shape = self.bounds[stage], (1, *stage.shape)
        sides = (torch.from_numpy(side).reshape(shape) for side in (bounds.low, bounds.high))
        arguments = Interval(*sides)
        values = stage.operator.enclosure(arguments)
        errors = FloatErrors(self.fusion.graph, self.fusion.number, self.arithmetic)
        found = errors.of_values(stage.operator, arguments, values)
        return None if found is None else found.numpy().ravel()

    def compared(self, nodes: Mapping[int, Array]) -> Iterator[ObservedError]:
        """Every stage of an execution at an input of the box."""
        with np.errstate(all="ignore"):
            known = _reshaped(self.fusion.graph, nodes)
            exact = _reshaped(self.fusion.graph, without_rounding(self.network, known))
            for stage, bounds in self.bounds.items():
                allowed = bounds.error + self._of_hidden(stage, known)
                if stage.source in known:
                    yield _of_arguments(stage, bounds, allowed, known, exact)
                is_seen = stage.node in known and (stage.source in known or stage.source in exact)
                if stage is not self.fusion.output and is_seen:
                    yield _of_values(stage, self.value_errors[stage.node], allowed, known, exact)

    def _of_hidden(self, stage: Stage, known: Mapping[int, Array]) -> Float64 | float:
        """Values that the file does not have are computed exactly: their errors are added. Where
        they are functions of other such values, nothing is claimed."""
        hidden = {i: self.value_errors[i] for i in stage.maps if i and i not in known}
        read = {each.node: each.maps for each in self.fusion.stages}
        if any(source and source not in known for i in hidden for source in read[i]):
            return np.inf
        errors = {i: error for i, error in hidden.items() if error is not None}
        return sum((abs(stage.matrices[i]) @ error for i, error in errors.items()), start=0.0)


def _reshaped(graph: Graph, nodes: Mapping[int, Array]) -> dict[int, Array]:
    """With the values that differ from these in their shape alone, or join several of them."""
    found = dict(nodes)
    for index, node in enumerate(graph.nodes):
        if isinstance(node.operator, Reshape):
            for there, other in ((index, node.inputs[0]), (node.inputs[0], index)):
                if there in found and other not in found:
                    found[other] = found[there].reshape(graph.nodes[other].shape)
        is_joined = isinstance(node.operator, Concat) and not list(node.operator.buffers())
        if is_joined and index not in found and all(i in found for i in node.inputs):
            assert isinstance(node.operator, Concat)
            found[index] = np.concatenate([found[i] for i in node.inputs], node.operator.axis)
    return found


def _of_arguments(
    stage: Stage,
    bounds: StageBounds,
    allowed: Float64,
    known: Mapping[int, Array],
    exact: Mapping[int, Array],
) -> ObservedError:
    given = known[stage.source].astype(np.longdouble).ravel()
    seen = np.abs(given - exact[stage.source].ravel()).astype(np.float64)
    is_inside = (bounds.low <= given) & (given <= bounds.high)
    is_claimed = (bounds.low > -np.inf) | (bounds.high < np.inf)
    return ObservedError(
        stage, ObservedKind.ARGUMENT, seen, allowed, int(np.sum(~is_inside & is_claimed))
    )


def _of_values(
    stage: Stage,
    value_error: Float64 | None,
    allowed: Float64,
    known: Mapping[int, Array],
    exact: Mapping[int, Array],
) -> ObservedError:
    """Beside the function of the argument, or of all that it may be where it is not shown."""
    operator, given = stage.operator, known[stage.node].astype(np.float64).ravel()
    is_shown = stage.source in known
    argument = torch.from_numpy((known if is_shown else exact)[stage.source].astype(np.float64))
    if is_shown:
        low = high = operator(argument[None])
    else:
        spread = torch.from_numpy(allowed).reshape(argument.shape)
        held = operator.enclosure(Interval((argument - spread)[None], (argument + spread)[None]))
        low, high = held.low, held.high
    middle, radius = (low / 2 + high / 2).numpy().ravel(), (high / 2 - low / 2).numpy().ravel()
    error = radius + (0.0 if value_error is None else value_error)
    if operator.kind is OperatorKind.SMOOTH or not is_shown:
        error = error + REFERENCE_ERROR * np.abs(middle)
    unknown = ~np.isfinite(error) | ~np.isfinite(allowed).all()
    kind = ObservedKind.VALUE if is_shown else ObservedKind.RANGE
    return ObservedError(stage, kind, np.abs(given - middle), np.where(unknown, np.inf, error))


def sampled_box(network: Network, rng: np.random.Generator) -> tuple[Array, Array]:
    """A box of inputs around a random one of the domain, in the network's number type.

    It may be one point, small, large, or all of the domain.
    """
    low, high = network.domain.box(network.input_shape)
    centre = rng.uniform(low, high)
    radius = float(rng.choice([0.0, 1e-6, 1e-3, 0.1, 1.0])) * (high - low)
    sides = (np.clip(centre + sign * radius, low, high) for sign in (-1, 1))
    lower, upper = (side.astype(network.input_dtype) for side in sides)
    return lower, np.maximum(lower, upper)


def sampled_points(
    low: Array, high: Array, count: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Inputs of a box: random ones, corners, and random ones with some entries at their ends."""
    for number in range(count):
        inside = rng.uniform(low, high).astype(low.dtype).clip(low, high)
        corner = np.where(rng.random(low.shape) < 0.5, low, high)
        share = (0.0, 1.0, 0.5)[number % 3]
        yield np.where(rng.random(low.shape) < share, corner, inside)
