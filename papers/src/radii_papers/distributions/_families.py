"""Which distribution do radii follow? Four families and three shifted ones, by three questions.

The paper asks whether its check rejects a log-normal distribution. Which of several families
describes the brackets best (AIC), and which a test of the right level rejects, are other questions
with other answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radii.errors import InputError
from radii.statistics import FAMILIES, Distribution, Float64, GridFit, fit_on_grid, holm
from radii.views import draw_fits
from radii_papers._steps import Paragraph, Part, StudyFigure, StudyScale, StudySettings
from radii_papers._tables import Cell, StudyTable, share_text
from radii_papers.distributions._claims import USUAL, family_claims
from radii_papers.distributions._numbers import NOT_LOG_NORMAL, SIGNIFICANCE
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    GRID_STEPS,
    NETWORKS_OF_SECTION_4,
    SMALLEST_MNIST_EPS,
    SPLIT_NAMES,
    SPLITS,
    PublicResults,
    PublishedNetwork,
    Split,
)
from radii_papers.distributions._quality import log_normal_p_value

SIMULATIONS = {
    StudyScale.SMALL: (499, 99),
    StudyScale.MACHINE: (999, 199),
    StudyScale.FULL: (9999, 9999),
}
"""Samples of a test: of families that begin at 0, and of those with a free location."""

LARGEST_EPS = 0.6
"""Nothing was asked beyond."""

SHIFTED = tuple(name for name, family in FAMILIES.items() if family.is_positive)


@dataclass(frozen=True, slots=True, eq=False)
class FittedPart:
    """A network on a split: the paper's check, and every family that could be fitted.

    `fits` are of the brackets, `of_lower_sides` is the log-normal distribution fitted to the
    lower sides alone, each as one step of the grid.
    """

    network: PublishedNetwork
    split: Split
    inputs: int
    plain: float | None
    plain_shifted: float | None
    fits: tuple[GridFit, ...]
    of_lower_sides: GridFit | None

    def best(self, *, with_shifted: bool) -> GridFit:
        """By AIC, among the families that begin at 0 or among all."""
        return min((f for f in self.fits if with_shifted or not f.is_shifted), key=lambda f: f.aic)

    def fit(self, family: str, *, is_shifted: bool) -> GridFit | None:
        fits = [f for f in self.fits if f.family == family and f.is_shifted == is_shifted]
        return fits[0] if fits else None


def grid_of(network: PublishedNetwork) -> Float64:
    """The eps values that were asked about a network."""
    step = GRID_STEPS[network.dataset]
    start = SMALLEST_MNIST_EPS if network.dataset == "MNIST" else step
    return np.arange(start, LARGEST_EPS, step)


def fitted_part(
    results: PublicResults, network: PublishedNetwork, split: Split, simulations: tuple[int, int]
) -> FittedPart | None:
    """None where no family can be fitted. `simulations`: of families at 0, and of shifted ones."""
    part = results.part(network, split, is_dropped=False)
    dropped = results.part(network, split)
    if part is None or dropped is None:
        return None
    fits = []
    for name in FAMILIES:
        for is_shifted in (False, True):
            if is_shifted and name not in SHIFTED:
                continue
            fit = _fit(part, name, network, is_shifted, simulations[int(is_shifted)])
            fits += [] if fit is None else [fit]
    if not any(not fit.is_shifted for fit in fits):
        return None
    return FittedPart(
        network=network,
        split=split,
        inputs=fits[0].inputs,
        plain=log_normal_p_value(dropped.lower),
        plain_shifted=_plain_check_with_location(dropped, network),
        fits=tuple(fits),
        of_lower_sides=_fit(
            lower_sides(dropped, network), "lognormal", network, False, simulations[0]
        ),
    )


def lower_sides(part: Distribution, network: PublishedNetwork) -> Distribution:
    """Brackets of one step of the grid from the lower sides up, whatever the published upper sides.

    The test of brackets takes their widths to be independent of the radii within them. A claim
    about the lower sides needs no such assumption, which convolutional networks, of which nearly
    all brackets are wide, need not meet.
    """
    step = GRID_STEPS[network.dataset]
    return Distribution.from_arrays(part.lower, part.lower + step, network=network.name)


def _fit(
    part: Distribution, name: str, network: PublishedNetwork, is_shifted: bool, simulations: int
) -> GridFit | None:
    try:
        return fit_on_grid(
            part, name, grid_of(network), is_shifted=is_shifted, simulations=simulations
        )
    except InputError:  # too few brackets, or all the same: nothing to fit
        return None


def _plain_check_with_location(part: Distribution, network: PublishedNetwork) -> float | None:
    """The paper's check with a third parameter: proven sides above 0, parameters taken as known.

    They are fitted as intervals of one step around each value: the likelihood of exact values has
    no maximum over the location.
    """
    from scipy.stats import kstest

    values, half = part.lower[part.lower > 0], GRID_STEPS[network.dataset] / 2
    if values.size < 2:
        return None
    around = Distribution.from_arrays(values - half, values + half, network=network.name)
    try:
        fit = fit_on_grid(around, "lognormal", grid_of(network) + half, is_shifted=True)
    except InputError:
        return None
    return float(kstest(values, fit.broken).pvalue)


def family_fits(results: PublicResults, settings: StudySettings) -> list[Part]:
    """All families on all networks and splits, and which question has which answer."""
    simulations = SIMULATIONS[settings.scale]
    fitted = [
        part
        for network in ALL_NETWORKS
        for split in SPLITS
        if (part := fitted_part(results, network, split, simulations)) is not None
    ]
    sections = [part for part in fitted if part.network in NETWORKS_OF_SECTION_4]
    others = [part for part in fitted if part.network not in NETWORKS_OF_SECTION_4]
    joined = results.joined(NETWORKS_OF_SECTION_4, "test", is_dropped=False)
    parts: list[Part] = [
        Paragraph(_how(simulations)),
        questions_table(fitted),
        Paragraph(_answers(sections)),
        Paragraph(_short_answer(sections), is_finding=True),
    ]
    if joined is not None:
        title = "Four families over the twelve networks on testing images, with the best by AIC"
        parts.append(
            StudyFigure(
                "families",
                title,
                lambda: draw_fits(joined, families=tuple(FAMILIES), simulations=0),
            )
        )
    return [
        *parts,
        fits_table("families-conventional", "The twelve networks of Section 4", sections),
        fits_table("families-trained", "The networks of Sections 5 and 6", others),
        *family_claims(
            log_normal_tests(sections), log_normal_tests(_of_trained(others)), _own_check(sections)
        ),
    ]


def _how(simulations: tuple[int, int]) -> str:
    return (
        "Four families (log-normal, normal, Weibull, gamma) and three with a free location are "
        "fitted to the brackets as intervals on the grid that was asked, rows without an upper or "
        "lower side included as what they leave open. AIC says which describes the brackets best "
        "for its number of parameters. The test is a parametric bootstrap of the largest distance "
        f"between fit and data ({simulations[0]} samples, {simulations[1]} with a free location), "
        "each put on the grid and fitted anew, location included: so its level is right although "
        "parameters are fitted and values tie. The paper's check takes fitted parameters as known, "
        "which makes its p-values too large. Networks of which nothing varies (all radii 0) are "
        "left out. The paper's claims are of the lower sides. These are tested by themselves, each "
        "as one step of the grid: the test of brackets takes a bracket's width to say nothing of "
        "the radius within it, and of some networks nearly all brackets are wide."
    )


def fits_table(name: str, title: str, fitted: Sequence[FittedPart]) -> StudyTable:
    """One row for each network and split: p-values of all tests, and the best by AIC."""
    kinds = [(family, False) for family in FAMILIES] + [(family, True) for family in SHIFTED]
    rows = []
    for part in fitted:
        found = [part.fit(family, is_shifted=is_shifted) for family, is_shifted in kinds]
        row: list[Cell] = [part.network.title, part.split, part.inputs, part.plain]
        row += [part.plain_shifted, part.best(with_shifted=False).title]
        row += [part.best(with_shifted=True).title]
        row += [None if fit is None else fit.p_value for fit in found]
        rows.append(tuple(row))
    tests = [f"{'shifted ' if s else ''}{FAMILIES[family].title}" for family, s in kinds]
    columns = (
        *("network", "split", "rows", "paper's check, p", "with a location, p"),
        *("best of four", "best of seven", *tests),
    )
    forms = ("", "", "", ".3f", ".3f", "", "") + (".3f",) * len(tests)
    return StudyTable(name, f"{title}: p-values, and the smallest AIC", columns, tuple(rows), forms)


def _groups(fitted: Sequence[FittedPart]) -> dict[str, list[FittedPart]]:
    groups: dict[str, list[FittedPart]] = {}
    for part in fitted:
        is_first = part.network in NETWORKS_OF_SECTION_4
        name = "Section 4" if is_first else part.network.dataset
        groups.setdefault(f"{name}, {SPLIT_NAMES[part.split]}", []).append(part)
    return groups


def questions_table(fitted: Sequence[FittedPart]) -> StudyTable:
    """Which question has which answer, for each group of networks."""
    rows: list[tuple[Cell, ...]] = []
    for name, parts in _groups(fitted).items():
        rows.append(
            (
                name,
                len(parts),
                sum((part.plain or 0.0) >= SIGNIFICANCE for part in parts),
                sum((part.plain_shifted or 0.0) >= SIGNIFICANCE for part in parts),
                *(_accepted(parts, family, False) for family in FAMILIES),
                *(_accepted(parts, family, True) for family in SHIFTED),
                _winners(parts, with_shifted=False),
                _winners(parts, with_shifted=True),
            )
        )
    columns = (
        *("networks", "fitted", "paper's check", "with a location"),
        *(FAMILIES[family].title for family in FAMILIES),
        *(f"shifted {FAMILIES[family].title}" for family in SHIFTED),
        *("smallest AIC of four", "smallest AIC of seven"),
    )
    title = (
        "How many networks each family is not rejected for (5 %, uncorrected), and which has the "
        "smallest AIC"
    )
    return StudyTable("families-questions", title, columns, tuple(rows))


def _accepted(parts: Sequence[FittedPart], family: str, is_shifted: bool) -> int:
    fits = [part.fit(family, is_shifted=is_shifted) for part in parts]
    return sum(fit is not None and fit.p_value >= SIGNIFICANCE for fit in fits)


def _winners(parts: Sequence[FittedPart], *, with_shifted: bool) -> str:
    counts = Counter(part.best(with_shifted=with_shifted).title for part in parts)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def log_normal_tests(parts: Sequence[FittedPart]) -> list[tuple[str, int, float]]:
    """Name, rows and p-value of the lower sides of each network and split."""
    return [
        (f"{part.network.title}, {part.split}", fit.inputs, fit.p_value)
        for part in parts
        if (fit := part.of_lower_sides) is not None
    ]


def _own_check(sections: Sequence[FittedPart]) -> str:
    """What the paper's check says of these rows."""
    own = [part for part in sections if part.network.title not in NOT_LOG_NORMAL]
    if not own:
        return ""
    rejected = [part for part in own if part.plain is not None and part.plain < SIGNIFICANCE]
    return (
        "The paper's own check, which takes the fitted parameters as known, rejects "
        f"{share_text(len(rejected), len(own), 'of these distributions')} in the files."
    )


