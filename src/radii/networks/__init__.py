"""Networks: ONNX files and torch modules as one graph that runs, differentiates and is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

from radii.networks._estimators import from_sklearn, is_estimator
from radii.networks._exchange import as_network, from_foolbox, from_torch
from radii.networks._network import DomainLike, Graph, Network, Node, load_network
from radii.networks.operators import (
    _einsum,  # noqa: F401
    _extremes,  # noqa: F401 (registers its translators)
    _norms,  # noqa: F401  it has translators alone
    _recurrent,  # noqa: F401
)
from radii.networks.operators._arithmetic import (
    Add,
    AddConstant,
    Cast,
    DivideByConstant,
    Scale,
    Subtract,
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
from radii.networks.operators._base import (
    Hinges,
    Input,
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    OperatorLike,
    SumOfProducts,
    WeightedSum,
)
from radii.networks.operators._bilinear import Bilinear, MatMul, Multiply, ProductPlanes
from radii.networks.operators._choices import ArgMax, Choose
from radii.networks.operators._convolution import BatchNorm, Convolution, TransposedConvolution
from radii.networks.operators._convolution_maps import ConvolutionMap, TransposedMap, Window
from radii.networks.operators._curved import CurvedFunction, Piece
from radii.networks.operators._elementary import (
    Atan,
    Cos,
    Erf,
    Exp,
    ExponentialUnit,
    Log,
    Sin,
    Softplus,
)
from radii.networks.operators._gated import ClippedGate, Gelu, Mish, Silu, TanhGelu
from radii.networks.operators._intervals import (
    BOUND_EXTRA_TERMS,
    ELEMENTARY_ULPS,
    Interval,
    next_above,
    sum_slack,
)
from radii.networks.operators._kernel_errors import (
    FLOAT32_ROUNDOFF,
    MEASURED_ERRORS,
    ErrorMeasure,
    KernelError,
)
from radii.networks.operators._lines import (
    Constants,
    FixedLines,
    LinearBand,
    Lines,
    PulledRows,
    Relaxation,
    UnitLines,
)
from radii.networks.operators._map_algebra import ComposedMap, SumMap, composed, summed
from radii.networks.operators._maps import LinearMap, MatrixMap, ScaleMap, SelectionMap, SparseMap
from radii.networks.operators._max_pool import Maxima, MaxPool
from radii.networks.operators._memo import Memo
from radii.networks.operators._piecewise_linear import (
    Abs,
    Clip,
    LeakyRelu,
    PiecewiseLinear,
    PRelu,
    Relu,
)
from radii.networks.operators._pooling import AveragePool, ReduceMean, ReduceSum
from radii.networks.operators._powers import (
    InverseRoot,
    Reciprocal,
    Square,
    SquaredDeviation,
    SquareRoot,
    WholePower,
)
from radii.networks.operators._products import Dense, ProductFromLeft, ProductFromRight
from radii.networks.operators._relu_lines import ReluLines, chord, may_bend, prefers_right
from radii.networks.operators._remainders import AffineForms
from radii.networks.operators._resizing import AlongAxis
from radii.networks.operators._slopes import IntervalMatrix, Saturation
from radii.networks.operators._smooth import SlopedLines, SmoothFunction
from radii.networks.operators._softmax import (
    LogSoftmax,
    Softmax,
    log_softmax_error,
    smallest_exponent,
    softmax_error,
    softmax_ratio,
)
from radii.networks.operators._steps import (
    Ceil,
    Floor,
    IsNotZero,
    IsPositive,
    RoundHalfEven,
    Sign,
    StepFunction,
    Truncate,
)
from radii.networks.operators._tanh import Sigmoid, Tanh

__all__ = [
    "BOUND_EXTRA_TERMS",
    "ELEMENTARY_ULPS",
    "FLOAT32_ROUNDOFF",
    "MEASURED_ERRORS",
    "Abs",
    "Add",
    "AddConstant",
    "AffineForms",
    "AlongAxis",
    "ArgMax",
    "Atan",
    "AveragePool",
    "BatchNorm",
    "Bilinear",
    "Cast",
    "Ceil",
    "Choose",
    "Clip",
    "ClippedGate",
    "ComposedMap",
    "Concat",
    "Constants",
    "Convolution",
    "ConvolutionMap",
    "Cos",
    "CurvedFunction",
    "Dense",
    "DivideByConstant",
    "DomainLike",
    "Erf",
    "ErrorMeasure",
    "Exp",
    "Expand",
    "ExponentialUnit",
    "FixedLines",
    "Floor",
    "Gelu",
    "Graph",
    "Hinges",
    "Input",
    "Interval",
    "IntervalMatrix",
    "InverseRoot",
    "IsNotZero",
    "IsPositive",
    "KernelError",
    "LeakyRelu",
    "LinearBand",
    "LinearMap",
    "Lines",
    "Log",
    "LogSoftmax",
    "MatMul",
    "MatrixMap",
    "MaxPool",
    "Maxima",
    "Memo",
    "Mish",
    "Multiply",
    "Network",
    "Node",
    "NumberType",
    "OnnxNode",
    "Operator",
    "OperatorKind",
    "OperatorLike",
    "PRelu",
    "Pad",
    "Piece",
    "PiecewiseLinear",
    "ProductFromLeft",
    "ProductFromRight",
    "ProductPlanes",
    "PulledRows",
    "Reciprocal",
    "ReduceMean",
    "ReduceSum",
    "Relaxation",
    "Relu",
    "ReluLines",
    "Reshape",
    "RoundHalfEven",
    "Saturation",
    "Scale",
    "ScaleMap",
    "Select",
    "SelectionMap",
    "Sigmoid",
    "Sign",
    "Silu",
    "Sin",
    "Slice",
    "SlopedLines",
    "SmoothFunction",
    "Softmax",
    "Softplus",
    "SparseMap",
    "Square",
    "SquareRoot",
    "SquaredDeviation",
    "StepFunction",
    "Subtract",
    "SumMap",
    "SumOfProducts",
    "Tanh",
    "TanhGelu",
    "Transpose",
    "TransposedConvolution",
    "TransposedMap",
    "Truncate",
    "UnitLines",
    "WeightedSum",
    "WholePower",
    "Window",
    "as_classifier",
    "as_network",
    "chord",
    "compare_with_replay",
    "composed",
    "constant_outputs",
    "from_foolbox",
    "from_sklearn",
    "from_torch",
    "is_estimator",
    "load_network",
    "log_softmax_error",
    "may_bend",
    "next_above",
    "node_title",
    "per_channel",
    "prefers_right",
    "read_model",
    "signature",
    "smallest_exponent",
    "softmax_error",
    "softmax_ratio",
    "sorted_nodes",
    "structural_fingerprint",
    "sum_slack",
    "summed",
    "without_last",
]

if TYPE_CHECKING:
    from radii.networks._building import constant_outputs
    from radii.networks._loading import (
        as_classifier,
        compare_with_replay,
        per_channel,
        structural_fingerprint,
        without_last,
    )
    from radii.networks._models import node_title, read_model, signature, sorted_nodes

_ONNX_HOMES = {
    "_building": ["constant_outputs"],
    "_loading": [
        "as_classifier",
        "compare_with_replay",
        "per_channel",
        "structural_fingerprint",
        "without_last",
    ],
    "_models": ["node_title", "read_model", "signature", "sorted_nodes"],
}
"""What reads ONNX models loads on first use: a network that was loaded needs no onnx package."""

if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__, _, _ = lazy_loader.attach(__name__, submod_attrs=_ONNX_HOMES)
