"""Columns are those of a run."""

from __future__ import annotations

from radii.results import NO_NUMBER, Array, Float64, joint_codes

__all__ = ["NO_NUMBER", "Array", "Float64", "joint_codes"]
