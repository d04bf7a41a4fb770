"""Section 4.3 and Figure 3: what magnitude pruning does to robustness and to accuracy."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from radii_papers._evidence import (
    CLAIM_LEVEL,
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    StudyClaim,
    within,
)
from radii_papers._intervals import BOOTSTRAPS, tail_of
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.figures import draw_tradeoffs
from radii_papers.global_robustness._deterministic import grouped
from radii_papers.global_robustness._measures import (
    BASIS,
    HOW,
    MEASURE_TITLES,
    MEASURES,
    Trend,
    correlation_interval,
    named_correlations,
    trade_claim,
    tradeoff_panels,
    trend_table,
    trends,
)
from radii_papers.global_robustness._networks import (
    DETERMINISTIC,
    PRUNED,
    NetworkGroup,
    NetworkStudies,
)
from radii_papers.tradeoff._results import Correlation, StudyMember, measure_of

SETS_OF_SECTION = ("mnist", "fashion")

NOTABLE = 0.5
"""A rank correlation beyond this would be an effect that nobody overlooks: where an interval
reaches it, that no effect was shown says nothing."""


def figure_3(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """Pruned beside unpruned networks; measures and accuracy by the share that was removed."""
    sets = grouped(source, settings, SETS_OF_SECTION)
    panels = tradeoff_panels(sets, (DETERMINISTIC, PRUNED))
    title = "Figure 3: pruned and unpruned networks over accuracy, with 95 % intervals"
    along_accuracy = trends(sets, (PRUNED,), (*MEASURES, "proven R"))
    along_strength = trends(sets, (PRUNED,), MEASURES, "strength")
    return [
        StudyFigure("figure-3", title, lambda: draw_tradeoffs(panels)),
        _by_strength(sets),
        trend_table(
            "figure-3-accuracy",
            "Figure 3: correlation with accuracy, pruned networks",
            along_accuracy,
            "negative",
        ),
        trend_table(
            "figure-3-strength",
            "Figure 3: correlation with the share of weights that was removed",
            along_strength,
            "",
        ),
        Paragraph("The paper finds no effect of the share, so no sign stands beside ours."),
        trade_claim(
            along_accuracy,
            "pruned networks have the same trade-off: accuracy and robustness at odds",
            "Section 4.3, Figure 3",
            "negative",
            BASIS,
        ),
        strength_claim(along_strength, BASIS),
        accuracy_claim(sets, BASIS),
    ]


def strengths(group: NetworkGroup) -> dict[float, list[StudyMember]]:
    """Networks by the share of weights that was removed, the smallest first."""
    found: dict[float, list[StudyMember]] = {}
    for member in group.members:
        found.setdefault(member.recipe.strength or 0.0, []).append(member)
    return dict(sorted(found.items()))


def _by_strength(sets: Mapping[str, Mapping[str, NetworkGroup]]) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for place, groups in sets.items():
        if PRUNED not in groups:
            continue
        for strength, members in strengths(groups[PRUNED]).items():
            accuracies = [m.accuracy for m in members if m.accuracy is not None]
            values = [
                statistics.median(
                    [value for m in members if (value := measure_of(m, measure)) is not None]
                )
                for measure in MEASURES
            ]
            rows.append((place, strength, len(members), statistics.median(accuracies), *values))
    measures = (MEASURE_TITLES[measure] for measure in MEASURES)
    columns = ("data", "removed", "networks", "accuracy", *measures)
    title = "Figure 3, boxes: medians by the share of weights that was removed"
    forms = ("", "g", "", ".3f", ".3f", ".3f", ".3f")
    return StudyTable("figure-3-boxes", title, columns, tuple(rows), forms)


def strength_claim(found: Sequence[Trend], basis: ClaimBasis) -> StudyClaim:
    """A correlation fails the claim where its interval excludes 0. It supports it where a test
    without correction finds none either, unless the interval leaves room for a notable one."""
    named = named_correlations(found, "spearman")
    return StudyClaim(
        "the amount of pruning has no significant effect on any measure of robustness",
        "Section 4.3, Figure 3",
        f"rank {HOW}; permutation test",
        tuple(_effect_case(name, each, basis, len(named)) for name, each in named.items()),
    )


def _effect_case(name: str, found: Correlation, basis: ClaimBasis, of: int) -> ClaimCase:
    interval = correlation_interval(found, of)
    outcome = CaseOutcome.HOLDS
    if interval.low > 0 or interval.high < 0:
        outcome = CaseOutcome.FAILS
    elif found.p_value < CLAIM_LEVEL or max(-interval.low, interval.high) > NOTABLE:
        outcome = CaseOutcome.UNCLEAR
    return ClaimCase(
        name=name, basis=basis, n=found.networks,
        shows=f"{interval.text}, p = {found.p_value:.2g}",
        rule=f"within ±{NOTABLE:g}, and p ≥ {CLAIM_LEVEL:g} uncorrected; fails without 0",
        outcome=outcome,
    )  # fmt: skip


def accuracy_claim(sets: Mapping[str, Mapping[str, NetworkGroup]], basis: ClaimBasis) -> StudyClaim:
    """Networks of each severe share beside those of the smallest, for each data set."""
    pairs = {}
    for place, groups in sets.items():
        by = {
            share: [member.accuracy or 0.0 for member in members]
            for share, members in strengths(groups[PRUNED]).items()
        } if PRUNED in groups else {}  # fmt: skip
        for share, own in by.items():
            if share >= SEVERE and share > min(by):
                pairs[f"{place}, {share:g} removed"] = (by[min(by)], own)
    return StudyClaim(
        f"severe pruning reduces accuracy slightly (by at most {SLIGHT:g})",
        "Section 4.3, Figure 3",
        "median accuracy of networks where the fewest weights are removed, less that where 0.9 or "
        "more are; bootstrap over the networks of both, Bonferroni",
        tuple(loss_case(name, basis, *pair, len(pairs)) for name, pair in pairs.items()),
    )


SEVERE = 0.9
"""The paper removes 0.5 to 0.99 of the weights and does not say from where on that is severe."""

SLIGHT = 0.05
"""More accuracy lost than this is not slight."""


def loss_case(
    name: str, basis: ClaimBasis, before: Sequence[float], after: Sequence[float], of: int
) -> ClaimCase:
    """Of two groups of networks that were trained independently of each other."""
    rng = np.random.default_rng(0)
    drawn = [
        np.median(np.array(own)[rng.integers(0, len(own), (BOOTSTRAPS, len(own)))], axis=1)
        for own in (before, after)
    ]
    low, high = np.quantile(drawn[0] - drawn[1], [tail_of(of), 1 - tail_of(of)])
    first, second = statistics.median(before), statistics.median(after)
    case = within(
        name, basis, min(len(before), len(after)),
        ClaimInterval(first - second, float(low), float(high)), above=0, below=SLIGHT,
        before=f"{second:.3f} for {first:.3f}: ",
    )  # fmt: skip
    return dataclasses.replace(case, rule=f"a loss, of less than {SLIGHT:g}")
