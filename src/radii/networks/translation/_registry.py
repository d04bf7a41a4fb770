"""From ONNX nodes to operators: one translator for each ONNX operator."""

from __future__ import annotations

from radii.networks.translation import _activations as activations
from radii.networks.translation import _arithmetic as arithmetic
from radii.networks.translation import _arrangement as arrangement
from radii.networks.translation import _convolution as convolution
from radii.networks.translation import _pooling as pooling
from radii.networks.translation import _reductions as reductions
from radii.networks.translation._base import Translator

TRANSLATORS: dict[str, Translator] = {
    "Add": arithmetic.add,
    "AveragePool": pooling.average_pool,
    "BatchNormalization": convolution.batch_normalize,
    "Clip": activations.clip,
    "Concat": arrangement.concat,
    "Conv": convolution.convolve,
    "ConvTranspose": convolution.convolve_transposed,
    "Div": arithmetic.divide,
    "Expand": arrangement.expand,
    "Flatten": arrangement.flatten,
    "Gather": arrangement.gather,
    "Gemm": arithmetic.gemm,
    "GlobalAveragePool": pooling.global_average_pool,
    "GlobalMaxPool": pooling.global_max_pool,
    "LeakyRelu": activations.leaky_relu,
    "LogSoftmax": activations.softmax,
    "MatMul": arithmetic.matrix_product,
    "Max": arithmetic.bound,
    "MaxPool": pooling.max_pool,
    "Min": arithmetic.bound,
    "Mul": arithmetic.multiply,
    "Neg": arithmetic.negate,
    "PRelu": activations.prelu,
    "Pad": arrangement.pad,
    "Reciprocal": arithmetic.invert,
    "ReduceMean": reductions.reduce_axes,
    "ReduceSum": reductions.reduce_axes,
    "Relu": activations.relu,
    "Reshape": arrangement.reshape,
    "Sigmoid": activations.sigmoid,
    "Slice": arrangement.slice_axes,
    "Softmax": activations.softmax,
    "Split": arrangement.split,
    "Squeeze": arrangement.squeeze,
    "Sub": arithmetic.subtract,
    "Sum": arithmetic.add,
    "Tanh": activations.tanh,
    "Transpose": arrangement.transpose,
    "Unsqueeze": arrangement.unsqueeze,
}
"""The ONNX operators (default domain) that may depend on a network's input."""
