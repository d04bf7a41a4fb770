"""The figures that a requirement can speak about, for these inputs or with confidence for all.

A measure is asked for one side of the brackets (proven, or not refuted) and for a limit from below
or from above. Without a confidence level it is the figure of these inputs. With one it is the limit
that the figure of all inputs respects with that confidence, if these are a random sample of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._classes import class_curves, fairness
from radii.distributions._confidence import clopper_pearson, dkw_half_width
from radii.distributions._summaries import quality
from radii.errors import DataError, SpecificationError
from radii.results import Float64

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


CORRECT_INPUTS = "all correctly classified inputs"
"""What limits on radii are about: a misclassified input has none."""


@dataclass(frozen=True, slots=True)
class MeasureArguments:
    """The arguments of a measure and how it is to be taken."""

    arguments: dict[str, float]
    is_proven: bool
    is_from_below: bool
    level: float | None

    @property
    def eps(self) -> float:
        return self.arguments["eps"]


@dataclass(frozen=True, slots=True)
class Figure:
    """The figure of these inputs, the limit if a confidence was asked for, and both in words.

    `population` is what the limit is about.
    """

    value: float
    limit: float | None
    words: str
    population: str = "all inputs"

    @property
    def decisive(self) -> float:
        """What a requirement is held against."""
        return self.value if self.limit is None else self.limit


@dataclass(frozen=True, slots=True)
class Measure:
    """`parameters` are those it needs, in the order in which they may be given without a name.

    Without `has_sides` it cannot be asked for what is proven or not refuted. `is_share`: a figure
    between 0 and 1; others are radii.
    """

    parameters: tuple[str, ...]
    figure: Callable[[Distribution, MeasureArguments], Figure]
    has_sides: bool = True
    is_share: bool = False


def _robust_share(
    part: Distribution, eps: float, options: MeasureArguments, splits: int = 1
) -> tuple[int, float | None]:
    """How many inputs are robust, and the limit on their share; `splits` tests share the miss."""
    proven, not_refuted = part.shares(eps)
    count = round(float(proven if options.is_proven else not_refuted) * len(part))
    if options.level is None:
        return count, None
    level = 1 - (1 - options.level) / splits
    low, high = clopper_pearson(
        count, len(part), level, tail="lower" if options.is_from_below else "upper"
    )
    return count, low if options.is_from_below else high


def _side(options: MeasureArguments) -> str:
    return "proven" if options.is_proven else "not refuted"


def _accuracy(part: Distribution, options: MeasureArguments) -> Figure:
    right, size = int(part.correct.sum()), len(part)
    limit = None
    if options.level is not None:
        tail = clopper_pearson(
            right, size, options.level, tail="lower" if options.is_from_below else "upper"
        )
        limit = tail[0] if options.is_from_below else tail[1]
    return Figure(right / size, limit, f"{right} of {size} inputs are classified correctly")


def _robust_accuracy(part: Distribution, options: MeasureArguments) -> Figure:
    count, limit = _robust_share(part, options.eps, options)
    words = f"{count} of {len(part)} inputs are {_side(options)} at eps {options.eps:g}"
    return Figure(count / len(part), limit, words)


def _robust_recall(part: Distribution, options: MeasureArguments) -> Figure:
    label = int(options.arguments["class"])
    members = part.only(label=label)
    count, limit = _robust_share(members, options.eps, options)
    words = (
        f"{count} of {len(members)} inputs of class {label} are {_side(options)} "
        f"at eps {options.eps:g}"
    )
    return Figure(count / len(members), limit, words, f"all inputs of class {label}")


def _worst_recall(part: Distribution, options: MeasureArguments) -> Figure:
    groups = part.group_by("class")
    if None in groups:
        raise DataError("some inputs have no class: their labels are not known")
    # From below, the limit of the class that is truly the worst holds at this level, and the
    # smallest limit is no larger. From above the smallest may be any class's: all share the miss.
    splits = 1 if options.is_from_below else len(groups)
    shares = {
        label: _robust_share(group, options.eps, options, splits) for label, group in groups.items()
    }
    recalls = {label: count / len(groups[label]) for label, (count, _) in shares.items()}
    worst = min(recalls, key=lambda label: recalls[label])
    limits = [limit for _, limit in shares.values() if limit is not None]
    words = (
        f"the worst of {len(groups)} classes is {worst}, of whose {len(groups[worst])} inputs "
        f"{shares[worst][0]} are {_side(options)} at eps {options.eps:g}"
    )
    return Figure(recalls[worst], min(limits) if limits else None, words)


def _recall_spread(part: Distribution, options: MeasureArguments) -> Figure:
    """From above as far apart as brackets allow, from below as close."""
    curves = class_curves(part, options.eps)
    at_least, at_most = curves.spread
    value = float(at_least[0] if options.is_from_below else at_most[0])
    limit = None
    if options.level is not None:
        classes = fairness(part, options.eps, level=options.level, permutations=19)
        limit = classes.spread_low if options.is_from_below else classes.spread_high
    words = f"robust recall at eps {options.eps:g} differs by {value:.3f} between classes"
    return Figure(value, limit, words)


def _quantile(part: Distribution, options: MeasureArguments) -> Figure:
    share = options.arguments["share"]
    if not 0 <= share <= 1:
        raise SpecificationError(f"a quantile's share is between 0 and 1, not {share:g}")
    right = part.correctly_classified()
    values = np.sort(right.lower if options.is_proven else right.upper)
    value = float(np.quantile(values, share, method="inverted_cdf"))
    limit = None if options.level is None else _order_limit(values, share, options)
    name = "median" if share == 0.5 else f"{share:g} quantile"
    words = f"the {name} of {_radii(options, right)} is {value:.4g}"
    return Figure(value, limit, words, CORRECT_INPUTS)


def _median(part: Distribution, options: MeasureArguments) -> Figure:
    return _quantile(part, replace(options, arguments={"share": 0.5}))


def _minimum(part: Distribution, options: MeasureArguments) -> Figure:
    if options.level is not None:
        raise SpecificationError(
            "no sample bounds the smallest radius of all inputs: leave out the confidence of 'min'"
        )
    right = part.correctly_classified()
    value = float((right.lower if options.is_proven else right.upper).min())
    words = f"the smallest of {_radii(options, right)} is {value:.4g}"
    return Figure(value, None, words)


def _mean(part: Distribution, options: MeasureArguments) -> Figure:
    """With confidence from below only: the area under the robust accuracy that is assured."""
    right = part.correctly_classified()
    values = np.sort(right.lower if options.is_proven else right.upper)
    value = float(values.mean())
    limit = None
    if options.level is not None:
        if not options.is_from_below:
            raise SpecificationError(
                "no sample bounds the mean radius of all inputs from above: "
                "leave out the confidence of 'mean'"
            )
        margin = dkw_half_width(len(values), options.level, tail="lower")
        assured = np.maximum(1 - np.arange(len(values)) / len(values) - margin, 0)
        finite = np.where(np.isfinite(values), values, 0.0)
        limit = float(assured @ np.maximum(np.diff(finite, prepend=0.0), 0))
    words = f"the mean of {_radii(options, right)} is {value:.4g}"
    return Figure(value, limit, words, CORRECT_INPUTS)


def _mean_gap(part: Distribution, options: MeasureArguments) -> Figure:
    if options.level is not None:
        raise SpecificationError("'mean_gap' is about these inputs: leave out the confidence")
    value = quality(part).mean_gap
    if math.isnan(value):
        return Figure(value, None, "no input with a radius has a counterexample: no gap is known")
    return Figure(value, None, f"brackets are {value:.4g} wide on average")


def _order_limit(values: Float64, share: float, options: MeasureArguments) -> float:
    """A limit on a quantile of all inputs, from the order of the sample."""
    from scipy.stats import binom

    miss, size = 1 - float(options.level or 0), len(values)
    ranks = np.arange(1, size + 1)
    if options.is_from_below:
        # The sample's r-th value is above the quantile only if fewer than r values are below it.
        allowed = ranks[binom.cdf(ranks - 1, size, share) <= miss]
        return float(values[allowed[-1] - 1]) if allowed.size else 0.0
    allowed = ranks[binom.sf(ranks - 1, size, share) <= miss]
    return float(values[allowed[0] - 1]) if allowed.size else float("inf")


def _radii(options: MeasureArguments, right: Distribution) -> str:
    if options.is_proven:
        return f"the proven radii of {len(right)} inputs"
    return f"the radii up to which {len(right)} inputs are not refuted"


MEASURES: dict[str, Measure] = {
    "accuracy": Measure((), _accuracy, has_sides=False, is_share=True),
    "robust_accuracy": Measure(("eps",), _robust_accuracy, is_share=True),
    "robust_recall": Measure(("class", "eps"), _robust_recall, is_share=True),
    "worst_recall": Measure(("eps",), _worst_recall, is_share=True),
    "recall_spread": Measure(("eps",), _recall_spread, has_sides=False, is_share=True),
    "quantile": Measure(("share",), _quantile),
    "median": Measure((), _median),
    "mean": Measure((), _mean),
    "min": Measure((), _minimum),
    "mean_gap": Measure((), _mean_gap, has_sides=False),
}
"""By the names that requirements use. Radii are of correctly classified inputs, shares of all."""