def _of_trained(others: Sequence[FittedPart]) -> list[FittedPart]:
    """Adversarially trained MNIST networks."""
    return [p for p in others if p.network.dataset == "MNIST" and p.network.training not in USUAL]


def _short_answer(sections: Sequence[FittedPart]) -> str:
    """Counts of the test by itself and after Holm's correction; the paper's exception is no part
    of what it says is log-normal, and counted apart."""
    own = [part for part in sections if part.network.title not in NOT_LOG_NORMAL]
    excepted = [part for part in sections if part.network.title in NOT_LOG_NORMAL]
    return (
        "Of the lower sides of the conventionally trained networks that the paper calls log-normal "
        f"a test of the right level rejects that for {_rejections(own)}; of "
        f"{', '.join(NOT_LOG_NORMAL)}, the paper's exception, for {_rejections(excepted)}. The "
        f"best of four families by AIC: {_winners(sections, with_shifted=False)}."
    )


def _rejections(parts: Sequence[FittedPart]) -> str:
    """`16 of 22 distributions uncorrected and 6 after Holm's correction`."""
    p_values = [p for *_, p in log_normal_tests(parts)]
    corrected = holm(p_values)
    return (
        f"{sum(p < SIGNIFICANCE for p in p_values)} of {len(p_values)} distributions uncorrected "
        f"and for {int((corrected < SIGNIFICANCE).sum())} after Holm's correction"
    )


