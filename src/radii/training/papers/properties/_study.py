"""The study of "Neural Network Robustness as a Verification Property", in the paper's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from radii.training.papers._steps import (
    ClaimVerdict,
    PaperStep,
    PaperStudy,
    Part,
    StudyClaim,
    StudyScale,
    StudySection,
    StudySettings,
)
from radii.training.papers.properties import (
    _accuracy,
    _augmentation,
    _sampling,
    _satisfaction,
    _security,
)
from radii.training.papers.properties._data import StudyImages, read_images

INTRODUCTION = (
    "The paper asks what training for one notion of robustness does for another, and answers with "
    "constraint satisfaction (a proof), security (an attack) and accuracy (random points). It "
    "published no networks: here they are trained again, on Fashion-MNIST and on ten classes of "
    "GTSRB, proven, attacked and sampled, and each of its claims is put "
    "to the test. Properties are as in [the list of properties](../properties.md).",
    "Not here: Figures 1 and 4 and Table 2 (drawings and opinions: no measurements).",
)

TOO_BRIEF = "networks of scale small are trained too briefly to tell: use --scale machine"
"""Small weights keep SR everywhere: such networks neither confirm nor refute a claim."""


def withheld(parts: Sequence[Part], scale: StudyScale) -> list[Part]:
    """The parts of a step, without verdicts where networks are unlike the paper's."""
    if scale is not StudyScale.SMALL:
        return list(parts)
    return [
        replace(part, verdict=ClaimVerdict.OPEN, found=f"{TOO_BRIEF}; {part.found}")
        if isinstance(part, StudyClaim)
        else part
        for part in parts
    ]


def _step(
    name: str, heading: str, make: Callable[[StudyImages, StudySettings], Sequence[Part]]
) -> PaperStep[StudyImages]:
    def judged_step(images: StudyImages, settings: StudySettings) -> list[Part]:
        return withheld(make(images, settings), settings.scale)

    return PaperStep(name, heading, judged_step)


SECTIONS: tuple[StudySection[StudyImages], ...] = (
    StudySection(
        "The networks",
        (
            _step("learning", "Which networks count", _accuracy.learning),
            _step("table-3", "Table 3: accuracy", _accuracy.table_3),
        ),
    ),
    StudySection(
        "Constraint satisfaction",
        (_step("table-1", "Table 1: proofs", _satisfaction.table_1),),
    ),
    StudySection(
        "Constraint security",
        (
            _step("figure-2", "Figure 2: SR and LR", _security.figure_2),
            _step("figure-5", "Figure 5: constraints", _security.figure_5),
            _step("figures-6-8", "Figures 6 to 8: all trainings", _security.figures_6_to_8),
            _step("figures-9-11", "Figures 9 to 11: constraints", _security.figures_9_to_11),
            _step("figures-12-14", "Figures 12 to 14: attacks", _security.figures_12_to_14),
            _step("security", "All networks at one eps", _security.security_table),
        ),
    ),
    StudySection(
        "Augmentation",
        (
            _step("augmentation", "Points made once, or in each batch", _augmentation.augmentation),
            _step("figure-3", "Figure 3: a small and a deep network", _augmentation.figure_3),
        ),
    ),
    StudySection(
        "Constraint accuracy",
        (_step("section-3", "Section 3: random points", _sampling.constraint_accuracy),),
    ),
)

PROPERTIES: PaperStudy[StudyImages] = PaperStudy(
    name="properties",
    title="Robustness as a property, trained for and proven",
    paper=(
        "Casadio, Komendantskaya, Daggitt, Kokke, Katz, Amir and Refaeli, Neural Network "
        "Robustness as a Verification Property: A Principled Case Study, CAV 2022"
    ),
    introduction=INTRODUCTION,
    read=read_images,
    files=lambda images: images.files,
    sections=SECTIONS,
)
