"""Fisher scoring on cells: thousands of samples fitted at once, to the accuracy a test needs."""

from __future__ import annotations

import numpy as np

from radii.distributions.cells import CellCounts
from radii.distributions.columns import Float64
from radii.distributions.families import SMALLEST, Family

__all__ = ["scored", "signed_tails"]

MAX_ITERATIONS = 25
CLOSE = 1e-4
"""Coordinates are logs or in units of the data; their sampling error is a hundred times this."""

LONGEST = 0.5


def scored(family: Family, edges: Float64, sample: CellCounts, start: Float64) -> Float64:
    """The coordinates of each row's maximum-likelihood fit.

    Each step solves with the scores' own second moments in place of the curvature, which is what
    they estimate if the family is right, and which is never indefinite.
    """
    at = np.array(start, np.float64)
    active = np.arange(len(at))
    shared = len(sample.first) == 1
    for _ in range(MAX_ITERATIONS):
        part = sample if len(active) == len(at) else _rows(sample, active, shared)
        steps = _steps(family, edges, part, at[active])
        at[active] += steps
        active = active[np.linalg.norm(steps, axis=1) > CLOSE]
        if not active.size:
            break
    return at


def _rows(
    sample: CellCounts, keep: np.ndarray[tuple[int], np.dtype[np.int64]], shared: bool
) -> CellCounts:
    first, last = (sample.first, sample.last) if shared else (sample.first[keep], sample.last[keep])
    counts = sample.counts
    return CellCounts(first, last, None if counts is None else counts[keep])


def _steps(family: Family, edges: Float64, sample: CellCounts, at: Float64) -> Float64:
    """One step a row; none where a sample is so far out that its moments overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = _scoring_steps(family, edges, sample, at)
    return np.where(np.isfinite(steps).all(axis=1, keepdims=True), steps, 0.0)


def _scoring_steps(family: Family, edges: Float64, sample: CellCounts, at: Float64) -> Float64:
    tails, jump = signed_tails(family, at, edges)
    held = np.maximum(sample.differences(tails) + sample.differences(jump[None]), SMALLEST)
    one, two = (sample.differences(slope) / held for slope in family.slopes(at, edges))
    gradient_one, gradient_two = sample.weighted(one).sum(axis=1), sample.weighted(two).sum(axis=1)
    first, mixed, second = (
        sample.weighted(moments).sum(axis=1) for moments in (one * one, one * two, two * two)
    )
    # A ridge keeps the step finite where all brackets are one and the same.
    first, second = first * (1 + 1e-9) + 1e-12, second * (1 + 1e-9) + 1e-12
    determinant = np.maximum(first * second - mixed**2, 1e-300)
    steps = (
        np.stack(
            [
                second * gradient_one - mixed * gradient_two,
                first * gradient_two - mixed * gradient_one,
            ],
            axis=1,
        )
        / determinant[:, None]
    )
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(steps * np.minimum(1.0, LONGEST / np.maximum(length, 1e-300)))


def signed_tails(family: Family, at: Float64, edges: Float64) -> tuple[Float64, Float64]:
    """`below` as a sum of two: minus the upper tail plus 1 for the upper edges, which is precise.

    Differences over an interval are then differences of the first plus those of the second, a
    jump from 0 to 1 at one edge.
    """
    middle = int(np.searchsorted(family.below(at[:1], edges)[0], 0.5))
    tails = np.concatenate(
        [family.below(at, edges[:middle]), -family.above(at, edges[middle:])], axis=1
    )
    return tails, (np.arange(len(edges)) >= middle).astype(np.float64)
