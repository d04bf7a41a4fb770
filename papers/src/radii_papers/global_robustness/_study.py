"""The study of "Global adversarial robustness guarantees for neural networks", in its order."""

from __future__ import annotations

from radii_papers._steps import PaperStep, PaperStudy, StudySection
from radii_papers.global_robustness import (
    _bayesian,
    _convergence,
    _deterministic,
    _made,
    _proofs,
    _pruned,
)
from radii_papers.global_robustness._networks import (
    SETS,
    NetworkStudies,
    read_studies,
)

INTRODUCTION = (
    "The paper estimates how probable it is that a network is robust at an input, with a stated "
    "error, and asks over many networks how that goes with accuracy. It publishes neither networks "
    "nor numbers, only figures, so its findings are what ours stand beside. R is the share of "
    "inputs whose class is kept within a ball, R(0.5) the share at which no probability changes by "
    "0.5, D the mean largest change of a probability ([what they are](../global.md)). All three "
    "are those that an attack sees, as in the paper; 1 - D is drawn in place of D, so that more is "
    "better everywhere. The paper's text names no radii; ours are 0.05 on MNIST, 0.02 on "
    "Fashion-MNIST and 1/255 on CIFAR-10.",
    "The time in the first line is that of the last piece of each step; the text of each data set "
    "says what all its networks took. Networks of a grid are no random sample of all networks: "
    "correlations speak about networks of such grids. Networks of one's own: `radii study "
    "tradeoff` with a preset or a TOML file, and `radii study show`; with `--data FOLDER` this "
    "page is made from `mnist.toml`, `fashion.toml` and `cifar10.toml` there.",
)

SECTIONS: tuple[StudySection[NetworkStudies], ...] = (
    StudySection(
        "Appendix B: the networks",
        (
            PaperStep("grids", "The grids", _made.grids_step),
            *(
                PaperStep(f"networks-{name}", f"Networks on {title}", _made.networks_step(name))
                for name, title in SETS.items()
            ),
            PaperStep("statements", "Whom the statements are about", _made.statements_step),
        ),
    ),
    StudySection(
        "Section 4.1: convergence",
        (PaperStep("figure-1", "Figure 1: estimates over the error", _convergence.figure_1),),
    ),
    StudySection(
        "Section 4.2: deterministic networks",
        (
            PaperStep("figure-2", "Figure 2: robustness over accuracy", _deterministic.figure_2),
            PaperStep(
                "hyper-parameters",
                "Figure 2, boxes: hyper-parameters",
                _deterministic.hyper_parameters_step,
            ),
        ),
    ),
    StudySection(
        "Section 4.3: pruned networks",
        (PaperStep("figure-3", "Figure 3: pruning", _pruned.figure_3),),
    ),
    StudySection(
        "Section 4.4: Bayesian networks",
        (PaperStep("figure-4", "Figure 4: Bayesian networks", _bayesian.figure_4),),
    ),
    StudySection(
        "Beyond the paper",
        (PaperStep("proofs", "No attack found, and proven", _proofs.proofs_step),),
    ),
)

GLOBAL: PaperStudy[NetworkStudies] = PaperStudy(
    name="global",
    title="Robustness and accuracy of many networks",
    paper="Global adversarial robustness guarantees for neural networks (under review, 2019)",
    introduction=INTRODUCTION,
    read=read_studies,
    files=lambda source: source.files,
    sections=SECTIONS,
)
