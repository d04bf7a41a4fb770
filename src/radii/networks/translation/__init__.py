"""From ONNX nodes to operators: one translator for each ONNX operator."""

from __future__ import annotations

from radii.networks.translation import activations, arithmetic, arrangement, convolution
from radii.networks.translation._base import Call, Translation, Translator

__all__ = ["TRANSLATORS", "Call", "Translation", "Translator"]

TRANSLATORS: dict[str, Translator] = {
    "Add": arithmetic.add,
    "Clip": activations.clip,
    "Conv": convolution.convolve,
    "Div": arithmetic.divide,
    "Flatten": arrangement.flatten,
    "Gemm": arithmetic.gemm,
    "LeakyRelu": activations.leaky_relu,
    "LogSoftmax": activations.softmax,
    "MatMul": arithmetic.matrix_product,
    "Max": arithmetic.bound,
    "Min": arithmetic.bound,
    "Mul": arithmetic.multiply,
    "Neg": arithmetic.negate,
    "PRelu": activations.prelu,
    "Relu": activations.relu,
    "Reshape": arrangement.reshape,
    "Sigmoid": activations.sigmoid,
    "Softmax": activations.softmax,
    "Sub": arithmetic.subtract,
    "Sum": arithmetic.add,
    "Tanh": activations.tanh,
    "Transpose": arrangement.transpose,
}
"""The ONNX operators (default domain) that may depend on a network's input."""
