"""Correlations and effects over groups of networks, as tables and as figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from radii_papers._evidence import (
    CLAIM_LEVEL,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    StudyClaim,
    within,
)
from radii_papers._tables import Beside, Cell, StudyTable
from radii_papers.figures import TradeoffPoint
from radii_papers.global_robustness._networks import NetworkGroup
from radii_papers.tradeoff._results import (
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

MEASURES_OF_PAPER: Mapping[str, tuple[str, ...]] = {
    "MNIST": ("R(gamma)", "1-D"),
    "Fashion-MNIST": ("R(gamma)", "1-D"),
    "CIFAR-10": ("1-D", "R"),
}
"""By the panels that Section 4.2 lists: two for each data set. It names (c) twice, for confidence
and for changes of class; the second is read as (f), which it does not name."""


def is_of_paper(place: str, measure: str) -> bool:
    """The paper measures it on this data set; of data of one's own all of `MEASURES` count."""
    return measure in MEASURES_OF_PAPER.get(place, MEASURES)


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
        if not is_of_paper(each.place, each.measure):
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


HOW = (
    "correlation over networks that learned something, each of which is one instance; the wider of "
    "the bootstrap's interval and Fisher's, the latter with Bonferroni's correction"
)

BASIS = ClaimBasis.OURS
"""At every scale: the paper's text names no radii, so all measures are at radii of ours."""


def correlation_interval(found: Correlation, of: int) -> ClaimInterval:
    """That holds at the level of claims for `of` correlations at once."""
    spread = 1.06 if found.method == "spearman" else 1.0
    tail = NormalDist().inv_cdf(1 - CLAIM_LEVEL / 2 / of)
    reach = tail * math.sqrt(spread / max(found.networks - 3, 1))
    middle = math.atanh(min(max(found.value, -MOST), MOST))
    ends = math.tanh(middle - reach), math.tanh(middle + reach)
    return ClaimInterval(found.value, min(found.low, ends[0]), max(found.high, ends[1]), "+.2f")


MOST = 1 - 1e-9
"""Fisher's transformation of 1 has no value."""


def named_correlations(found: Sequence[Trend], method: CorrelationMethod) -> dict[str, Correlation]:
    """By their names, those that claims are about: of the paper's measures, over networks that
    learned something, where they are defined.

    A network that gives one class to nearly all inputs is robust and speaks for no claim, nor
    against one.
    """
    named = {}
    for each in found:
        number = each.learned_spearman if method == "spearman" else each.learned
        is_defined = number is not None and number.sign != "not defined"
        if number is not None and is_defined and is_of_paper(each.place, each.measure):
            named[f"{each.place}, {MEASURE_TITLES[each.measure]}"] = number
    return named


def sign_cases(
    found: Sequence[Trend], method: CorrelationMethod, expected: Sign, basis: ClaimBasis
) -> tuple[ClaimCase, ...]:
    """Of a claim about the sign of correlations; those that are not defined are left out."""
    named = named_correlations(found, method)
    below = 0.0 if expected == "negative" else math.inf
    above = 0.0 if expected == "positive" else -math.inf
    return tuple(
        within(
            name,
            basis,
            each.networks,
            correlation_interval(each, len(named)),
            above=above,
            below=below,
        )
        for name, each in named.items()
    )


def trade_claim(
    found: Sequence[Trend], claim: str, place: str, expected: Sign, basis: ClaimBasis
) -> StudyClaim:
    """Of a correlation that the paper sees for all its measures."""
    return StudyClaim(claim, place, HOW, sign_cases(found, "pearson", expected, basis))


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
