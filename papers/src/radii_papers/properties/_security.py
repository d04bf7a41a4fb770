"""Constraint security: which networks an attack on which property breaks, over eps (the figures).

Curves of networks of 100 units are means over seeds; that of the deep network is of one. What is
compared is the mean of a curve over all eps, which is the area below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from radii.statistics import Float64
from radii_papers._evidence import ClaimBasis, ClaimCase, StudyClaim
from radii_papers._steps import Paragraph, Part, StudyFigure, StudySettings
from radii_papers._tables import Cell, StudyTable
from radii_papers.figures import SeedCurve, draw_seed_curves
from radii_papers.properties._data import FASHION, TITLES, BallRegion, StudyImages
from radii_papers.properties._measures import ATTACK, CURVE_EPS, Measures, Spread
from radii_papers.properties._networks import (
    ADVERSARIAL,
    ALL_TRAININGS,
    AUGMENTATIONS,
    BASELINE,
    CONSTRAINTS,
    LR,
    PAPER_TRAININGS,
    SCR,
    SR,
    NetworkKind,
    PaperTraining,
)
from radii_papers.properties._numbers import EPS
from radii_papers.properties._sizes import HIDDEN_OF_ATTACKS, seeds_text
from radii_papers.properties._verdicts import (
    HOW,
    basis_of,
    gain_case,
    gains_case,
    share_case,
    shares_case,
)

LITTLE = 5.0
"""Per cent or points: less than this is no help, and no security."""

ATTACKS = ("SR", "SCR", "LR")

MEASURE = "constraint security"

Curves = Mapping[str, Float64]
"""By training, seed, image and eps of `CURVE_EPS`: 1 without a counterexample, NaN unlearned."""


def curves_of(images: StudyImages, settings: StudySettings, data: str, attack: str) -> Curves:
    kind = NetworkKind(data, HIDDEN_OF_ATTACKS)
    return Measures(images, settings).security(kind, attack, BallRegion.CLIPPED, ALL_TRAININGS)


def area(curves: Curves, how: PaperTraining) -> Float64:
    """The mean of a curve over eps, by seed (rows) and image (columns)."""
    return np.asarray(curves[how.name].mean(axis=2))


def curve(curves: Curves, how: PaperTraining) -> Spread:
    """The share of images without a counterexample, by seed and eps."""
    return Spread(curves[how.name].mean(axis=1))


def area_percent(curves: Curves, how: PaperTraining) -> str | None:
    return Spread(area(curves, how).mean(axis=1)).percent_text


def standing_at(curves: Curves, how: PaperTraining, eps: float = EPS) -> Float64:
    """By seed and image: 1 without a counterexample within eps."""
    return curves[how.name][:, :, int(abs(CURVE_EPS - eps).argmin())]


def security_at(curves: Curves, how: PaperTraining, eps: float = EPS) -> Spread:
    return Spread(standing_at(curves, how, eps).mean(axis=1))


def training_lines(curves: Curves, trainings: Sequence[PaperTraining]) -> list[SeedCurve]:
    """Those of which a network learned something."""
    lines = {how.title: curve(curves, how) for how in trainings}
    return [_line(title, spread) for title, spread in lines.items() if len(spread.known)]


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
    found = {attack: curve(curves_of(images, settings, data, attack), how) for attack in ATTACKS}
    return [
        _line(f"{attack} attack", spread) for attack, spread in found.items() if len(spread.known)
    ]


def figure_2(images: StudyImages, settings: StudySettings) -> list[Part]:
    panels = {
        f"{TITLES[FASHION]}, trained for {how.title}": _by_attack(images, settings, FASHION, how)
        for how in (LR, SR)
    }
    found = _by_data(images, settings)
    return [
        Paragraph(_setting(images, settings)),
        security_figure("figure-2", "Figure 2: two networks under three attacks", panels),
        StudyClaim(
            "A network trained for LR is more secure than one trained for SR, against SR and LR "
            "attacks alike",
            "Section 4.1, Figure 2",
            HOW,
            tuple(
                gain_case(
                    f"{TITLES[data]}, {attack} attack", basis_of(settings, data),
                    area(curves, LR), area(curves, SR), 2 * len(TITLES), above=0,
                )
                for (data, attack), curves in found.items()
                if attack != "SCR"
            ),
        ),
        StudyClaim(
            "Networks trained for SR or LR are less secure against LR attacks than against others",
            "Section 4.1, Figure 2",
            f"LR attack, and each of SR and SCR; {HOW}",
            tuple(
                _hardest_case(found, data, how, basis_of(settings, data))
                for data in TITLES
                for how in (SR, LR)
            ),
        ),
    ]  # fmt: skip


def _hardest_case(
    found: Mapping[tuple[str, str], Curves], data: str, how: PaperTraining, basis: ClaimBasis
) -> ClaimCase:
    own = area(found[data, "LR"], how)
    pairs = {f"{attack} attack": (own, area(found[data, attack], how)) for attack in ("SR", "SCR")}
    name = f"{TITLES[data]}, trained for {how.title}"
    return gains_case(name, basis, pairs, 2 * len(TITLES), below=0)


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
    return [
        security_figure(
            "figure-5", "Figure 5: networks trained for one property, under SR attacks", panels
        ),
        StudyClaim(
            "Training for SCR does not help against SR attacks, nor training for SR against SCR "
            f"attacks (by less than {LITTLE:g} points)",
            "Section 4.3, Figure 5",
            HOW,
            tuple(
                gain_case(
                    f"{TITLES[data]}, {how.title} against {attack} attacks",
                    basis_of(settings, data), area(found[data, attack], how),
                    area(found[data, attack], BASELINE), 2 * len(TITLES), below=LITTLE,
                )
                for data in TITLES
                for attack, how in (("SR", SCR), ("SCR", SR))
            ),
        ),
    ]  # fmt: skip


def figures_6_to_8(images: StudyImages, settings: StudySettings) -> list[Part]:
    trainings = (BASELINE, *AUGMENTATIONS, ADVERSARIAL, SR)
    found = _by_data(images, settings)
    title = "Figures 6 to 8: augmentation, adversarial training and SR, by attack"
    return [
        security_figure("figures-6-8", title, _panels(found, trainings)),
        StudyClaim(
            "Adversarial training is the best defence against SR and SCR attacks, training for LR "
            "the next",
            "Appendix C.3",
            HOW,
            tuple(
                case
                for (data, attack), curves in found.items()
                if attack != "LR"
                for case in _best_cases(
                    f"{TITLES[data]}, {attack} attack", curves, basis_of(settings, data)
                )
            ),
        ),
    ]


def _best_cases(name: str, curves: Curves, basis: ClaimBasis) -> list[ClaimCase]:
    first, second = area(curves, ADVERSARIAL), area(curves, LR)
    others = {how.title: (second, area(curves, how)) for how in NEITHER_BEST}
    of = 4 * len(TITLES)
    return [
        gain_case(f"{name}, adversarial and LR", basis, first, second, of, above=0),
        gains_case(f"{name}, LR and the others", basis, others, of, above=0),
    ]


NEITHER_BEST = tuple(how for how in PAPER_TRAININGS if how not in (ADVERSARIAL, LR))


def figures_9_to_11(images: StudyImages, settings: StudySettings) -> list[Part]:
    found = _by_data(images, settings)
    panels = _panels(found, (BASELINE, *CONSTRAINTS))
    return [
        security_figure(
            "figures-9-11", "Figures 9 to 11: networks trained for one property", panels
        ),
        StudyClaim(
            "No network is secure against LR attacks, but that trained for LR on Fashion-MNIST "
            f"(at eps = {EPS:g}, more than {LITTLE:g} % of the images)",
            "Appendix C.2",
            f"each of the paper's trainings; {HOW}",
            tuple(
                case
                for data in TITLES
                for case in _lipschitz_cases(found[data, "LR"], data, basis_of(settings, data))
            ),
        ),
    ]


def _lipschitz_cases(curves: Curves, data: str, basis: ClaimBasis) -> list[ClaimCase]:
    of = len(TITLES) + 1
    name = TITLES[data]
    each = {how.title: standing_at(curves, how) for how in PAPER_TRAININGS}
    if data != FASHION:
        return [shares_case(name, basis, each, of, below=LITTLE)]
    secure = each.pop(LR.title)
    return [
        share_case(f"{name}, LR", basis, secure, of, above=LITTLE),
        shares_case(f"{name}, others", basis, each, of, below=LITTLE),
    ]


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
