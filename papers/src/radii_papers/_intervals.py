"""Intervals and tests for the evidence of claims: each says how it treats dependent instances.

`of` is the number of cases of a claim: intervals are as wide as Bonferroni's correction asks, so
that all of them hold together whatever the cases share, such as images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from radii.statistics import Float64, clopper_pearson
from radii_papers._evidence import CLAIM_LEVEL, ClaimInterval

BOOTSTRAPS = 2000
"""Resamples, with a seed of their own."""


def tail_of(of: int) -> float:
    """The probability beyond either end of one of `of` simultaneous intervals."""
    return CLAIM_LEVEL / 2 / max(of, 1)


def share_interval(count: int, total: int, of: int = 1) -> ClaimInterval:
    """Clopper and Pearson's exact interval of a share of independent instances, in per cent."""
    low, high = clopper_pearson(count, total, 1 - 2 * tail_of(of))
    return ClaimInterval(100 * count / total, 100 * low, 100 * high, ".1f")


def mean_interval(values: npt.ArrayLike, of: int = 1, *, span: float = 0.0) -> ClaimInterval:
    """Bootstrap interval of a mean, by percentiles.

    One number an instance; or a row an instance and a column a seed, and then both are drawn
    anew: all trainings see the same instances, and all instances the same trainings. A bootstrap
    over a handful of seeds is too narrow where these differ, so each limit is then the outer one
    of the bootstrap's and of Student's over the means of the seeds. Where all values are equal,
    nothing varies in what is drawn, though other instances may differ: then the limits are those
    of a share of 0 in as many instances, times the `span` of possible values.
    """
    from scipy.stats import t

    array = np.asarray(values, np.float64)
    array = array[:, None] if array.ndim == 1 else array
    rng = np.random.default_rng(0)
    rows, columns = array.shape
    instances = rng.integers(0, rows, (BOOTSTRAPS, rows))
    seeds = rng.integers(0, columns, (BOOTSTRAPS, columns))
    means = array[instances[:, :, None], seeds[:, None, :]].mean(axis=(1, 2))
    low, high = np.quantile(means, [tail_of(of), 1 - tail_of(of)])
    if columns > 1:
        spread = float(array.mean(axis=0).std(ddof=1)) / columns**0.5
        reach = float(t.ppf(1 - tail_of(of), columns - 1)) * spread
        low, high = min(low, array.mean() - reach), max(high, array.mean() + reach)
    unseen = 0.0
    if not np.ptp(array):
        unseen = span * clopper_pearson(0, rows, 1 - 2 * tail_of(of))[1]
    return ClaimInterval(float(array.mean()), float(low) - unseen, float(high) + unseen)


def cluster_interval(
    values: npt.ArrayLike, clusters: Sequence[object], of: int = 1
) -> ClaimInterval:
    """Bootstrap interval of a mean whose values come in clusters, such as all networks' of an
    image: whole clusters are drawn anew."""
    array = np.asarray(values, np.float64)
    names = list(dict.fromkeys(clusters))
    place = np.array([names.index(each) for each in clusters])
    counts = np.bincount(place, minlength=len(names))
    sums = np.bincount(place, array, minlength=len(names))
    drawn = np.random.default_rng(0).integers(0, len(names), (BOOTSTRAPS, len(names)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [tail_of(of), 1 - tail_of(of)])
    return ClaimInterval(float(array.mean()), float(low), float(high))


def paired_p_value(first: Sequence[float] | Float64, second: Sequence[float] | Float64) -> float:
    """Wilcoxon's signed ranks of the same instances twice; 1 where all are equal."""
    from scipy.stats import wilcoxon

    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if not np.any(difference):
        return 1.0
    return float(wilcoxon(difference).pvalue)


def rank_interval(first: Float64, second: Float64, of: int = 1) -> ClaimInterval:
    """Spearman's coefficient of pairs of numbers, by a bootstrap over the pairs."""
    from scipy.stats import rankdata

    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(first), (BOOTSTRAPS, len(first)))
    ranks = [rankdata(side[chosen], axis=1) for side in (first, second)]
    centred = [each - each.mean(axis=1, keepdims=True) for each in ranks]
    norms = [np.sqrt((each**2).sum(axis=1)) for each in centred]
    draws = (centred[0] * centred[1]).sum(axis=1) / np.maximum(norms[0] * norms[1], 1e-300)
    value = float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])
    low, high = np.quantile(draws, [tail_of(of), 1 - tail_of(of)])
    return ClaimInterval(value, float(low), float(high), "+.2f")
