"""What `radii global` says: one estimate with where its width comes from, or R at every eps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from radii.runs import GlobalRobustness
from radii.statistics import CurvePoint, Distribution, Estimate, proof_scope
from radii.views.tables._records import TableColumn, TableRecord

MOST_POINTS = 60
"""Rows of a curve that are shown; --csv and --json have all."""


def estimate_sentences(measured: GlobalRobustness) -> Iterator[str]:
    """A line for each thing to know of an estimate."""
    name, estimate = measured.measure, measured.estimate
    what = "share of inputs" if name == "R" else "mean over inputs"
    yield (
        f"{name} of {measured.network}: {what}, {measured.asked}, {measured.norm} {measured.eps:g}"
    )
    yield f"  {name} {_limits(estimate)} with {100 * estimate.confidence:g} % confidence"
    yield f"  about       {estimate.population}; {estimate.population.sampling}"
    yield f"  sample      {estimate.samples} inputs, seed {measured.seed}; {measured.reason}"
    yield f"  found       {_of_sample(estimate)} by {measured.by} ({estimate.method} limits)"
    yield (
        f"  width       {estimate.high - estimate.low:.4f}: sampling "
        f"{estimate.sampling_width:.4f}, open brackets {estimate.bracket_width:.4f}"
    )
    if measured.arithmetic is not None:
        yield f"  proofs      hold {measured.arithmetic.scope}"
    if measured.attacked is not None:
        known = f"{_of_sample(measured.attacked)}, {_limits(measured.attacked)}"
        words = "as if no change were larger than the attack found; D is at least that"
        if name == "R":
            words = "as if all were robust that the attack did not break; R is at most that"
        yield f"  attack only {known}: {words}"
    if measured.threshold is not None:
        decision = {True: "yes", False: "no", None: "cannot be said"}[measured.decision]
        yield f"  decision    {name} >= {measured.threshold:g}: {decision}"


def _limits(estimate: Estimate) -> str:
    return f"in [{estimate.low:.4f}, {estimate.high:.4f}]"


def _of_sample(estimate: Estimate) -> str:
    if estimate.bracket_width == 0:
        return f"{estimate.least:.4f}"
    return f"between {estimate.least:.4f} and {estimate.most:.4f}"


def curve_parts(
    curves: Mapping[str, Sequence[CurvePoint]], distribution: Distribution, confidence: float
) -> Iterator[TableRecord | str]:
    """R at every eps at once, a table for each network."""
    for name, part in distribution.by_network().items():
        curve = curves[name]
        by_class = " and classes" if any(point.label is not None for point in curve) else ""
        step = max(1, math.ceil(len(curve) / MOST_POINTS))
        yield (
            f"R of {name}, all eps{by_class} at once with {100 * confidence:g} % confidence, from "
            f"{len(part)} inputs drawn independently (i.i.d. statement)"
        )
        note = f"every {step}th of {len(curve)} points; --csv or --json give all"
        yield TableRecord(
            title=None,
            columns=[
                TableColumn("class", lambda p: "all" if p.label is None else str(p.label)),
                TableColumn("eps", lambda p: p.eps, ".5g"),
                TableColumn("of the sample", lambda p: f"{p.proven:.3f} to {p.not_refuted:.3f}"),
                TableColumn("of all inputs", lambda p: f"{p.low:.3f} to {p.high:.3f}"),
            ],
            rows=curve[::step],
            notes=[note] if step > 1 else [],
        )
    if scope := proof_scope(distribution):
        yield scope
