"""Lipschitz robustness: bounds on the Jacobian, and shells of standard robustness."""

from __future__ import annotations

from radii.verifiers.lipschitz.jacobian import has_known_slopes, steepness
from radii.verifiers.lipschitz.rays import steepest_ahead
from radii.verifiers.lipschitz.shells import Shells, decide_lipschitz

__all__ = ["Shells", "decide_lipschitz", "has_known_slopes", "steepest_ahead", "steepness"]
