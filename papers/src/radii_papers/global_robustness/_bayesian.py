"""Section 4.4 and Figure 4: Bayesian networks, and deterministic ones on the same images."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radii_papers._evidence import ClaimBasis, StudyClaim, within
from radii_papers._intervals import mean_interval
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Beside, Cell, StudyTable
from radii_papers.figures import draw_tradeoffs
from radii_papers.global_robustness._deterministic import grouped
from radii_papers.global_robustness._measures import (
    BASIS,
    CONFIDENCE,
    HOW,
    MEASURE_TITLES,
    MEASURES,
    Trend,
    is_of_paper,
    sign_cases,
    trade_claim,
    tradeoff_panels,
    trend_table,
    trends,
)
from radii_papers.global_robustness._networks import (
    BAYESIAN,
    COUNTERPARTS,
    DETERMINISTIC,
    EVERY_CHAIN,
    NetworkGroup,
    NetworkStudies,
)
from radii_papers.global_robustness._pruned import SETS_OF_SECTION
from radii_papers.tradeoff._results import FEWEST_NETWORKS, RESAMPLES, StudyMember, measure_of


def figure_4(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """Bayesian beside deterministic networks; correlations with accuracy and with capacity."""
    sets = grouped(source, settings, SETS_OF_SECTION)
    panels = tradeoff_panels(sets, (DETERMINISTIC, COUNTERPARTS, EVERY_CHAIN))
    title = "Figure 4: Bayesian and deterministic networks over accuracy, with 95 % intervals"
    along_accuracy = trends(sets, (BAYESIAN, EVERY_CHAIN), MEASURES)
    along_capacity = trends(sets, (BAYESIAN, EVERY_CHAIN), MEASURES, "parameters")
    pairs = paired_differences(sets)
    return [
        Paragraph(_chains_text(sets)),
        StudyFigure("figure-4", title, lambda: draw_tradeoffs(panels)),
        trend_table(
            "figure-4-accuracy",
            "Figure 4: correlation with accuracy, Bayesian networks",
            along_accuracy,
            "positive",
        ),
        trend_table(
            "figure-4-capacity",
            "Figure 4: correlation with the number of weights, Bayesian networks",
            along_capacity,
            "positive",
        ),
        _pairs_table(pairs),
        trade_claim(
            _converged(along_accuracy),
            "accuracy and robustness rise together in Bayesian networks",
            "Section 4.4, Figure 4",
            "positive",
            BASIS,
        ),
        StudyClaim(
            "larger Bayesian networks are (weakly) more robust",
            "Section 4.4, Figure 4",
            f"rank {HOW}",
            sign_cases(_converged(along_capacity), "spearman", "positive", BASIS),
        ),
        pairs_claim(pairs, BASIS),
    ]


def _converged(found: Sequence[Trend]) -> list[Trend]:
    """Of networks whose chains converged: others are no sample of the posterior."""
    return [each for each in found if each.group == BAYESIAN]


def _chains_text(sets: Mapping[str, Mapping[str, NetworkGroup]]) -> str:
    texts = []
    for place, groups in sets.items():
        chains = groups[EVERY_CHAIN].members if EVERY_CHAIN in groups else ()
        converged = sum(member.is_counted for member in chains)
        rhats = [member.rhat for member in chains if member.rhat is not None]
        widest = max((member.recipe.width for member in chains), default=0)
        middle = f"{statistics.median(rhats):.2f}" if rhats else "not known"
        texts.append(
            f"{converged} of {len(chains)} on {place} (up to {widest} units, median R-hat {middle})"
        )
    return (
        f"Bayesian networks whose predictions converged: {'; '.join(texts)}. That is, 95 % of the "
        "predictions on held-out images have an R-hat of at most 1.1, and effective samples "
        "enough; the paper does not say how this was judged. Those that did not are drawn, and "
        "stand in rows of their own. Their outputs are the mean softmax of samples, on which the "
        "attack follows the gradient of the mean."
    )


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Bayesian less deterministic, the mean over each architecture's networks on the same images.

    An architecture is one pair: all its Bayesian networks share their counterparts.
    """

    place: str
    measure: str
    differences: tuple[float, ...]
    mean: float
    low: float
    high: float

    @property
    def pairs(self) -> int:
        return len(self.differences)

    @property
    def sign(self) -> str:
        if math.isnan(self.low):
            return "not defined"
        if self.low > 0:
            return "positive"
        return "negative" if self.high < 0 else "neither"