def _answers(sections: Sequence[FittedPart]) -> str:
    """The questions about the twelve networks of Section 4, each with its answer."""
    if not sections:
        return "The files hold no rows of the twelve networks of Section 4."
    rejected = [
        f"{part.network.title} ({SPLIT_NAMES[part.split]})"
        for part in sections
        if part.plain is not None and part.plain < SIGNIFICANCE
    ]
    total = len(sections)
    level = {
        title: sum(f.p_value >= SIGNIFICANCE for p in sections for f in p.fits if f.title == title)
        for title in dict.fromkeys(f.title for p in sections for f in p.fits)
    }
    best = max(level, key=lambda title: level[title])
    shifted = sum((part.plain_shifted or 0.0) >= SIGNIFICANCE for part in sections)
    return (
        f"Of the twelve networks on both splits ({total} distributions): does the paper's check "
        f"reject a log-normal distribution? It does for {', '.join(rejected) or 'none'}; the paper "
        f"says for {', '.join(NOT_LOG_NORMAL)} alone. Does it with a free location? It does not "
        f"for {shifted} of {total}: three parameters, taken as known, fit nearly anything. Does a "
        f"test of the right level reject it? Of the brackets, uncorrected, it does for "
        f"{total - level.get('log-normal', 0)} of {total}. "
        "Which family describes the brackets best? By AIC, of the four: "
        f"{_winners(sections, with_shifted=False)}; of the seven: "
        f"{_winners(sections, with_shifted=True)}. Which is rejected least often? The {best}, not "
        f"rejected for {level[best]} of {total}. So that a log-normal distribution is not "
        "rejected by a weak test is no reason to extrapolate its tail."
    )
