"""Is robustness spread fairly over the classes? Recall of each class, its spread, and who gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._columns import Float64
from radii.statistics._confidence import (
    check_inputs_differ,
    clopper_pearson,
    declared_classes,
    robust_accuracy_band,
)
from radii.statistics._distribution import Share, ValueRange
from radii.statistics._pairs import Pair, paired_on
from radii.statistics._tests import censored_scores, holm, several_p_value

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


@dataclass(frozen=True, slots=True)
class ClassRecall:
    """Robust recall of one class at one eps; `low` and `high` hold for all classes at once."""

    label: int
    inputs: int
    recall: Share
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Fairness:
    """How unequal robust recall is at one eps, over all inputs of each class.

    `spread` is the largest recall minus the smallest, as brackets leave it; `spread_low` and
    `spread_high` add sampling error. `worst` are the classes that may have the smallest recall
    among these inputs, `worst_confident` those that may have it among all inputs. `p_value` is of a
    permutation test that the radii of all classes are distributed alike. Of the `absent` classes
    there is no input here, so their recall may be anything; None where it is not known how many
    classes there are, and then nothing is said about others than these.
    """

    eps: float
    level: float
    classes: tuple[ClassRecall, ...]
    spread: ValueRange
    spread_low: float
    spread_high: float
    worst: tuple[int, ...]
    worst_confident: tuple[int, ...]
    p_value: float
    absent: tuple[int, ...] | None = None

    def __str__(self) -> str:
        which = ", ".join(map(str, self.worst))
        worst = (
            f"class {which} is the worst" if len(self.worst) == 1 else f"the worst is of {which}"
        )
        sure = (
            "which also holds for all inputs"
            if self.worst_confident == self.worst and len(self.worst) == 1
            else f"among all inputs it may be any of {', '.join(map(str, self.worst_confident))}"
        )
        return (
            f"At eps {self.eps:g} robust recall differs by {self.spread[0]:.2f} to "
            f"{self.spread[1]:.2f} between classes; {worst}, {sure} "
            f"({100 * self.level:g} % confidence). Radii "
            f"{'differ' if self.p_value < 1 - self.level else 'do not differ significantly'} "
            f"between classes (permutation p = {self.p_value:.3g})."
        )


@dataclass(frozen=True, slots=True, eq=False)
class ClassCurves:
    """Robust recall over eps: arrays (classes, eps). `low` and `high` hold for all at once."""

    labels: tuple[int, ...]
    eps: Float64
    proven: Float64
    not_refuted: Float64
    low: Float64
    high: Float64

    @property
    def spread(self) -> tuple[Float64, Float64]:
        """At each eps, at least and at most."""
        return _spread(self.proven, self.not_refuted)


def fairness(
    distribution: Distribution,
    eps: float,
    *,
    level: float = 0.95,
    permutations: int = 1999,
    seed: int = 0,
) -> Fairness:
    """Compare the classes of one network's distribution at one eps."""
    groups = comparable_classes(distribution)
    rows = class_recalls(groups, eps, 1 - (1 - level) / len(groups))
    least, most = (
        np.array([[getattr(row.recall, name)] for row in rows])
        for name in ("proven", "not_refuted")
    )
    absent = absent_classes(distribution)
    spread, (spread_low, spread_high) = _spread(least, most), confident_spread(rows, bool(absent))
    highest = min(row.high for row in rows)
    scores = censored_scores(distribution.lower, distribution.upper)
    return Fairness(
        eps=eps,
        level=level,
        classes=tuple(rows),
        spread=(float(spread[0][0]), float(spread[1][0])),
        spread_low=spread_low,
        spread_high=spread_high,
        worst=tuple(r.label for r in rows if r.recall.proven <= most.min()),
        worst_confident=tuple(
            sorted((*(r.label for r in rows if r.low <= highest), *(absent or ())))
        ),
        p_value=several_p_value(scores, distribution.label, permutations=permutations, seed=seed),
        absent=absent,
    )


