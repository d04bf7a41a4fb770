"""The same estimate many times over: what a stated error means, shown on one set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.guarantees.planning import plan_samples
from radii.guarantees.populations import Population

__all__ = ["RepeatedEstimates", "repeat_estimates"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedEstimates:
    """Estimates from independent samples of the planned size, at least and at most.

    `truth` is the mean of the whole set, as far as brackets leave it known.
    """

    error: float
    samples: int
    least: Float64
    most: Float64
    truth: tuple[float, float]

    @property
    def missed(self) -> float:
        """The share of estimates of which a side is further from the set's than the error."""
        off = (np.abs(self.least - self.truth[0]) > self.error) | (
            np.abs(self.most - self.truth[1]) > self.error
        )
        return float(off.mean())


def repeat_estimates(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike | None = None,
    *,
    errors: Sequence[float],
    confidence: float = 0.95,
    repeats: int = 50,
    method: str = "hoeffding",
    seed: int = 0,
) -> list[RepeatedEstimates]:
    """For each error so many samples without replacement, from all values of a set in [0, 1].

    Plans are those for independent inputs, as in the literature; one that is larger than the set
    is a DataError.
    """
    least = np.asarray(lower, np.float64)
    most = least if upper is None else np.asarray(upper, np.float64)
    if least.ndim != 1 or least.shape != most.shape or not len(least):
        raise DataError("repeated estimates need one value, or one bracket, an input")
    if repeats < 1:
        raise DataError(f"repeats {repeats} must be at least 1")
    rng = np.random.default_rng(seed)
    found = []
    for error in errors:
        plan = plan_samples(error, confidence, method=method, population=Population("the set"))
        plan.check_available(len(least), "the set")
        drawn = [rng.permutation(len(least))[: plan.samples] for _ in range(repeats)]
        found.append(
            RepeatedEstimates(
                error=error,
                samples=plan.samples,
                least=np.array([least[rows].mean() for rows in drawn]),
                most=np.array([most[rows].mean() for rows in drawn]),
                truth=(float(least.mean()), float(most.mean())),
            )
        )
    return found
