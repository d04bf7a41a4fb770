"""The operators a graph is made of: torch modules that map batches of values to a batch of values."""

from __future__ import annotations

from radii.networks.operators._base import Input, Kind, Operator
from radii.networks.operators.activations import (
    Clip,
    LeakyRelu,
    LogSoftmax,
    PRelu,
    Relu,
    Sigmoid,
    Softmax,
    Tanh,
)
from radii.networks.operators.arrangement import (
    Concat,
    Expand,
    Pad,
    Reshape,
    Select,
    Slice,
    Transpose,
)
from radii.networks.operators.convolution import Convolution, TransposedConvolution
from radii.networks.operators.elementwise import (
    Add,
    AddConstant,
    Divide,
    DivideByConstant,
    Multiply,
    Reciprocal,
    Scale,
    Subtract,
)
from radii.networks.operators.products import Dense, MatMul, ProductFromLeft, ProductFromRight

__all__ = [
    "Add",
    "AddConstant",
    "Clip",
    "Concat",
    "Convolution",
    "Dense",
    "Divide",
    "DivideByConstant",
    "Expand",
    "Input",
    "Kind",
    "LeakyRelu",
    "LogSoftmax",
    "MatMul",
    "Multiply",
    "Operator",
    "PRelu",
    "Pad",
    "ProductFromLeft",
    "ProductFromRight",
    "Reciprocal",
    "Relu",
    "Reshape",
    "Scale",
    "Select",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Subtract",
    "Tanh",
    "Transpose",
    "TransposedConvolution",
]
