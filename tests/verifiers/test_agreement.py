"""Attack, exact radius and binary search with complete queries never contradict each other."""

from __future__ import annotations

import math

import pytest

from radii.attacks import MinimumNorm
from radii.attacks._minimum_norm import STAGES
from radii.networks import Network
from radii.problem import Grid, Instance, Norm, Query, Verdict
from radii.strategy import Binary, QuestionKind
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import Limits, Milp
from radii.verifiers._case import farthest

NETWORKS = 500
BY_DEFAULT = 12
SECONDS = 60.0


def case(seed: int) -> tuple[Network, Instance]:
    """The seed-th network, dense and convolutional in turn, with an instance in Linf or L1."""
    family = (NetworkFamily.DENSE, NetworkFamily.CONVOLUTIONAL)[seed % 2]
    network = random_network(family, seed, units=40)
    return network, random_instance(network, seed, norm=(Norm.LINF, Norm.L1)[seed // 2 % 2])


def searched(network: Network, instance: Instance) -> Binary:
    """Binary search with complete queries on a grid over everything that can be reached."""
    reach = farthest(instance)
    search = Binary(Grid(reach / 64, reach, reach / 64))
    while (question := search.ask()) is not None:
        assert question.kind is QuestionKind.PROVE
        query = Query(instance, question.eps)
        result = Milp().verify(network, query, Limits(SECONDS))
        assert result.verdict in (Verdict.ROBUST, Verdict.NOT_ROBUST), result.message
        search.tell(question, result)
    return search


def check(seed: int) -> None:
    network, instance = case(seed)
    exact = Milp().radius(network, instance, Limits(SECONDS))
    assert exact.stopped is None and not exact.message
    query = Query(instance, farthest(instance))
    attacked = MinimumNorm(stages=STAGES[:1]).attack(network, [query], seed=0)[0]
    search = searched(network, instance)

    upper = math.inf if attacked.witness is None else attacked.witness.distance
    if not instance.holds:
        assert exact.lower == exact.upper == upper == search.bracket.upper == 0
        return
    assert exact.lower < exact.upper
    assert exact.lower < upper
    assert exact.lower < search.bracket.upper
    assert search.bracket.lower < exact.upper
    assert search.bracket.lower < upper
    assert not search.disagreements
    if exact.upper < math.inf:
        assert exact.upper - exact.lower < 2e-2 * exact.upper + 1e-6
        assert exact.optimum is not None
        assert exact.lower <= exact.optimum <= exact.upper * (1 + 1e-4) + 1e-6


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(BY_DEFAULT))
def test_some_of_them_agree(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(BY_DEFAULT, NETWORKS))
def test_all_of_them_agree(seed: int) -> None:
    check(seed)
