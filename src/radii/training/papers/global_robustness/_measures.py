"""Correlations and effects over groups of networks, as tables and as figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from radii.plots import TradeoffPoint
from radii.training.papers._steps import ClaimVerdict, StudyClaim
from radii.training.papers._tables import Beside, Cell, StudyTable
from radii.training.papers.global_robustness._networks import NetworkGroup
from radii.training.studies._results import (
    FEWEST_NETWORKS,
    Correlation,
    CorrelationMethod,
    StudyMember,
    correlate,
    measure_ends,
    measure_of,
)

CONFIDENCE = 0.95

MEASURES = ("R(gamma)", "1-D", "R")
"""As the paper's figures have them; `proven R` is radii's own."""

MEASURE_TITLES = {"R(gamma)": "R(0.5)", "1-D": "1 - D", "R": "R", "proven R": "proven R"}

ALONG: dict[str, Callable[[StudyMember], float | None]] = {
    "accuracy": lambda member: member.accuracy,
    "strength": lambda member: member.recipe.strength,
    "parameters": lambda member: float(member.parameters),
    "epochs": lambda member: member.recipe.epochs,
}
"""What measures are held against."""

Sign = Literal["negative", "positive", ""]
"""Of a correlation, as the paper says; empty where it says none."""


def correlation_of(
    group: NetworkGroup, measure: str, along: str, method: CorrelationMethod
) -> Correlation | None:
    """None with too few networks; NaN where all networks have the same value."""
    pairs = [
        (at, value)
        for member in group.members
        if (value := measure_of(member, measure)) is not None
        and (at := ALONG[along](member)) is not None
    ]
    if len(pairs) < FEWEST_NETWORKS:
        return None
    x, y = np.array(pairs, np.float64).T
    numbers = correlate(x, y, method, confidence=CONFIDENCE)
    return Correlation(group.title, measure, along, method, len(pairs), *numbers)


def sign_of(found: Correlation | None) -> str:
    """`negative`, `positive`, `neither` or `not defined`.

    Shown by both intervals: the bootstrap's is too narrow for a handful of networks.
    """
    if found is None or found.sign == "not defined":
        return "not defined"
    is_shown = found.fisher_low > 0 or found.fisher_high < 0
    return found.sign if is_shown else "neither"


def signed(value: float, digits: int = 2) -> str:
    """With its sign, and a minus as it is set in text."""
    return f"{value:+.{digits}f}".replace("-", "−")


def number_text(found: Correlation | None) -> str | None:
    """The coefficient and its bootstrap interval; None where it is not defined."""
    if found is None or math.isnan(found.value):
        return None
    return f"{signed(found.value)} [{signed(found.low)}, {signed(found.high)}]"


def fisher_text(found: Correlation | None) -> str | None:
    if found is None or math.isnan(found.value):
        return None
    return f"[{signed(found.fisher_low)}, {signed(found.fisher_high)}]"


@dataclass(frozen=True, slots=True)
class Trend:
    """A measure against something in one group: over all networks and those that learned.

    `pearson` is of all, `learned` of those that learned; both with Spearman's beside it.
    """

    place: str
    group: str
    measure: str
    along: str
    pearson: Correlation | None
    spearman: Correlation | None
    learned: Correlation | None
    learned_spearman: Correlation | None

    @property
    def signs(self) -> tuple[str, str]:
        return sign_of(self.pearson), sign_of(self.learned)


def trends(
    sets: Mapping[str, Mapping[str, NetworkGroup]],
    titles: Sequence[str],
    measures: Sequence[str],
    along: str = "accuracy",
) -> list[Trend]:
    """For each data set, group and measure; those with too few networks are left out."""
    found = []
    for place, groups in sets.items():
        for title in titles:
            if title not in groups:
                continue
            group = groups[title]
            for measure in measures:
                numbers = [
                    correlation_of(part, measure, along, method)
                    for part in (group, group.learned)
                    for method in ("pearson", "spearman")
                ]
                if any(number is not None for number in numbers):
                    found.append(Trend(place, title, measure, along, *numbers))
    return found


TREND_COLUMNS = (
    "data",
    "networks",
    "measure",
    "n",
    "Pearson, bootstrap 95 %",
    "Fisher 95 %",
    "Spearman",
    "sign",
    "n, learned",
    "Pearson, learned",
    "Fisher, learned",
    "Spearman, learned",
    "sign, learned",
)


def trend_table(
    name: str, title: str, found: Sequence[Trend], paper: Sign | Mapping[str, Sign]
) -> StudyTable:
    """A row for each trend; the paper's sign stands beside ours, by group where it differs."""
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        printed = paper if isinstance(paper, str) else paper.get(each.group, "")
        if each.measure not in MEASURES:
            printed = ""
        sides: list[Cell] = []
        for pearson, spearman in (
            (each.pearson, each.spearman),
            (each.learned, each.learned_spearman),
        ):
            sides += [
                None if pearson is None else pearson.networks,
                number_text(pearson),
                fisher_text(pearson),
                number_text(spearman),
                Beside(sign if (sign := sign_of(pearson)) != "not defined" else None, printed),
            ]
        rows.append((each.place, each.group, MEASURE_TITLES[each.measure], *sides))
    return StudyTable(name, title, TREND_COLUMNS, tuple(rows))


