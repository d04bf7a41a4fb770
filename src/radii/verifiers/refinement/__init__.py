"""Bounds on probabilities, decided by linear queries to a verifier that decides those."""

from __future__ import annotations

from radii.verifiers.refinement.deciding import decide_softmax

__all__ = ["decide_softmax"]
