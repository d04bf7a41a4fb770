"""Gurobi in the place of HiGHS' integer solver, where a licence is found."""

from __future__ import annotations

from radii.verifiers.gurobi.verifier import Gurobi

__all__ = ["Gurobi"]
