"""No proof covers an input at which the runtime breaks the property."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from benchmarks.soundness.families import FRAGILE_FAMILIES, fragile
from benchmarks.soundness.known import KNOWN_CASES, FragileCase
from benchmarks.soundness.search import find_break, find_break_in_orders
from radii.errors import UnsupportedQuery
from radii.problem import FLOAT, Query, Verdict
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp, Verifier

VERIFIERS = (BranchAndBound, Milp, Enumeration)
DECIDED = [
    *(("overflowing-unit", kind) for kind in VERIFIERS),
    *(("distant-corner", kind) for kind in VERIFIERS),
    *(("rescaled-product", kind) for kind in VERIFIERS),
    ("cancelled-logits", BranchAndBound),
    ("underflowing-softmax", BranchAndBound),
]
"""The known cases, and who takes them; those that end in a Softmax are not piecewise linear."""
SHARES = (1.0, 0.98, 0.8, 0.5, 0.2)
"""Of the radius at which there is trouble, from the largest on."""
SECONDS = 0.5
VARIANTS, MANY_VARIANTS = range(3), range(200)
GENERATED, MANY_GENERATED = range(7), range(7, 300)


def uncovered(case: FragileCase, verifier: Verifier) -> None:
    """The largest of some balls that the verifier proves holds no break, in any execution."""
    instance, network = case.instance, case.network
    if verifier.unsupported(network, instance.norm, instance.kind) is not None:
        return
    for share in SHARES:
        eps = share * case.eps
        try:
            result = verifier.verify(network, Query(instance, eps), Limits(seconds=SECONDS))
        except UnsupportedQuery:
            return
        if result.verdict is Verdict.ROBUST:
            found = find_break(network, instance, eps, seed=case.seed)
            where = f"{case.family} {case.seed}: {verifier.name} proves {eps}"
            assert found is None, f"{where}, broken at {found.distance}: {found.outputs}"
            other = find_break_in_orders(network, instance, eps, seed=case.seed)
            assert other is None, f"{where}, broken in {other[0]} order at {other[1].distance}"
            return


def all_uncovered(families: Iterable[str], seeds: Iterable[int], verifier: Verifier) -> None:
    for seed in seeds:
        for family in families:
            uncovered(fragile(family, seed), verifier)


def test_every_known_case_is_asked_about() -> None:
    assert {family for family, _ in DECIDED} == set(KNOWN_CASES)


@pytest.mark.parametrize(("family", "kind"), DECIDED)
def test_known_cases(family: str, kind: type[BranchAndBound | Milp | Enumeration]) -> None:
    all_uncovered([family], VARIANTS, kind(arithmetic=FLOAT))


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kind"), DECIDED)
def test_known_cases_at_length(
    family: str, kind: type[BranchAndBound | Milp | Enumeration]
) -> None:
    all_uncovered([family], MANY_VARIANTS, kind(arithmetic=FLOAT))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", GENERATED)
def test_generated_networks(seed: int) -> None:
    """The fastest verifier that decides a family by itself."""
    all_uncovered(FRAGILE_FAMILIES, [seed], Milp(arithmetic=FLOAT))


@pytest.mark.slow
@pytest.mark.parametrize("kind", VERIFIERS)
@pytest.mark.parametrize("family", sorted(FRAGILE_FAMILIES))
def test_generated_networks_at_length(
    family: str, kind: type[BranchAndBound | Milp | Enumeration]
) -> None:
    all_uncovered([family], MANY_GENERATED, kind(arithmetic=FLOAT))
