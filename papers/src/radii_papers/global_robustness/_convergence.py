"""Section 4.1 and Figure 1: how estimates gather as the error that is asked for shrinks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from radii.datasets import load_spec
from radii.errors import DataError
from radii.networks import load_network
from radii.runs import DataSource, GlobalRobustness, estimate_robustness, settings_for
from radii.statistics import Demand, RepeatedEstimates, plan_samples, repeat_estimates
from radii.store import Store
from radii.training import train
from radii.views import draw_repetition
from radii_papers._evidence import StudyClaim, fact
from radii_papers._steps import (
    Paragraph,
    Part,
    StudyFigure,
    StudySettings,
)
from radii_papers._tables import Beside, StudyTable
from radii_papers.global_robustness._networks import NetworkStudies

CONFIDENCE = 0.95
REPEATS = 50
"""Estimates at each error, as in the paper's figure."""

ERRORS = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.04, 0.03, 0.02)

PAPER_ERROR, PAPER_SAMPLES = 0.05, 700
"""The paper: 5 % is reached with just above 700 samples."""

JUST_ABOVE = 1.1
"""As much more as still is just above."""

CONVOLUTIONAL = "conv:4x5-8x5+32@relu"
EPS = 0.02
EPOCHS = 5
PROOF_SECONDS = 1.0
"""A small network, so that nearly every input is decided, as by the paper's exhaustive search; the
paper names neither its network nor its radius."""


def figure_1(source: NetworkStudies, settings: StudySettings) -> list[Part]:
    """Estimates of R by attack and by proof over the error, and what the paper says of them."""
    inputs = settings.pick(200, 740, 2700)
    measured = _measure(source, settings, inputs)
    proven = [each.lower for each in measured.inputs]
    unbroken = [each.upper for each in measured.inputs]
    errors = [e for e in ERRORS if plan_samples(e, CONFIDENCE).samples <= len(proven)]
    if not errors:
        raise DataError(f"{len(proven)} inputs are too few for an error of {ERRORS[0]:g}")
    series = {
        "by proof": repeat_estimates(proven, errors=errors, repeats=REPEATS),
        "not refuted": repeat_estimates(unbroken, errors=errors, repeats=REPEATS),
    }
    title = "Figure 1: 50 estimates of R for each error, and the inputs that each is made from"
    estimate = measured.estimate
    text = (
        f"A convolutional network ({CONVOLUTIONAL}, accuracy {_correct(measured):.3f}) "
        f"within {EPS:g} of {len(proven)} test images: {sum(proven):g} are proven robust, "
        f"{len(unbroken) - sum(unbroken):g} broken, and {sum(unbroken) - sum(proven):g} open "
        f"after {PROOF_SECONDS:g} s, so that R of these images is between {estimate.least:.4f} and "
        f"{estimate.most:.4f}. Dots are estimates from samples of them, each as large as the plan "
        f"for independent inputs asks at {100 * CONFIDENCE:g} %. They are drawn without "
        "replacement: one of more than half of the images must be close to all of them, so the "
        "claim at the top counts smaller ones alone."
    )
    return [
        Paragraph(text),
        StudyFigure("figure-1", title, lambda: draw_repetition(series)),
        _table(series["by proof"], series["not refuted"]),
        *convergence_claims(
            [each for own in series.values() for each in own if each.samples <= len(proven) / 2]
        ),
    ]


def _measure(source: NetworkStudies, settings: StudySettings, inputs: int) -> GlobalRobustness:
    """Train the network, and decide its inputs by attack and by proof; both are kept."""
    study = source.study("mnist", settings.scale)
    data, test = load_spec(study.data), load_spec(study.test)
    train(
        CONVOLUTIONAL,
        data,
        test=test.first(min(100, len(test))),
        epochs=EPOCHS,
        out=settings.folder / "network",
    )
    path = settings.folder / "network" / "network.onnx"
    with Store.create_or_open(settings.folder / "robustness") as store:
        return estimate_robustness(
            load_network(path, domain=(0.0, 1.0)),
            DataSource(test, name=study.test),
            settings_for(EPS, "both", timeout=PROOF_SECONDS),
            Demand(samples=min(inputs, len(test)), confidence=CONFIDENCE),
            store,
            path=str(path),
            jobs=settings.jobs,
            observer=settings.progress.inside(),
        )


