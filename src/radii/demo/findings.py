"""What a distribution shows, in plain sentences. Every number is computed from the brackets."""

from __future__ import annotations

import math

from radii.distributions import Distribution

__all__ = ["findings"]


def findings(distribution: Distribution, *, eps: float) -> list[str]:
    """Three sentences: how the median radii rank, robust accuracy at `eps`, how tight it all is.

    A network is called more robust than another only if the brackets of their medians are disjoint.
    """
    return [_ranking(distribution), _accuracy(distribution, eps), _tightness(distribution)]


def _ranking(distribution: Distribution) -> str:
    """Medians over all inputs: misclassified ones count, with radius 0."""
    medians = {name: part.quantile(0.5) for name, part in distribution.by_network().items()}
    if len(medians) == 1:
        ((name, median),) = medians.items()
        return f"The median radius of {name} is {_known(*median)}."
    best = max(medians, key=lambda name: medians[name])
    worst = min(medians, key=lambda name: medians[name])
    if medians[best][0] < medians[worst][1]:
        return "The median radii of the networks overlap: none is shown to be more robust."
    leaders = [name for name in medians if medians[name][1] > medians[best][0]]
    largest = " and ".join(f"{name}, {_known(*medians[name])}," for name in leaders)
    place = "is the largest" if len(leaders) == 1 else "are the largest, and overlap"
    sentence = (
        f"The median {'radius' if len(leaders) == 1 else 'radii'} of {largest} {place}; "
        f"that of {worst} is {_known(*medians[worst])}"
    )
    if medians[worst][1] > 0:
        # Rounded down, so that "at least" stays true.
        factor = math.floor(10 * medians[best][0] / medians[worst][1]) / 10
        sentence += f", at least {factor:.1f} times smaller"
    return f"{sentence}."


def _accuracy(distribution: Distribution, eps: float) -> str:
    falls = [
        f"{name} from {part.correct.mean():.3f} to {part.robust_accuracy(eps)}"
        for name, part in distribution.by_network().items()
    ]
    return (
        f"When every pixel may change by {eps:g}, accuracy falls to [proven, not refuted]: "
        f"{', '.join(falls)}."
    )


def _tightness(distribution: Distribution) -> str:
    widths = distribution.upper - distribution.lower
    finite = widths[widths < math.inf]
    missing = sum(m.missing for m in distribution)
    parts = [
        f"{_count(len(distribution), 'bracket')} measured",
        f"{_count(missing, 'answer')} missing",
        f"{_count(len(widths) - len(finite), 'bracket')} without a counterexample",
    ]
    if finite.size:
        parts.append(f"the widest of the others is {finite.max():.4f}")
    return f"{', '.join(parts)}."


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _known(low: float, high: float) -> str:
    if low == high:
        return f"{low:.3f}"  # most inputs are misclassified
    return f"[{low:.3f}, {high:.3f})" if math.isfinite(high) else f"at least {low:.3f}"
