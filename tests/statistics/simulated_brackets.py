"""Samples with known distributions, seen through brackets as a measurement would."""

from __future__ import annotations

from typing import Any

import numpy as np

from radii.statistics import Distribution

Array = np.ndarray[Any, np.dtype[np.float64]]


def gridded(distances: Array, step: float) -> tuple[Array, Array]:
    """One step of the grid around each distance, as a complete verifier leaves it."""
    below = np.ceil(distances / step) - 1
    return below * step, (below + 1) * step


def widened(
    lower: Array, upper: Array, step: float, rng: np.random.Generator, share: float = 0.3
) -> tuple[Array, Array]:
    """Some brackets a few steps wider on either side, as time-outs leave them."""
    is_wide = rng.random(len(lower)) < share
    down, up = rng.integers(0, 4, (2, len(lower))) * is_wide
    return np.maximum(lower - step * down, 0), upper + step * up


def lognormal_brackets(size: int, seed: int, step: float = 0.002, **columns: Any) -> Distribution:
    rng = np.random.default_rng(seed)
    lower, upper = gridded(rng.lognormal(np.log(0.05), 0.5, size), step)
    return Distribution.from_arrays(lower, upper, **columns)
