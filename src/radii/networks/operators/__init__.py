"""The operators a graph is made of: torch modules from batches of values to a batch of values."""

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
    Cast,
    Divide,
    DivideByConstant,
    Multiply,
    Reciprocal,
    Scale,
    Subtract,
)
from radii.networks.operators.normalization import BatchNorm
from radii.networks.operators.pooling import AveragePool, MaxPool
from radii.networks.operators.products import Dense, MatMul, ProductFromLeft, ProductFromRight
from radii.networks.operators.reductions import ReduceMean, ReduceSum
from radii.networks.operators.windows import Window

__all__ = [
    "Add",
    "AddConstant",
    "AveragePool",
    "BatchNorm",
    "Cast",
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
    "MaxPool",
    "Multiply",
    "Operator",
    "PRelu",
    "Pad",
    "ProductFromLeft",
    "ProductFromRight",
    "Reciprocal",
    "ReduceMean",
    "ReduceSum",
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
    "Window",
]
