"""What the example package adds passes the suites that radii's own families pass."""

from __future__ import annotations

import pytest

from radii import attacks, problem, strategy, verifiers
from radii.attacks import Attack
from radii.problem import Grid, Instance, Norm, Property
from radii.strategy import Search
from radii.testing import (
    AttackConformance,
    LinearClassifier,
    PropertyConformance,
    SearchConformance,
    VerifierConformance,
)
from radii.verifiers import Verifier

pytestmark = pytest.mark.usefixtures("example_package")


@pytest.mark.sampled(3, "family")
class TestBoundsAlone(VerifierConformance):
    def make(self) -> Verifier:
        return verifiers.get("bounds-alone")


@pytest.mark.sampled(3, "family", "table")
class TestRandomCorners(AttackConformance):
    def make(self) -> Attack:
        return attacks.get("random-corners")


@pytest.mark.sampled(8)
class TestThirds(SearchConformance):
    def make(self, grid: Grid) -> Search:
        return strategy.make("thirds", grid)

    def most_proofs(self) -> float:
        return 2 * super().most_proofs()


class TestAmongTwo(PropertyConformance):
    def make(self) -> Property:
        return problem.parse_property("among-top")


class TestAmongOne(PropertyConformance):
    """The label stays the largest: as one-to-any."""

    def make(self) -> Property:
        return problem.parse_property("among-top:k=1")

    def radius(self, classifier: LinearClassifier, instance: Instance) -> float:
        return classifier.radius(instance.input, instance.label, Norm.LINF)
