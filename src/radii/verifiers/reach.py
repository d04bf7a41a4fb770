"""How far an input can go, and how deep into a violation a witness is sought."""

from __future__ import annotations

import numpy as np

from radii.queries import Instance
from radii.verifiers.linear.highs import TOLERANCE

__all__ = ["AROUND", "depths", "farthest"]

AROUND = 1.001
"""A ball that is to hold a violation known at some distance reaches this much farther.

What replays on ONNX Runtime at a distance may be a violation in real arithmetic just beyond it.
"""

STEPS = (0.0, 1 / 256, 1 / 32, 0.25, 1.0, 4.0)


def depths(error: float) -> list[float]:
    """Growing depths, in units of the outputs, at which a violation should replay.

    A violation of depth 0 in real arithmetic is a coin toss on ONNX Runtime; one twice as deep as
    the network may round is none, and mostly much less suffices. HiGHS places no point more finely
    than its tolerance.
    """
    step = max(error, 64 * TOLERANCE)
    return [factor * step for factor in STEPS]


def farthest(instance: Instance) -> float:
    """The largest distance of any valid input from the instance's."""
    low, high = instance.domain.box(instance.input.shape)
    centre = np.asarray(instance.input, np.float64)
    return instance.norm.length(np.maximum(np.abs(high - centre), np.abs(centre - low)))
