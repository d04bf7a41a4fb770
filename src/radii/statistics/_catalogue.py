"""The statistics of a distribution that are shown wherever one is: each a function, registered
here with its title and unit, and nowhere else.

`radii show` and `radii report` have a column for each, `radii show --json` and `radii export
--format statistics` a value, `radii plot --kind NAME` a figure, and `radii gate` takes each in a
requirement. Radii, gaps and shares are over the inputs at which the property holds as they stand,
which for classes are the correctly classified ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError
from radii.statistics._columns import NO_NUMBER, Array, Float64

if TYPE_CHECKING:
    import pandas as pd

    from radii.statistics._distribution import Distribution, ValueRange

StatisticValue = Any
"""A number, or for a bracket its two ends; None or NaN where it is not known."""


class StatisticUnit(Enum):
    """What kind of number a statistic is: it decides how the number is written and drawn."""

    COUNT = "count"
    SHARE = "share"
    RADIUS = "radius"
    BRACKET = "bracket"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic with its `name` in JSON, CSV and requirements and the `title` of its column.

    `about` says in half a sentence what it is. Not every table has room: the summary of `radii
    show` leaves out those that are not `in_summary`, and counts that are 0 for every network.
    """

    name: str
    title: str
    unit: StatisticUnit
    about: str
    in_summary: bool
    measure: Callable[[Distribution], StatisticValue]

    def __call__(self, distribution: Distribution) -> StatisticValue:
        """The value; None for a distribution that has none, as without any correct input."""
        try:
            return self.measure(distribution)
        except DataError:
            return None

    def cells(self, value: StatisticValue) -> dict[str, StatisticValue]:
        """The value under its name; the two ends of a bracket as `NAME_lower` and `NAME_upper`.

        None where it is not known.
        """
        if self.unit is not StatisticUnit.BRACKET:
            return {self.name: None if _is_unknown(value) else value}
        low, high = (None, None) if value is None else value
        return {f"{self.name}_lower": low, f"{self.name}_upper": high}

    def text(self, value: StatisticValue) -> str:
        """The value as a cell of a table; a dash where it is not known."""
        if _is_unknown(value):
            return "-"
        if self.unit is StatisticUnit.BRACKET:
            low, high = value
            return f"{low:.4f}–{high:.4f}" if math.isfinite(high) else f"{low:.4f}–none"
        return str(format(value, FORMATS[self.unit]))


def _is_unknown(value: StatisticValue) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


FORMATS: Mapping[StatisticUnit, str] = {
    StatisticUnit.COUNT: "d",
    StatisticUnit.SHARE: ".0%",
    StatisticUnit.RADIUS: ".4f",
    StatisticUnit.SECONDS: ".2f",
}


def statistic(
    title: str, unit: StatisticUnit, about: str, *, in_summary: bool = True
) -> Callable[[Callable[[Distribution], StatisticValue]], Statistic]:
    """Registers a function of a distribution under its own name: see `CATALOGUE`."""

    def registered(measure: Callable[[Distribution], StatisticValue]) -> Statistic:
        return Statistic(measure.__name__, title, unit, about, in_summary, measure)

    return registered


# --- radii


@statistic(
    "no answer", StatisticUnit.COUNT, "nothing proven, nothing witnessed, so a radius may be any"
)
def without_answer(distribution: Distribution) -> int:
    return distribution.unsolved


@statistic("lowest", StatisticUnit.BRACKET, "smallest radius")
def lowest(distribution: Distribution) -> ValueRange:
    return distribution.correctly_classified().minimum()


@statistic("25 %", StatisticUnit.BRACKET, "radius that a quarter of the inputs do not exceed")
def lower_quartile(distribution: Distribution) -> ValueRange:
    return distribution.correctly_classified().quantile(0.25)


@statistic("median", StatisticUnit.BRACKET, "median radius")
def median(distribution: Distribution) -> ValueRange:
    return distribution.correctly_classified().median()


@statistic("75 %", StatisticUnit.BRACKET, "radius that three quarters of the inputs do not exceed")
def upper_quartile(distribution: Distribution) -> ValueRange:
    return distribution.correctly_classified().quantile(0.75)


@statistic("mean", StatisticUnit.BRACKET, "mean radius", in_summary=False)
def mean(distribution: Distribution) -> ValueRange:
    return distribution.correctly_classified().mean()


# --- how tight brackets are


@statistic("gap", StatisticUnit.RADIUS, "mean width of brackets")
def mean_gap(distribution: Distribution) -> float:
    gaps = _gaps(distribution)
    return float(gaps.mean()) if gaps.size else math.nan


