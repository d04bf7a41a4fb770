"""Certified training: differentiable bounds of a module's margins, and the regimes that use them.

A torch module is traced once into steps, whose parameters stay the module's own. The steps bound
every value over boxes around the inputs of a batch; the loss is that of the worst case allowed.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from radii.bounds import RowsBackward, hinges_of
from radii.errors import NetworkError, SpecificationError, first_line
from radii.networks import Clip, LeakyRelu, MaxPool, Operator, Relu, Window
from radii.training._certified_steps import (
    BatchNormStep,
    CertifiedStep,
    ElementwiseStep,
    InputStep,
    LinearStep,
    MaxPoolStep,
    MeanStep,
    ScaleStep,
    Shape,
    SumStep,
    ValueBounds,
)
from radii.training._regime import Ramp, Regime, Step, check_eps

KNOWN_LAYERS = (
    "Linear, Conv2d, BatchNorm, ReLU, LeakyReLU, Hardtanh, Sigmoid, Tanh, MaxPool2d, AvgPool2d, "
    "Flatten, sums, and products with constants"
)

AS_LAYERS: dict[object, Callable[..., nn.Module]] = {
    F.relu: nn.ReLU,
    torch.relu: nn.ReLU,
    "relu": nn.ReLU,
    F.leaky_relu: nn.LeakyReLU,
    F.hardtanh: nn.Hardtanh,
    torch.clamp: lambda min=-math.inf, max=math.inf: nn.Hardtanh(min, max),  # noqa: A006
    "clamp": lambda min=-math.inf, max=math.inf: nn.Hardtanh(min, max),  # noqa: A006
    torch.sigmoid: nn.Sigmoid,
    "sigmoid": nn.Sigmoid,
    torch.tanh: nn.Tanh,
    "tanh": nn.Tanh,
    F.max_pool2d: nn.MaxPool2d,
    F.avg_pool2d: nn.AvgPool2d,
    F.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
}
"""Functions and methods as the layers that do the same."""

RESHAPES = (torch.flatten, torch.reshape, "flatten", "reshape", "view", "contiguous")
ARITHMETIC_TARGETS: dict[object, str] = {
    target: name
    for name, targets in {
        "add": (operator.add, operator.iadd, torch.add, "add", "add_"),
        "sub": (operator.sub, operator.isub, torch.sub, "sub", "sub_"),
        "mul": (operator.mul, operator.imul, torch.mul, "mul", "mul_"),
        "truediv": (operator.truediv, operator.itruediv, torch.div, "div", "div_"),
    }.items()
    for target in targets
}
SIZE_TARGETS = (getattr, operator.getitem, "size", "dim")


def traced(module: nn.Module, input_shape: Shape) -> list[CertifiedStep]:
    """The steps of a module in topological order; the first is its input, the last its output.

    A NetworkError of one sentence names what cannot be bounded.
    """
    parameter = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    sample = torch.zeros((1, *input_shape), dtype=parameter.dtype, device=parameter.device)
    modes = [(part, part.training) for part in module.modules()]
    try:
        graph = fx.symbolic_trace(nn.Sequential(module))
        module.eval()
        with torch.no_grad():
            return _Tracing(graph, sample).steps
    except NetworkError:
        raise
    except Exception as error:
        raise NetworkError(
            f"{type(module).__name__}: certified training cannot follow this module: "
            f"{first_line(error)}"
        ) from error
    finally:
        for part, training in modes:
            part.training = training


class _Tracing(fx.Interpreter):
    """Runs the traced module once, on a sample, and writes a step for every value it meets."""

    def __init__(self, graph: fx.GraphModule, sample: Tensor) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.extra_traceback = False  # errors stay as they are
        self.steps: list[CertifiedStep] = []
        self._numbers: dict[fx.Node, int] = {}
        self._result = -1
        self.run(sample)
        if self._result != len(self.steps) - 1:
            raise self._unsupported("an output that is not its last value")

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n.op == "placeholder":
            if self.steps:
                raise self._unsupported("more than one input")
            self._add(n, InputStep((), tuple(value.shape[1:])))
        elif n.op == "output":
            (returned,) = n.args
            if not isinstance(returned, fx.Node) or returned not in self._numbers:
                raise self._unsupported("an output that is not one tensor")
            self._result = self._numbers[returned]
        elif any(source in self._numbers for source in n.all_input_nodes):
            self._step(n, value)
        return value

    def _step(self, n: fx.Node, value: Any) -> None:
        if not isinstance(value, Tensor):
            if n.target not in SIZE_TARGETS:
                raise self._unsupported(f"'{n.target}'")
            return
        shape = tuple(value.shape[1:])
        if n.op == "call_module":
            self._layer(n, self.module.get_submodule(str(n.target)), shape)
        elif n.target in RESHAPES:
            self._add(n, MeanStep.reshape(self._sources(n), shape))
        elif n.target in AS_LAYERS:
            self._layer(n, AS_LAYERS[n.target](*n.args[1:], **n.kwargs), shape)
        else:
            self._arithmetic(n, shape)

    def _layer(self, n: fx.Node, layer: nn.Module, shape: Shape) -> None:
        sources = self._sources(n)
        source = self.steps[sources[0]].shape
        match layer:
            case nn.Linear():
                self._add(n, LinearStep.dense(sources, shape, layer))
            case nn.Conv2d() if layer.padding_mode == "zeros" and layer.padding != "same":
                self._add(n, LinearStep.convolution(sources, shape, layer))
            case nn.BatchNorm1d() | nn.BatchNorm2d() if layer.track_running_stats:
                self._add(n, BatchNormStep(sources, shape, layer))
            case nn.ReLU():
                self._units(n, nn.ReLU(), Relu(), shape)
            case nn.LeakyReLU() if layer.negative_slope >= 0:
                slope = float(layer.negative_slope)
                self._units(n, nn.LeakyReLU(slope), LeakyRelu(slope), shape)
            case nn.Hardtanh():
                low, high = float(layer.min_val), float(layer.max_val)
                self._units(n, Clip(low, high), Clip(low, high), shape)
            case nn.Sigmoid() | nn.Tanh():
                self._add(n, ElementwiseStep(sources, shape, layer, None))
            case nn.MaxPool2d() if not (layer.ceil_mode or layer.return_indices):
                self._add(n, MaxPoolStep(sources, shape, _max_pool(layer), source))
            case nn.AvgPool2d() | nn.AdaptiveAvgPool2d():
                self._add(n, MeanStep(sources, shape, layer))
            case nn.Flatten() | nn.Unflatten() | nn.Identity():
                self._add(n, MeanStep.reshape(sources, shape))
            case _:
                raise self._unsupported(f"layer {layer}")

    def _units(self, n: fx.Node, layer: nn.Module, like: Operator, shape: Shape) -> None:
        self._add(n, ElementwiseStep(self._sources(n), shape, layer, hinges_of(like, shape, shape)))

    def _arithmetic(self, n: fx.Node, shape: Shape) -> None:
        name = ARITHMETIC_TARGETS.get(n.target)
        if name is None or len(n.args) != 2 or n.kwargs:
            raise self._unsupported(f"'{getattr(n.target, '__name__', n.target)}'")
        varying = [isinstance(a, fx.Node) and a in self._numbers for a in n.args]
        sources = self._sources(n)
        if any(self.steps[source].shape != shape for source in sources):
            raise self._unsupported(f"'{name}' of values of different shapes")
        if all(varying):
            if name not in ("add", "sub"):
                raise self._unsupported(f"'{name}' of two values that depend on the input")
            self._add(n, SumStep(sources, shape, 1 if name == "add" else -1))
            return
        constant = self._constant(n.args[varying.index(False)], name, len(shape))
        if name == "add":
            self._add(n, ScaleStep(sources, shape, 1.0, constant))
        elif name == "sub":
            first = varying[0]
            shift = -constant if first else constant
            self._add(n, ScaleStep(sources, shape, 1.0 if first else -1.0, shift))
        elif name == "mul":
            self._add(n, ScaleStep(sources, shape, constant, 0.0))
        elif varying[0]:
            self._add(n, ScaleStep(sources, shape, 1 / constant, 0.0))
        else:
            raise self._unsupported("a division by a value that depends on the input")

    def _constant(self, argument: Any, name: str, rank: int) -> Tensor | float:
        value = self.env[argument] if isinstance(argument, fx.Node) else argument
        if isinstance(value, Tensor):
            if value.requires_grad:
                raise self._unsupported(f"'{name}' with a bare parameter")
            return value[0] if value.dim() > rank else value  # without an axis for the batch
        return float(value)

    def _sources(self, n: fx.Node) -> list[int]:
        """In the order of the arguments, one that is used twice counted twice."""
        return [self._numbers[a] for a in n.args if isinstance(a, fx.Node) and a in self._numbers]

    def _add(self, n: fx.Node, step: CertifiedStep) -> None:
        self._numbers[n] = len(self.steps)
        self.steps.append(step)

    def _unsupported(self, what: str) -> NetworkError:
        return NetworkError(f"certified training cannot bound {what}; it bounds {KNOWN_LAYERS}")


def _max_pool(layer: nn.MaxPool2d) -> MaxPool:
    def pair(value: Any) -> tuple[int, int]:
        return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))

    pads = tuple((side, side) for side in pair(layer.padding))
    return MaxPool(Window(pair(layer.kernel_size), pair(layer.stride), pair(layer.dilation), pads))


class ModuleBounds:
    """Bounds on what a module computes, by its parameters of the moment."""

    def __init__(self, module: nn.Module, input_shape: Shape) -> None:
        self.input_shape = input_shape
        self._steps = traced(module, input_shape)

    def enclosed(self, inputs: Tensor, low: Tensor, high: Tensor) -> Enclosure:
        """Intervals of every value over boxes (B, *input shape), and the values at `inputs`."""
        values = [ValueBounds(inputs, low, high)]
        for step in self._steps[1:]:
            values.append(step.known(*(values[source] for source in step.sources)))
        return Enclosure(self, values)

    def lower(self, values: list[ValueBounds], rows: Tensor, *, through_bends: bool) -> Tensor:
        """Lower bounds (B, rows) of rows (B, rows, outputs) of coefficients on the outputs.

        The rows are pulled back to the input with CROWN's lines or, unless `through_bends`, to
        the last values that are not affine functions of others; there the intervals bound them.
        """
        descent = _StepBackward(self._steps, values, rows, through_bends=through_bends)
        descent.run()
        return descent.total


class _StepBackward(RowsBackward[Tensor]):
    """Rows on the values of steps, (B, rows, *shape), by the numbers of the steps."""

    def __init__(
        self,
        steps: Sequence[CertifiedStep],
        values: Sequence[ValueBounds],
        rows: Tensor,
        *,
        through_bends: bool,
    ) -> None:
        self.steps, self.values, self.through_bends = steps, values, through_bends
        self.rows = {len(steps) - 1: rows}
        self.total = rows.new_zeros(rows.shape[:2])

    @property
    def depth(self) -> int:
        return len(self.steps)

    def on_values(self, number: int) -> Tensor | None:
        return self.rows.pop(number, None)

    def relaxed(self, number: int, rows: Tensor) -> Tensor | None:
        """Rows end at the input, and at bends that they do not go through, in intervals."""
        if number and (self.through_bends or self.steps[number].is_affine):
            return rows
        self.total = self.total + _least(rows, self.values[number])
        return None

    def pull(self, number: int, rows: Tensor) -> None:
        step = self.steps[number]
        pulled, constants = step.pulled(rows, *(self.values[s] for s in step.sources))
        self.total = self.total + constants
        for source, added in zip(step.sources, pulled, strict=True):
            self.rows[source] = self.rows[source] + added if source in self.rows else added


class Enclosure:
    """What is known of a module over the boxes of one batch."""

    def __init__(self, bounds: ModuleBounds, values: list[ValueBounds]) -> None:
        self._bounds, self._values = bounds, values

    @property
    def outputs(self) -> ValueBounds:
        return self._values[-1]

    def interval_margins(self, labels: Tensor) -> Tensor:
        """Lower bounds (B, outputs) of the label's output minus each output, by intervals."""
        return self._margins(labels, through_bends=False)

    def crown_margins(self, labels: Tensor) -> Tensor:
        """The same by one backward pass of linear bounds: CROWN on intervals, or CROWN-IBP."""
        return self._margins(labels, through_bends=True)

    def _margins(self, labels: Tensor, *, through_bends: bool) -> Tensor:
        outputs = self.outputs.value
        eye = torch.eye(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        rows = eye[labels][:, None] - eye[None]
        return self._bounds.lower(self._values, rows, through_bends=through_bends)


def _least(rows: Tensor, known: ValueBounds) -> Tensor:
    """The least value of rows (B, rows, *shape) over each interval."""
    flat = rows.flatten(2)
    centre, radius = (part.flatten(1)[..., None] for part in known.centred())
    return (flat @ centre - flat.abs() @ radius).squeeze(2)


class CertifiedTraining(Regime):
    """kappa * plain + (1 - kappa) * worst-case cross-entropy, on boxes clipped to the domain.

    Until the share `warmup` of the training it is plain; then eps grows from 0 and the plain
    share falls from 1, linearly, until the share `ramp`, where they are `eps` and `kappa`.
    """

    eps: float
    kappa: float
    warmup: float
    ramp: float

    def __post_init__(self) -> None:
        check_eps(self.eps, self.name)
        if not 0 <= self.kappa <= 1:
            raise SpecificationError(
                f"training regime '{self.name}': kappa {self.kappa:g} must be from 0 to 1"
            )
        if not 0 <= self.warmup < self.ramp <= 1:
            raise SpecificationError(
                f"training regime '{self.name}': warmup {self.warmup:g} and ramp {self.ramp:g} "
                "are shares of the training with 0 <= warmup < ramp <= 1"
            )

    def check(self, module: nn.Module, images: Tensor) -> None:
        ModuleBounds(module, tuple(images.shape[1:]))

    @abstractmethod
    def margins(self, enclosure: Enclosure, labels: Tensor, grown: float) -> Tensor:
        """Lower bounds of the margins; `grown` goes from 0 to 1 along the ramp."""

    def loss(self, step: Step) -> Tensor:
        grown = Ramp(self.warmup, self.ramp)(step.progress)
        if grown == 0:
            return step.cross_entropy(step.module(step.images), step.labels)
        box = step.box(grown * self.eps)
        enclosure = _bounds(step).enclosed(step.images, *box)
        share = 1 - grown * (1 - self.kappa)
        worst = step.cross_entropy(-self.margins(enclosure, step.labels, grown), step.labels)
        plain = step.cross_entropy(enclosure.outputs.value, step.labels)
        return share * plain + (1 - share) * worst


@dataclass(frozen=True, slots=True)
class IntervalTraining(CertifiedTraining):
    """The worst case by interval bounds (Gowal et al. 2018)."""

    eps: float = 0.1
    kappa: float = 0.5
    warmup: float = 0.1
    ramp: float = 0.6
    name: ClassVar[str] = "ibp"
    weighs_classes: ClassVar[bool] = True

    def margins(self, enclosure: Enclosure, labels: Tensor, grown: float) -> Tensor:
        return enclosure.interval_margins(labels)


@dataclass(frozen=True, slots=True)
class CrownIntervalTraining(CertifiedTraining):
    """CROWN-IBP (Zhang et al. 2020): linear bounds are mixed in, tighter and easier to train early.

    The bounds are beta * CROWN-IBP + (1 - beta) * intervals, where beta falls from 1 to `beta`
    along the same ramp. With 0 the last part of the training is that of `ibp`, and as fast.
    """

    eps: float = 0.1
    kappa: float = 0.5
    beta: float = 0.0
    warmup: float = 0.1
    ramp: float = 0.6
    name: ClassVar[str] = "crown-ibp"
    weighs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        CertifiedTraining.__post_init__(self)  # `super()` fails in a dataclass with slots
        if not 0 <= self.beta <= 1:
            raise SpecificationError(
                f"training regime '{self.name}': beta {self.beta:g} must be from 0 to 1"
            )

    def margins(self, enclosure: Enclosure, labels: Tensor, grown: float) -> Tensor:
        beta = 1 - grown * (1 - self.beta)
        if beta == 0:
            return enclosure.interval_margins(labels)
        linear = enclosure.crown_margins(labels)
        if beta == 1:
            return linear
        return linear.lerp(enclosure.interval_margins(labels), 1 - beta)


def _bounds(step: Step) -> ModuleBounds:
    """The module's bounds, traced once for each shape of images."""
    shape = tuple(step.images.shape[1:])
    return step.memo.get((_bounds, shape), lambda: ModuleBounds(step.module, shape))
