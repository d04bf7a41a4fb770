"""Every linear region of a tiny network, nearest first: an oracle in all norms."""

from __future__ import annotations

from radii.verifiers.enumeration.verifier import Enumeration

__all__ = ["Enumeration"]
