"""Section 4.3 and Figure 3: what magnitude pruning does to robustness and to accuracy."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from radii.plots import draw_tradeoffs
from radii_papers._evidence import CaseOutcome, ClaimBasis, ClaimCase, StudyClaim
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.global_robustness._deterministic import grouped
from radii_papers.global_robustness._measures import (
    HOW,
    MEASURE_TITLES,
    MEASURES,
    Trend,
    basis_of,
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
            basis_of(settings),
        ),
        strength_claim(along_strength, basis_of(settings)),
        accuracy_claim(sets, basis_of(settings)),
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
    """A correlation fails the claim where its interval excludes 0, and is unclear where the
    interval leaves room for a notable one."""
    named = named_correlations(found, "spearman")
    return StudyClaim(
        "the amount of pruning has no significant effect on any measure of robustness",
        "Section 4.3, Figure 3",
        f"rank {HOW}",
        tuple(_effect_case(name, each, basis, len(named)) for name, each in named.items()),
    )


def _effect_case(name: str, found: Correlation, basis: ClaimBasis, of: int) -> ClaimCase:
    interval = correlation_interval(found, of)
    outcome = CaseOutcome.HOLDS
    if interval.low > 0 or interval.high < 0:
        outcome = CaseOutcome.FAILS
    elif max(-interval.low, interval.high) > NOTABLE:
        outcome = CaseOutcome.UNCLEAR
    return ClaimCase(
        name=name, basis=basis, n=found.networks, shows=interval.text,
        rule=f"around 0, within ±{NOTABLE:g}", outcome=outcome,
    )  # fmt: skip


def accuracy_claim(sets: Mapping[str, Mapping[str, NetworkGroup]], basis: ClaimBasis) -> StudyClaim:
    """Medians of each severe share beside that of the smallest, for each data set."""
    cases = []
    for place, groups in sets.items():
        by = strengths(groups[PRUNED]) if PRUNED in groups else {}
        medians = {
            share: statistics.median([member.accuracy or 0.0 for member in members])
            for share, members in by.items()
        }
        for share, members in by.items():
            if share >= SEVERE and share > min(by):
                n = min(len(members), len(by[min(by)]))
                pair = medians[min(by)], medians[share]
                cases.append(loss_case(f"{place}, {share:g} removed", basis, n, *pair))
    return StudyClaim(
        f"severe pruning reduces accuracy slightly (by at most {SLIGHT:g})",
        "Section 4.3, Figure 3",
        "median accuracy of networks by the share of weights removed, without an interval",
        tuple(cases),
    )


SEVERE = 0.9
"""The paper removes 0.5 to 0.99 of the weights and does not say from where on that is severe."""

SLIGHT = 0.05
"""More accuracy lost than this is not slight."""


def loss_case(name: str, basis: ClaimBasis, n: int, before: float, after: float) -> ClaimCase:
    holds = 0 < before - after <= SLIGHT
    return ClaimCase(
        name=name, basis=basis, n=n, shows=f"{after:.3f} for {before:.3f}",
        rule=f"a loss of at most {SLIGHT:g}",
        outcome=CaseOutcome.HOLDS if holds else CaseOutcome.FAILS,
    )  # fmt: skip
