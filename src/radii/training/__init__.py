"""Training: regimes, the papers' architectures, and a loop that resumes to the same weights."""

from __future__ import annotations

from radii.training.architectures import ARCHITECTURES, Normalize, Residual, architecture
from radii.training.regime import REGIMES, Ramp, Regime, Step, parse_regime

__all__ = [
    "ARCHITECTURES",
    "REGIMES",
    "Normalize",
    "Ramp",
    "Regime",
    "Residual",
    "Step",
    "architecture",
    "parse_regime",
]
