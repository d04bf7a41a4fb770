"""The study of "Robustness Verification for Classifier Ensembles", in the paper's order."""

from __future__ import annotations

from radii_papers._steps import PaperStep, PaperStudy, StudySection
from radii_papers.classifier_ensembles import (
    _attack_counts,
    _consistency,
    _known,
    _larger,
    _methods,
)
from radii_papers.classifier_ensembles._networks import EnsembleData, read_data

INTRODUCTION = (
    "Several classifiers, one attacker who mixes perturbations: the value of this game is the "
    "largest mean loss that a randomized attack forces on every classifier at once, and an "
    "ensemble is robust for alpha where the value is below it. The paper encodes the question, for "
    "a number |A| of attacks, as SMT and as integer programs (MILP, MaxMILP), and compares with a "
    "uniform (UA) and a best deterministic attacker (BDA). radii computes the value itself "
    "([ensembles](../ensembles.md)); here all methods run on the paper's rows. Every attack is "
    "replayed on ONNX Runtime before it counts. Each method is one command away: "
    "`radii ensemble verify`, `radii study baseline --method milp|maxmilp|smt|ua|bda`.",
    "Tables 1 to 3 of the paper are excerpts of Tables 4 to 6. Random games and ensembles are held "
    "against brute force in `tests/ensembles`.",
)

SECTIONS: tuple[StudySection[EnsembleData], ...] = (
    StudySection(
        "Sections 1 to 5: what can be known by hand",
        (
            PaperStep("known", "Known answers", _known.known_step),
            PaperStep("attack-counts", "The number of attacks", _attack_counts.attack_counts_step),
        ),
    ),
    StudySection(
        "Section 6 and appendix: the tables",
        (
            PaperStep("networks", "The benchmark, rebuilt", _methods.networks_step),
            PaperStep("table-4", "Table 4: SMT and MILP", _methods.table_4),
            PaperStep("table-5", "Table 5: MILP and MaxMILP", _methods.table_5),
            PaperStep("table-6", "Table 6: attackers", _methods.table_6),
            PaperStep("answers", "All methods side by side", _methods.answers_step),
            PaperStep("consistency", "The tables by themselves", _consistency.consistency_step),
        ),
    ),
    StudySection(
        "Beyond the paper",
        (
            PaperStep("five", "Larger networks", _larger.five_step),
            PaperStep("twelve", "Twelve classifiers", _larger.twelve_step),
            PaperStep("defence", "What the defender should play", _larger.defence_step),
        ),
    ),
)

ENSEMBLES: PaperStudy[EnsembleData] = PaperStudy(
    name="ensembles",
    title="Study: ensembles against randomized attacks",
    paper=(
        "Gross, Jansen, Pérez and Raaijmakers, Robustness Verification for Classifier Ensembles, "
        "ATVA 2020"
    ),
    introduction=INTRODUCTION,
    read=read_data,
    files=lambda data: data.files,
    sections=SECTIONS,
)
