"""Several verifiers on one query: the first answer that counts."""

from __future__ import annotations

from radii.verifiers.portfolio.verifier import Portfolio

__all__ = ["Portfolio"]
