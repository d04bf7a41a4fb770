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

from radii.errors import DataError, SpecificationError
from radii.statistics._catalogue import CATALOGUE, Statistic, StatisticUnit
from radii.statistics._classes import absent_classes, class_curves, class_recalls, confident_spread
from radii.statistics._columns import Float64
from radii.statistics._confidence import dkw_half_width, limits_by_draw, share_limits

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


CORRECT_INPUTS = "all correctly classified inputs"
"""What limits on radii are about: a misclassified input has none."""
MOST_NAMED = 8
"""Of the classes that have no input."""


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

    @property
    def side(self) -> str:
        return "proven" if self.is_proven else "not refuted"

    def values(self, inputs: Distribution) -> Float64:
        """The sides of brackets that count, in order."""
        return np.sort(inputs.lower if self.is_proven else inputs.upper)

    def robust(self, inputs: Distribution) -> int:
        """How many inputs are robust at the eps."""
        return inputs.robust_counts(self.eps)[0 if self.is_proven else 1]


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
        """What a requirement is compared with."""
        return self.value if self.limit is None else self.limit


@dataclass(frozen=True, slots=True)
class Measure:
    """`parameters` are those it needs, in the order in which they may be given without a name;
    `optional` ones need their name.

    Without `has_sides` it cannot be asked for what is proven or not refuted. `is_share`: a figure
    between 0 and 1; others are radii.
    """

    parameters: tuple[str, ...]
    figure: Callable[[Distribution, MeasureArguments], Figure]
    has_sides: bool = True
    is_share: bool = False
    optional: tuple[str, ...] = ()


def _share_limit(
    part: Distribution,
    options: MeasureArguments,
    count: Callable[[Distribution], int],
    splits: int = 1,
) -> float | None:
    """The limit on the share of all inputs that is counted; `splits` tests share the miss."""
    if options.level is None:
        return None
    level = 1 - (1 - options.level) / splits
    low, high = share_limits(part, count, level, tail="lower" if options.is_from_below else "upper")
    return low if options.is_from_below else high


def _accuracy(part: Distribution, options: MeasureArguments) -> Figure:
    def count(inputs: Distribution) -> int:
        return int(inputs.correct.sum())

    right, limit = count(part), _share_limit(part, options, count)
    words = f"{right} of {len(part)} inputs are classified correctly"
    return Figure(right / len(part), limit, words)


def _robust_accuracy(part: Distribution, options: MeasureArguments) -> Figure:
    count, limit = options.robust(part), _share_limit(part, options, options.robust)
    words = f"{count} of {len(part)} inputs are {options.side} at eps {options.eps:g}"
    return Figure(count / len(part), limit, words)


def _robust_recall(part: Distribution, options: MeasureArguments) -> Figure:
    label = int(options.arguments["class"])
    members = part.only(label=label)
    count, limit = options.robust(members), _share_limit(members, options, options.robust)
    words = (
        f"{count} of {len(members)} inputs of class {label} are {options.side} "
        f"at eps {options.eps:g}"
    )
    return Figure(count / len(members), limit, words, f"all inputs of class {label}")


def _worst_recall(part: Distribution, options: MeasureArguments) -> Figure:
    groups = part.group_by("class")
    if None in groups:
        raise DataError("some inputs have no class: their labels are not known")
    absent = _absent(part, options, "worst_recall", options.is_from_below)
    # From below, the limit of the class that is truly the worst holds at this level, and the
    # smallest limit is no larger. From above the smallest may be any class's: all share the miss.
    splits = 1 if options.is_from_below else len(groups)
    counts = {label: options.robust(group) for label, group in groups.items()}
    limits = [_share_limit(group, options, options.robust, splits) for group in groups.values()]
    recalls = {label: count / len(groups[label]) for label, count in counts.items()}
    worst = min(recalls, key=lambda label: recalls[label])
    limit = min((known for known in limits if known is not None), default=None)
    if limit is not None and absent and options.is_from_below:
        limit = 0.0
    words = (
        f"the worst of {len(groups)} classes is {worst}, of whose {len(groups[worst])} inputs "
        f"{counts[worst]} are {options.side} at eps {options.eps:g}{_absent_words(absent)}"
    )
    return Figure(recalls[worst], limit, words)


def _recall_spread(part: Distribution, options: MeasureArguments) -> Figure:
    """From above as far apart as brackets allow, from below as close."""
    at_least, at_most = class_curves(part, options.eps).spread
    value = float(at_least[0] if options.is_from_below else at_most[0])
    absent = _absent(part, options, "recall_spread", not options.is_from_below)
    limit = None
    if options.level is not None:
        groups = part.group_by("class")
        # From above only two limits count, those of the best and of the worst class of all; from
        # below they may be any classes', and all share the miss.
        splits = len(groups) if options.is_from_below else 1
        recalls = class_recalls(groups, options.eps, 1 - (1 - options.level) / splits)
        low, high = confident_spread(recalls, has_absent=bool(absent))
        limit = low if options.is_from_below else high
    words = f"robust recall at eps {options.eps:g} differs by {value:.3f} between classes"
    return Figure(value, limit, words + _absent_words(absent))


