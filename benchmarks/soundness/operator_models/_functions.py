"""Random models of elementary functions, as operators and as products of operators."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from hypothesis import strategies as st

from benchmarks.soundness.operator_models._base import Draw, any_shape, models_of, values
from radii.testing._graphs import Sketch


@models_of("Abs")
def _absolute(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw))
    return sketch.model(sketch.apply("Abs", value))


@models_of("Atan", "Cos", "Erf", "Exp", "Sin")
def _function(draw: Draw) -> onnx.ModelProto:
    """Of arguments up to about 10, so that all pieces are met."""
    sketch, value = values(draw, any_shape(draw), oldest=9, double=False)
    factor = sketch.constant(draw.choice(0.3, 1.0, 4.0))
    return sketch.model(sketch.apply(draw.operator, sketch.apply("Mul", value, factor)))


@models_of("Log")
def _log(draw: Draw) -> onnx.ModelProto:
    sketch, value = values(draw, any_shape(draw), double=False)
    positive = sketch.apply("Sigmoid", value)
    return sketch.model(sketch.apply("Log", sketch.apply("Mul", positive, sketch.constant(3.0))))


@models_of("Gelu", "HardSwish", "Mish", "Softplus")
def _gate(draw: Draw) -> onnx.ModelProto:
    oldest = {"Gelu": 20, "HardSwish": 14, "Mish": 18, "Softplus": 8}[draw.operator]
    sketch, value = values(draw, any_shape(draw), oldest=oldest, double=False)
    scaled = sketch.apply("Mul", value, sketch.constant(draw.choice(0.5, 1.0, 3.0)))
    given = {}
    if draw.operator == "Gelu" and draw.flag():
        given["approximate"] = draw.choice("none", "tanh")
    return sketch.model(sketch.apply(draw.operator, scaled, **given))


@models_of("Celu", "Selu", "HardSigmoid")
def _with_parameters(draw: Draw) -> onnx.ModelProto:
    oldest = 12 if draw.operator == "Celu" else 8
    sketch, value = values(draw, any_shape(draw), oldest=oldest, double=False)
    scaled = sketch.apply("Mul", value, sketch.constant(draw.choice(0.5, 1.0, 3.0)))
    given = {"alpha": draw.choice(0.25, 0.5, 2.0)} if draw.flag() else {}
    other = {"Selu": "gamma", "HardSigmoid": "beta"}.get(draw.operator)
    if other is not None and draw.flag():
        given[other] = draw.choice(0.5, 0.9, 1.5)
    return sketch.model(sketch.apply(draw.operator, scaled, **given))


# Products that are one function of one value, as exporters write them.


def _composite(draw: Draw, form: str) -> onnx.ModelProto:
    """A model that holds the function as a product of operators, with factors in several places."""
    sketch, value = values(draw, any_shape(draw), oldest=13, double=False)
    x = sketch.apply("Mul", value, sketch.constant(draw.choice(0.5, 1.0, 3.0)))
    first = sketch.apply("Mul", x, sketch.constant(0.5)) if draw.flag() else x
    pair = [first, COMPOSITES[form](sketch, x)]
    product = sketch.apply("Mul", *(pair if draw.flag() else pair[::-1]))
    if draw.flag():
        product = sketch.apply("Mul", product, sketch.constant(0.5))
    return sketch.model(product)


def _erf_gate(sketch: Sketch, x: str) -> str:
    inner = sketch.apply("Erf", sketch.apply("Div", x, sketch.constant(1.4142135)))
    return sketch.apply("Add", inner, sketch.constant(1.0))


def _tanh_gate(sketch: Sketch, x: str) -> str:
    cube = sketch.apply("Mul", sketch.apply("Mul", x, x), x)
    inner = sketch.apply("Add", x, sketch.apply("Mul", cube, sketch.constant(0.044715)))
    raised = sketch.apply("Tanh", sketch.apply("Mul", inner, sketch.constant(0.7978846)))
    return sketch.apply("Add", sketch.constant(1.0), raised)


def _swish_gate(sketch: Sketch, x: str) -> str:
    return sketch.apply("Sigmoid", sketch.apply("Mul", x, sketch.constant(1.702)))


def _mish_gate(sketch: Sketch, x: str) -> str:
    return sketch.apply("Tanh", sketch.apply("Softplus", x))


def _relu6_gate(sketch: Sketch, x: str) -> str:
    shifted = sketch.apply("Add", x, sketch.constant(3.0))
    clipped = sketch.apply("Clip", shifted, sketch.constant(0.0), sketch.constant(6.0))
    return sketch.apply("Div", clipped, sketch.constant(6.0))


COMPOSITES: dict[str, Callable[[Sketch, str], str]] = {
    "gelu": _erf_gate,
    "gelu by tanh": _tanh_gate,
    "swish": _swish_gate,
    "mish": _mish_gate,
    "hard swish": _relu6_gate,
    "hard sigmoid": lambda sketch, x: sketch.apply("HardSigmoid", x, alpha=0.3, beta=0.25),
}
"""Of the products' other factors, from x."""


@st.composite
def composite_models(draw: st.DrawFn, form: str) -> onnx.ModelProto:
    """Models that hold one of `COMPOSITES`."""
    return _composite(Draw(draw, form), form)
