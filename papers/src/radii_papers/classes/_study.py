"""The study of the per-class paper, in its order."""

from __future__ import annotations

from radii_papers._steps import PaperStep, PaperStudy, StudySection
from radii_papers.classes import (
    _clusters,
    _fairness,
    _networks,
    _one_to_any,
    _published,
    _retraining,
    _targets,
)
from radii_papers.classes._brackets import ONE_TO_ANY, TARGETED
from radii_papers.classes._source import ClassSource, read_source

INTRODUCTION = (
    "The paper measures how robust three MNIST networks are for images of each class, and for "
    "images of class 9 towards each other class. It published no brackets, and prints few numbers: "
    "all radii here are radii's own, on a draw of its own from the same classes, of the two "
    "networks whose files are at hand; that of the third, `mnist_relu_4_1024`, is public as well, "
    "and a clone of the JAIR paper's repository as `--data` has it measured too; without it, the "
    "brackets that the JAIR paper published are read by class.",
    "A witnessed distance is that of the closest counterexample found: the radius is at most that. "
    "The paper's radii are lower bounds. Figures and tests of witnessed distances use every image; "
    "proofs are of fewer, and stand beside them.",
)

SECTIONS: tuple[StudySection[ClassSource], ...] = (
    StudySection(
        "Appendix A: the networks",
        (PaperStep("table-1", "Table 1: recall by class", _networks.network_table),),
    ),
    StudySection(
        "Section 4.1: whole networks",
        (
            PaperStep(ONE_TO_ANY, "Figure 1: networks", _one_to_any.whole_networks),
            PaperStep("figure-8", "Figure 8: tests", _one_to_any.network_tests),
        ),
    ),
    StudySection(
        "Section 4.2: classes, one-to-any",
        (
            PaperStep("figure-2", "Figure 2: boxes by class", _one_to_any.class_boxes),
            PaperStep("figure-3", "Figure 3: curves", _one_to_any.class_curves_figure),
            PaperStep("figure-4", "Figure 4: image by image", _one_to_any.class_points),
            PaperStep("figure-9", "Figure 9: tests between classes", _one_to_any.class_tests),
            PaperStep(
                "figure-10", "Figure 10: tests between networks", _one_to_any.networks_by_class
            ),
        ),
    ),
    StudySection(
        "Section 4.3: targets",
        (
            PaperStep(TARGETED, "Figure 5: boxes by target", _targets.target_boxes),
            PaperStep("figure-6", "Figure 6: curves", _targets.target_curves),
            PaperStep("figure-7", "Figure 7: image by image", _targets.target_points),
            PaperStep("figure-11", "Figure 11: tests between targets", _targets.target_tests),
            PaperStep(
                "figure-12", "Figure 12: tests between networks", _targets.networks_by_target
            ),
        ),
    ),
    StudySection(
        "What the paper leaves open",
        (
            PaperStep("clusters", "Three clusters?", _clusters.clusters),
            PaperStep("recall", "Robust recall, and classes in order", _fairness.recall_table),
            PaperStep("fairness", "A measure of fairness", _fairness.fairness_step),
            PaperStep("retraining", "Retraining for balance", _retraining.retraining),
            PaperStep("published", "Published brackets by class", _published.published_classes),
        ),
    ),
)

CLASSES_STUDY: PaperStudy[ClassSource] = PaperStudy(
    name="classes",
    title="Robustness by class",
    paper=(
        "Bosman, Münz, Hoos and van Rijn, A Preliminary Study to Examining Per-Class Performance "
        "Bias via Robustness Distributions"
    ),
    introduction=INTRODUCTION,
    read=read_source,
    files=lambda source: source.files,
    sections=SECTIONS,
)
