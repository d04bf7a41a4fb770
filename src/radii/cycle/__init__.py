"""The verification cycle: train, attack, verify, retrain with the counterexamples, until it holds.

Counterexamples come from training images; whether the requirements hold is judged on test images.
"""

from __future__ import annotations

from radii.cycle.description import Cycle
from radii.cycle.rounds import Round
from radii.cycle.running import Observer, read_rounds, run_cycle

__all__ = ["Cycle", "Observer", "Round", "read_rounds", "run_cycle"]
