"""Section 4.3 and Figure 3: what magnitude pruning does to robustness and to accuracy."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from radii.plots import draw_tradeoffs
from radii.training.papers._steps import (
    ClaimVerdict,
    Paragraph,
    Part,
    StudyClaim,
    StudyFigure,
    StudySettings,
)
from radii.training.papers._tables import Cell, StudyTable
from radii.training.papers.global_robustness._deterministic import grouped
from radii.training.papers.global_robustness._measures import (
    MEASURE_TITLES,
    MEASURES,
    Trend,
    sign_of,
    signed,
    trade_claim,
    tradeoff_panels,
    trend_table,
    trends,
)
from radii.training.papers.global_robustness._networks import (
    DETERMINISTIC,
    PRUNED,
    NetworkGroup,
    NetworkStudies,
)
from radii.training.studies._results import StudyMember, measure_of

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
            has_group=True,
        ),
        strength_claim(along_strength),
        accuracy_claim(sets),
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


def strength_claim(found: Sequence[Trend]) -> StudyClaim:
    """Refuted where some measure has a shown rank correlation in every data set and selection.

    Where only some have, it depends; where none has, it is open if one could hide.
    """
    ranks = [each for t in found for each in (t.spearman, t.learned_spearman) if each is not None]
    shown = [each for each in ranks if sign_of(each) in ("negative", "positive")]
    hiding = [
        each for each in ranks if sign_of(each) == "neither" and max(-each.low, each.high) > NOTABLE
    ]
    everywhere = [
        measure
        for measure in dict.fromkeys(each.measure for each in ranks)
        if all(each in shown for each in ranks if each.measure == measure)
    ]
    if shown:
        verdict = ClaimVerdict.REFUTED if everywhere else ClaimVerdict.DEPENDS
    else:
        verdict = ClaimVerdict.OPEN if hiding or not ranks else ClaimVerdict.CONFIRMED
    strongest = max(shown, key=lambda each: abs(each.value), default=None)
    text = f"of {len(ranks)} rank correlations with it {len(shown)} are not 0 with 95 % confidence"
    if strongest is not None:
        measure = MEASURE_TITLES[strongest.measure]
        text += f", the strongest {signed(strongest.value)} for {measure}"
    if everywhere:
        names = ", ".join(MEASURE_TITLES[measure] for measure in everywhere)
        text += f"; all of those of {names}"
    return StudyClaim(
        "the amount of pruning has no significant effect on any measure of robustness",
        "Section 4.3, Figure 3",
        verdict,
        f"{text}; {len(hiding)} intervals leave room for one beyond ±{NOTABLE:g}",
    )


def accuracy_claim(sets: Mapping[str, Mapping[str, NetworkGroup]]) -> StudyClaim:
    """Medians of each severe share beside that of the smallest, for each data set."""
    losses: list[float] = []
    told = []
    for place, groups in sets.items():
        by = strengths(groups[PRUNED]) if PRUNED in groups else {}
        medians = {
            share: statistics.median([member.accuracy or 0.0 for member in members])
            for share, members in by.items()
            if share >= SEVERE or share == min(by)
        }
        least, *others = medians.values() if medians else [0.0]
        losses += [least - other for other in others]
        if others:
            shown = ", ".join(f"{value:.3f} ({share:g})" for share, value in medians.items())
            told.append(f"{place} {shown}")
    text = f"median accuracy (share of weights removed): {'; '.join(told)}"
    return StudyClaim(
        "severe pruning reduces accuracy slightly",
        "Section 4.3, Figure 3",
        slight_loss_verdict(losses),
        text if told else "no pruned networks",
    )


SEVERE = 0.9
"""The paper removes 0.5 to 0.99 of the weights and does not say from where on that is severe."""

SLIGHT = 0.05
"""More accuracy lost than this is not slight."""


def slight_loss_verdict(losses: Sequence[float]) -> ClaimVerdict:
    """Confirmed where each severe share loses some accuracy and none more than is slight."""
    if not losses:
        return ClaimVerdict.OPEN
    holds = [0 < loss <= SLIGHT for loss in losses]
    if all(holds):
        return ClaimVerdict.CONFIRMED
    return ClaimVerdict.DEPENDS if any(holds) else ClaimVerdict.REFUTED
