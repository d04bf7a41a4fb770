"""The papers that `radii study` knows, by the names that it gives them.

To add one: a package beside `distributions` with a `PaperStudy`, and its name here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line lists the papers' names without loading what studies need
    from radii_papers._steps import PaperStudy

PAPERS = {
    "distributions": (
        "Robustness Distributions in Neural Network Verification (JAIR)",
        "distributions._study:DISTRIBUTIONS",
    ),
    "classes": (
        "Examining Per-Class Performance Bias via Robustness Distributions",
        "classes._study:CLASSES_STUDY",
    ),
    "properties": (
        "Neural Network Robustness as a Verification Property (CAV)",
        "properties._study:PROPERTIES",
    ),
    "global": (
        "Global Adversarial Robustness Guarantees for Neural Networks",
        "global_robustness._study:GLOBAL",
    ),
    "ensembles": (
        "Robustness Verification for Classifier Ensembles (ATVA)",
        "classifier_ensembles._study:ENSEMBLES",
    ),
}
"""What each is, and where its study is found when it is asked for."""


def paper_study(name: str) -> PaperStudy[Any]:
    """The study of one of the `PAPERS`."""
    module, _, attribute = PAPERS[name][1].partition(":")
    study: PaperStudy[Any] = getattr(import_module(f"radii_papers.{module}"), attribute)
    return study
