"""Mixed-integer programming on HiGHS."""

from __future__ import annotations

from radii.verifiers.milp.verifier import Milp

__all__ = ["Milp"]
