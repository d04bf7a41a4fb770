"""Constraint security: which networks an attack on which property breaks, over eps (the figures).

Curves of networks of 100 units are means over seeds; that of the deep network is of one. What is
compared is the mean of a curve over all eps, which is the area below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from radii.plots import SeedCurve, draw_seed_curves
from radii.results import Float64
from radii.training.papers._steps import Paragraph, Part, StudyFigure, StudySettings
from radii.training.papers._tables import Cell, StudyTable
from radii.training.papers.properties._data import FASHION, TITLES, BallRegion, StudyImages
from radii.training.papers.properties._measures import ATTACK, CURVE_EPS, Measures, Spread
from radii.training.papers.properties._networks import (
    ADVERSARIAL,
    ALL_TRAININGS,
    AUGMENTATIONS,
    BASELINE,
    CONSTRAINTS,
    LR,
    SCR,
    SR,
    NetworkKind,
    PaperTraining,
)
from radii.training.papers.properties._numbers import EPS
from radii.training.papers.properties._sizes import HIDDEN_OF_ATTACKS, seeds_text
from radii.training.papers.properties._verdicts import (
    MARGIN,
    CaseFinding,
    finding,
    judged,
    percent,
)

ATTACKS = ("SR", "SCR", "LR")

MEASURE = "constraint security"

Curves = Mapping[str, Spread]
"""By training: a row for each seed, a column for each of `CURVE_EPS`."""


def curves_of(images: StudyImages, settings: StudySettings, data: str, attack: str) -> Curves:
    kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
    return Measures(images, settings).security(kind, attack, BallRegion.CLIPPED, ALL_TRAININGS)


def area(curves: Curves, how: PaperTraining) -> Float64:
    """The mean of a curve over eps, by seed."""
    return np.asarray(curves[how.name].values.mean(axis=1))


def security_at(curves: Curves, how: PaperTraining, eps: float = EPS) -> Spread:
    place = int(abs(CURVE_EPS - eps).argmin())
    return Spread(curves[how.name].values[:, place])


def training_lines(curves: Curves, trainings: Sequence[PaperTraining]) -> list[SeedCurve]:
    """Those of which a network learned something."""
    return [_line(how.title, curves[how.name]) for how in trainings if len(curves[how.name].known)]


def _line(name: str, spread: Spread) -> SeedCurve:
    return SeedCurve(name, CURVE_EPS, spread.mean, spread.low, spread.high)


def security_figure(
    name: str, title: str, panels: Mapping[str, Sequence[SeedCurve]]
) -> StudyFigure:
    return StudyFigure(name, title, lambda: draw_seed_curves(panels, measure=MEASURE, eps=EPS))


# --- Figures 2 and 12 to 14: one network, several attacks


def _by_attack(
    images: StudyImages, settings: StudySettings, data: str, how: PaperTraining
) -> list[SeedCurve]:
    found = {attack: curves_of(images, settings, data, attack)[how.name] for attack in ATTACKS}
    return [
        _line(f"{attack} attack", spread) for attack, spread in found.items() if len(spread.known)
    ]


def figure_2(images: StudyImages, settings: StudySettings) -> list[Part]:
    panels = {
        f"{TITLES[FASHION]}, trained for {how.title}": _by_attack(images, settings, FASHION, how)
        for how in (LR, SR)
    }
    stronger, hardest = {}, {}
    for data in TITLES:
        found = {attack: curves_of(images, settings, data, attack) for attack in ATTACKS}
        for attack in ("SR", "LR"):
            with_lr, with_sr = (area(found[attack], how) for how in (LR, SR))
            stronger[f"{TITLES[data]}, {attack} attack"] = finding(
                with_lr >= with_sr + MARGIN,
                f"{percent(with_lr)} for {percent(with_sr)}",
                with_lr,
                with_sr,
            )
        for how in (SR, LR):
            areas = {attack: area(found[attack], how) for attack in ATTACKS}
            told = ", ".join(f"{attack} {percent(value)}" for attack, value in areas.items())
            is_least = areas["LR"] < np.minimum(areas["SR"], areas["SCR"])
            hardest[f"{TITLES[data]}, trained for {how.title}"] = finding(
                is_least, told, *areas.values()
            )
    return [
        Paragraph(_setting(images, settings)),
        security_figure("figure-2", "Figure 2: two networks under three attacks", panels),
        judged(
            "A network trained for LR is more secure than one trained for SR, against SR and LR "
            "attacks alike",
            "Section 4.1, Figure 2",
            stronger,
        ),
        judged(
            "Networks trained for SR or LR are less secure against LR attacks than against others",
            "Section 4.1, Figure 2",
            hardest,
        ),
    ]


def _setting(images: StudyImages, settings: StudySettings) -> str:
    measures = Measures(images, settings)
    sizes = measures.sizes
    tried = ", ".join(f"{eps:g}" for eps in sizes.attack_eps)
    return (
        f"The share of the first {sizes.attacked} test images without a counterexample within eps, "
        f"by the attack `{ATTACK}` at eps = {tried}; a counterexample counts from its own distance "
        f"on. Networks of {HIDDEN_OF_ATTACKS} units, mean and range over "
        f"{seeds_text(sizes.seeds)}; balls are clipped to valid images, in "
        "training and in the attack. The dotted line is the eps of training. The paper's figures "
        "have no numbers to be held against: its claims are. Comparisons are of the mean over eps "
        "from "
        f"{CURVE_EPS[0]:g} to {CURVE_EPS[-1]:g}."
    )


def figures_12_to_14(images: StudyImages, settings: StudySettings) -> list[Part]:
    panels = {
        f"{TITLES[data]}, {how.title}": _by_attack(images, settings, data, how)
        for data in TITLES
        for how in (ADVERSARIAL, SR, LR)
    }
    title = "Figures 12 to 14: networks trained adversarially, for SR and for LR, by attack"
    return [security_figure("figures-12-14", title, panels)]


# --- Figures 5 to 11: one attack, several networks


def figure_5(images: StudyImages, settings: StudySettings) -> list[Part]:
    trainings = (BASELINE, *CONSTRAINTS)
    found = {
        (data, attack): curves_of(images, settings, data, attack)
        for data in TITLES
        for attack in ("SR", "SCR")
    }
    panels = {
        f"{TITLES[data]}, SR attack": training_lines(found[data, "SR"], trainings)
        for data in TITLES
    }
    cases = {}
    for data in TITLES:
        for attack, how in (("SR", SCR), ("SCR", SR)):
            own, base = (area(found[data, attack], each) for each in (how, BASELINE))
            cases[f"{TITLES[data]}, {how.title} against {attack} attacks"] = finding(
                own < base + 5 * MARGIN,
                f"{percent(own)} for the baseline's {percent(base)}",
                own,
                base,
            )
    return [
        security_figure(
            "figure-5", "Figure 5: networks trained for one property, under SR attacks", panels
        ),
        judged(
            "Training for SCR does not help against SR attacks, nor training for SR against SCR "
            "attacks (by less than 5 points)",
            "Section 4.3, Figure 5",
            cases,
        ),
    ]


def figures_6_to_8(images: StudyImages, settings: StudySettings) -> list[Part]:
    trainings = (BASELINE, *AUGMENTATIONS, ADVERSARIAL, SR)
    found = _by_data(images, settings)
    best = {
        f"{TITLES[data]}, {attack} attack": _best_case(curves)
        for (data, attack), curves in found.items()
        if attack != "LR"
    }
    title = "Figures 6 to 8: augmentation, adversarial training and SR, by attack"
    return [
        security_figure("figures-6-8", title, _panels(found, trainings)),
        judged(
            "Adversarial training is the best defence against SR and SCR attacks, training for LR "
            "the next",
            "Appendix C.3",
            best,
        ),
    ]


def _best_case(curves: Curves) -> CaseFinding:
    """What learned nothing is no rival; ties do not count as more."""
    areas = {how: area(curves, how) for how in ALL_TRAININGS}
    means = {how: float(curves[how.name].mean.mean()) for how in ALL_TRAININGS}
    ranked = sorted(
        (how for how, mean in means.items() if np.isfinite(mean)), key=lambda how: -means[how]
    )
    told = ", ".join(f"{how.title} {percent(areas[how])}" for how in ranked[:3])
    others = np.max([np.nan_to_num(areas[how]) for how in NEITHER_BEST], axis=0)
    first, second = areas[ADVERSARIAL], areas[LR]
    if np.all(abs(first - second) < TIE):
        told += " (the first two tie)"
    return finding((first > second) & (second > others), told, first, second)


TIE = 1e-9
"""Shares that differ by less are equal."""

NEITHER_BEST = tuple(how for how in ALL_TRAININGS if how not in (ADVERSARIAL, LR))


def figures_9_to_11(images: StudyImages, settings: StudySettings) -> list[Part]:
    found = _by_data(images, settings)
    panels = _panels(found, (BASELINE, *CONSTRAINTS))
    cases = {TITLES[data]: _lipschitz_case(found[data, "LR"], data) for data in TITLES}
    return [
        security_figure(
            "figures-9-11", "Figures 9 to 11: networks trained for one property", panels
        ),
        judged(
            "No network is secure against LR attacks, but that trained for LR on Fashion-MNIST",
            "Appendix C.2",
            cases,
        ),
    ]


def _lipschitz_case(curves: Curves, data: str) -> CaseFinding:
    """Secure: more than a twentieth of the images at the eps of training."""
    shares = {how: security_at(curves, how).values for how in ALL_TRAININGS}
    secure = {how: np.nan_to_num(share) > 5 * MARGIN for how, share in shares.items()}
    told = ", ".join(f"{how.title} {percent(shares[how])}" for how in secure if secure[how].any())
    as_said = [secure[how] == (how is LR and data == FASHION) for how in ALL_TRAININGS]
    return finding(np.all(as_said, axis=0), f"{told or 'none is'} at eps = {EPS:g}", shares[LR])


def _by_data(images: StudyImages, settings: StudySettings) -> dict[tuple[str, str], Curves]:
    return {
        (data, attack): curves_of(images, settings, data, attack)
        for data in TITLES
        for attack in ATTACKS
    }


def _panels(
    found: Mapping[tuple[str, str], Curves], trainings: Sequence[PaperTraining]
) -> dict[str, list[SeedCurve]]:
    return {
        f"{TITLES[data]}, {attack} attack": training_lines(curves, trainings)
        for (data, attack), curves in found.items()
    }


# --- numbers of all networks


def security_table(images: StudyImages, settings: StudySettings) -> list[Part]:
    rows: list[tuple[Cell, ...]] = []
    for data in TITLES:
        found = {attack: curves_of(images, settings, data, attack) for attack in ATTACKS}
        for how in ALL_TRAININGS:
            row: list[Cell] = [TITLES[data], how.title]
            for curves in found.values():
                at = security_at(curves, how)
                row += [at.percent_text, at.percent_range]
            rows.append(tuple(row))
    columns = [f"{attack}{text}" for attack in ATTACKS for text in ("", ", range")]
    title = f"Constraint security (Figures 2 to 14) at eps = {EPS:g} in %, on clipped balls"
    return [
        StudyTable("security", title, ("data", "training", *columns), tuple(rows)),
        Paragraph("What an attack does not break is not proven: Table 1 has proofs."),
    ]
