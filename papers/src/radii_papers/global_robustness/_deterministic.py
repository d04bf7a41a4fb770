"""Section 4.2 and Figure 2: deterministic networks, their trade-off and what drives it."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence

from radii_papers._evidence import ClaimScope, StudyClaim
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Cell, StudyTable
from radii_papers.figures import draw_hyper_parameters, draw_tradeoffs
from radii_papers.global_robustness._measures import (
    BASIS,
    HOW,
    MEASURE_TITLES,
    MEASURES,
    sign_cases,
    trade_claim,
    tradeoff_panels,
    trend_table,
    trends,
)
from radii_papers.global_robustness._networks import (
    CONVOLUTIONAL,
    DENSE,
    DETERMINISTIC,
    SETS,
    NetworkGroup,
    NetworkStudies,
    all_networks,
    network_groups,
)
from radii_papers.tradeoff._results import Effect, effects


def grouped(
    source: NetworkStudies, settings: StudySettings, names: Sequence[str] = tuple(SETS)
) -> dict[str, dict[str, NetworkGroup]]:
    """The groups of each data set, by the data set's title."""
    made = all_networks(source, settings, names)
    return {SETS[name]: network_groups(members) for name, members in made.items()}


WHY_SIGNS_DIFFER = (
    "`learned` leaves out networks with less than half of the best accuracy of their data set: "
    "they give one class to nearly all images, which no attack changes, so a few of them decide a "
    "sign, and claims are decided without them. A sign is shown where both intervals, the "
    "bootstrap's and Fisher's, exclude 0; beside it stands the paper's, which it reads off its "
    "figures, for the measures of its Section 4.2. Tables make no correction for the number of "
    "rows, claims do. Where signs differ, the networks do: those here are smaller, and trained on "
    "fewer images."
)


def figure_2(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """Robustness over accuracy for each data set, correlations, and the paper's finding."""
    sets = grouped(source, settings)
    parts: list[Part] = [Paragraph(WHY_SIGNS_DIFFER)]
    for name, title in SETS.items():
        panels = tradeoff_panels({title: sets[title]}, (DENSE, CONVOLUTIONAL))
        caption = f"Figure 2: {title}, deterministic networks over accuracy, with 95 % intervals"
        drawing = functools.partial(draw_tradeoffs, panels)
        parts.append(StudyFigure(f"figure-2-{name}", caption, drawing))
    measures = (*MEASURES, "proven R")
    found = trends(sets, (DETERMINISTIC, DENSE, CONVOLUTIONAL), measures)
    heading = "Figure 2: correlation with accuracy, deterministic networks"
    parts.append(trend_table("figure-2", heading, found, "negative"))
    for title in SETS.values():
        own = [each for each in found if each.place == title and each.group == DETERMINISTIC]
        claim = f"accuracy and robustness are at odds on {title} under SGD"
        parts.append(trade_claim(own, claim, "Section 4.2, Figure 2", "negative", BASIS))
    return parts


def hyper_parameters_step(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """Boxes of Figure 2: what capacity and training do to robustness."""
    sets = grouped(source, settings)
    parts: list[Part] = []
    rows: list[tuple[Cell, ...]] = []
    for name, title in SETS.items():
        group = sets[title].get(DETERMINISTIC)
        if group is None:
            continue
        for measure in MEASURES:
            caused = effects(group.members, measure)
            rows += [_effect_row(title, effect) for effect in caused]
            if measure == "R(gamma)" and caused:
                parts.append(_boxes(name, title, caused))
    columns = ("data", "measure", "hyper-parameter", "medians by value", "p", "p, Holm")
    heading = (
        "Figure 2, boxes: Kruskal and Wallis' test by permutation, and Holm's correction over the "
        "hyper-parameters of a row's data set and measure"
    )
    forms = ("", "", "", "", ".4f", ".4f")
    parts.append(StudyTable("hyper-parameters", heading, columns, tuple(rows), forms))
    for along, words, claim in (
        (
            "parameters",
            "the number of weights",
            "larger networks tend to be less robust under SGD",
        ),
        ("epochs", "epochs", "longer training tends to make networks less robust under SGD"),
    ):
        found = trends(sets, (DETERMINISTIC, DENSE, CONVOLUTIONAL), MEASURES, along)
        table = f"Figure 2, boxes: correlation with {words}, deterministic networks"
        parts.append(trend_table(f"hyper-parameters-{along}", table, found, "negative"))
        own = [trend for trend in found if trend.group == DETERMINISTIC]
        # Numbers of weights spread over orders of magnitude: their ranks are compared.
        cases = sign_cases(own, "spearman", "negative", BASIS)
        place = "Section 4.2, Figure 2"
        parts.append(StudyClaim(claim, place, f"rank {HOW}", cases, ClaimScope.MOST))
    return parts


def _boxes(name: str, title: str, caused: Sequence[Effect]) -> StudyFigure:
    boxes = {effect.parameter: dict(effect.groups) for effect in caused}
    caption = f"Figure 2, boxes: {title}, R(0.5) of deterministic networks by hyper-parameter"
    return StudyFigure(
        f"hyper-parameters-{name}", caption, lambda: draw_hyper_parameters(boxes, "R(0.5)")
    )


def _effect_row(title: str, effect: Effect) -> tuple[Cell, ...]:
    medians = ", ".join(f"{value}: {statistics.median(own):.3f}" for value, own in effect.groups)
    measure = MEASURE_TITLES[effect.measure]
    return (title, measure, effect.parameter, medians, effect.p_value, effect.adjusted)
