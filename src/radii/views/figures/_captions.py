"""Captions of figures, as text: what is drawn, of how many inputs, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii.statistics import Distribution, inputs_with_radius, proof_scope
from radii.views.figures._kinds import figure_kind

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
    figure = figure_kind(kind)
    shows = figure.caption_at_eps if eps and figure.caption_at_eps else figure.caption
    sentences = [shows, _subject(distribution, source)]
    if eps and figure.eps == "first":
        sentences.append(f"At ε = {eps[0]:g}.")
    if eps and figure.eps in ("lines", "axis"):
        sentences.append(f"Lines are at ε = {', '.join(f'{value:g}' for value in eps)}.")
    if confidence is not None and figure.has_band:
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
