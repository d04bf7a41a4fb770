"""Marabou (maraboupy) as a verifier, in a process of its own."""

from __future__ import annotations

from radii.verifiers.marabou.verifier import Marabou

__all__ = ["Marabou"]
