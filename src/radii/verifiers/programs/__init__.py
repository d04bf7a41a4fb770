"""Foreign programs, run with limits that hold for every process they start."""

from __future__ import annotations

from radii.verifiers.programs.running import Ended, run_program

__all__ = ["Ended", "run_program"]
