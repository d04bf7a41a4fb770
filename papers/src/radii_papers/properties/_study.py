"""The study of "Neural Network Robustness as a Verification Property", in the paper's order."""

from __future__ import annotations

from radii_papers._steps import PaperStep, PaperStudy, StudySection
from radii_papers.properties import (
    _accuracy,
    _augmentation,
    _sampling,
    _satisfaction,
    _security,
)
from radii_papers.properties._data import StudyImages, read_images

INTRODUCTION = (
    "The paper asks what training for one notion of robustness does for another, and answers with "
    "constraint satisfaction (a proof), security (an attack) and accuracy (random points). Its "
    "repository has scripts and no networks: here they are trained again, on Fashion-MNIST and on "
    "ten classes of GTSRB, proven, attacked and sampled. What networks of ours show decides no "
    "claim of the paper; it stands beside each. Properties are as in [the list of "
    "properties](../properties.md).",
    "Not here: Figures 1 and 4 and Table 2 (drawings and opinions: no measurements).",
)

SECTIONS: tuple[StudySection[StudyImages], ...] = (
    StudySection(
        "The networks",
        (
            PaperStep("learning", "Which networks count", _accuracy.learning),
            PaperStep("table-3", "Table 3: accuracy", _accuracy.table_3),
        ),
    ),
    StudySection(
        "Constraint satisfaction",
        (PaperStep("table-1", "Table 1: proofs", _satisfaction.table_1),),
    ),
    StudySection(
        "Constraint security",
        (
            PaperStep("figure-2", "Figure 2: SR and LR", _security.figure_2),
            PaperStep("figure-5", "Figure 5: constraints", _security.figure_5),
            PaperStep("figures-6-8", "Figures 6 to 8: all trainings", _security.figures_6_to_8),
            PaperStep("figures-9-11", "Figures 9 to 11: constraints", _security.figures_9_to_11),
            PaperStep("figures-12-14", "Figures 12 to 14: attacks", _security.figures_12_to_14),
            PaperStep("security", "All networks at one eps", _security.security_table),
        ),
    ),
    StudySection(
        "Augmentation",
        (
            PaperStep(
                "augmentation", "Points made once, or in each batch", _augmentation.augmentation
            ),
            PaperStep("figure-3", "Figure 3: a small and a deep network", _augmentation.figure_3),
        ),
    ),
    StudySection(
        "Constraint accuracy",
        (PaperStep("section-3", "Section 3: random points", _sampling.constraint_accuracy),),
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
