"""Sets of classifiers as whole numbers: bit c is set where classifier c is a member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

__all__ = [
    "full_set",
    "heaviest",
    "is_within",
    "maximal",
    "members",
    "minimal",
    "set_of",
    "subsets_by_size",
    "weight_of",
]

Weights = Sequence[Fraction] | Sequence[float]


def set_of(classifiers: Iterable[int]) -> int:
    """The set that holds these classifiers."""
    mask = 0
    for classifier in classifiers:
        mask |= 1 << classifier
    return mask


def full_set(count: int) -> int:
    """The set of the first `count` classifiers."""
    return (1 << count) - 1


def members(mask: int) -> tuple[int, ...]:
    """The classifiers in a set, in order."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def is_within(inner: int, outer: int) -> bool:
    """Every member of `inner` is one of `outer`."""
    return inner & ~outer == 0


def maximal(masks: Iterable[int]) -> tuple[int, ...]:
    """The sets that lie in no other one, largest first."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (-m.bit_count(), m)):
        if not any(is_within(mask, larger) for larger in kept):
            kept.append(mask)
    return tuple(kept)


def minimal(masks: Iterable[int]) -> tuple[int, ...]:
    """The sets that hold no other one, smallest first."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (m.bit_count(), m)):
        if not any(is_within(smaller, mask) for smaller in kept):
            kept.append(mask)
    return tuple(kept)


def subsets_by_size(mask: int) -> Iterator[int]:
    """The non-empty subsets, smallest first."""
    inside = members(mask)
    for size in range(1, len(inside) + 1):
        for chosen in combinations(inside, size):
            yield set_of(chosen)


def weight_of(mask: int, weights: Weights) -> Fraction | float:
    """The weights of the members, added up."""
    return sum((weights[c] for c in members(mask)), Fraction(0))


def heaviest(weights: Weights, forbidden: Sequence[int], universe: int) -> int:
    """The subset of `universe` of largest weight that holds no forbidden set; maximal as well.

    Exact: it branches on which member of a forbidden set to leave out. Weights are not negative.
    """
    best = 0
    best_weight: Fraction | float = -1.0
    stack: list[tuple[int, int]] = [(universe, 0)]  # a candidate, and what it must keep
    while stack:
        candidate, kept = stack.pop()
        weight = weight_of(candidate, weights)
        if weight <= best_weight:
            continue
        violated = next((mask for mask in forbidden if is_within(mask, candidate)), None)
        if violated is None:
            best, best_weight = candidate, weight
            continue
        branches = []
        for classifier in sorted(members(violated & ~kept), key=lambda c: weights[c]):
            branches.append((candidate & ~(1 << classifier), kept))
            kept |= 1 << classifier
        stack.extend(reversed(branches))
    for classifier in members(universe & ~best):
        grown = best | 1 << classifier
        if not any(is_within(mask, grown) for mask in forbidden):
            best = grown
    return best
