"""What a distribution shows, in plain sentences. Every number is computed from the brackets."""

from __future__ import annotations

import math

from radii.distributions import Distribution

__all__ = ["findings"]


def findings(distribution: Distribution, *, eps: float) -> list[str]:
    """Sentences: the most and the least robust network, robust accuracy at `eps`, how tight.

    A network is called more robust than another only where the brackets of their median radii do
    not overlap.
    """
    return [*_ranking(distribution), _accuracy(distribution, eps), _tightness(distribution)]


def _ranking(distribution: Distribution) -> list[str]:
    """The median over all inputs, so that misclassified ones count, with radius 0."""
    medians = {name: part.quantile(0.5) for name, part in distribution.by_network().items()}
    best = max(medians, key=lambda name: medians[name])
    worst = min(medians, key=lambda name: medians[name])
    if len(medians) == 1:
        return [f"The median radius of {best} is {_between(*medians[best])}."]
    if medians[best][0] < medians[worst][1]:
        return ["The median radii of the networks overlap: none is shown to be more robust."]
    rivals = [name for name in medians if name != best and medians[name][1] > medians[best][0]]
    leaders = f"{best} is the most robust" if not rivals else f"{best} is among the most robust"
    sentence = (
        f"{leaders}: its median radius is {_between(*medians[best])}, "
        f"that of {worst} is {_between(*medians[worst])}"
    )
    factor = medians[best][0] / medians[worst][1] if medians[worst][1] > 0 else math.inf
    if math.isfinite(factor):
        tenths = math.floor(10 * factor) / 10  # rounded down: "at least" stays true
        sentence += f", so at least {tenths:.1f} times smaller"
    return [sentence + "."]


def _accuracy(distribution: Distribution, eps: float) -> str:
    shares = {
        name: (part.robust_accuracy(0.0).not_refuted, part.robust_accuracy(eps))
        for name, part in distribution.by_network().items()
    }
    parts = [f"{name} falls from {clean:.3f} to {share}" for name, (clean, share) in shares.items()]
    return (
        f"When every pixel may change by {eps:g}, accuracy over all inputs is in "
        f"[proven, not refuted]: {'; '.join(parts)}."
    )


def _tightness(distribution: Distribution) -> str:
    widths = distribution.upper - distribution.lower
    unwitnessed = int((~(widths < math.inf)).sum())
    missing = sum(m.missing for m in distribution)
    finite = widths[widths < math.inf]
    widest = f"the widest bracket is {finite.max():.4f} wide" if finite.size else ""
    counted = [
        f"{missing} answers are missing" if missing else "no answer is missing",
        f"{unwitnessed} brackets have no counterexample" if unwitnessed else "",
        widest,
    ]
    return f"Of {len(distribution)} brackets: {', '.join(text for text in counted if text)}."


def _between(low: float, high: float) -> str:
    return f"in [{low:.3f}, {high:.3f})" if math.isfinite(high) else f"at least {low:.3f}"
