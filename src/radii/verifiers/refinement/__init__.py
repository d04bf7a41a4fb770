"""Bounds on probabilities, decided by linear queries to a verifier that decides those."""

from __future__ import annotations

from radii.verifiers.refinement.deciding import decide_softmax
from radii.verifiers.refinement.logits import asked_of_logits

__all__ = ["asked_of_logits", "decide_softmax"]
