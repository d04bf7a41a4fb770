"""How far statistics of a sample vary when inputs are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii.statistics._columns import Array, Float64
from radii.statistics._confidence import dkw_half_width
from radii.statistics._tests import side_values

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


@dataclass(frozen=True, slots=True)
class Stability:
    """How far statistics of samples of one size, drawn with replacement, vary.

    Half-widths are of the central 95 %, of statistics of the proven sides; `robust_accuracy` is at
    its worst eps. `band` is the half-width of the simultaneous band: no eps is off by more. Mean
    and median are of brackets with an answer (NaN if there are none); `left_out` counts the others.
    """

    inputs: int
    mean: float
    median: float
    robust_accuracy: float
    band: float
    left_out: int = 0

    def __str__(self) -> str:
        return (
            f"With {self.inputs} inputs the mean radius is within ±{self.mean:.2g}, the median "
            f"within ±{self.median:.2g}, and robust accuracy within ±{self.robust_accuracy:.2f} "
            f"at any one eps, ±{self.band:.2f} at all at once."
            + (
                f" {self.left_out} brackets without an answer have no radius."
                if self.left_out
                else ""
            )
        )


def sample_stability(
    distribution: Distribution,
    sizes: Sequence[int] | None = None,
    *,
    resamples: int = 999,
    seed: int = 0,
) -> list[Stability]:
    """Bootstrap at several sizes: those of the papers (100 and 400), and that of the sample itself.

    All inputs count, misclassified ones with radius 0. Sizes above the sample's own extrapolate:
    they take the sample for the population.
    """
    wanted = sorted({100, 400, len(distribution)}) if sizes is None else sorted(set(sizes))
    if any(size < 2 for size in wanted):
        raise DataError(f"a sample has at least 2 inputs, not {wanted[0]}")
    rng = np.random.default_rng(seed)
    return [_stability(distribution, size, resamples, rng) for size in wanted]


def _stability(
    distribution: Distribution, size: int, resamples: int, rng: np.random.Generator
) -> Stability:
    values = np.sort(distribution.lower)
    sampled = _resampled(values, size, resamples, rng)
    # Accuracy varies most where the population's is nearest to a half; ties move it in leaps.
    distinct, first = np.unique(values, return_index=True)
    share = 1 - first / len(values)
    middle = distinct[int(np.argmin(np.abs(share - 0.5)))]
    proven = (sampled >= middle).mean(axis=1)
    radii = sampled
    if distribution.unsolved:
        radii = _resampled(np.sort(side_values(distribution, "lower")), size, resamples, rng)
    return Stability(
        inputs=size,
        mean=_half_width(radii.mean(axis=1)),
        median=_half_width(radii[:, (size - 1) // 2]),
        robust_accuracy=_half_width(proven),
        band=dkw_half_width(size),
        left_out=distribution.unsolved,
    )


def _resampled(values: Float64, size: int, resamples: int, rng: np.random.Generator) -> Float64:
    """Sorted samples, one per row, with replacement of sorted values; NaN if there are none."""
    runs = min(resamples, max(99, 20_000_000 // size))
    if not values.size:
        return np.full((runs, size), np.nan)
    return np.asarray(values[np.sort(rng.integers(0, len(values), size=(runs, size)), axis=1)])


def _half_width(values: Array) -> float:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(high - low) / 2
