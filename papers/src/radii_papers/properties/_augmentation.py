"""Figure 3: data augmentation, in a small network and in a deep one, made once or in each batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from radii_papers._evidence import ClaimBasis, ClaimCase, StudyClaim
from radii_papers._steps import Paragraph, Part, StudySettings
from radii_papers._tables import Cell, StudyTable
from radii_papers.properties._data import FASHION, TITLES, BallRegion, StudyImages
from radii_papers.properties._measures import Measures
from radii_papers.properties._networks import (
    ADVERSARIAL,
    ALL_TRAININGS,
    AUGMENTATIONS,
    BASELINE,
    CONSTRAINTS,
    FGSM_ONCE,
    PAPER_AUGMENTATIONS,
    SCR,
    UNIFORM_ONCE,
    deep_kind,
    training_images,
)
from radii_papers.properties._numbers import EPS
from radii_papers.properties._security import (
    Curves,
    area,
    area_percent,
    curves_of,
    security_at,
    security_figure,
    training_lines,
)
from radii_papers.properties._sizes import HIDDEN_OF_ATTACKS
from radii_papers.properties._verdicts import HOW, basis_of, gain_case, gains_case

MADE_ONCE = (
    "The paper's public scripts make the points once, before training; networks whose points are "
    "made anew in each batch stand in the table, and are no cases."
)
OUR_DEEP = "The paper's network has 18 layers as well, and is not described further."


def figure_3(images: StudyImages, settings: StudySettings) -> list[Part]:
    measures = Measures(images, settings)
    small = curves_of(images, settings, FASHION, "SR")
    deep = {
        attack: measures.security(deep_kind(), attack, BallRegion.CLIPPED, ALL_TRAININGS)
        for attack in ("SR", "SCR")
    }
    panels = {
        f"{HIDDEN_OF_ATTACKS} units, SR attack": training_lines(small, ALL_TRAININGS),
        "18 layers, SR attack": training_lines(deep["SR"], ALL_TRAININGS),
        "18 layers, SCR attack": training_lines(deep["SCR"], ALL_TRAININGS),
    }
    return [
        Paragraph(_deep_setting(images, measures)),
        security_figure("figure-3", "Figure 3: a small and a deep network, Fashion-MNIST", panels),
        _deep_table(measures, deep),
        StudyClaim(
            "In a deep network augmentation is better than the baseline, and lags behind all other "
            "modes of constraint-driven training",
            "Section 4.2, Figure 3",
            "each augmentation, and the baseline; each augmentation, and adversarial training and "
            f"each constraint; {HOW}",
            tuple(
                case
                for attack, curves in deep.items()
                for case in _deep_cases(f"{attack} attack", curves)
            ),
            note=OUR_DEEP,
        ),
        StudyClaim(
            "A network trained on augmented data is more prone to SCR attacks than one trained "
            "for SCR",
            "Section 4.2, Figure 3",
            HOW,
            tuple(
                gain_case(
                    how.title, ClaimBasis.OURS, area(deep["SCR"], how), area(deep["SCR"], SCR),
                    len(PAPER_AUGMENTATIONS), below=0,
                )
                for how in PAPER_AUGMENTATIONS
            ),
            note=OUR_DEEP,
        ),
    ]  # fmt: skip


def _deep_setting(images: StudyImages, measures: Measures) -> str:
    sizes = measures.sizes
    used = len(training_images(images.sets[FASHION], deep_kind(), sizes))
    return (
        f"The deep network is `{sizes.deep}`: a convolution, eight residual blocks of two and a "
        "dense layer, 18 in all, as many as the paper's; the numbers of filters, and that there is "
        f"no batch normalisation, are ours. It is trained on {used:,} images, {sizes.deep_epochs} "
        f"epochs of batches of {sizes.deep_batch} at a rate of {sizes.deep_rate:g}, with one seed, "
        f"and attacked on {sizes.deep_attacked} images."
    )


def _deep_table(measures: Measures, deep: Mapping[str, Curves]) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for how in ALL_TRAININGS:
        accuracy = measures.network(deep_kind(), how, 0).accuracy
        cells = [security_at(deep[attack], how).percent_text for attack in deep]
        means = [area_percent(deep[attack], how) for attack in deep]
        rows.append((how.title, f"{100 * accuracy:.1f}", *cells, *means))
    columns = [f"{attack} at {EPS:g}" for attack in deep] + [f"{attack}, mean" for attack in deep]
    title = "The deep network of Figure 3: accuracy and constraint security in %, clipped balls"
    return StudyTable("figure-3-deep", title, ("training", "accuracy", *columns), tuple(rows))


def _deep_cases(name: str, curves: Curves) -> list[ClaimCase]:
    """The deep network is ours at every scale: the paper's filters are not known."""
    base, own = area(curves, BASELINE), {how: area(curves, how) for how in PAPER_AUGMENTATIONS}
    better = {how.title: (each, base) for how, each in own.items()}
    behind = {
        f"{how.title} and {other.title}": (each, area(curves, other))
        for how, each in own.items()
        for other in (ADVERSARIAL, *CONSTRAINTS)
    }
    basis = ClaimBasis.OURS
    return [
        gains_case(f"{name}, augmentation and baseline", basis, better, 4, above=0),
        gains_case(f"{name}, augmentation and the others", basis, behind, 4, below=0),
    ]


def augmentation(images: StudyImages, settings: StudySettings) -> list[Part]:
    """Points made once, or anew in each batch: is augmentation worse than the baseline?"""
    worse, uniform_worse = [], []
    rows: list[tuple[Cell, ...]] = []
    for data in TITLES:
        found = {attack: curves_of(images, settings, data, attack) for attack in ("SR", "SCR")}
        for how in (BASELINE, *AUGMENTATIONS, ADVERSARIAL):
            row: list[Cell] = [TITLES[data], how.title]
            for attack in found:
                at = security_at(found[attack], how)
                row += [at.percent_text, at.percent_range]
                row.append(area_percent(found[attack], how))
            rows.append(tuple(row))
        basis, areas = basis_of(settings, data), partial(area, found["SR"])
        of = len(TITLES) * len(PAPER_AUGMENTATIONS)
        worse += [
            gain_case(
                f"{TITLES[data]}, {how.title}", basis, areas(how), areas(BASELINE), of, below=0
            )
            for how in PAPER_AUGMENTATIONS
        ]
        uniform_worse.append(
            gain_case(
                TITLES[data], basis, areas(UNIFORM_ONCE), areas(FGSM_ONCE), len(TITLES), below=0
            )
        )
    columns = [
        f"{attack}{text}"
        for attack in ("SR", "SCR")
        for text in (f" at {EPS:g}", ", range", ", mean over eps")
    ]
    title = "Augmentation (Figure 3): constraint security in %, clipped balls"
    return [
        StudyTable("augmentation", title, ("data", "training", *columns), tuple(rows)),
        StudyClaim(
            "Training on augmented data is worse than the baseline, against SR attacks",
            "Section 4.2, Figure 3, Appendix C.1",
            HOW,
            tuple(worse),
            note=MADE_ONCE,
        ),
        StudyClaim(
            "Augmentation with uniform points is less successful than with FGSM",
            "Section 4.2, Figure 3",
            HOW,
            tuple(uniform_worse),
            note=MADE_ONCE,
        ),
    ]
