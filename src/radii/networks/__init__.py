"""Networks: ONNX files and torch modules as one graph that runs, differentiates and is bounded."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from radii.networks._exchange import as_network, distinct_names, from_foolbox, from_torch
from radii.networks._graph import Graph, Node
from radii.networks._network import Network, load_network
from radii.networks.operators._activations import (
    Clip,
    LeakyRelu,
    LogSoftmax,
    PRelu,
    Relu,
    Sigmoid,
    Softmax,
    Tanh,
)
from radii.networks.operators._arrangement import (
    Concat,
    Expand,
    Pad,
    Reshape,
    Select,
    Slice,
    Transpose,
)
from radii.networks.operators._base import Input, Operator, OperatorKind
from radii.networks.operators._convolution import Convolution, TransposedConvolution
from radii.networks.operators._elementwise import (
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
from radii.networks.operators._normalization import BatchNorm
from radii.networks.operators._pooling import AveragePool, MaxPool
from radii.networks.operators._products import Dense, MatMul, ProductFromLeft, ProductFromRight
from radii.networks.operators._reductions import ReduceMean, ReduceSum
from radii.networks.operators._windows import Window

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
    "Graph",
    "Input",
    "LeakyRelu",
    "LogSoftmax",
    "MatMul",
    "MaxPool",
    "Multiply",
    "Network",
    "Node",
    "Operator",
    "OperatorKind",
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
    "as_network",
    "compare_with_replay",
    "constant_outputs",
    "distinct_names",
    "from_foolbox",
    "from_torch",
    "load_network",
    "node_title",
    "per_channel",
    "read_model",
    "signature",
    "sorted_nodes",
    "without_last",
]

if TYPE_CHECKING:
    from radii.networks._building import constant_outputs
    from radii.networks._loading import compare_with_replay, without_last
    from radii.networks._models import node_title, read_model, signature, sorted_nodes
    from radii.networks._normalization import per_channel

_ONNX_HOMES = {
    "constant_outputs": "_building",
    "compare_with_replay": "_loading",
    "node_title": "_models",
    "read_model": "_models",
    "signature": "_models",
    "sorted_nodes": "_models",
    "without_last": "_loading",
    "per_channel": "_normalization",
}
"""What reads ONNX models loads on first use: a network that was loaded needs no onnx package."""


def __getattr__(name: str) -> Any:
    if name in _ONNX_HOMES:
        return getattr(import_module(f"{__name__}.{_ONNX_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
