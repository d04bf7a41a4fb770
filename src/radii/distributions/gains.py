"""Two networks compared class by class: whose inputs gain, and whose lose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions.multiple import holm
from radii.distributions.pairs import Pair, paired_on
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["ClassGain", "class_gains"]


@dataclass(frozen=True, slots=True)
class ClassGain:
    """What a class's robust recall at one eps gains from the first network to the second.

    Brackets leave it between `least` and `most`. The p-value counts everything that is undecided
    against the claim; `adjusted` is Holm's over the classes.
    """

    label: int
    inputs: int
    least: float
    most: float
    p_value: float
    adjusted: float

    def verdict(self, level: float = 0.05) -> str:
        """`gains` or `loses` where that is significant, else `undecided`."""
        if self.adjusted >= level:
            return "undecided"
        return "gains" if self.least > 0 else "loses"


def class_gains(a: Distribution, b: Distribution, eps: float) -> list[ClassGain]:
    """For each class that both have; all inputs count, misclassified ones as broken."""
    classes_a, classes_b = a.group_by("class"), b.group_by("class")
    labels = [label for label in classes_a if label in classes_b and label is not None]
    if not labels:
        raise DataError("the two distributions share no class")
    found = []
    for label in labels:
        pair = paired_on(classes_a[label], classes_b[label], "all")
        before, after = pair.first.robust_accuracy(eps), pair.second.robust_accuracy(eps)
        least, most = after.proven - before.not_refuted, after.not_refuted - before.proven
        found.append((label, len(pair.second), least, most, _p_value(pair, eps)))
    adjusted = holm([row[-1] for row in found])
    return [ClassGain(*row, float(p)) for row, p in zip(found, adjusted, strict=True)]


def _p_value(pair: Pair, eps: float) -> float:
    """Two-sided: twice the smaller of the one-sided ones for a gain and for a loss."""
    one_sided = _sign_p_value if pair.is_matched else _fisher_p_value
    gain = one_sided(pair.first, pair.second, eps)
    loss = one_sided(pair.second, pair.first, eps)
    return min(1.0, 2 * min(gain, loss))


def _sign_p_value(a: Distribution, b: Distribution, eps: float) -> float:
    """That b is not better: inputs surely gained against those that may have been lost."""
    from scipy.stats import binom

    may_hold_a = a.upper > eps
    holds_b = (b.lower >= eps) & (b.upper > eps)
    gained = int(np.count_nonzero(holds_b & ~may_hold_a))
    lost = int(np.count_nonzero(may_hold_a & ~holds_b))
    return float(binom.sf(gained - 1, gained + lost, 0.5)) if gained else 1.0


def _fisher_p_value(a: Distribution, b: Distribution, eps: float) -> float:
    """That b is not better: what is proven of b against what is not refuted of a."""
    from scipy.stats import hypergeom

    robust_a = round(a.robust_accuracy(eps).not_refuted * len(a))
    robust_b = round(b.robust_accuracy(eps).proven * len(b))
    total = len(a) + len(b)
    return float(hypergeom.sf(robust_b - 1, total, robust_a + robust_b, len(b)))
