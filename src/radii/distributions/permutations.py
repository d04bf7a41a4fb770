"""Permutation tests on brackets: exact if brackets are exchangeable, whatever the ties.

Exchangeable are brackets, not only radii: if equal radii get wider brackets in one group, as on a
network that is harder to verify, groups of equal radii differ.
"""

from __future__ import annotations

import numpy as np

from radii.distributions.columns import Array, Float64
from radii.distributions.npmle import innermost_intervals, turnbull_of

__all__ = ["censored_scores", "permuted_p_value", "permuted_sup_p_value", "several_p_value"]

MANY = 20_000_000
"""Numbers permuted at most; beyond, scores are summed by their normal limit."""


def censored_scores(lower: Float64, upper: Float64) -> Float64:
    """A score between -1 and 1 for each bracket: its expected rank under the pooled estimate.

    The generalised Wilcoxon score of interval-censored data: the chance to be above another input
    minus the chance to be below. Exact values get their centred mid-ranks.
    """
    pooled = turnbull_of(lower, upper)
    _, _, first, last = innermost_intervals(lower, upper)
    cumulated = np.concatenate([[0.0], np.cumsum(pooled.mass)])
    scores = cumulated[first] + cumulated[last + 1] - 1
    return np.asarray(scores - scores.mean())


def permuted_p_value(
    scores: Float64, is_first: Array, *, is_matched: bool, permutations: int, seed: int
) -> float:
    """Two-sided p-value of the first group's sum of scores.

    Unmatched groups exchange their members; matched ones (first half, second half, same order)
    exchange the two brackets of an input.
    """
    rng = np.random.default_rng(seed)
    if is_matched:
        half = len(scores) // 2
        values = scores[:half] - scores[half:]
        deviation = float(np.sqrt(np.sum(values**2)))
        observed = abs(float(values.sum()))
    else:
        size, part = len(scores), int(is_first.sum())
        spread = float(np.sum((scores - scores.mean()) ** 2))
        deviation = float(np.sqrt(spread * part * (size - part) / (size * max(size - 1, 1))))
        observed = abs(float(scores[is_first].sum() - part * scores.mean()))
    if deviation == 0:
        return 1.0
    if permutations * len(scores) > MANY:
        return _normal_p_value(observed / deviation)
    reached = 0
    for rows in _batches(permutations, len(scores)):
        if is_matched:
            signs = rng.integers(0, 2, size=(rows, half)) * 2 - 1
            sums = signs @ values
        else:
            shuffled = rng.permuted(np.broadcast_to(scores, (rows, size)), axis=1)
            sums = shuffled[:, :part].sum(axis=1) - part * scores.mean()
        reached += int(np.count_nonzero(np.abs(sums) >= observed * (1 - 1e-9)))
    return (1 + reached) / (1 + permutations)


def permuted_sup_p_value(
    sides: tuple[Float64, ...],
    is_first: Array,
    *,
    is_matched: bool,
    permutations: int,
    seed: int,
) -> tuple[float, float]:
    """The largest distance between the groups' empirical curves on any side, and its p-value.

    Sees differences of shape that the sum of scores does not.
    """
    rng = np.random.default_rng(seed)
    size, part = len(is_first), int(is_first.sum())
    curves = [_curve(values) for values in sides]
    observed = float(_sup(curves, is_first[None], part)[0])
    reached, done = 0, 0
    for rows in _batches(min(permutations, max(199, MANY // size)), size):
        if is_matched:
            swap = rng.random((rows, size // 2)) < 0.5
            groups = np.concatenate([swap, ~swap], axis=1)
        else:
            groups = rng.permuted(np.broadcast_to(is_first, (rows, size)), axis=1)
        reached += int(np.count_nonzero(_sup(curves, groups, part) >= observed - 1e-9))
        done += rows
    return observed, (1 + reached) / (1 + done)


def several_p_value(scores: Float64, groups: Array, *, permutations: int, seed: int) -> float:
    """Do several groups differ? Kruskal and Wallis' statistic of the scores, permuted."""
    _, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes)
    if len(sizes) < 2:
        return 1.0

    def statistic(values: Float64) -> float:
        return float(np.sum(np.bincount(codes, values) ** 2 / sizes))

    rng = np.random.default_rng(seed)
    observed = statistic(scores)
    runs = min(permutations, max(199, MANY // len(scores)))
    reached = sum(statistic(rng.permutation(scores)) >= observed - 1e-12 for _ in range(runs))
    return (1 + reached) / (1 + runs)


def _curve(values: Float64) -> tuple[Array, Array]:
    """The order of the values, and where runs of equal ones end."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True) & np.isfinite(ordered))
    return order, ends


def _sup(curves: list[tuple[Array, Array]], groups: Array, part: int) -> Float64:
    rest = groups.shape[1] - part
    largest = np.zeros(len(groups))
    for order, ends in curves:
        if not ends.size:
            continue
        in_first = np.cumsum(groups[:, order], axis=1)[:, ends]
        in_second = (ends + 1) - in_first
        gaps = np.abs(in_first / part - in_second / rest)
        largest = np.maximum(largest, gaps.max(axis=1))
    return largest


def _batches(rows: int, size: int) -> list[int]:
    most = max(1, 2_000_000 // size)
    return [most] * (rows // most) + ([rows % most] if rows % most else [])


def _normal_p_value(z: float) -> float:
    from scipy.special import ndtr

    return float(2 * ndtr(-z))
