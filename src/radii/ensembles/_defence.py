"""Advice to both sides: which mix of classifiers to play, and the best attack of a few parts.

The defender's mix is drawn anew for every input. What it loses at most follows from proofs, what it
loses at least from replayed inputs, so that mixes can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from radii.ensembles._ensemble import full_set, maximal, members, weight_of
from radii.ensembles._game import (
    AllowedSets,
    DeterministicAttack,
    FoolableSets,
    ListedSets,
    simple_distribution,
    value_of,
)
from radii.errors import SpecificationError

BEST_MIX, UNIFORM_MIX = "best mix", "uniform mix"

MOST_PROFILES = 2000
"""Numbers of points fooled, one for each classifier, that a choice of few attacks is made from."""

MOST_LISTED_CLASSIFIERS = 12
"""Of an ensemble whose sets are listed: 4,096 at each point."""


@dataclass(frozen=True, slots=True)
class Defence:
    """Weights of the classifiers, which add up to 1, and what the best attacker makes of them.

    His mean loss is proven to be at most `upper`; replayed inputs attain `lower`.
    """

    name: str
    weights: tuple[Fraction, ...]
    lower: Fraction
    upper: Fraction


def defence_of(
    name: str,
    weights: Sequence[Fraction],
    fooled: Sequence[ListedSets],
    possible: Sequence[AllowedSets],
) -> Defence:
    """What a mix of classifiers concedes, given the sets fooled and not excluded at each point."""
    return Defence(name, tuple(weights), _loss(weights, fooled), _loss(weights, possible))


def _loss(weights: Sequence[Fraction], families: Sequence[FoolableSets]) -> Fraction:
    losses = (weight_of(family.heaviest(weights), weights) for family in families)
    return Fraction(sum(losses, Fraction(0))) / len(families)


# Mixes of a limited number of deterministic attacks. All that matters of an attack is its profile:
# at how many points it fools each classifier. An integer program chooses the best few profiles.


def allowed_as_listed(family: AllowedSets) -> ListedSets:
    """The largest allowed sets, one by one."""
    count = family.universe.bit_length()
    if count > MOST_LISTED_CLASSIFIERS:
        raise SpecificationError(
            f"a number of attacks is for up to {MOST_LISTED_CLASSIFIERS} classifiers, but there "
            f"are {count}"
        )
    return ListedSets(maximal(s for s in range(full_set(count) + 1) if family.allows(s)))


def best_of_few(
    families: Sequence[ListedSets], classifiers: int, attacks: int
) -> tuple[Fraction, tuple[DeterministicAttack, ...]]:
    """The best value of a mix of at most `attacks` deterministic attacks, and that mix.

    The mix attains its value exactly; that none is better is believed, as HiGHS says so.
    """
    if attacks < 1:
        raise SpecificationError(f"attacks {attacks} must be at least 1")
    profiles = _profiles(families, classifiers)
    losses = np.array(list(profiles), float).reshape(len(profiles), classifiers)
    shares = _chosen(losses / len(families), attacks)
    least = sorted(shares, reverse=True)[:attacks][-1]
    shares = [share if share >= least else 0.0 for share in shares]  # the rest is rounding
    parts = [
        DeterministicAttack(share, sets)
        for share, sets in zip(simple_distribution(shares), profiles.values(), strict=True)
        if share
    ]
    mixes: list[dict[int, Fraction]] = [{} for _ in families]
    for part in parts:
        for mix, mask in zip(mixes, part.sets, strict=True):
            mix[mask] = mix.get(mask, Fraction(0)) + part.probability
    return value_of(mixes, classifiers), tuple(parts)


def _profiles(
    families: Sequence[ListedSets], classifiers: int
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Every profile that no other one exceeds, with sets that have it, point by point."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {(0,) * classifiers: ()}
    for family in families:
        grown: dict[tuple[int, ...], tuple[int, ...]] = {}
        for profile, sets in found.items():
            for mask in family.sets or (0,):
                inside = set(members(mask))
                more = tuple(n + (c in inside) for c, n in enumerate(profile))
                grown.setdefault(more, (*sets, mask))
        found = _undominated(grown)
        if len(found) > MOST_PROFILES:
            raise SpecificationError(
                f"a number of attacks is for games with up to {MOST_PROFILES} ways to fool all "
                "points, but these have more: take fewer points"
            )
    return found


def _undominated(
    profiles: dict[tuple[int, ...], tuple[int, ...]],
) -> dict[tuple[int, ...], tuple[int, ...]]:
    rows = np.array(list(profiles), np.int64)
    kept = {}
    for row, (profile, sets) in zip(rows, profiles.items(), strict=True):
        is_better = (rows >= row).all(axis=1) & (rows > row).any(axis=1)
        if not is_better.any():
            kept[profile] = sets
    return kept


def _chosen(losses: np.ndarray[tuple[int, ...], np.dtype[np.float64]], attacks: int) -> list[float]:
    """Probabilities of the profiles, at most `attacks` above 0, with the largest least loss."""
    import highspy

    count, classifiers = losses.shape
    solver: Any = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", 0.0)
    value = solver.addVariable(0.0, 1.0)
    shares = [solver.addVariable(0.0, 1.0) for _ in range(count)]
    solver.addConstr(sum(shares) == 1)
    for classifier in range(classifiers):
        solver.addConstr(
            sum(float(losses[i, classifier]) * shares[i] for i in range(count)) >= value
        )
    if attacks < min(count, classifiers):  # otherwise a vertex has few enough by itself
        chosen = [solver.addBinary() for _ in range(count)]
        for share, is_chosen in zip(shares, chosen, strict=True):
            solver.addConstr(share <= is_chosen)
        solver.addConstr(sum(chosen) <= attacks)
    solver.maximize(value)
    return [float(solver.val(share)) for share in shares]