def paired_differences(
    sets: Mapping[str, Mapping[str, NetworkGroup]],
) -> list[PairedDifference]:
    """For accuracy and each measure; intervals by bootstrap over the pairs."""
    found = []
    for place, groups in sets.items():
        if BAYESIAN not in groups or COUNTERPARTS not in groups:
            continue
        for measure in ("accuracy", *MEASURES):
            own = _differences(groups[BAYESIAN].members, groups[COUNTERPARTS].members, measure)
            found.append(_bootstrapped(place, measure, own))
    return found


def _value(member: StudyMember, measure: str) -> float | None:
    return member.accuracy if measure == "accuracy" else measure_of(member, measure)


def _differences(
    bayesian: Sequence[StudyMember], others: Sequence[StudyMember], measure: str
) -> list[float]:
    """By architecture: the mean of its Bayesian networks less that of its deterministic ones."""
    own, other = _by_architecture(bayesian, measure), _by_architecture(others, measure)
    return [
        statistics.mean(values) - statistics.mean(other[name])
        for name, values in own.items()
        if name in other
    ]


def _by_architecture(members: Sequence[StudyMember], measure: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for member in members:
        value = _value(member, measure)
        if value is not None:
            found.setdefault(member.recipe.architecture, []).append(value)
    return found


def _bootstrapped(place: str, measure: str, own: Sequence[float]) -> PairedDifference:
    if len(own) < FEWEST_NETWORKS:
        return PairedDifference(place, measure, tuple(own), math.nan, math.nan, math.nan)
    values = np.array(own)
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values[drawn].mean(axis=1), (tail, 1 - tail))
    return PairedDifference(
        place, measure, tuple(own), float(values.mean()), float(low), float(high)
    )


def _pairs_table(pairs: Sequence[PairedDifference]) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for each in pairs:
        is_measure = each.measure != "accuracy"
        name = MEASURE_TITLES[each.measure] if is_measure else "accuracy"
        own = None if each.sign == "not defined" else each.sign
        is_papers = is_measure and is_of_paper(each.place, each.measure)
        sign = Beside(own, "positive" if is_papers else "")
        rows.append((each.place, name, each.pairs, each.mean, each.low, each.high, sign))
    columns = ("data", "measure", "pairs", "mean difference", "low", "high", "sign")
    title = (
        "Section 4.4: Bayesian less deterministic networks of the same architecture, which is one "
        "pair, on the same images, bootstrap 95 %; the paper's sign is that of its summary"
    )
    forms = ("", "", "", "+.3f", "+.3f", "+.3f", "")
    return StudyTable("bayesian-pairs", title, columns, tuple(rows), forms)


def pairs_claim(pairs: Sequence[PairedDifference], basis: ClaimBasis) -> StudyClaim:
    own = [
        each
        for each in pairs
        if each.measure != "accuracy"
        and each.sign != "not defined"
        and is_of_paper(each.place, each.measure)
    ]
    return StudyClaim(
        "Bayesian networks might be more robust than their deterministic counterparts",
        "Section 1",
        "mean difference over architectures, on the same images; bootstrap over architectures, "
        "Bonferroni",
        tuple(
            within(
                f"{each.place}, {MEASURE_TITLES[each.measure]}", basis, each.pairs,
                mean_interval(each.differences, len(own)), above=0,
            )
            for each in own
        ),
    )  # fmt: skip