@statistic(
    "largest gap",
    StatisticUnit.RADIUS,
    "width of the widest bracket that has a counterexample",
    in_summary=False,
)
def largest_gap(distribution: Distribution) -> float:
    gaps = _gaps(distribution)
    return float(gaps.max()) if gaps.size else math.nan


@statistic(
    "open", StatisticUnit.SHARE, "share of inputs without a counterexample", in_summary=False
)
def without_witness(distribution: Distribution) -> float:
    return _mean_share(np.isinf(distribution.upper[distribution.holds]))


@statistic(
    "unsolved",
    StatisticUnit.SHARE,
    "share of inputs with nothing proven and nothing witnessed",
    in_summary=False,
)
def unsolved(distribution: Distribution) -> float:
    return _mean_share(distribution.is_unsolved[distribution.holds])


@statistic(
    "critical",
    StatisticUnit.SHARE,
    "share of inputs with a missing answer that could have narrowed the bracket",
    in_summary=False,
)
def critical(distribution: Distribution) -> float:
    """Where it is not known at which eps answers were missing, inputs with any count; where not
    even that is known, the share is of the other inputs.
    """
    right = distribution.holds
    counts = distribution.column("critical")[right]
    if _count(distribution, "queries"):
        counts = np.where(counts == NO_NUMBER, distribution.column("missing")[right], counts)
    return _mean_share(counts[counts != NO_NUMBER] > 0)


# --- what the search cost


@statistic("questions", StatisticUnit.COUNT, "questions asked", in_summary=False)
def queries(distribution: Distribution) -> int | None:
    return _known_count(distribution, "queries")


@statistic("missing", StatisticUnit.COUNT, "questions without an answer")
def missing(distribution: Distribution) -> int | None:
    return _known_count(distribution, "missing")


@statistic("time-outs", StatisticUnit.COUNT, "questions that ran out of time", in_summary=False)
def timeouts(distribution: Distribution) -> int | None:
    return _known_count(distribution, "timeouts")


@statistic("memory-outs", StatisticUnit.COUNT, "questions that ran out of memory", in_summary=False)
def memouts(distribution: Distribution) -> int | None:
    return _known_count(distribution, "memouts")


@statistic("s in all", StatisticUnit.SECONDS, "wall seconds of all inputs", in_summary=False)
def total_seconds(distribution: Distribution) -> float:
    return float(distribution.column("seconds").sum())


@statistic("CPU s in all", StatisticUnit.SECONDS, "CPU seconds of all inputs", in_summary=False)
def cpu_seconds(distribution: Distribution) -> float:
    return float(distribution.column("cpu_seconds").sum())


@statistic("s each", StatisticUnit.SECONDS, "mean wall seconds of an input")
def mean_seconds(distribution: Distribution) -> float:
    return float(distribution.column("seconds").mean())


def _gaps(distribution: Distribution) -> Float64:
    right = distribution.holds
    lower, upper = distribution.lower[right], distribution.upper[right]
    widths: Float64 = (upper - lower)[np.isfinite(upper)]
    return widths


def _count(distribution: Distribution, column: str) -> int:
    return int(distribution.column(column).sum())


def _known_count(distribution: Distribution, column: str) -> int | None:
    """None where questions were not counted, as in published files."""
    return _count(distribution, column) if _count(distribution, "queries") else None


def _mean_share(which: Array) -> float:
    return float(which.mean()) if which.size else math.nan


CATALOGUE: Mapping[str, Statistic] = {
    each.name: each for each in list(globals().values()) if isinstance(each, Statistic)
}
"""Every statistic of this file by its name, in the order in which they stand here."""


def statistics_of(distribution: Distribution) -> dict[str, StatisticValue]:
    """Every statistic by its name; the two ends of a bracket as `NAME_lower` and `NAME_upper`."""
    values: dict[str, StatisticValue] = {}
    for each in CATALOGUE.values():
        values |= each.cells(each(distribution))
    return values


def statistics_table(distribution: Distribution) -> pd.DataFrame:
    """Every statistic, a row for each network and split; `correct` counts the inputs at which the
    property holds as they stand."""
    import pandas as pd

    rows = [
        {
            "network": network,
            "split": split or "",
            "inputs": len(part),
            "correct": int(part.holds.sum()),
            **statistics_of(part),
        }
        for (network, split), part in distribution.group_by("network", "split").items()
    ]
    return pd.DataFrame(rows)
