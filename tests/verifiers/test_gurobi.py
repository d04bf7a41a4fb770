"""Gurobi in the place of HiGHS' integer solver: the same answers, within its licence."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from radii.problem import Norm, Query, Verdict
from radii.testing import NetworkFamily, VerifierConformance, random_instance, random_network
from radii.verifiers import Gurobi, Limits, Milp, Verifier
from radii.verifiers._programs import program
from radii.verifiers.milp._gurobi import TooLarge, is_limited, minimise_with_gurobi, refusal

is_here = pytest.mark.skipif(refusal() is not None, reason=str(refusal()))
has_limit = pytest.mark.skipif(
    refusal() is not None or not is_limited(), reason="Gurobi's licence here has no limit of size"
)


@is_here
@pytest.mark.sampled(3)
class TestConformance(VerifierConformance):
    def make(self) -> Verifier:
        return Gurobi()


@is_here
@pytest.mark.parametrize("family", list(NetworkFamily))
def test_radii_are_those_of_milp(family: NetworkFamily) -> None:
    network = random_network(family, 5, units=14)
    instance = random_instance(network, 2)
    theirs = Gurobi().radius(network, instance, Limits(60))
    ours = Milp(branches=10**9).radius(network, instance, Limits(60))
    assert theirs.stopped is None and ours.stopped is None
    assert theirs.lower == pytest.approx(ours.lower, abs=1e-5)
    assert theirs.upper == pytest.approx(ours.upper, abs=1e-5)


@has_limit
def test_a_model_beyond_the_licence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = random_network(NetworkFamily.DENSE, 0, units=4, inputs=2000)
    assert "2000 columns" in str(Gurobi().unsupported(wide, Norm.LINF))
    many = np.ones(2001)
    too_large = program(0 * many, many, [], many, integers=[0])
    options: dict[str, Any] = {"cutoff": 0.0, "room": 1.0, "limits": Limits(), "threads": 1}
    with pytest.raises(TooLarge, match="the model has 2001 columns and 0 rows"):
        minimise_with_gurobi(too_large, visit=lambda _: False, **options)

    def refuse(*_: object, **__: object) -> None:
        raise TooLarge("too large")

    network = random_network(NetworkFamily.DENSE, 0, units=4)
    instance = random_instance(network, 0)
    monkeypatch.setattr(Milp, "run", refuse)
    monkeypatch.setattr(Milp, "measure", refuse)
    result = Gurobi().verify(network, Query(instance, 0.1))
    assert result.verdict is Verdict.ERROR and result.message == "too large"
    assert Gurobi().radius(network, instance).stopped is Verdict.ERROR


def test_without_the_package_it_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(NetworkFamily.DENSE, 0, units=4)
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    assert "radii[gurobi]" in str(Gurobi().unsupported(network, Norm.LINF))
