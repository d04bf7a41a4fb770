"""The study of "Robustness Distributions in Neural Network Verification", in the paper's order."""

from __future__ import annotations

from radii_papers._steps import PaperStep, PaperStudy, StudySection
from radii_papers.distributions import (
    _attacks,
    _audit_tables,
    _brackets,
    _correlations,
    _families,
    _figures,
    _files,
    _ksearch,
    _networks,
    _quality,
    _samples,
    _statistics,
    _times,
    _trained,
)
from radii_papers.distributions._public import PublicResults, read_public

INTRODUCTION = (
    "The paper measures robustness distributions of 44 networks, and published its brackets. Here "
    "its tables and figures are made again from these files, beside its own numbers; then every "
    "lower bound of a network at hand is attacked, and it is asked by a test of the right level "
    "which distribution radii follow. Radii of the tables are the paper's: claimed, not proven by "
    "radii.",
    "`--data FOLDER` takes a clone of the paper's repository. Public, but not in the copy at hand, "
    "are some of its networks (the audit names them) and two tables of single queries, "
    "`per_epsilon_CIFAR_JAIR.csv` and `per_epsilon_MNIST_fomlas.csv`. Tables 1 and 4 and Figure 1 "
    "(k-binary search with k = 1, 4, 8 and 16) are measured anew. Not here: Tables 20 to 22 "
    "(settings of training: inputs, no results).",
)

SECTIONS: tuple[StudySection[PublicResults], ...] = (
    StudySection("The files", (PaperStep("files", "What is public", _files.files_table),)),
    StudySection(
        "Sections 3 and 4: conventionally trained networks",
        (
            PaperStep("section-3-2", "Critical terminations", _quality.critical_terminations),
            PaperStep("k-table", "Tables 1 and 4, Figure 1: k", _ksearch.search_table),
            PaperStep("figure-2", "Figure 2: boxes", _figures.training_boxes),
            PaperStep("figure-3", "Figure 3: curves", _figures.training_curves),
            PaperStep("figure-4", "Figure 4: training and testing, boxes", _figures.split_boxes),
            PaperStep("figure-5", "Figure 5: training and testing, curves", _figures.split_curves),
            PaperStep("splits", "Training against testing images", _figures.split_tests),
            PaperStep("figure-6", "Figure 6: correlations", _correlations.correlation_maps),
            PaperStep("figure-7", "Figure 7: pairs of networks", _correlations.correlation_points),
        ),
    ),
    StudySection(
        "Section 5: adversarially trained, fully connected",
        (
            PaperStep("table-2", "Table 2: quality", _quality.dense_quality),
            PaperStep("figure-8", "Figure 8: curves", _figures.dense_curves),
            PaperStep("figure-9", "Figure 9: boxes", _figures.dense_boxes),
        ),
    ),
    StudySection(
        "Section 6: adversarially trained, convolutional",
        (
            PaperStep("table-3", "Table 3: quality", _quality.convolutional_quality),
            PaperStep("figure-10", "Figure 10: curves", _figures.convolutional_curves),
            PaperStep("figure-11", "Figure 11: boxes", _figures.convolutional_boxes),
        ),
    ),
    StudySection(
        "Appendix",
        (
            PaperStep("table-5", "Table 5: lowest and mean", _statistics.conventional_table),
            PaperStep("table-6", "Table 6: 100 and 400 images", _samples.sizes_table),
            PaperStep("figure-12", "Figure 12: 100 and 400 images", _samples.sample_curves),
            PaperStep("table-7", "Table 7: times", _times.conventional_hours),
            PaperStep("table-8", "Table 8: MNIST", _statistics.mnist_table),
            PaperStep("table-9", "Table 9: CIFAR-10", _statistics.cifar_table),
            PaperStep("table-10", "Table 10: GTSRB", _statistics.gtsrb_table),
            PaperStep("rows-kept", "With every image kept", _statistics.kept_table),
            PaperStep("table-11", "Table 11: times on MNIST", _times.mnist_times),
            PaperStep("table-12", "Table 12: times on CIFAR-10", _times.cifar_times),
            PaperStep("table-13", "Table 13: times on GTSRB", _times.gtsrb_times),
            PaperStep("accuracies", "Tables 14 to 16: accuracies", _networks.accuracy_tables),
            PaperStep("architectures", "Tables 17 to 19: networks", _networks.architecture_tables),
            PaperStep("figure-13", "Figure 13: gaps on MNIST", _quality.mnist_gaps),
            PaperStep("figure-14", "Figure 14: gaps on CIFAR-10", _quality.cifar_gaps),
            PaperStep("figure-15", "Figure 15: gaps on GTSRB", _quality.gtsrb_gaps),
            PaperStep("table-23", "Table 23: both sides", _quality.sides_table),
        ),
    ),
    StudySection(
        "Beyond the paper",
        (
            PaperStep("families", "Which distribution?", _families.family_fits),
            PaperStep("audit", "The audit", _audit_tables.audit_step),
            PaperStep("sound-brackets", "Brackets of our own", _brackets.sound_brackets),
            PaperStep("trained", "Networks trained again", _trained.trained_networks),
            PaperStep("autoattack", "AutoAttack beside ours", _attacks.autoattack_table),
        ),
    ),
)

DISTRIBUTIONS: PaperStudy[PublicResults] = PaperStudy(
    name="distributions",
    title="The published distributions, read again",
    paper=(
        "Bosman, Berger, Hoos and van Rijn, Robustness Distributions in Neural Network "
        "Verification, JAIR 2025"
    ),
    introduction=INTRODUCTION,
    read=read_public,
    files=lambda results: results.files,
    sections=SECTIONS,
)
