"""An ONNX operator in terms of radii's own."""

from __future__ import annotations

import torch

from radii.networks import Add, OnnxNode, Relu, Scale


def absolute(call: OnnxNode) -> int:
    """Abs: |x| = max(x, 0) + max(-x, 0), which radii can run and bound already."""
    x = call.node(0)
    minus_x = call.emit(Scale(torch.tensor(-1.0, dtype=torch.float64)), x)
    return call.emit(Add(), call.emit(Relu(), x), call.emit(Relu(), minus_x))
