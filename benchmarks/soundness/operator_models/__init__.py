"""Random small ONNX models, one strategy for each operator that networks may use.

Attributes, opset, shapes and the place of constants are drawn by hypothesis; weights come from a
seeded generator. Every model is valid for ONNX Runtime. A builder is written once, beside those of
its family, and registers itself by `models_of`.
"""

from __future__ import annotations

from benchmarks.soundness.operator_models import (  # noqa: F401
    _arithmetic,
    _arrangement,
    _functions,
    _movements,
    _sequences,
    _steps,
)
from benchmarks.soundness.operator_models._base import (
    OPERATOR_MODELS,
    Draw,
    models_of,
    operator_models,
)

__all__ = ["OPERATOR_MODELS", "Draw", "models_of", "operator_models"]