def class_recalls(
    groups: Mapping[int, Distribution], eps: float, level: float
) -> tuple[ClassRecall, ...]:
    """Recall of each class with an interval of this level."""
    rows = []
    for label, part in groups.items():
        (proven, not_refuted), size = part.robust_counts(eps), len(part)
        low, _ = clopper_pearson(proven, size, level)
        _, high = clopper_pearson(not_refuted, size, level)
        rows.append(ClassRecall(label, size, part.robust_accuracy(eps), low, high))
    return tuple(rows)


def confident_spread(rows: Sequence[ClassRecall], has_absent: bool) -> tuple[float, float]:
    """At least and at most, from the classes' intervals; an absent class may have any recall."""
    unknown = [[0.0, 1.0]] if has_absent else []
    ends = np.array([*([row.low, row.high] for row in rows), *unknown])
    low, high = _spread(ends[:, :1], ends[:, 1:])
    return float(low[0]), float(high[0])


def absent_classes(
    distribution: Distribution, classes: int | None = None
) -> tuple[int, ...] | None:
    """Of 0, 1, ... the classes without an input here; None if it is not known how many there are.

    There are as many as the network has outputs, unless another number is given.
    """
    known = declared_classes(distribution) if classes is None else classes
    if known is None:
        return None
    present = set(distribution.labels)
    if present and max(present) >= known:
        raise DataError(
            f"{', '.join(distribution.networks)}: there is an input of class {max(present)}, which "
            f"is not one of {known} classes"
        )
    return tuple(label for label in range(known) if label not in present)


def class_curves(
    distribution: Distribution, eps: npt.ArrayLike, *, level: float = 0.95
) -> ClassCurves:
    """Robust recall of every class at every eps, with a band that holds for all of it at once."""
    groups = comparable_classes(distribution)
    at = np.atleast_1d(np.asarray(eps, np.float64))
    each = 1 - (1 - level) / len(groups)
    shares = [part.shares(at) for part in groups.values()]
    bands = [robust_accuracy_band(part, each).at(at) for part in groups.values()]
    proven, not_refuted = (np.stack(side) for side in zip(*shares, strict=True))
    low, high = (np.stack(end) for end in zip(*bands, strict=True))
    return ClassCurves(tuple(groups), at, proven, not_refuted, low, high)


def comparable_classes(distribution: Distribution) -> dict[int, Distribution]:
    """The parts of one network's distribution by class; a DataError if they cannot be compared."""
    groups = distribution.group_by("class")
    if None in groups:
        raise DataError("some inputs have no class: their labels are not known")
    if len(groups) < 2:
        raise DataError("there is only one class: nothing to compare")
    if len(distribution.networks) > 1:
        raise DataError("classes are compared within one network: use by_network() first")
    check_inputs_differ(distribution)
    return groups


def _spread(least: Float64, most: Float64) -> tuple[Float64, Float64]:
    """The largest minus the smallest of values known as intervals (rows), at least and at most."""
    at_least = np.maximum(least.max(axis=0) - most.min(axis=0), 0)
    # At most: the highest end of one row over the lowest end of another.
    size = len(least)
    differences = most[:, None] - least[None]
    differences[np.arange(size), np.arange(size)] = 0
    return at_least, differences.max(axis=(0, 1))


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
    gains = []
    for label in labels:
        pair = paired_on(classes_a[label], classes_b[label], "all")
        before, after = pair.first.robust_accuracy(eps), pair.second.robust_accuracy(eps)
        least, most = after.proven - before.not_refuted, after.not_refuted - before.proven
        gains.append((label, len(pair.second), least, most, _p_value(pair, eps)))
    adjusted = holm([row[-1] for row in gains])
    return [ClassGain(*row, float(p)) for row, p in zip(gains, adjusted, strict=True)]


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
