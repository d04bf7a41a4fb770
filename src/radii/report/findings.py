"""What a distribution shows, in plain sentences. Every number is computed from the brackets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from radii.distributions import Distribution
from radii.distributions.summaries import whose

__all__ = ["findings", "known_interval", "ranking", "tightness"]


def findings(distribution: Distribution, *, eps: float) -> list[str]:
    """Three sentences: how the median radii rank, robust accuracy at `eps`, how tight it all is.

    A network is called more robust than another only if the brackets of their medians are disjoint.
    """
    return [ranking(distribution), _accuracy(distribution, eps), tightness(distribution)]


def ranking(distribution: Distribution) -> str:
    """Medians over inputs that have a radius, as in the papers; misclassified ones have none."""
    parts = distribution.by_network()
    medians = {
        name: part.correctly_classified().median()
        for name, part in parts.items()
        if part.holds.any()
    }
    inputs = whose(distribution)
    if not medians:
        return f"There is no median radius: there are no {inputs}."
    absent = [f"{name} has no {inputs}." for name in parts if name not in medians]
    return " ".join([f"Over {inputs}, {_ranked(medians)}", *absent])


def _ranked(medians: Mapping[str, tuple[float, float]]) -> str:
    if len(medians) == 1:
        ((name, median),) = medians.items()
        return f"the median radius of {name} is {known_interval(*median)}."
    best = max(medians, key=lambda name: medians[name])
    # By its upper end: if even that is above the best's lower end, all have a value in common.
    worst = min(medians, key=lambda name: medians[name][::-1])
    if medians[best][0] < medians[worst][1]:
        return "the median radii of the networks overlap: none is shown to be more robust."
    leaders = [name for name in medians if medians[name][1] > medians[best][0]]
    largest = " and ".join(f"{name}, {known_interval(*medians[name])}," for name in leaders)
    place = "is the largest" if len(leaders) == 1 else "are the largest, and overlap"
    sentence = (
        f"the median {'radius' if len(leaders) == 1 else 'radii'} of {largest} {place}; "
        f"that of {worst} is {known_interval(*medians[worst])}"
    )
    if medians[worst][1] > 0:
        # Rounded down, so that "at least" stays true.
        factor = math.floor(10 * medians[best][0] / medians[worst][1]) / 10
        sentence += f", at least {factor:.1f} times smaller"
    return f"{sentence}."


def _accuracy(distribution: Distribution, eps: float) -> str:
    share = "accuracy" if distribution.is_about_label else "the share that keeps the property"
    falls = [
        f"{name} from {part.holds.mean():.3f} to {part.robust_accuracy(eps)}"
        for name, part in distribution.by_network().items()
    ]
    return (
        f"When every pixel may change by {eps:g}, {share} falls to [proven, not refuted]: "
        f"{', '.join(falls)}."
    )


def tightness(distribution: Distribution) -> str:
    widths = distribution.upper - distribution.lower
    closed = widths[widths < math.inf]
    unwitnessed = len(widths) - len(closed)
    missing, nothing = sum(m.missing for m in distribution), distribution.unsolved
    answers = _count(missing, "answer is missing", "answers are missing") or "no answer is missing"
    parts = [
        *([answers] if any(m.queries for m in distribution) else []),  # else nobody counted them
        _count(unwitnessed, "has no counterexample", "have no counterexample")
        or "each has a counterexample",
        *([f"{_count(nothing, 'has', 'have')} no proof either"] if nothing else []),
    ]
    if closed.size:
        parts.append(f"the widest{' of the others' if unwitnessed else ''} is {closed.max():.4f}")
    return f"{_count(len(widths), 'bracket', 'brackets')}: {', '.join(parts)}."


def _count(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}" if number else ""


def known_interval(low: float, high: float) -> str:
    """A bracket in three decimals, rounded outward so that it stays true."""
    if low == high:
        return f"{low:.3f}"
    proven = _rounded(low, ROUND_FLOOR)
    if high == math.inf:
        return f"at least {proven}"
    return f"[{proven}, {_rounded(high, ROUND_CEILING)})"


def _rounded(value: float, direction: str) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal("0.001"), direction)
