"""Every verifier of the registry passes the suite that plugins run."""

from __future__ import annotations

import pytest

from radii.testing import VerifierConformance
from radii.verifiers import Enumeration, Milp, Verifier


@pytest.mark.sampled(3)
class TestMilp(VerifierConformance):
    def make(self) -> Verifier:
        return Milp()


@pytest.mark.sampled(3)
class TestMilpWithIntegersOnly(VerifierConformance):
    """Nothing but the root relaxation before HiGHS' own integer solver."""

    def make(self) -> Verifier:
        return Milp(branches=0)


@pytest.mark.sampled(3)
class TestEnumeration(VerifierConformance):
    def make(self) -> Verifier:
        return Enumeration(max_units=40)