def _correct(measured: GlobalRobustness) -> float:
    return float(np.mean([each.label == each.predicted for each in measured.inputs]))


def _table(
    proven: Sequence[RepeatedEstimates], unbroken: Sequence[RepeatedEstimates]
) -> StudyTable:
    """For each error: the plan, and how far the estimates really were off."""
    rows = []
    for one, two in zip(proven, unbroken, strict=True):
        off = [np.abs(each.least - each.truth[0]).max() for each in (one, two)]
        printed = str(PAPER_SAMPLES) if one.error == PAPER_ERROR else ""
        rows.append((one.error, Beside(one.samples, printed), max(map(float, off)),
                     round(REPEATS * (one.missed + two.missed))))  # fmt: skip
    columns = ("error", "inputs", "furthest estimate", f"missed, of {2 * REPEATS}")
    title = (
        "Figure 1: inputs that an error needs, and how far estimates were off; the paper's number "
        "is a rounded one (just above 700)"
    )
    return StudyTable("figure-1", title, columns, tuple(rows), ("g", "", ".4f", ""))


def convergence_claims(estimates: Sequence[RepeatedEstimates]) -> list[StudyClaim]:
    """The three statements of Section 4.1."""
    return [_within_claim(estimates), _samples_claim(), _growth_claim()]


def _within_claim(estimates: Sequence[RepeatedEstimates]) -> StudyClaim:
    """A theorem, which no number of estimates proves: they could only show an error of ours."""
    total = sum(len(each.least) for each in estimates)
    missed = sum(round(each.missed * len(each.least)) for each in estimates)
    return StudyClaim(
        "estimates from as many samples as the bound asks for are within the stated error of R, "
        "with the bound's probability",
        "Theorem 1, Section 4.1, Figure 1",
        "Hoeffding's inequality for independent numbers between 0 and 1",
        (fact("Theorem 1", True, "equation 4 is Hoeffding's inequality", rule="a theorem"),),
        note=f"Of {total} estimates from images of ours, whose R is known, {missed} are further "
        "off.",
    )


def _samples_claim() -> StudyClaim:
    """Both plans promise the same; the exact one holds for shares alone, as R is."""
    hoeffding = plan_samples(PAPER_ERROR, CONFIDENCE).samples
    exact = plan_samples(PAPER_ERROR, CONFIDENCE, method="exact").samples
    holds = PAPER_SAMPLES < hoeffding <= JUST_ABOVE * PAPER_SAMPLES
    shows = f"{hoeffding} samples at a confidence of 95 %, which the paper does not name"
    rule = f"above {PAPER_SAMPLES}, by a tenth at most"
    return StudyClaim(
        "an error of 5 % needs just above 700 samples",
        "Section 4.1",
        "the paper's equation 4",
        (fact("equation 4", holds, shows, rule=rule),),
        note=f"Exact limits of a share need {exact}.",
    )


def _growth_claim() -> StudyClaim:
    """ln N over ln(1 / error) has the slope of a power, over ln of nothing an exponential's."""
    small, large = 0.1, 0.001
    fewer, more = (plan_samples(error, CONFIDENCE).samples for error in (small, large))
    power = math.log(more / fewer) / math.log(small / large)
    shows = (
        f"N = ln(2 / 0.05) / (2 error^2), the power {power:.2f} of 1 / error: {fewer} samples for "
        f"{small:g}, {more} for {large:g}"
    )
    return StudyClaim(
        "the number of samples is exponential in the error",
        "Sections 3 and 4.1",
        "the paper's equation 4, solved for the number of samples",
        (fact("equation 4", abs(power - 2) >= 0.05, shows, rule="no power of 1 / error"),),
    )
