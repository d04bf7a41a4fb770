"""Captions of figures, as text: what is drawn, of how many inputs, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii.statistics import Distribution, inputs_with_radius, proof_scope

_BAND = "The thick line is the witnessed side, the thin one the proven; what lies between is open."
_MEDIANS = "Each cell is the median of the proven sides."

CAPTIONS = {
    "ecdf": f"Share of inputs that are broken within the radius ε. {_BAND}",
    "robust-accuracy": f"Share of inputs that are right and stay right within ε. {_BAND}",
    "satisfaction": f"Share of inputs for which the property is proven to hold within ε. {_BAND}",
    "security": "Share of inputs for which no attack breaks the property within ε.",
    "box": "Quantiles of the radii. Each is known as an interval: proven below, witnessed above.",
    "histogram": "Share of inputs by the bin of their radius. Bars are the most likely shares; the "
    "hatched part lies between the inputs whose radius is surely in the bin and those whose radius "
    "may be. Radii beyond the last bin are named in words.",
    "density": "Density of the radii: the most likely distribution of the brackets, smoothed. It "
    "does not show how far brackets leave it open; a histogram does.",
    "gaps": "How far the witnessed side of an input's bracket lies above the proven side.",
    "times": "Share of inputs that were finished within a time.",
    "fit": "Fitted families over the distribution of the radii, with the test of the best.",
    "qq": "Quantiles of the radii over those of the fitted family; on the line they agree.",
    "scatter": "Each input's radii on two networks, and Spearman's coefficient.",
    "claims": "Proofs that one result claims against counterexamples of the other: a point below "
    "the line is a claim that is refuted.",
    "correlations": "Spearman's coefficients between the radii of every two networks; a star marks "
    "those that differ from 0 after Holm's correction.",
    "leads": "Which of two networks is more robust at which ε: a lead is claimed only where one is "
    "proven beyond what is not refuted of the other.",
    "classes": f"Radii by class and network; n is the number of inputs. {_MEDIANS}",
    "targets": f"Radii by class and target. {_MEDIANS}",
    "closest": "Towards which class the inputs of each class break first.",
    "ks": "Kolmogorov-Smirnov statistic between the proven radii of every two groups. Blue cells "
    "differ at 5 % after Holm's correction over the matrix, pale ones only if each test is taken "
    "alone.",
    "fairness": "Largest robust recall of a class less the smallest, over ε. Both sides of the "
    "band are what brackets leave possible.",
    "gains": "What the robust recall of each class gains from the first network to the second.",
    "convergence": "Estimates of robust accuracy at one ε from samples of planned size.",
}
"""By kind of figure: what it shows, in one or two sentences."""

CAPTIONS_AT_EPS = {
    "classes": "Proven robust recall by class and network; n is the number of inputs.",
    "targets": "Proven share of inputs that are safe from the target, by class and target.",
}
"""The same for kinds that show something else at an eps."""

AT_FIRST_EPS = ("classes", "targets", "gains", "convergence")
LINES_AT_EPS = (
    *("ecdf", "robust-accuracy", "satisfaction", "security", "box", "histogram", "density"),
    *("leads", "fairness"),
)
WITH_BANDS = (
    *("ecdf", "robust-accuracy", "satisfaction", "security", "histogram", "leads", "convergence"),
)
"""Which kinds an eps, several of them, and a confidence change."""

NORM_NAMES = {"linf": "L-infinity", "l2": "L2", "l1": "L1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSource:
    """What results say of themselves: the names of their data sets, and their norms."""

    data: tuple[str, ...] = ()
    norms: tuple[str, ...] = ()


def caption(
    kind: str,
    distribution: Distribution,
    *,
    source: FigureSource | None = None,
    eps: Sequence[float] = (),
    confidence: float | None = None,
) -> str:
    """The caption of a figure, a sentence a line, without markup."""
    source = source or FigureSource()
    shows = CAPTIONS_AT_EPS.get(kind, CAPTIONS[kind]) if eps else CAPTIONS[kind]
    sentences = [shows, _subject(distribution, source)]
    if eps and kind in AT_FIRST_EPS:
        sentences.append(f"At ε = {eps[0]:g}.")
    if eps and kind in LINES_AT_EPS:
        sentences.append(f"Lines are at ε = {', '.join(f'{value:g}' for value in eps)}.")
    if confidence is not None and kind in WITH_BANDS:
        sentences.append(
            f"Each band holds for all inputs with {100 * confidence:g} % confidence, at every ε at "
            "once."
        )
    wrong = int((~distribution.holds).sum())
    if wrong:
        sentences.append(
            f"{wrong} of {len(distribution)} results are of inputs that are wrong without any "
            f"change: shares count them, and radii are of {inputs_with_radius(distribution)}."
        )
    if distribution.unsolved:
        sentences.append(f"{distribution.unsolved} results have no answer.")
    if scope := proof_scope(distribution):
        sentences.append(f"{scope[0].upper()}{scope[1:]}.")
    return "\n".join(sentences) + "\n"


def _subject(distribution: Distribution, source: FigureSource) -> str:
    sizes = {name: len(part) for name, part in distribution.by_network().items()}
    names = list(sizes)
    networks = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    low, high = min(sizes.values()), max(sizes.values())
    count = f"n = {low}" if low == high else f"n = {low} to {high}"
    each = " each" if len(names) > 1 else ""
    data = f", {' and '.join(source.data)}" if source.data else ""
    norms = ", ".join(NORM_NAMES.get(norm, norm) for norm in source.norms)
    return f"Networks: {networks}; {count}{each}{data}{f'; {norms} distance' if norms else ''}."
