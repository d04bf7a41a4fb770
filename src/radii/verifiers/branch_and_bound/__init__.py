"""The native verifier."""

from __future__ import annotations

from radii.verifiers.branch_and_bound.verifier import BranchAndBound

__all__ = ["BranchAndBound"]
