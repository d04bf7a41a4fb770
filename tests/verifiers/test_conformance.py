"""Every verifier of the registry passes the suite that plugins run."""

from __future__ import annotations

from radii.testing import VerifierConformance
from radii.verifiers import Enumeration, Milp, Verifier


class TestMilp(VerifierConformance):
    def make(self) -> Verifier:
        return Milp()


class TestMilpWithIntegersOnly(VerifierConformance):
    """Nothing but the root relaxation before HiGHS' own integer solver."""

    def make(self) -> Verifier:
        return Milp(branches=0)


class TestEnumeration(VerifierConformance):
    def make(self) -> Verifier:
        return Enumeration(max_units=40)