def _absent(
    part: Distribution, options: MeasureArguments, measure: str, is_about_all: bool
) -> tuple[int, ...]:
    """The classes without an input. A statement about all of them needs to know which there are."""
    given = options.arguments.get("classes")
    absent = absent_classes(part, None if given is None else int(given))
    if absent is None and is_about_all and options.level is not None:
        raise DataError(
            f"{', '.join(part.networks)}: '{measure}' with a confidence is about every class, and "
            "these results do not tell how many classes there are: write it, as in "
            f"'{measure}({options.eps:g}, classes=10)'"
        )
    return absent or ()


def _absent_words(absent: tuple[int, ...]) -> str:
    if not absent:
        return ""
    named = ", ".join(map(str, absent[:MOST_NAMED])) + (", ..." if len(absent) > MOST_NAMED else "")
    which = f"class {named} has" if len(absent) == 1 else f"classes {named} have"
    return f"; {which} no input, so that nothing is known of {'it' if len(absent) == 1 else 'them'}"


def _radius_limit(
    part: Distribution, options: MeasureArguments, limit_of: Callable[[Float64], float]
) -> float | None:
    """The limit on a figure of the radii of all correctly classified inputs."""
    if options.level is None:
        return None

    def limits_of(inputs: Distribution) -> tuple[float, float]:
        if not inputs.holds.any():
            return -math.inf, math.inf
        limit = limit_of(options.values(inputs.correctly_classified()))
        return limit, limit

    low, high = limits_by_draw(part, limits_of)
    return max(low, 0.0) if options.is_from_below else high


def _quantile(part: Distribution, options: MeasureArguments) -> Figure:
    share = options.arguments["share"]
    if not 0 <= share <= 1:
        raise SpecificationError(f"a quantile's share is between 0 and 1, not {share:g}")
    right = part.correctly_classified()
    value = float(np.quantile(options.values(right), share, method="inverted_cdf"))
    limit = _radius_limit(part, options, lambda values: _order_limit(values, share, options))
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
    value = float(options.values(right)[0])
    words = f"the smallest of {_radii(options, right)} is {value:.4g}"
    return Figure(value, None, words)


def _mean(part: Distribution, options: MeasureArguments) -> Figure:
    """With confidence from below only: the area under the robust accuracy that is assured."""
    if options.level is not None and not options.is_from_below:
        raise SpecificationError(
            "no sample bounds the mean radius of all inputs from above: "
            "leave out the confidence of 'mean'"
        )
    right = part.correctly_classified()
    value = float(options.values(right).mean())
    limit = _radius_limit(part, options, lambda values: _assured_area(values, options))
    words = f"the mean of {_radii(options, right)} is {value:.4g}"
    return Figure(value, limit, words, CORRECT_INPUTS)


def _assured_area(values: Float64, options: MeasureArguments) -> float:
    margin = dkw_half_width(len(values), options.level or 0, tail="lower")
    assured = np.maximum(1 - np.arange(len(values)) / len(values) - margin, 0)
    finite = np.where(np.isfinite(values), values, 0.0)
    return float(assured @ np.maximum(np.diff(finite, prepend=0.0), 0))


def _of_catalogue(shown: Statistic) -> Measure:
    """A statistic as it is of these inputs: only shares and radii have limits with confidence."""

    def figure(part: Distribution, options: MeasureArguments) -> Figure:
        if options.level is not None:
            raise SpecificationError(
                f"'{shown.name}' is about these inputs: leave out the confidence"
            )
        shown_value = shown(part)
        if is_bracket and shown_value is not None:
            shown_value = shown_value[0 if options.is_proven else 1]
        value = math.nan if shown_value is None else float(shown_value)
        known = "not known" if math.isnan(value) else f"{value:.4g}"
        return Figure(value, None, f"{shown.title} is {known} ({shown.about})")

    is_bracket = shown.unit is StatisticUnit.BRACKET
    return Measure((), figure, has_sides=is_bracket, is_share=shown.unit is StatisticUnit.SHARE)


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


_WITH_LIMITS: dict[str, Measure] = {
    "accuracy": Measure((), _accuracy, has_sides=False, is_share=True),
    "robust_accuracy": Measure(("eps",), _robust_accuracy, is_share=True),
    "robust_recall": Measure(("class", "eps"), _robust_recall, is_share=True),
    "worst_recall": Measure(("eps",), _worst_recall, is_share=True, optional=("classes",)),
    "recall_spread": Measure(
        ("eps",), _recall_spread, has_sides=False, is_share=True, optional=("classes",)
    ),
    "quantile": Measure(("share",), _quantile),
    "median": Measure((), _median),
    "mean": Measure((), _mean),
    "min": Measure((), _minimum),
}
"""Those that take arguments or a confidence. Radii are of correctly classified inputs, shares of
all."""

MEASURES = _WITH_LIMITS | {
    name: _of_catalogue(one) for name, one in CATALOGUE.items() if name not in _WITH_LIMITS
}
"""By the names that requirements use."""
