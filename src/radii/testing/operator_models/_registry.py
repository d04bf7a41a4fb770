"""Random small ONNX models, one strategy for each operator that networks may use.

Attributes, opset, shapes and the place of constants are drawn by hypothesis; weights come from a
seeded generator. Every model is valid for ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx
from hypothesis import strategies as st

from radii.testing.operator_models import _activations as activations
from radii.testing.operator_models import _arithmetic as arithmetic
from radii.testing.operator_models import _arrangement as arrangement
from radii.testing.operator_models import _windows as windows
from radii.testing.operator_models._base import Draw

OPERATOR_MODELS: dict[str, Callable[[Draw], onnx.ModelProto]] = {
    "Add": arithmetic.binary("Add"),
    "AveragePool": windows.pool("AveragePool"),
    "BatchNormalization": windows.batch_norm,
    "Cast": arrangement.cast,
    "Clip": activations.clip,
    "Concat": arrangement.concat,
    "Conv": windows.conv,
    "ConvTranspose": windows.conv_transpose,
    "Div": arithmetic.binary("Div"),
    "Dropout": arrangement.dropout,
    "Expand": arrangement.expand,
    "Flatten": arrangement.flatten,
    "Gather": arrangement.gather,
    "Gemm": arithmetic.gemm,
    "GlobalAveragePool": windows.global_pool("GlobalAveragePool"),
    "GlobalMaxPool": windows.global_pool("GlobalMaxPool"),
    "Identity": arithmetic.unary("Identity"),
    "LeakyRelu": activations.leaky_relu,
    "LogSoftmax": activations.softmax("LogSoftmax"),
    "MatMul": arithmetic.matmul,
    "Max": arithmetic.bound("Max"),
    "MaxPool": windows.pool("MaxPool"),
    "Min": arithmetic.bound("Min"),
    "Mul": arithmetic.binary("Mul"),
    "Neg": arithmetic.unary("Neg"),
    "PRelu": activations.prelu,
    "Pad": arrangement.pad,
    "Reciprocal": arithmetic.reciprocal,
    "ReduceMean": arrangement.reduce("ReduceMean", 18),
    "ReduceSum": arrangement.reduce("ReduceSum", 13),
    "Relu": arithmetic.unary("Relu"),
    "Reshape": arrangement.reshape,
    "Shape": arrangement.shape_arithmetic,
    "Sigmoid": arithmetic.unary("Sigmoid"),
    "Slice": arrangement.slice_axes,
    "Softmax": activations.softmax("Softmax"),
    "Split": arrangement.split,
    "Squeeze": arrangement.squeeze,
    "Sub": arithmetic.binary("Sub"),
    "Sum": arithmetic.total,
    "Tanh": arithmetic.unary("Tanh"),
    "Transpose": arrangement.transpose,
    "Unsqueeze": arrangement.unsqueeze,
}


@st.composite
def operator_models(draw: st.DrawFn, operator: str) -> onnx.ModelProto:
    """Models that use the operator on a value which depends on the input."""
    return OPERATOR_MODELS[operator](Draw(draw))