def verdict_of_signs(signs: Sequence[str], expected: Sign) -> ClaimVerdict:
    """Of a claim that all correlations have one sign, each shown with 95 % confidence.

    Confirmed where all show it, refuted where none does and some show the opposite, open where no
    interval excludes 0, and depends otherwise.
    """
    defined = [sign for sign in signs if sign != "not defined"]
    opposite = "positive" if expected == "negative" else "negative"
    if not defined or all(sign == "neither" for sign in defined):
        return ClaimVerdict.OPEN
    if all(sign == expected for sign in defined):
        return ClaimVerdict.CONFIRMED
    if expected not in defined and opposite in defined:
        return ClaimVerdict.REFUTED
    return ClaimVerdict.DEPENDS


def trend_texts(found: Sequence[Trend], *, has_group: bool = False) -> str:
    """`R(0.5) −0.80 [−0.90, −0.60], learned ...` for each, as claims show them."""
    texts = []
    for each in found:
        name = MEASURE_TITLES[each.measure]
        if has_group:
            name = f"{each.place}, {name}"
        both = number_text(each.pearson) or "not defined"
        texts.append(f"{name} {both}, learned {number_text(each.learned) or 'not defined'}")
    return "; ".join(texts)


def trade_claim(
    found: Sequence[Trend], claim: str, place: str, expected: Sign, *, has_group: bool = False
) -> StudyClaim:
    """Of a correlation that the paper sees for all its measures: over all and learned networks."""
    own = [each for each in found if each.measure in MEASURES]
    signs = [sign for each in own for sign in each.signs]
    text = trend_texts(own, has_group=has_group) or "too few networks"
    return StudyClaim(claim, place, verdict_of_signs(signs, expected), text)


def tradeoff_panels(
    sets: Mapping[str, Mapping[str, NetworkGroup]],
    titles: Sequence[str],
    measures: Sequence[str] = MEASURES,
) -> dict[str, dict[str, list[TradeoffPoint]]]:
    """A panel for each data set and measure, and in it a series for each group."""
    panels = {}
    for place, groups in sets.items():
        for measure in measures:
            series = {}
            for title in titles:
                members = groups[title].members if title in groups else ()
                series[title] = [
                    TradeoffPoint(member.accuracy or 0.0, *ends)
                    for member in members
                    if (ends := measure_ends(member, measure)) is not None
                ]
            panels[f"{place}, {MEASURE_TITLES[measure]}"] = series
    return panels
